"""Principal components of counts."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array, floating
from bifactor.errors import InputError
from bifactor.estimators.loss_pca import LossPCA
from bifactor.tables import Observations

FAINTEST = 0.5
"""The count that a row without any is taken to have, where its exposure is found from its total."""


class PoissonPCA(LossPCA):
    """Principal components of a matrix of counts, with or without holes: log E[xᵢⱼ] = log eᵢ + μⱼ + tᵢ·wⱼ.

    e is the exposure of a row, such as how deep a cell was sequenced or how long a text is; it may be given, or found
    from the totals of rows. Components, effects of columns and scores are as in `LogisticPCA`.

    Parameters
    ----------
    n_components : int
    exposure : {None, "total"}
        Where no exposures are passed: all 1, or in proportion to what a row holds beside the average row, over the
        columns known of it.
    alpha : float or "auto"
        The ridge: the factors u and v of t·w = u·v, which are of equal length, are normal a priori with variance
        1/alpha. "auto" takes the one under which a tenth of the entries, held out, is most likely.
    solver : Solver, optional
        By default `solvers.RankContinuation()`.
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
    exposure_ : array, n rows
        e, of the rows of the fit.
    deviance_explained_ : float
        The share of the deviance of a null model, the mean rate of each column, that the fit explains.
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
    M. Collins, S. Dasgupta and R. E. Schapire, A generalization of principal component analysis to the exponential
    family, NIPS 2001. F. W. Townes, S. C. Hicks, M. J. Aryee and R. A. Irizarry, Feature selection and dimension
    reduction for single-cell RNA-Seq based on a multinomial model, Genome Biol. 20 (2019).
    """

    def __init__(
        self,
        *,
        n_components: int = 2,
        exposure: str | None = None,
        alpha: float | str = "auto",
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
        self.alpha = alpha
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
            Numbers ≥ 0, and NaN where nothing is known. What a sparse matrix does not store is 0.
        y : ignored
        sample_weight : array, optional
            One weight per row, or one per entry.
        exposure : array, n rows, optional
            e > 0; by default by the parameter of that name.
        """
        if self.exposure not in (None, "total"):
            raise InputError(f"exposure={self.exposure!r} is neither None nor 'total'. Pass numbers to fit.")
        chosen = self._settings("poisson")
        data = self._counts(X, sample_weight, reset=True)
        self._means = _means(data)
        self.exposure_ = self._exposures(data, exposure)
        return self._fitted(X, per_exposure(data, self.exposure_), chosen)

    def transform(self, X: Any, exposure: Any = None) -> Array:
        """The scores of rows, of which some entries are known."""
        check_is_fitted(self, "model_")
        data = self._counts(X, None, reset=False)
        return self._scores(per_exposure(data, self._exposures(data, exposure)))

    def score(self, X: Any, y: Any = None, exposure: Any = None) -> float:
        """The share of deviance explained in rows, each entry by scores that were found from other four fifths."""
        check_is_fitted(self, "model_")
        data = self._counts(X, None, reset=False)
        return self._left_out(per_exposure(data, self._exposures(data, exposure)))

    def _counts(self, X: Any, weights: Any, reset: bool) -> Observations:
        data = self._observed(X, weights, reset)
        if np.any(data.values < 0):
            raise InputError(
                f"Negative values in data: X holds {data.values.min():g}. Counts are ≥ 0; NaN marks a hole."
            )
        return data

    def _exposures(self, data: Observations, given: Any) -> Array:
        m = data.shape[0]
        if given is None and self.exposure is None:
            return np.ones(m)
        if given is None:
            found, wanted = (np.bincount(data.rows, v, m) for v in (data.values, self._means[data.cols]))
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


def per_exposure(data: Observations, exposure: Array) -> Observations:
    """Rates in place of counts: e·e^z − yz is e times the loss of y/e, so an exposure is a weight."""
    if np.all(exposure == 1):
        return data
    e = exposure[data.rows]
    weights = e if data.weights is None else e * data.weights
    return replace(data, values=(data.values / e).astype(data.values.dtype), weights=weights)


def _means(data: Observations) -> Array:
    """The mean count of each column, over what is known of it."""
    total = np.bincount(data.cols, data.values, data.shape[1])
    return total / np.maximum(np.bincount(data.cols, minlength=data.shape[1]), 1)
