"""Completion of matrices of numbers and of labels."""

from typing import Any, Literal, overload

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.data import BlockDataset, Observations
from bifactor.data.dataset import MAX_LEVELS
from bifactor.data.observations import is_triples
from bifactor.errors import InputError
from bifactor.estimators.base import Completion, ErrorBars, warn_of_clicks
from bifactor.estimators.validation import observations
from bifactor.losses import Ordinal
from bifactor.models.completion.clipping import Range
from bifactor.models.completion.fitting import CompletionSettings, validate_settings
from bifactor.models.completion.labels import ADVICE, Labels, above_threshold, check_binarize, signs, two_classes
from bifactor.models.metrics import left_out_scores


class MatrixCompletion(ErrorBars, Completion):
    """Completes a matrix from some known entries: μ + bᵢ + cⱼ + uᵢ·vⱼ, under a loss of your choice.

    Numbers such as ratings need no tuning: b, c, u and v have a posterior, whose priors and noise are estimated, so
    that each prediction has an error bar. A ridge is used instead if `ridge` is passed, and for other losses; by
    default it is the one that best predicts a held-out tenth of the entries.

    Parameters
    ----------
    n_components : int or "auto"
        The rank, reduced to the smaller side of the matrix if necessary; 0 for offsets alone, which "auto" may choose.
        Too many components do little harm, as those that explain nothing vanish; "auto" removes these.
    loss : {"squared", "huber", "logistic", "probit", "poisson", "negative_binomial", "ordinal"} or Loss
        Type of the entries: numbers, numbers with outliers, ±1, counts, grades. The δ of "huber" is fitted to the
        residuals, unless you pass `losses.Huber(delta)`. For grades, `predict` returns the mean
        and `predict_proba` the probability of each; `model_.loss.median` of `decision_function` is the median.
    ridge : float or "auto", optional
        The ridge of u and v; 0 for none, "auto" for the one that predicts best. By default there is a posterior for
        squared errors, and "auto" for other losses. For numbers it has their unit: if y is multiplied by 10, so is the
        ridge of the same fit. With "auto", offsets have their own ridge if that predicts better; else theirs is
        ridge/s, where s is the standard deviation of numbers, and 1 for losses with a link.
    noise : {"auto", "one", "columns", "rows", "both", "student"}
        Noise of the posterior: one variance for all entries, one for each column, row or both, or Student's t;
        see `bifactor.solvers.Variational`. "auto" takes the one that best predicts a held-out tenth of the entries.
    offsets : bool
        Fit an intercept and an offset for every row and column.
    clip : {"auto", True, False} or (float, float)
        Range of predictions, their intervals and scores: that of the data (True), the one that is passed, or unlimited
        (False). "auto" clips grades, such as 1 to 5: at most 101 equally spaced values, and only at an end that at
        least one in a hundred entries, and at least ten, take. `recommend` ranks before it clips; `decision_function`
        and `sample` do not clip. Only for "squared" and "huber".
    solver : Solver, optional
        By default `Variational` for a posterior, otherwise the default of `bifactor.solve`.
    max_iter, tol
        Maximum number of iterations and tolerance of the fit.
    warm_start : bool
        Start from the previous fit if it has the same shape and rank.
    user_features, item_features : matrix, frame or path, optional
        Features of rows and columns, such as ages and genres: the prior mean of bᵢ and uᵢ is then fᵢA for a row with
        the features fᵢ, and that of cⱼ and vⱼ likewise. Rows and columns without entries are predicted from their
        features alone. See `Recommender` for accepted forms. A posterior ignores features if a held-out tenth of the
        entries is predicted clearly worse with them, by two standard errors. For rows, or columns, without entries it
        also ignores them if all entries of a held-out tenth of the rows, or columns, are predicted worse with them;
        these are then predicted by what best explains the entries of all others. With features, the number of sweeps
        is the one that predicted these entries best.
    keep_features : bool
        Use features in any case. They may help rows and columns without entries even if they harm the others.
    implicit_features : {"auto", True, False}
        Whether the set of known columns of a row, regardless of their values, is informative about the row, and
        likewise for columns (SVD++). "auto" decides by a held-out tenth of the entries for a posterior, and is False
        for a ridge.
    executor : Executor, optional
        Where passes over a block store run: `executors.Streamed(memory="2GB")` on this machine, which is the default,
        or `executors.Dask(client)` on others. Data in memory do not need one.
    n_jobs : int, optional
        Number of threads; -1 for all cores, None for the setting of `bifactor.threads` or the environment.
    verbose : int
        1 shows what is being chosen and fitted, with counts and an upper bound of the remaining time.
    random_state : int, RandomState or None
        Seed of the start and of the held-out entries.

    Attributes
    ----------
    components_ : array, n_components_ × n columns
        The v of each column.
    row_factors_ : array, n rows × n_components_
        The u of each row.
    intercept_, row_offsets_, column_offsets_
        μ, b and c; zero without offsets.
    n_components_ : int
        The rank of the fit.
    noise_ : float or None
        Standard deviation of the noise, averaged over entries; this and the next two are None without a posterior.
    evidence_ : float or None
        Lower bound of the log evidence, in nats: the log probability density of the entries under the model.
    noise_search_ : Search or None
        How the noise was chosen, and whether features help.
    features_used_ : bool
        Whether `user_features` and `item_features` are used: False if there are none, or if they do harm.
    ridge_, offset_ridge_ : float or None
        The ridges used, of u and v, and of the offsets; None with a posterior, the second also without offsets.
    ridge_search_ : Search or None
        How the ridge was chosen.
    clip_ : tuple of two floats, or None
        Range of predictions; an end may be infinite.
    result_ : Result
        The run, with its history.
    row_names_, column_names_ : Names or None
        Names of rows and columns, after `fit_long`.
    fit_ : Fit
        The fit as an object independent of scikit-learn: see `bifactor.models.Fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    """

    def __init__(
        self,
        n_components: int | str = 10,
        *,
        loss: Any = "squared",
        ridge: float | str | None = None,
        noise: str = "auto",
        offsets: bool = True,
        clip: str | bool | tuple[float, float] = "auto",
        solver: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        user_features: Any = None,
        item_features: Any = None,
        keep_features: bool = False,
        implicit_features: bool | str = "auto",
        executor: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.loss = loss
        self.ridge = ridge
        self.noise = noise
        self.offsets = offsets
        self.clip = clip
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.user_features = user_features
        self.item_features = item_features
        self.keep_features = keep_features
        self.implicit_features = implicit_features
        self.executor = executor
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def features_used_(self) -> bool:
        given = self.user_features is not None or self.item_features is not None
        return given and not self.model_.dropped_features

    @property
    def levels_(self) -> Array:
        """The grades whose probabilities `predict_proba` returns, if the loss is one of grades."""
        return np.asarray(_grades(self).levels)

    @property
    def clip_(self) -> Range | None:
        return self.model_.clip

    @overload
    def predict(
        self, rows: Any, cols: Any = None, unknown: str = "mean", return_std: Literal[False] = False
    ) -> Array: ...

    @overload
    def predict(
        self, rows: Any, cols: Any = None, unknown: str = "mean", *, return_std: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(self, rows: Any, cols: Any = None, unknown: str = "mean", return_std: bool = False) -> Any:
        """Predict the entries (rows[t], cols[t]).

        Without `cols`, `rows` is a frame of pairs after `fit_long`, or a table of new rows as for `transform`; then all
        their entries are predicted.

        Parameters
        ----------
        rows, cols : sequences
            Numbers, or names after `fit_long`. A scalar is broadcast against the other side; for two scalars the result
            is a scalar.
        unknown : {"mean", "raise"}
            How to treat a name that was not in the fit: as one without entries, with a warning (`predict_long` has a
            column for it), or raise `InputError`.
        return_std : bool
            Also return the standard deviation of a new measurement, which includes the uncertainty of the matrix and
            the noise. Only with a posterior.
        """
        z = self.decision_function(rows, cols, unknown)
        told = self.model_.predicted(z)
        return (told, self._std(rows, cols)) if return_std else told

    @available_if(lambda self: self.loss == "ordinal" or isinstance(self.loss, Ordinal))  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Array:
        """Probabilities of the `levels_` at entries passed as for `predict`; only with loss="ordinal"."""
        return _grades(self).probabilities(self.decision_function(rows, cols, unknown))

    def _prediction_columns(self, z: Array) -> dict[str, Array]:
        return {"prediction": self.model_.predicted(z)}

    def _settings(self) -> CompletionSettings:
        names = ["n_components", "loss", "ridge", "noise", "offsets", "clip", "solver", "max_iter", "tol"]
        names += ["verbose", "random_state", "keep_features", "implicit_features"]
        return validate_settings(**{name: getattr(self, name) for name in names})

    def _encode(self, data: Observations, reset: bool) -> Observations:
        if reset:
            warn_of_clicks(data)
        return data

    def _decode(self, values: Array) -> Array:
        return values


def _grades(model: MatrixCompletion) -> Ordinal:
    """The loss of a fit to grades; raises `AttributeError` for other losses, as for attributes that do not exist."""
    check_is_fitted(model, "model_")
    if not isinstance(model.model_.loss, Ordinal):
        kind = type(model.model_.loss).__name__
        raise AttributeError(f"The loss of this fit is {kind}, which has no levels. Fit with loss='ordinal'.")
    return model.model_.loss


# Completion of matrices of labels.

LINKS = ("logistic", "probit")


class OneBitCompletion(Completion):
    """Completes a matrix of two classes from some known entries: P(upper) = σ(μ + bᵢ + cⱼ + uᵢ·vⱼ).

    Labels that a matrix of this rank separates drive the factors to infinity, so that without a ridge a best fit need
    not exist. The default ridge on b, c, u and v maximises the likelihood of a held-out tenth of the entries; it is
    never 0 unless you pass 0.

    Parameters
    ----------
    n_components : int or "auto"
        The rank, reduced to the smaller side of the matrix if necessary; 0 for offsets alone, which "auto" may choose.
    link : {"logistic", "probit"}
        The function σ: 1/(1 + e^{−z}), or the normal distribution function.
    ridge : float or "auto"
        The ridge: u, v, b and c are normal a priori, with variance 1/ridge; with "auto", b and c may have another
        variance than u and v. With 0, the fit may stop only at `max_iter`.
    offsets : bool
        Fit an intercept and an offset for every row and column.
    binarize : float, optional
        Threshold: entries above it have class 1, others class 0. By default X must contain two values: 0 and 1,
        −1 and +1, booleans, or any two numbers.
    solver : Solver, optional
        By default that of `bifactor.solve`.
    max_iter, tol
        Maximum number of iterations and tolerance of the fit.
    warm_start : bool
        Start from the previous fit if it has the same shape and rank.
    executor : Executor, optional
        Where passes over a block store run: `executors.Streamed(memory="2GB")` on this machine, which is the default,
        or `executors.Dask(client)` on others. Data in memory do not need one.
    n_jobs : int, optional
        Number of threads; -1 for all cores, None for the setting of `bifactor.threads` or the environment.
    verbose : int
        1 shows a progress bar.
    random_state : int, RandomState or None
        Seed of the start and of the held-out entries.

    Attributes
    ----------
    classes_ : array of two
        The lower and the upper class.
    components_ : array, n_components_ × n columns
        The v of each column.
    row_factors_ : array, n rows × n_components_
        The u of each row.
    intercept_, row_offsets_, column_offsets_
        μ, b and c; zero without offsets.
    n_components_ : int
        The rank of the fit.
    ridge_, offset_ridge_ : float
        The ridges used, of u and v, and of b and c; the second is None without offsets.
    ridge_search_ : Search or None
        How the ridge was chosen.
    result_ : Result
        The run, with its history.
    row_names_, column_names_ : Names or None
        Names of rows and columns, after `fit_long`.
    fit_ : Fit
        The fit as an object independent of scikit-learn: see `bifactor.models.Fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    M. A. Davenport, Y. Plan, E. van den Berg and M. Wootters, 1-Bit matrix completion, Inf. Inference 3 (2014).
    """

    def __init__(
        self,
        n_components: int | str = 10,
        *,
        link: str = "logistic",
        ridge: float | str = "auto",
        offsets: bool = True,
        binarize: float | None = None,
        solver: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        executor: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.link = link
        self.ridge = ridge
        self.offsets = offsets
        self.binarize = binarize
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.executor = executor
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def predict_proba(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Array:
        """Probabilities of the two `classes_`, one pair for each entry that `predict` would return."""
        z = self.decision_function(rows, cols, unknown)
        return np.stack([self.model_.loss.mean(-z), self.model_.loss.mean(z)], axis=-1)

    def predict(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Array:
        """The more likely of the two `classes_` at the entries (rows[t], cols[t]).

        Without `cols`, `rows` is a frame of pairs after `fit_long`, or a table of new rows as for `transform`; then all
        their entries are predicted. `unknown` is "mean" or "raise", see `MatrixCompletion.predict`.
        """
        return self._prediction_columns(self.decision_function(rows, cols, unknown))["prediction"]

    def _prediction_columns(self, z: Array) -> dict[str, Array]:
        return {"prediction": self.classes_[(z > 0).astype(np.intp)], "probability": self.model_.loss.mean(z)}

    def accuracy(self, X: Any) -> float:
        """Share of the known entries of X whose class is predicted correctly, with predictions as in `score`."""
        check_is_fitted(self, "model_")
        data = self._encode(observations(self, X, reset=False), reset=False)
        if data.values.size == 0:
            raise InputError("No entry of X is known, so the score is undefined. Pass at least one known entry.")
        told = self.model_.scores(data.rows, data.cols) if is_triples(X) else left_out_scores(self.model_, data)
        return float(np.mean((told > 0) == (data.values > 0)))

    def _settings(self) -> CompletionSettings:
        if self.link not in LINKS:
            raise InputError(f"link={self.link!r} is unknown. Pass one of {', '.join(LINKS)}.")
        check_binarize(self.binarize)
        names = ("n_components", "ridge", "offsets", "solver", "max_iter", "tol", "verbose", "random_state")
        return validate_settings(loss=self.link, **{name: getattr(self, name) for name in names})

    def _view(self, store: BlockDataset) -> BlockDataset:
        classes, levels = np.array([0.0, 1.0]), store.summary().levels
        if self.binarize is None:
            if levels is None:
                raise InputError(f"{store!r} contains more than {MAX_LEVELS} different values, not two. {ADVICE}")
            classes = two_classes(levels, ADVICE)
        self.classes_ = classes
        return store.recode(Labels((float(classes[0]), float(classes[1])), self.binarize))

    def _encode(self, data: Observations, reset: bool) -> Observations:
        values = above_threshold(data.values, self.binarize)
        if reset:
            warn_of_clicks(data)
            self.classes_ = np.array([0.0, 1.0]) if self.binarize is not None else two_classes(values, ADVICE)
        return data.replaced(signs(values, self.classes_))

    def _decode(self, values: Array) -> Array:
        return (values + 1) / 2
