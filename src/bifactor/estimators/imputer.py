"""Holes of a table filled in, as a step of a pipeline."""

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.checked import checked
from bifactor.estimators.convergence import warn_unless_converged
from bifactor.estimators.watched import CallbackSupportMixin, fit_watched
from bifactor.kernels.blas import matmul
from bifactor.models.fitting import Settings
from bifactor.models.settings import settings
from bifactor.tables import Observations
from bifactor.validation import require_flag


class LowRankImputer(CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Fills the missing entries of a table by a matrix of low rank; what is known stays as it is.

    The table, each column standardised, is fitted by bᵢ + cⱼ + uᵢ·vⱼ with a ridge, as `MatrixCompletion` does.
    `transform` finds bᵢ and uᵢ of every row, seen or unseen, from what is known of it, and fills in the rest; of the
    rows of the fit it says what the fit said, to its tolerance. A row of which nothing is known gets the columns'
    means, nearly.

    Parameters
    ----------
    n_components : int or "auto"
        The rank, cut to the smaller side of the table; 0 for offsets of rows and columns alone. "auto" takes the one
        that predicts held-out entries best.
    alpha : float or "auto"
        The ridge, in units of squared standard deviations summed over entries.
    standardize : bool
        Fit columns minus their means, over their standard deviations: right where units differ. Undone on output.
        A column that is constant is then filled with its constant.
    keep_empty_features : bool
        Keep columns of which nothing was known in the fit, filled with 0; else they are dropped.
    add_indicator : bool
        Append scikit-learn's `MissingIndicator` of the columns that had holes in the fit.
    max_iter, tol
        Of the fit.
    n_jobs : int, optional
        Threads; -1 for all cores, None for what `bifactor.threads` or the environment says.
    verbose : int
        1 shows a progress bar.
    random_state : int, RandomState or None
        Which entries are held out to choose the rank and the ridge.

    Attributes
    ----------
    n_components_ : int
    alpha_ : float
        The ridge that was used.
    center_, scale_ : arrays
        What columns were standardised by.
    result_ : Result
        The run, with its history.
    n_iter_ : int
    indicator_ : MissingIndicator or None
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        *,
        n_components: int | str = "auto",
        alpha: float | str = "auto",
        standardize: bool = True,
        keep_empty_features: bool = False,
        add_indicator: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.alpha = alpha
        self.standardize = standardize
        self.keep_empty_features = keep_empty_features
        self.add_indicator = add_indicator
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn how columns go together from a table with NaN where nothing is known."""
        chosen = self._settings()
        table = self._table(X, reset=True)
        known = ~np.isnan(table)
        if not known.any():
            raise InputError("No entry of X is known. Pass at least one that is not missing.")
        self.filled_ = known.any(axis=0)
        if not self.filled_.all() and not self.keep_empty_features:
            empty = ", ".join(map(str, OneToOneFeatureMixin.get_feature_names_out(self)[~self.filled_]))
            warnings.warn(f"Columns of which nothing is known are dropped: {empty}.", UserWarning, stacklevel=2)
        self.center_, self.scale_ = (_moments if self.standardize else _none)(table[:, self.filled_])
        model = fit_watched(self, X, self._standardized(table), chosen)
        self.model_, self.result_, self.alpha_, self.n_iter_ = model, model.result, model.ridge, model.result.n_iter
        self.n_components_ = int(model.U.shape[1]) - model.fixed_columns
        self.indicator_ = _indicator(table) if self.add_indicator else None
        warn_unless_converged(model)
        return self

    def transform(self, X: Any) -> Array:
        """The table with its holes filled in."""
        check_is_fitted(self, "model_")
        table = self._table(X, reset=False)
        hidden = np.isnan(table[:, self.filled_])
        rows = np.flatnonzero(hidden.any(axis=1))
        out = table[:, self.filled_]
        if rows.size:
            model = self.model_
            U = model.rows(self._standardized(table[rows]))
            guess = (matmul(U, model.V.T) + U.dtype.type(model.intercept)) * self.scale_ + self.center_
            out[rows] = np.where(hidden[rows], guess, out[rows])
        if self.keep_empty_features and not self.filled_.all():
            whole = np.nan_to_num(table, nan=0.0)
            whole[:, self.filled_] = out
            out = whole
        return out if self.indicator_ is None else np.hstack([out, self.indicator_.transform(table).astype(out.dtype)])

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` gives: those of the input, then those of the indicator."""
        check_is_fitted(self, "model_")
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        kept = names if self.keep_empty_features else names[self.filled_]
        return kept if self.indicator_ is None else np.hstack([kept, self.indicator_.get_feature_names_out(names)])

    def _table(self, X: Any, reset: bool) -> Array:
        return checked(self, X, reset, copy=True)

    def _standardized(self, table: Array) -> Observations:
        """What is known, of the columns that have something."""
        part = (table[:, self.filled_] - self.center_) / np.where(self.scale_ > 0, self.scale_, 1).astype(table.dtype)
        rows, cols = np.nonzero(~np.isnan(part))
        return Observations(rows, cols, part[rows, cols], (part.shape[0], part.shape[1]))

    def _settings(self) -> Settings:
        for name in ("standardize", "keep_empty_features", "add_indicator"):
            require_flag(getattr(self, name), name)
        names = ("n_components", "alpha", "max_iter", "tol", "verbose", "random_state")
        return settings(loss="squared", offsets=True, solver=None, **{name: getattr(self, name) for name in names})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _indicator(table: Array) -> Any:
    from sklearn.impute import MissingIndicator  # takes longer to import than a small table to fit

    return MissingIndicator(error_on_new=False).fit(table)


def _moments(table: Array) -> tuple[Array, Array]:
    """Means and standard deviations of what is known in each column, 0 where all is the same."""
    with np.errstate(over="ignore", invalid="ignore"):
        center, spread, least = np.nanmean(table, axis=0), np.nanstd(table, axis=0), np.nanmin(table, axis=0)
    if not np.all(np.isfinite(spread)):
        large = np.nanmax(np.abs(table))
        raise InputError(f"X holds {large:g} in size, and squares of it are not finite in {table.dtype}. Rescale it.")
    # Rounding gives a constant column another mean, and a spread that is not zero.
    center = np.where(least == np.nanmax(table, axis=0), least, center)
    flat = spread <= 10 * np.finfo(table.dtype).eps * np.abs(center)
    return center, np.where(flat, 0, spread)


def _none(table: Array) -> tuple[Array, Array]:
    return np.zeros(table.shape[1], table.dtype), np.ones(table.shape[1], table.dtype)
