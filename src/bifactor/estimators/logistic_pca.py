"""Principal components of binary data."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.estimators.loss_pca import LossPCA
from bifactor.losses import Logistic
from bifactor.models.two_classes import ADVICE, above, check_binarize, signs, two_classes
from bifactor.operators.table import Table


class LogisticPCA(LossPCA):
    """Principal components of a binary matrix, with or without holes: log odds = μⱼ + tᵢ·wⱼ.

    The components w are orthonormal and fall in the length of the scores t; of each the largest entry is positive. The
    effects μ of columns are always there, with a ridge a hundred times lighter than that of the rest, which keeps them
    finite in columns of one class. The scores of new rows maximise the likelihood of what is known of them, under the
    ridge of the fit; for the rows of the fit they are the scores of the fit.

    Parameters
    ----------
    n_components : int or "auto"
        "auto" tries 1, 2, 3, 5, … 40, each with a ridge of its own, until a tenth of the entries, held out, is told
        no better. Where alpha is given it takes what that leaves of 40.
    alpha : float or "auto"
        The ridge: the factors u and v of t·w = u·v, which are of equal length, are normal a priori with variance
        1/alpha. "auto" takes the one under which a tenth of the entries, held out, is most likely. With 0 the fit may
        only stop at `max_iter`, as data that few components separate drive it to infinity.
    binarize : float, optional
        Entries above it are 1, others 0. By default X must hold two values: 0 and 1, −1 and +1, booleans, or any two
        numbers.
    solver : Solver, optional
        By default `solvers.PCG(exact=True)` from where the choice of the ridge ended; with a number for alpha, where
        nothing is chosen, `solvers.RankContinuation(PCG(exact=True), stage_decrease=1e-4)`.
    max_iter, tol
        Of the fit.
    warm_start : bool
        Begin where the last fit of the same shape and rank ended.
    n_jobs : int, optional
        Threads; -1 for all cores, None for what `bifactor.threads` or the environment says.
    verbose : int
        1 shows a progress bar.
    random_state : int, RandomState or None

    Attributes
    ----------
    components_ : array, n_components × n columns
        w; zero where the ridge left nothing.
    intercept_ : array, n columns
        μ.
    deviance_explained_ : float
        The share of the deviance of a null model, the mean of each column, that the fit explains.
    explained_deviance_ratio_ : array, n_components
        What each component adds to that, in their order.
    classes_ : array of two
        The lower and the upper value.
    alpha_ : float
        The ridge that was used.
    ridge_path_ : RidgePath or None
        How it was chosen.
    result_ : Result
        The run, with its history.
    n_components_, n_iter_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

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
            With two values, and NaN where nothing is known. What a sparse matrix does not store is 0.
        y : ignored
        sample_weight : array, optional
            One weight per row, or one per entry.
        """
        check_binarize(self.binarize)
        chosen = self._settings("logistic")
        return self._fitted(X, self._labels(X, sample_weight, reset=True), chosen)

    def transform(self, X: Any) -> Array:
        """The scores of rows, of which some entries are known."""
        check_is_fitted(self, "model_")
        return self._scores(self._labels(X, None, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """The share of deviance explained in rows, each entry by scores that were found from other four fifths."""
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
