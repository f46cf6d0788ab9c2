"""Principal components of counts."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array, floating
from bifactor.errors import InputError
from bifactor.estimators.loss_pca import LossPCA
from bifactor.kernels.sheet import Sheet
from bifactor.kernels.threads import threads
from bifactor.losses import Loss, NegativeBinomial, Poisson
from bifactor.models.components import refitted
from bifactor.operators.table import Table
from bifactor.validation import is_at_least_zero

FAINTEST = 0.5
"""The count that a row without any is taken to have, where its exposure is found from its total."""


class PoissonPCA(LossPCA):
    """Principal components of a matrix of counts, with or without holes: log E[xᵢⱼ] = log eᵢ + μⱼ + tᵢ·wⱼ.

    e is the exposure of a row, such as how deep a cell was sequenced or how long a text is; it may be given, or found
    from the totals of rows. With a dispersion, counts are negative binomial. Components, effects of columns and scores
    are as in `LogisticPCA`.

    Parameters
    ----------
    n_components : int or "auto"
        "auto" tries 1, 2, 3, 5, … 40, each with a ridge of its own, until a tenth of the entries, held out, is told
        no better. Where alpha is given it takes what that leaves of 40.
    exposure : {None, "total"}
        Where no exposures are passed: all 1, or in proportion to what a row holds beside the average row, over the
        columns known of it.
    dispersion : float or "auto"
        φ in the variance μ + φμ² of a count with mean μ. 0 is Poisson's; "auto" finds it by its likelihood, beside
        components under a ridge that is on the safe side. With a dispersion large counts weigh less.
    alpha : float or "auto"
        The ridge: the factors u and v of t·w = u·v, which are of equal length, are normal a priori with variance
        1/alpha. "auto" takes the one under which a tenth of the entries, held out, is most likely.
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
    exposure_ : array, n rows
        e, of the rows of the fit.
    dispersion_ : float
        φ.
    deviance_explained_ : float
        The share of the deviance of a null model, the mean rate of each column, that the fit explains.
    explained_deviance_ratio_ : array, n_components
        What each component adds to that, in their order.
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
        n_components: int | str = 2,
        *,
        exposure: str | None = None,
        dispersion: float | str = 0.0,
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
        self.dispersion = dispersion
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
        loss = _loss_of(self.dispersion)
        chosen = self._settings(loss)
        table = self._counts(X, sample_weight, loss, reset=True)
        self._means = _means(table.sheet)
        self.exposure_ = self._exposures(table.sheet, exposure)
        table = table.shifted(np.log(self.exposure_))
        if self.dispersion == "auto":
            with threads(self.n_jobs):
                table = refitted(table, chosen)
        self.dispersion_ = 1 / table.loss.theta if isinstance(table.loss, NegativeBinomial) else 0.0
        return self._fitted(X, table, chosen)

    def transform(self, X: Any, exposure: Any = None) -> Array:
        """The scores of rows, of which some entries are known."""
        check_is_fitted(self, "model_")
        table = self._counts(X, None, self.model_.loss, reset=False)
        return self._scores(table.shifted(np.log(self._exposures(table.sheet, exposure))))

    def score(self, X: Any, y: Any = None, exposure: Any = None) -> float:
        """The share of deviance explained in rows, each entry by scores that were found from other four fifths."""
        check_is_fitted(self, "model_")
        table = self._counts(X, None, self.model_.loss, reset=False)
        return self._left_out(table.shifted(np.log(self._exposures(table.sheet, exposure))))

    def _counts(self, X: Any, weights: Any, loss: Loss, reset: bool) -> Table:
        X = self._entries(X, reset)
        least = np.nanmin(X.data if sparse.issparse(X) else X, initial=0)
        if least < 0:
            raise InputError(f"Negative values in data: X holds {least:g}. Counts are ≥ 0; NaN marks a hole.")
        return Table(loss, X, 0.0, weights)

    def _exposures(self, counts: Sheet, given: Any) -> Array:
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
        raise InputError(f"dispersion={dispersion!r} is not a number ≥ 0, nor 'auto'. 0 is for Poisson's counts.")
    return NegativeBinomial(1 / float(dispersion)) if dispersion > 0 else Poisson()


def _means(counts: Sheet) -> Array:
    """The mean count of each column, over what is known of it."""
    n, known = counts.shape[1], counts.weights > 0
    hidden = ~known & (counts.row_weights > 0)[counts.stored_rows]
    number = np.count_nonzero(counts.row_weights) - np.bincount(counts.cols[hidden], minlength=n)
    return np.bincount(counts.cols[known], counts.y[known], n) / np.maximum(number, 1)


def _row_totals(counts: Sheet, means: Array) -> tuple[Array, Array]:
    """What each row holds, and what it would hold of the columns known of it if they had their means."""
    m, known = counts.shape[0], counts.weights > 0
    found = np.bincount(counts.stored_rows[known], counts.y[known], m)
    hidden = np.bincount(counts.stored_rows[~known], means[counts.cols[~known]], m)
    return found, np.where(counts.row_weights > 0, means.sum() - hidden, 0.0)
