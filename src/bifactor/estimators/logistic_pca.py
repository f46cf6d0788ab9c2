"""Principal components of binary data."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.estimators.loss_pca import LossPCA
from bifactor.losses import Logistic
from bifactor.models.two_classes import ADVICE, above, check_binarize, signs, two_classes
from bifactor.operators.full_table import Table


class LogisticPCA(LossPCA):
    """Principal components of a binary matrix, with or without missing entries: log odds = μⱼ + tᵢ·wⱼ.

    The components w are orthonormal, in descending order of the length of their scores t; the largest entry of each is
    positive. The effects μ of columns are always fitted, with a ridge a hundred times smaller than the others, which
    keeps them finite in columns of one class. The scores of new rows maximise the likelihood of their known entries,
    under the ridge of the fit; for the rows of the fit they are the scores of the fit.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components. "auto" tries 1, 2, 3, 5, … 40, each with its own ridge, until the prediction of a held-out
        tenth of the entries stops improving. If alpha is a number, "auto" keeps those of 40 that the ridge leaves.
    alpha : float or "auto"
        The ridge: the factors u and v of t·w = u·v, which have equal length, are normal a priori with variance 1/alpha.
        "auto" takes the one that maximises the likelihood of a held-out tenth of the entries. With 0, the fit may stop
        only at `max_iter`, as separable data drive the factors to infinity.
    binarize : float, optional
        Threshold: entries above it are 1, others 0. By default X must contain two values: 0 and 1, −1 and +1, booleans,
        or any two numbers.
    solver : Solver, optional
        By default `solvers.PCG(exact=True)`, started where the choice of the ridge ended. If alpha is a number, and
        nothing is chosen, `solvers.RankContinuation(PCG(exact=True), stage_decrease=1e-4)`.
    max_iter, tol
        Maximum number of iterations and tolerance of the fit.
    warm_start : bool
        Start from the previous fit if it has the same shape and rank.
    n_jobs : int, optional
        Number of threads; -1 for all cores, None for the setting of `bifactor.threads` or the environment.
    verbose : int
        1 shows a progress bar.
    random_state : int, RandomState or None
        Seed of the start and of the held-out entries.

    Attributes
    ----------
    components_ : array, n_components × n columns
        w; zero for components that the ridge removed.
    intercept_ : array, n columns
        μ.
    deviance_explained_ : float
        Share of the deviance of a null model, the mean of each column, that the components explain; the effects
        of columns are fitted without a ridge beside them, as in the null model.
    explained_deviance_ratio_ : array, n_components
        Contributions of the components to that share, each ≥ 0, when they are added in their order. Until the last one
        is there, they are shortened if that lowers the deviance.
    classes_ : array of two
        The lower and the upper value.
    alpha_ : float
        The ridge used.
    ridge_path_ : RidgePath or None
        How the ridge was chosen.
    result_ : Result
        The run, with its history.
    n_components_, n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    A. I. Schein, L. K. Saul and L. H. Ungar, A generalized linear model for principal component analysis of binary
    data, AISTATS 2003. J. de Leeuw, Principal component analysis of binary data by iterated singular value
    decomposition, Comput. Stat. Data Anal. 50 (2006).
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        alpha: float | str = "auto",
        binarize: float | None = None,
        solver: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.binarize = binarize
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to the known entries of X.

        Parameters
        ----------
        X : array, frame or sparse matrix
            Two values, and NaN for missing entries. Entries that a sparse matrix does not store are 0.
        y : ignored
        sample_weight : array, optional
            One weight per row, or one per entry.
        """
        check_binarize(self.binarize)
        chosen = self._settings("logistic")
        return self._fitted(X, self._labels(X, sample_weight, reset=True), chosen)

    def transform(self, X: Any) -> Array:
        """Scores of rows, from their known entries."""
        check_is_fitted(self, "model_")
        return self._scores(self._labels(X, None, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Share of deviance explained in rows; a fifth of the entries at a time is predicted from the rest."""
        check_is_fitted(self, "model_")
        return self._left_out(self._labels(X, None, reset=False))

    def _labels(self, X: Any, weights: Any, reset: bool) -> Table:
        X = self._entries(X, reset)
        stored, rest = (X.data, np.zeros(1, X.dtype)) if sparse.issparse(X) else (X, np.empty(0, X.dtype))
        known = ~np.isnan(stored)
        stored, rest = above(stored, self.binarize), above(rest, self.binarize)
        if reset:
            values = stored[known] if known.sum() == np.prod(X.shape) else np.concatenate([stored[known], rest])
            self.classes_ = np.array([0.0, 1.0]) if self.binarize is not None else two_classes(values, ADVICE)
        labels = np.full(stored.shape, np.nan, X.dtype)
        labels[known] = signs(stored[known], self.classes_)
        if not sparse.issparse(X):
            return Table(Logistic(), labels, -1.0, weights)
        beside = float(signs(rest, self.classes_)[0]) if known.sum() < np.prod(X.shape) else -1.0
        return Table(Logistic(), sparse.csr_array((labels, X.indices, X.indptr), shape=X.shape), beside, weights)
