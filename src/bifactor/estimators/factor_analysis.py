"""Factor analysis and probabilistic principal components of a table with missing entries."""

import warnings
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array, generator
from bifactor.data.observations import fill_mask_with_nan
from bifactor.errors import InputError
from bifactor.estimators.base import CardMixin, factors_card
from bifactor.estimators.callbacks import CallbackSupportMixin, Look, run_watched
from bifactor.estimators.validation import validate_factors, validate_table
from bifactor.kernels.threading import threads
from bifactor.models.completion.fitting import seed_of
from bifactor.models.factor_analysis.fit import FactorModel, check_settings, fit_factors, search_rank
from bifactor.validation import is_count

ROUGH = 1e-2
"""Smallest tolerance of the fits that choose the number of components."""


class FactorAnalysis(CardMixin, CallbackSupportMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Factor analysis of a table with or without missing entries: xⱼ = μⱼ + u·wⱼ + noise, with u ~ N(0, I).

    The columns are Gaussian with the covariance WᵀW + Ψ, where Ψ is diagonal. It is fitted by variational Bayes: the
    loadings have a posterior, and the noise and a ridge for each component are estimated along with it. Nothing is
    filled in before the fit, so entries are assumed to be missing at random, given the known ones.

    Columns are standardised internally, so units do not matter if each column has its own noise.

    Parameters
    ----------
    n_components : int or "auto"
        Maximum number of components; those that explain nothing are dropped. "auto" takes the number with the largest
        bound of the evidence, up to 30.
    noise : "columns" or "one"
        Whether each column has its own noise variance, as in factor analysis, or all have the same, as in probabilistic
        principal component analysis.
    max_iter : int
        Maximum number of rounds.
    tol : float
        The fit ends when a round changes the predictions of missing entries by less than this, by root mean square, in
        standard deviations of their columns. If no entry is missing, the predictions of all entries count.
    n_jobs : int, optional
        Number of threads; -1 for all cores, None for the setting of `bifactor.threads` or the environment.
    random_state : int, RandomState or None
        Seed for the choice of 2000 rows that "auto" uses of a larger table.

    Attributes
    ----------
    components_ : array, n_components_ × n columns
        W, in the units of the columns, the largest component first.
    mean_, noise_variance_ : arrays, n columns
        μ and the diagonal of Ψ.
    n_components_ : int
        Number of components kept.
    rank_search_ : Search or None
        Evidence of the numbers of components that "auto" tried.
    bound_ : float
        Lower bound of the log evidence, which can be compared between settings.
    model_ : FactorModel
        The fit to standardised columns, with its posterior.
    center_, scale_ : arrays
        Shift and scale that standardised the columns.
    n_iter_, n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    M. E. Tipping and C. M. Bishop, Probabilistic principal component analysis, J. R. Stat. Soc. B 61 (1999). C. M.
    Bishop, Variational principal components, ICANN 1999. A. Ilin and T. Raiko, Practical approaches to principal
    component analysis in the presence of missing values, JMLR 11 (2010).

    Examples
    --------
    >>> import numpy as np
    >>> import bifactor as bf
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 8)) + 0.5 * rng.standard_normal((300, 8))
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = bf.FactorAnalysis().fit(X)
    >>> model.n_components_
    2
    >>> model.transform(X).shape
    (300, 2)
    """

    def __init__(
        self,
        n_components: int | str = "auto",
        *,
        noise: Literal["columns", "one"] = "columns",
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.noise = noise
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the known entries of X; missing entries are NaN."""
        check_settings(self.noise, self.max_iter, self.tol)
        auto = isinstance(self.n_components, str) and self.n_components == "auto"
        if not auto and not is_count(self.n_components, 0):
            raise InputError(f"n_components={self.n_components!r} is not an integer ≥ 0. Pass one, or 'auto'.")
        seed, table = seed_of(self.random_state), validate_table(self, fill_mask_with_nan(X), reset=True, order="C")
        if not auto and self.n_components > min(table.shape):
            m, n = table.shape
            fact = f"n_components={self.n_components} is more than min(n_samples={m}, n_features={n}) allows."
            raise InputError(f"{fact} Pass fewer, or 'auto'.")
        if np.all(np.isnan(table)):
            raise InputError("No entry of X is known. Pass at least one known entry.")
        self.center_, self.scale_ = _standardisation(table, common=self.noise == "one")
        Y = self._standardised(table)
        self.model_ = model = run_watched(self, X, self.max_iter, lambda look: self._factors(Y, seed, look))
        self.components_ = model.loadings.T * self.scale_
        self.mean_ = self.center_ + model.mean * self.scale_
        self.noise_variance_ = model.noise * self.scale_**2
        self.n_components_, self.n_iter_ = len(model.precisions), model.n_iter
        self.bound_ = model.bound - float(np.sum(~np.isnan(table) * np.log(self.scale_)))
        return self

    def _card(self) -> str:
        return factors_card(self) if hasattr(self, "model_") else ""

    def transform(self, X: Any) -> Array:
        """Scores of rows, new or not: the expectation of u, given their known entries."""
        table = self._table(X)
        with threads(self.n_jobs):
            return self.model_.rows(self._standardised(table)).means.astype(table.dtype)

    def inverse_transform(self, Z: Any) -> Array:
        """Predictions from scores of rows, in all columns."""
        check_is_fitted(self, "model_")
        Z = validate_factors(Z, self.n_components_)
        return Z @ self.components_.astype(Z.dtype) + self.mean_.astype(Z.dtype)

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of the known entries of each row, with its scores integrated out."""
        table = self._table(X)
        with threads(self.n_jobs):
            found = self.model_.log_likelihood(self._standardised(table))
        return found - ~np.isnan(table) @ np.log(self.scale_)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        return float(np.mean(self.score_samples(X)))

    def get_covariance(self) -> Array:
        """Covariance of the columns, WᵀW + Ψ."""
        check_is_fitted(self, "model_")
        return self.components_.T @ self.components_ + np.diag(self.noise_variance_)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw new rows with the mean and covariance of the fit."""
        check_is_fitted(self, "model_")
        if not is_count(n_samples, 1):
            raise InputError(f"n_samples={n_samples!r} is not an integer ≥ 1. Pass the number of rows.")
        rng = generator(seed_of(random_state))
        scores, noise = (rng.standard_normal((n_samples, k)) for k in (self.n_components_, len(self.mean_)))
        return scores @ self.components_ + self.mean_ + noise * np.sqrt(self.noise_variance_)

    def _factors(self, Y: Array, seed: int, look: Look | None) -> FactorModel:
        rank, settings = self.n_components, dict[str, Any](noise=self.noise, max_iter=self.max_iter)
        self.rank_search_ = None
        if isinstance(rank, str):
            self.rank_search_ = search_rank(Y, seed=seed, tol=max(self.tol, ROUGH), **settings)
            rank = self.rank_search_.chosen["rank"]
        stopped = []

        def on_round(number: int, bound: float, change: float) -> bool:
            if look is not None and look():
                stopped.append(number)
            return bool(stopped)

        model = fit_factors(Y, rank, tol=self.tol, on_round=on_round, **settings)
        if not model.converged and not stopped and self.tol > 0:
            said = f"The fit stopped after {model.n_iter} rounds without convergence. Increase max_iter or tol."
            warnings.warn(said, ConvergenceWarning, stacklevel=2)
        return model

    def _table(self, X: Any) -> Array:
        check_is_fitted(self, "model_")
        return validate_table(self, fill_mask_with_nan(X), reset=False, order="C")

    def _standardised(self, table: Array) -> Array:
        return (table - self.center_) / self.scale_

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _standardisation(table: Array, common: bool) -> tuple[Array, Array]:
    """Means and standard deviations of the known entries of each column, or one deviation for all columns.

    The deviation is 1 if all values are equal up to rounding.
    """
    known = ~np.isnan(table)
    counts = np.maximum(known.sum(axis=0), 1)
    values = np.where(known, table, 0).astype(np.float64)
    center = values.sum(axis=0) / counts
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.sum(np.where(known, values - center, 0) ** 2, axis=0)
        rounding = counts * (10 * np.finfo(table.dtype).eps * center) ** 2
    if not np.all(np.isfinite(squares)):
        raise InputError(f"X contains values as large as {np.abs(values).max():g}, whose squares overflow. Rescale it.")
    flat = squares <= rounding
    if common:
        scale = np.full(len(counts), (np.sum(squares[~flat]) / max(np.sum(counts[~flat]), 1)) ** 0.5)
    else:
        scale = np.sqrt(np.where(flat, 0, squares) / counts)
    return center, np.where(scale > 0, scale, 1.0)
