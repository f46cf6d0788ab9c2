"""Principal components under a loss: of binary data and of counts."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array, floating
from bifactor.arrays.sparse import require_sound
from bifactor.data.observations import is_triples
from bifactor.errors import InputError
from bifactor.estimators.base import CardMixin, warn_unless_converged
from bifactor.estimators.callbacks import CallbackSupportMixin, fit_watched
from bifactor.estimators.validation import require_wide, validate_factors, validate_table
from bifactor.kernels.blas import matmul
from bifactor.kernels.sparse_table import SparseTable
from bifactor.kernels.threading import threads
from bifactor.losses import Logistic, Loss, NegativeBinomial, Poisson
from bifactor.models.completion.fitting import CompletionSettings, validate_settings
from bifactor.models.completion.labels import ADVICE, above_threshold, check_binarize, signs, two_classes
from bifactor.models.pca import EFFECTS, deviances, fit_components, left_out_deviance, null_effects, refit_loss, rows_of
from bifactor.operators.full_table import FullTable
from bifactor.validation import is_at_least_zero, is_count


class LossPCA(CardMixin, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Finds a few directions, and the scores of each row along them, that make the known entries of X likely."""

    def inverse_transform(self, Z: Any) -> Array:
        """Predictions from scores of rows, in all columns."""
        check_is_fitted(self, "model_")
        Z = validate_factors(Z, self.n_components_)
        return self.model_.loss.mean(matmul(Z, self.components_.astype(Z.dtype)) + self.intercept_.astype(Z.dtype))

    def _settings(self, loss: Any) -> CompletionSettings:
        if self.n_components != "auto" and not is_count(self.n_components, 1):
            raise InputError(
                f"n_components={self.n_components!r} is not an integer ≥ 1. Pass the number of components, or 'auto'."
            )
        names = ("n_components", "ridge", "solver", "max_iter", "tol", "verbose", "random_state")
        chosen = validate_settings(loss=loss, offsets=False, **{name: getattr(self, name) for name in names})
        if chosen.n_components is None and chosen.ridge == 0:
            raise InputError("n_components='auto' needs a ridge, but ridge=0. Pass ridge='auto'.")
        return chosen

    def _entries(self, X: Any, reset: bool) -> Any:
        """X as an array with NaN for missing entries, or as a sparse array.

        Unlike in completion, entries that a sparse matrix does not store are 0.
        """
        if is_triples(X):
            raise InputError("X is a tuple of three vectors, not a table. Pass an array, a frame or a sparse matrix.")
        require_wide(X)
        if sparse.issparse(X):
            require_sound(X, "X")
        if np.ma.isMaskedArray(X):
            X = np.ma.filled(X.astype(np.result_type(X.dtype, np.float32)), np.nan)
        X = validate_table(self, X, reset, accept_sparse="csr")
        if reset and not sparse.issparse(X) and np.isnan(X).all():
            raise InputError("No entry of X is known. Pass at least one known entry.")
        return X

    def _fit_table(self, X: Any, table: FullTable, chosen: CompletionSettings) -> Self:
        m, n = table.shape
        if chosen.n_components is not None and chosen.n_components > min(m, n):
            raise InputError(
                f"n_components={self.n_components} is more than min(n_samples={m}, n_features={n}) allows. Pass fewer."
            )
        start = getattr(self, "model_", None) if self.warm_start else None
        model = fit_watched(self, X, table, chosen, start, fit_components)
        V = model.V[:, model.fixed_columns :]
        self.model_, self.result_, self.ridge_search_, self.ridge_ = model, model.result, model.path, model.ridge
        self._lengths = np.linalg.norm(V, axis=0).astype(V.dtype)
        self.components_ = np.divide(V, self._lengths, out=np.zeros_like(V), where=self._lengths > 0).T
        self.intercept_ = model.V[:, EFFECTS] + V.dtype.type(model.intercept)
        self.null_intercept_ = null_effects(table)
        self.n_components_ = int(self.components_.shape[0])
        self.n_iter_ = model.result.n_iter
        found, self.explained_deviance_ratio_ = deviances(table, model, self.null_intercept_)
        self.deviance_explained_ = found.explained
        warn_unless_converged(model)
        return self

    def _scores(self, table: FullTable) -> Array:
        """Scores of rows, from their known entries."""
        return rows_of(table, self.model_) * self._lengths

    def _left_out(self, table: FullTable) -> float:
        """Deviance explained; a fifth of the entries at a time is predicted from the rest."""
        return left_out_deviance(table, self.model_, self.null_intercept_).explained

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# Principal components of binary data.


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
        tenth of the entries stops improving. If ridge is a number, "auto" keeps those of 40 that the ridge leaves.
    ridge : float or "auto"
        The ridge: the factors u and v of t·w = u·v, which have equal length, are normal a priori with variance 1/ridge.
        "auto" takes the one that maximises the likelihood of a held-out tenth of the entries. With 0, the fit may stop
        only at `max_iter`, as separable data drive the factors to infinity.
    binarize : float, optional
        Threshold: entries above it are 1, others 0. By default X must contain two values: 0 and 1, −1 and +1, booleans,
        or any two numbers.
    solver : Solver, optional
        By default `solvers.PCG(exact=True)`, started where the choice of the ridge ended. If ridge is a number, and
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
    ridge_ : float
        The ridge used.
    ridge_search_ : Search or None
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
        ridge: float | str = "auto",
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
        self.ridge = ridge
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
        return self._fit_table(X, self._labels(X, sample_weight, reset=True), chosen)

    def transform(self, X: Any) -> Array:
        """Scores of rows, from their known entries."""
        check_is_fitted(self, "model_")
        return self._scores(self._labels(X, None, reset=False))

    def score(self, X: Any, y: Any = None) -> float:
        """Share of deviance explained in rows; a fifth of the entries at a time is predicted from the rest."""
        check_is_fitted(self, "model_")
        return self._left_out(self._labels(X, None, reset=False))

    def _labels(self, X: Any, weights: Any, reset: bool) -> FullTable:
        X = self._entries(X, reset)
        stored, rest = (X.data, np.zeros(1, X.dtype)) if sparse.issparse(X) else (X, np.empty(0, X.dtype))
        known = ~np.isnan(stored)
        stored, rest = above_threshold(stored, self.binarize), above_threshold(rest, self.binarize)
        if reset:
            values = stored[known] if known.sum() == np.prod(X.shape) else np.concatenate([stored[known], rest])
            self.classes_ = np.array([0.0, 1.0]) if self.binarize is not None else two_classes(values, ADVICE)
        labels = np.full(stored.shape, np.nan, X.dtype)
        labels[known] = signs(stored[known], self.classes_)
        if not sparse.issparse(X):
            return FullTable(Logistic(), labels, -1.0, weights)
        beside = float(signs(rest, self.classes_)[0]) if known.sum() < np.prod(X.shape) else -1.0
        return FullTable(Logistic(), sparse.csr_array((labels, X.indices, X.indptr), shape=X.shape), beside, weights)


