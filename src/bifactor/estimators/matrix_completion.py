"""Numbers with holes."""

from typing import Any, Literal, overload

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.estimators.completion import Completion, warn_of_clicks
from bifactor.estimators.error_bars import ErrorBars
from bifactor.losses import Ordinal
from bifactor.models.clipping import Range
from bifactor.models.fitting import Settings
from bifactor.models.settings import settings
from bifactor.tables import Observations


class MatrixCompletion(ErrorBars, Completion):
    """Completes a matrix of which some entries are known: μ + bᵢ + cⱼ + uᵢ·vⱼ, seen through a loss of your choice.

    Numbers, as ratings, need no tuning: b, c, u and v have a posterior, whose priors and noise are fitted, so that each
    prediction comes with an error bar. A ridge takes its place where `alpha` is passed, and for other losses, where it
    is the one that predicts a tenth of the entries, held out, best.

    Parameters
    ----------
    n_components : int or "auto"
        The rank, cut to the smaller side of the matrix where it is more; 0 for offsets alone, which "auto" may take.
        Too many do little harm, as those that explain nothing vanish; "auto" leaves these out.
    loss : {"squared", "huber", "logistic", "probit", "poisson", "negative_binomial", "ordinal"} or Loss
        What an entry means: a number, one with outliers, ±1, a count, a grade. Of grades, `predict` tells the mean,
        `predict_proba` how likely each is, and `model_.loss.median` of what `decision_function` tells the median.
    alpha : float or "auto", optional
        The ridge, in the units of the loss summed over entries; 0 for none, "auto" for the one that predicts best. By
        default there is a posterior for squared errors, and "auto" for other losses.
    noise : {"auto", "one", "columns", "rows", "both", "student"}
        Of the posterior: whether all entries have one variance, or each column, row or both its own, or Student's t;
        see `bifactor.solvers.Variational`. "auto" takes the one that predicts a tenth of the entries, held out, best.
    offsets : bool
        Fit an intercept and an offset for every row and column.
    clip : {"auto", True, False} or (float, float)
        The range that predictions, their intervals and scores are kept in: that of the data (True), the one that is
        passed, or none (False). "auto" clips grades, as 1 to 5: at most 101 points of equal steps, and only at an end
        that one in a hundred entries, and ten of them, take. What `recommend` and `decision_function` rank by is not
        clipped, and neither are draws. Only for "squared" and "huber".
    solver : Solver, optional
        By default `Variational` for a posterior, else what `bifactor.solve` takes.
    max_iter, tol
        Of the fit.
    warm_start : bool
        Begin where the last fit of the same shape and rank ended.
    user_features, item_features : matrix, frame or path, optional
        What else is known of rows and columns, such as ages and genres: bᵢ and uᵢ are then expected at fᵢA for a row
        with the features fᵢ, and cⱼ and vⱼ likewise. Rows and columns of which nothing else is known are predicted from
        these alone. See `Recommender` for the forms that they may have. A posterior leaves them out where a tenth of
        the entries, held out, is predicted clearly worse with them, by two standard errors; rows and columns without
        entries are then predicted by the means of the others. With them it ends after as many sweeps as predicted these
        entries best.
    keep_features : bool
        Use features in any case. They may help rows and columns without entries even where they harm the others.
    implicit_features : {"auto", True, False}
        Whether it tells of a row which columns it is known in, whatever the values, and of a column in which rows
        (SVD++). "auto" finds out by a tenth of the entries, held out, for a posterior, and is False for a ridge.
    executor : Executor, optional
        Where passes over a block store run: `executors.Streamed(memory="2GB")` on this machine, which is the default,
        or `executors.Dask(client)` on others. Data in memory do not need one.
    n_jobs : int, optional
        Threads; -1 for all cores, None for what `bifactor.threads` or the environment says.
    verbose : int
        1 shows what is chosen and fitted, with counts and the time that is left at most.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_ : array, n_components_ × n columns
        The v of each column.
    row_factors_ : array, n rows × n_components_
        The u of each row.
    intercept_, row_offsets_, column_offsets_
        μ, b and c; zero without offsets.
    n_components_ : int
    noise_ : float or None
        The standard deviation of the noise, on average over entries; None without a posterior, and so are the next two.
    evidence_ : float or None
        A lower bound of the log evidence, in nats: the probability density of the entries under the model.
    noise_choice_ : NoiseChoice or None
        How the noise was chosen, and whether features help.
    features_used_ : bool
        Whether `user_features` and `item_features` are used: False where there are none, or they do harm.
    alpha_ : float or None
        The ridge that was used; None with a posterior.
    ridge_path_ : RidgePath or None
        How it was chosen.
    clip_ : tuple of two floats, or None
        The range that predictions are kept in; an end may be infinite.
    result_ : Result
        The run, with its history.
    row_names_, column_names_ : Names or None
        The names of rows and columns, after `fit_long`.
    fit_ : Fit
        What has been fitted, free of scikit-learn: see `bifactor.models.Fit`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        n_components: int | str = 10,
        loss: Any = "squared",
        alpha: float | str | None = None,
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
        self.alpha = alpha
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
        """The grades whose probabilities `predict_proba` gives, where the loss is one of grades."""
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
        """What is to be expected at the entries (rows[t], cols[t]).

        Without `cols`, `rows` is a frame of pairs after `fit_long`; else a table of new rows as for `transform`, and
        all their entries are predicted.

        Parameters
        ----------
        rows, cols : sequences
            Numbers, or names after `fit_long`. A single one on one side goes with all of the other; of two single ones
            a single number is told.
        unknown : {"mean", "raise"}
            What to do about a name that was not in the fit: let it count with an offset of 0, with a warning
            (`predict_long` has a column for it), or raise `InputError`.
        return_std : bool
            Also return the standard deviation of a new measurement: uncertainty of the matrix and noise.
            Only with a posterior.
        """
        z = self.decision_function(rows, cols, unknown)
        told = self.model_.predicted(z)
        return (told, self._std(rows, cols)) if return_std else told

    @available_if(lambda self: self.loss == "ordinal" or isinstance(self.loss, Ordinal))  # type: ignore[untyped-decorator]
    def predict_proba(self, rows: Any, cols: Any = None, unknown: str = "mean") -> Array:
        """How likely each of the `levels_` is at the entries that `predict` takes; with loss="ordinal" only."""
        return _grades(self).probabilities(self.decision_function(rows, cols, unknown))

    def _told(self, z: Array) -> dict[str, Array]:
        return {"prediction": self.model_.predicted(z)}

    def _settings(self) -> Settings:
        names = ["n_components", "loss", "alpha", "noise", "offsets", "clip", "solver", "max_iter", "tol"]
        names += ["verbose", "random_state", "keep_features", "implicit_features"]
        return settings(**{name: getattr(self, name) for name in names})

    def _encoded(self, data: Observations, reset: bool) -> Observations:
        if reset:
            warn_of_clicks(data)
        return data

    def _decoded(self, values: Array) -> Array:
        return values


def _grades(model: MatrixCompletion) -> Ordinal:
    """The loss of a fit to grades; `AttributeError` where it has another, as of attributes that do not exist."""
    check_is_fitted(model, "model_")
    if not isinstance(model.model_.loss, Ordinal):
        kind = type(model.model_.loss).__name__
        raise AttributeError(f"The loss of this fit is {kind}, which has no levels. Fit with loss='ordinal'.")
    return model.model_.loss
