"""Factor analysis of a table with missing entries, by variational Bayes."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.threading import blas_at_most
from bifactor.models.factor_analysis.lanes_reference import matrices
from bifactor.models.factor_analysis.model import FactorModel as FactorModel
from bifactor.models.factor_analysis.model import RowPosterior as RowPosterior
from bifactor.models.factor_analysis.model import checked_table
from bifactor.models.factor_analysis.updates import (
    MEAN_PRECISION,
    SETTLED,
    BlockedTable,
    RoundState,
    bound,
    extrapolated,
    sort_components,
    start,
    update_columns,
)
from bifactor.running.search import Search, Trials
from bifactor.validation import is_at_least_zero, is_count, require_rank, require_seed

LARGEST_RANK = 30
"""Largest default rank; components that explain nothing are dropped during the fit."""

ROUNDS_ON_ALL = 12
"""Largest number of rounds on all rows, after rounds on a sample of rows."""

GROWTH, FURTHEST, EARLY = 1.2, 8.0, 2
"""Growth of the step from round to round, its largest length, and the number of rounds before it grows."""

OnRound = Callable[[int, float, float], Any]
"""Called after each round with its number, the bound and the change; the fit ends if it returns True."""


def fit_factors(
    Y: Any,
    rank: int | None = None,
    *,
    noise: Literal["columns", "one"] = "columns",
    max_iter: int = 100,
    tol: float = 1e-3,
    sample: int | None = None,
    seed: int = 0,
    on_round: OnRound | None = None,
) -> FactorModel:
    """Fit factors to a table with missing entries, with noise per column and a ridge per component learned from data.

    Parameters
    ----------
    Y : array, n × q
        The table, with NaN for missing entries. Columns should have means of about 0 and variances of about 1.
    rank : int, optional
        Number of components, by default min(30, q − 1, n − 1). Those that explain nothing are dropped.
    noise : "columns" or "one"
        Whether each column has its own noise variance, or all have the same.
    max_iter : int
        Maximum number of rounds, each over all rows and then over all columns.
    tol : float
        The fit ends when a round changes the predictions of missing entries by less than this, by root mean square; if
        no entry is missing, those of all entries.
    sample : int, optional
        Run the rounds on this many random rows until they converge, then a few on all rows.
    seed : int
        Seed of the choice of these rows.
    on_round : callable, optional
        Called after each round with its number, the bound and the change of predictions; during rounds on a sample, the
        bound is that of its rows. Rejected rounds are counted but not reported. The fit ends if it returns True.
    """
    Y = checked_table(Y)
    check_settings(noise, max_iter, tol)
    if sample is not None and not is_count(sample, 2):
        raise InputError(f"sample={sample!r} is not an integer ≥ 2. Pass a number of rows, or None for all.")
    require_seed(seed)
    known = ~np.isnan(Y)
    rows, columns = known.any(axis=1), known.any(axis=0)
    if not rows.any():
        raise InputError(f"No entry of Y, {Y.shape[0]}×{Y.shape[1]}, is known. Pass at least one known entry.")
    Y = Y[rows] if not rows.all() else Y
    Y = Y[:, columns] if not columns.all() else Y
    n, q = Y.shape
    rank = max(0, min(LARGEST_RANK, n - 1, q - 1)) if rank is None else min(require_rank(rank, known.shape, 0), n, q)
    with blas_at_most(1):
        fit = _Fit(noise == "one", tol, on_round)
        state = None
        if sample is not None and sample < n:
            some = np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))
            part = BlockedTable(Y[some])
            state = fit.rounds(part, start(part, min(rank, sample), fit.one_noise), max_iter)
        table = BlockedTable(Y)
        left = max_iter if state is None else min(ROUNDS_ON_ALL, max_iter)
        state = fit.rounds(table, start(table, rank, fit.one_noise) if state is None else state, left)
        return _model(*sort_components(state, fit.bound), fit, columns)


class _Fit:
    """Rounds until predictions converge.

    Steps are extrapolated by a factor that grows as long as the bound increases (R. Salakhutdinov and S. Roweis,
    Adaptive overrelaxed bound optimization methods, ICML 2003). Measured: half as many rounds, or fewer.
    """

    def __init__(self, one_noise: bool, tol: float, on_round: OnRound | None):
        self.one_noise, self.tol, self.on_round = one_noise, tol, on_round
        self.bound, self.n_iter, self.converged, self.stopped = -np.inf, 0, False, False

    def rounds(self, table: BlockedTable, state: RoundState, most: int) -> RoundState:
        if self.stopped:
            return state
        self.bound, self.converged, factor, safe = -np.inf, False, 1.0, state
        for age in range(most + 1):
            sums = table.collect(state.columns)
            value = bound(table, state, sums, self.one_noise)
            if age > 1 and state is not safe and not value >= self.bound:  # too far, or not a number
                state, factor = safe, 1.0
                self.n_iter += age < most
                continue
            if self._ends(age, value, sums.change / factor) or age == most:  # change of a step without extrapolation
                break
            safe = update_columns(table, state, sums, age, self.one_noise)
            factor = min(GROWTH * factor, FURTHEST) if age >= EARLY and safe.before is not None else 1.0
            state = extrapolated(safe, factor) if factor > 1 else safe
            self.n_iter += 1
        return state

    def _ends(self, age: int, value: float, change: float) -> bool:
        if age > 0:
            self.bound, self.converged = value, change <= self.tol and age > SETTLED
            self.stopped = self.on_round is not None and bool(self.on_round(self.n_iter, value, change))
        return self.converged or self.stopped


def _model(state: RoundState, value: float, fit: _Fit, seen: Array) -> FactorModel:
    """The fitted model; columns without entries have their prior, and the noise of a standardised column."""
    columns, rank, q = state.columns, state.columns.rank, seen.size
    means, noise = np.zeros((rank + 1, q)), np.ones(q)
    covariances = np.zeros((q, rank + 1, rank + 1))
    covariances[:] = np.diag(1 / np.append(state.precisions, MEAN_PRECISION))
    means[:, seen], noise[seen] = columns.means, columns.noise
    covariances[seen] = matrices(columns.spread, rank + 1)
    loadings = np.ascontiguousarray(means[:-1].T)
    return FactorModel(means[-1], loadings, covariances, noise, state.precisions, value, fit.n_iter, fit.converged)


def check_settings(noise: Any, max_iter: Any, tol: Any) -> None:
    if noise not in ("columns", "one"):
        raise InputError(f"noise={noise!r} is unknown. Pass 'columns' or 'one'.")
    if not is_count(max_iter, 1):
        raise InputError(f"max_iter={max_iter!r} is not an integer ≥ 1. Pass the maximum number of rounds.")
    if not is_at_least_zero(tol):
        raise InputError(f"tol={tol!r} is not a number ≥ 0. Use 0 to continue until max_iter.")


# Number of factors of a table with missing entries.

SEARCHED = 2000
"""Largest number of rows used, chosen at random."""


def search_rank(Y: Any, *, seed: int = 0, **settings: Any) -> Search:
    """The number of components with the largest bound of the evidence, up to 30.

    The bound increases with the number and then decreases, so it is enough to compare neighbours. `settings` are those
    of `fit_factors`.
    """
    if len(Y) > SEARCHED:
        Y = Y[np.sort(np.random.default_rng(seed).choice(len(Y), SEARCHED, replace=False))]
    trials, bounds = Trials[int](), dict[int, float]()

    def evidence(rank: int) -> float:
        if rank not in bounds:
            bounds[rank] = fit_factors(Y, rank, **settings).bound
            trials.tried.append(rank)
        return bounds[rank]

    known = ~np.isnan(Y)
    low, high = 0, max(0, min(LARGEST_RANK, *(int(np.count_nonzero(known.any(axis=k))) - 1 for k in (0, 1))))
    with trials:
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if evidence(middle) < evidence(middle + 1) else (low, middle)
        evidence(low)
    ranks, best = sorted(bounds), max(bounds, key=bounds.__getitem__) if trials.interrupted else low
    scores, over = np.array([bounds[rank] for rank in ranks]), trials.interrupted
    return Search("rank", {"rank": np.array(ranks)}, scores, ranks.index(best), None, over, "evidence")