# Principal components of counts.

FAINTEST = 0.5
"""Total count assumed for an empty row when exposures are found from totals."""


class PoissonPCA(LossPCA):
    """Principal components of a matrix of counts, with or without missing entries: log E[xᵢⱼ] = log eᵢ + μⱼ + tᵢ·wⱼ.

    e is the exposure of a row, such as the sequencing depth of a cell or the length of a text; it is passed, or found
    from the totals of rows. With a dispersion, counts are negative binomial. Components, effects of columns and scores
    are as in `LogisticPCA`.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components. "auto" tries 1, 2, 3, 5, … 40, each with its own ridge, until the prediction of a held-out
        tenth of the entries stops improving. If ridge is a number, "auto" keeps those of 40 that the ridge leaves.
    exposure : {None, "total"}
        Exposures if none are passed: all 1, or the total of a row relative to that of an average row, over its known
        columns.
    dispersion : float or "auto"
        φ in the variance μ + φμ² of a count with mean μ. 0 is Poisson; "auto" maximises the likelihood, together with
        components under a conservative ridge. With a dispersion, large counts weigh less.
    ridge : float or "auto"
        The ridge: the factors u and v of t·w = u·v, which have equal length, are normal a priori with variance 1/ridge.
        "auto" takes the one that maximises the likelihood of a held-out tenth of the entries.
    solver : Solver, optional
        By default `solvers.PCG(exact=True)`, started where the choice of the ridge ended. If ridge is a number, and
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
    exposure_ : array, n rows
        e for the rows of the fit.
    dispersion_ : float
        φ.
    deviance_explained_ : float
        Share of the deviance of a null model, the mean rate of each column, that the components explain; the effects
        of columns are fitted without a ridge beside them, as in the null model.
    explained_deviance_ratio_ : array, n_components
        Contributions of the components to that share, each ≥ 0, when they are added in their order. Until the last one
        is there, they are shortened if that lowers the deviance.
    ridge_ : float
        The ridge used.
    ridge_search_ : Search or None
        How the ridge was chosen.
    result_ : Result
        The run, with its history.
    n_components_, n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    M. Collins, S. Dasgupta and R. E. Schapire, A generalization of principal component analysis to the exponential
    family, NIPS 2001. F. W. Townes, S. C. Hicks, M. J. Aryee and R. A. Irizarry, Feature selection and dimension
    reduction for single-cell RNA-Seq based on a multinomial model, Genome Biol. 20 (2019).
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        exposure: str | None = None,
        dispersion: float | str = 0.0,
        ridge: float | str = "auto",
        solver: Any = None,
        max_iter: int = 1000,
        tol: float = 1e-5,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.exposure = exposure
        self.dispersion = dispersion
        self.ridge = ridge
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Fit to the known entries of X.

        Parameters
        ----------
        X : array, frame or sparse matrix
            Numbers ≥ 0, and NaN for missing entries. Entries that a sparse matrix does not store are 0.
        y : ignored
        sample_weight : array, optional
            One weight per row, or one per entry.
        exposure : array, n rows, optional
            e > 0; by default set by the parameter `exposure` of the estimator.
        """
        if self.exposure not in (None, "total"):
            raise InputError(f"exposure={self.exposure!r} is neither None nor 'total'. Pass numbers to fit.")
        loss = _loss_of(self.dispersion)
        chosen = self._settings(loss)
        table = self._counts(X, sample_weight, loss, reset=True)
        self._means = _means(table.sheet)
        self.exposure_ = self._exposures(table.sheet, exposure)
        table = table.shifted(np.log(self.exposure_))
        if self.dispersion == "auto":
            with threads(self.n_jobs):
                table = refit_loss(table, chosen)
        self.dispersion_ = 1 / table.loss.theta if isinstance(table.loss, NegativeBinomial) else 0.0
        return self._fit_table(X, table, chosen)

    def transform(self, X: Any, exposure: Any = None) -> Array:
        """Scores of rows, from their known entries."""
        check_is_fitted(self, "model_")
        table = self._counts(X, None, self.model_.loss, reset=False)
        return self._scores(table.shifted(np.log(self._exposures(table.sheet, exposure))))

    def score(self, X: Any, y: Any = None, exposure: Any = None) -> float:
        """Share of deviance explained in rows; a fifth of the entries at a time is predicted from the rest."""
        check_is_fitted(self, "model_")
        table = self._counts(X, None, self.model_.loss, reset=False)
        return self._left_out(table.shifted(np.log(self._exposures(table.sheet, exposure))))

    def _counts(self, X: Any, weights: Any, loss: Loss, reset: bool) -> FullTable:
        X = self._entries(X, reset)
        least = np.nanmin(X.data if sparse.issparse(X) else X, initial=0)
        if least < 0:
            raise InputError(f"Negative values in data: X contains {least:g}. Pass counts ≥ 0, and NaN if missing.")
        return FullTable(loss, X, 0.0, weights)

    def _exposures(self, counts: SparseTable, given: Any) -> Array:
        m = counts.shape[0]
        if given is None and self.exposure is None:
            return np.ones(m)
        if given is None:
            found, wanted = _row_totals(counts, self._means)
            least = FAINTEST / max(float(self._means.sum()), FAINTEST)
            return np.maximum(np.divide(found, wanted, out=np.ones(m), where=wanted > 0), least)
        e = floating(given, "exposure").astype(np.float64)
        if e.shape != (m,) or not np.all(np.isfinite(e) & (e > 0)):
            raise InputError(f"exposure has shape {e.shape} for {m} rows, or is not > 0. Pass one number > 0 per row.")
        return e

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def _loss_of(dispersion: Any) -> Loss:
    if dispersion == "auto":
        return NegativeBinomial()
    if not is_at_least_zero(dispersion):
        raise InputError(f"dispersion={dispersion!r} is not a number ≥ 0. Pass 0 for Poisson counts, or 'auto'.")
    return NegativeBinomial(1 / float(dispersion)) if dispersion > 0 else Poisson()


def _means(counts: SparseTable) -> Array:
    """Mean count of each column, over its known entries."""
    n, known = counts.shape[1], counts.weights > 0
    hidden = ~known & (counts.row_weights > 0)[counts.stored_rows]
    number = np.count_nonzero(counts.row_weights) - np.bincount(counts.cols[hidden], minlength=n)
    return np.bincount(counts.cols[known], counts.y[known], n) / np.maximum(number, 1)


def _row_totals(counts: SparseTable, means: Array) -> tuple[Array, Array]:
    """Total of each row, and the sum of the column means over its known columns."""
    m, known = counts.shape[0], counts.weights > 0
    found = np.bincount(counts.stored_rows[known], counts.y[known], m)
    hidden = np.bincount(counts.stored_rows[~known], means[counts.cols[~known]], m)
    return found, np.where(counts.row_weights > 0, means.sum() - hidden, 0.0)
