"""Factor analysis of a table with missing entries, by variational Bayes."""

import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.kernels.threading import blas_at_most
from bifactor.models.factor_analysis.lanes_reference import matrices
from bifactor.models.factor_analysis.model import FactorModel as FactorModel
from bifactor.models.factor_analysis.model import FactorResult as FactorResult
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
from bifactor.running.iterate import iterate
from bifactor.running.result import Status
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

    Returns
    -------
    FactorModel
        The best fit so far if Ctrl-C ended the rounds; before the first round is complete, it raises
        `KeyboardInterrupt`.
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
        if sample is not None and sample < n:
            some = np.sort(np.random.default_rng(seed).choice(n, sample, replace=False))
            part = BlockedTable(Y[some])
            fit.run(part, start(part, min(rank, sample), fit.one_noise), max_iter)
        if not fit.stopped:
            table, best = BlockedTable(Y), fit.best
            first = start(table, rank, fit.one_noise) if best is None else best[0]
            fit.run(table, first, max_iter if best is None else min(ROUNDS_ON_ALL, max_iter))
        return _model(*sort_components(*fit.found), fit.result, columns)


class _Fit:
    """Rounds until predictions converge.

    Steps are extrapolated by a factor that grows as long as the bound increases (R. Salakhutdinov and S. Roweis,
    Adaptive overrelaxed bound optimization methods, ICML 2003). Measured: half as many rounds, or fewer.
    """

    def __init__(self, one_noise: bool, tol: float, on_round: OnRound | None):
        self.one_noise, self.tol, self.on_round = one_noise, tol, on_round
        self.started, self.status, self.n_iter, self.stopped = time.perf_counter(), Status.MAX_ITER, 0, False
        self.best: tuple[RoundState, float] | None = None
        self.records: list[tuple[int, float, float, float]] = []

    def run(self, table: BlockedTable, state: RoundState, most: int) -> None:
        """At most `most` rounds over a table."""
        self.table, self.most, self.age = table, most, 0
        self.tried = self.safe = state
        self.bound, self.factor = -np.inf, 1.0
        self.status = iterate(self._turn)
        self.stopped |= self.status in (Status.INTERRUPTED, Status.DIVERGED)

    @property
    def found(self) -> tuple[RoundState, float]:
        """The best state so far, and its bound."""
        if self.best is None and self.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if self.best is None:
            raise InputError("Y contains values so large that their squares overflow. Rescale it.")
        return self.best

    @property
    def result(self) -> FactorResult:
        columns = np.array(self.records, np.float64).reshape(-1, 4).T
        return FactorResult(self.status, self.n_iter, columns[0].astype(np.int64), *columns[1:])

    def _turn(self) -> Status | None:
        """One pass over all rows, which also finds the bound of the state tried, and the next state to try."""
        sums, status = self.table.collect(self.tried.columns), None
        value = bound(self.table, self.tried, sums, self.one_noise)
        if self.age > 1 and self.tried is not self.safe and not value >= self.bound:  # too far, or not a number
            self.tried, self.factor = self.safe, 1.0
            self.best = self.safe, self.bound
            status = Status.MAX_ITER if self.age == self.most else None
        else:
            change = sums.change / self.factor  # of a step without extrapolation
            status = self._accept(value, change) if self.age > 0 else None
            if status is None:
                self._extrapolate(update_columns(self.table, self.tried, sums, self.age, self.one_noise))
        self.age, self.n_iter = self.age + 1, self.n_iter + (status is None)
        return status

    def _accept(self, value: float, change: float) -> Status | None:
        self.bound, self.best = value, (self.tried, value)
        self.records.append((self.n_iter, value, change, time.perf_counter() - self.started))
        self.stopped = self.on_round is not None and bool(self.on_round(self.n_iter, value, change))
        if change <= self.tol and self.age > SETTLED:
            return Status.SETTLED
        if self.stopped:
            return Status.CALLBACK
        return Status.MAX_ITER if self.age == self.most else None

    def _extrapolate(self, safe: RoundState) -> None:
        far = self.age >= EARLY and safe.before is not None
        self.factor = min(GROWTH * self.factor, FURTHEST) if far else 1.0
        self.safe, self.tried = safe, extrapolated(safe, self.factor) if self.factor > 1 else safe


def _model(state: RoundState, value: float, result: FactorResult, seen: Array) -> FactorModel:
    """The fitted model; columns without entries have their prior, and the noise of a standardised column."""
    columns, rank, q = state.columns, state.columns.rank, seen.size
    means, noise = np.zeros((rank + 1, q)), np.ones(q)
    covariances = np.zeros((q, rank + 1, rank + 1))
    covariances[:] = np.diag(1 / np.append(state.precisions, MEAN_PRECISION))
    means[:, seen], noise[seen] = columns.means, columns.noise
    covariances[seen] = matrices(columns.spread, rank + 1)
    loadings = np.ascontiguousarray(means[:-1].T)
    return FactorModel(means[-1], loadings, covariances, noise, state.precisions, value, result)


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
            model = fit_factors(Y, rank, **settings)
            if model.result.status is Status.INTERRUPTED:  # part of a fit is no candidate
                raise KeyboardInterrupt
            bounds[rank] = model.bound
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
