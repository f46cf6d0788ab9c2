"""Completion of matrices of labels."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.completion import Completion, warn_of_clicks
from bifactor.estimators.inputs import observations
from bifactor.models.block_views import BlockView, Labels
from bifactor.models.fitting import Settings
from bifactor.models.scoring import left_out_scores
from bifactor.models.settings import settings
from bifactor.models.two_classes import ADVICE, above, check_binarize, signs, two_classes
from bifactor.tables import BlockStore, Observations
from bifactor.tables.matrices import is_triples

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
    alpha : float or "auto"
        The ridge: u, v, b and c are normal a priori, with variance 1/alpha; with "auto", b and c may have another
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
    alpha_, offset_alpha_ : float
        The ridges used, of u and v, and of b and c; the second is None without offsets.
    ridge_path_ : RidgePath or None
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
        *,
        n_components: int | str = 10,
        link: str = "logistic",
        alpha: float | str = "auto",
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
        self.alpha = alpha
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
        return self._told(self.decision_function(rows, cols, unknown))["prediction"]

    def _told(self, z: Array) -> dict[str, Array]:
        return {"prediction": self.classes_[(z > 0).astype(np.intp)], "probability": self.model_.loss.mean(z)}

    def accuracy(self, X: Any) -> float:
        """Share of the known entries of X whose class is predicted correctly, with predictions as in `score`."""
        check_is_fitted(self, "model_")
        data = self._encoded(observations(self, X, reset=False), reset=False)
        if data.values.size == 0:
            raise InputError("No entry of X is known, so the score is undefined. Pass at least one known entry.")
        told = self.model_.scores(data.rows, data.cols) if is_triples(X) else left_out_scores(self.model_, data)
        return float(np.mean((told > 0) == (data.values > 0)))

    def _settings(self) -> Settings:
        if self.link not in LINKS:
            raise InputError(f"link={self.link!r} is unknown. Pass one of {', '.join(LINKS)}.")
        check_binarize(self.binarize)
        names = ("n_components", "alpha", "offsets", "solver", "max_iter", "tol", "verbose", "random_state")
        return settings(loss=self.link, **{name: getattr(self, name) for name in names})

    def _view(self, store: BlockStore) -> BlockView:
        classes = np.array([0.0, 1.0])
        if self.binarize is None:
            if store.levels is None:
                raise InputError(f"{store.folder} contains more than 256 different values, not two. {ADVICE}")
            classes = two_classes(store.levels, ADVICE)
        self.classes_ = classes
        return BlockView(store, Labels((float(classes[0]), float(classes[1])), self.binarize))

    def _encoded(self, data: Observations, reset: bool) -> Observations:
        values = above(data.values, self.binarize)
        if reset:
            warn_of_clicks(data)
            self.classes_ = np.array([0.0, 1.0]) if self.binarize is not None else two_classes(values, ADVICE)
        return data.replaced(signs(values, self.classes_))

    def _decoded(self, values: Array) -> Array:
        return (values + 1) / 2
