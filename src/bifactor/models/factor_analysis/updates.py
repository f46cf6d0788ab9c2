"""Updates of a factor analysis: scores of rows, then loadings, means, noise and ridges from sums over the rows."""

from dataclasses import dataclass
from itertools import pairwise
from math import lgamma, log
from types import ModuleType
from typing import NamedTuple, Self

import numpy as np
import scipy

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.kernels.row_blocks_reference import triangle
from bifactor.kernels.threading import blas_at_most, run, shares
from bifactor.models.factor_analysis.lanes_reference import matrices, packed_of

BLOCK = 1 << 17
"""Size of the matrices of a block of rows, in numbers: they stay in the cache between operations."""

ALIKE = 8
"""Mean number of rows per pattern of missing entries above which covariances are computed per pattern, not per row."""

MANY = 1024
"""Largest number of rows that share one mask; further rows get another copy of it."""

GROUPS = 16
"""Number of groups of blocks that are summed separately, regardless of the number of threads."""

WATCHED = 4_000_000
"""Number of predictions that are compared with those of the previous round."""


def diagonal(rank: int) -> Array:
    """Positions of the diagonal in a packed triangle."""
    return np.arange(rank) * np.arange(3, rank + 3) // 2


@dataclass(frozen=True, eq=False)
class ColumnPosterior:
    """Posterior of the columns: q(vⱼ, μⱼ) = N(means, spread), the mean last, and the noise ψⱼ."""

    means: Array
    """(r + 1) × q: loadings, and means of columns in the last line."""
    spread: Array
    """Covariances, as in `kernels.lanes_reference`."""
    noise: Array

    @property
    def rank(self) -> int:
        return len(self.means) - 1

    @cached_property
    def moments(self) -> Array:
        """E[(v, μ)(v, μ)ᵀ] of each column."""
        found = self.spread.copy()
        lanes(found, self.rank + 1).add_squares(found, self.means)
        return found

    @cached_property
    def shared(self) -> tuple[Array, Array, Array]:
        """Contributions of a cell to the precision of its row, and to its linear term per value and as a constant."""
        size = self.rank * (self.rank + 1) // 2
        precision, cross = self.moments[:size] / self.noise, self.moments[size:-1] / self.noise
        return precision, self.means[:-1] / self.noise, cross


@dataclass(frozen=True, eq=False)
class TableBlock:
    """Some rows of a table: values with zeros for missing entries, and masks of rows, or of groups of equal rows."""

    values: Array
    masks: Array
    counts: Array | None = None
    """Number of rows with each mask, if masks are shared."""

    @property
    def known(self) -> Array:
        """The mask of each row."""
        return self.masks if self.counts is None else np.repeat(self.masks, self.counts, axis=0)


class ScorePosterior(NamedTuple):
    """Posterior of the scores of rows: means r × n, and covariances of rows, or of shared masks."""

    means: Array
    covariances: Array
    linear: Array
    logs: Array
    """−log det of the covariances."""

    @classmethod
    def of(cls, columns: ColumnPosterior, block: TableBlock) -> Self:
        precision, slope, cross = columns.shared
        rank = columns.rank
        packed, linear = precision @ block.masks.T, slope @ block.values.T
        packed[diagonal(rank)] += 1
        kernel, shift = lanes(packed, rank), cross @ block.masks.T
        logs = kernel.invert(packed, rank)
        if block.counts is None:
            linear -= shift
            return cls(kernel.times(packed, linear), packed, linear, logs)
        linear -= np.repeat(shift, block.counts, axis=1)
        means, whole = np.empty_like(linear), matrices(packed, rank)
        for k, (a, b) in enumerate(_spans(block.counts)):
            np.matmul(whole[k], linear[:, a:b], out=means[:, a:b])
        return cls(means, packed, linear, logs)

    def moments(self, counts: Array | None) -> tuple[Array, Array]:
        """Σ E[uuᵀ] and Σ E[u] over the rows of each mask."""
        if counts is None:
            lanes(self.covariances, len(self.means)).add_squares(self.covariances, self.means)  # no longer needed
            return self.covariances, self.means
        spans = _spans(counts)
        squares = np.empty((len(spans), len(self.means), len(self.means)))
        for k, (a, b) in enumerate(spans):
            np.matmul(self.means[:, a:b], self.means[:, a:b].T, out=squares[k])
        firsts = np.add.reduceat(self.means, [a for a, _ in spans], axis=1)
        return packed_of(squares) + self.covariances * counts, firsts


class ColumnSums(NamedTuple):
    """Sums over the known cells of each column, with e = (u, 1): Σ E[eeᵀ] and Σ E[e]y; and over all rows."""

    moments: Array
    linear: Array
    total: Array
    evidence: float
    """½Σ (bᵀCb + log det C): contribution of the scores to the bound."""
    squares: float
    """Sum of squared changes of predictions, over this many cells."""
    cells: int

    @property
    def change(self) -> float:
        """Root mean square change of predictions."""
        return (self.squares / self.cells) ** 0.5 if self.cells else np.inf


Span = tuple[slice, slice]
"""Some masks, and the rows that have them."""


class BlockedTable:
    """A table with missing entries, in blocks of rows. Rows with equal masks are grouped if there are many."""

    def __init__(self, Y: Array):
        known = ~np.isnan(np.ascontiguousarray(Y))
        self.shape = Y.shape
        self.counts = known.sum(axis=0).astype(np.float64)
        self.holes = int(known.size - self.counts.sum())
        patterns, inverse, repeated = _patterns(known)
        self.order, self.masks, self.repeated = np.arange(len(Y)), known, None
        if len(patterns) * ALIKE <= len(Y):
            parts = -(-repeated // MANY)
            self.order, self.masks = np.argsort(inverse, kind="stable"), np.repeat(known[patterns], parts, axis=0)
            self.repeated = _split(repeated, parts)
        self.values = np.array(Y if self.repeated is None else Y[self.order], np.float64, order="C")
        self.values[np.isnan(self.values)] = 0
        self.sums = self.values.sum(axis=0)
        self.squares = np.einsum("ij,ij->j", self.values, self.values)
        self._before: dict[int, Array] = {}

    def spans(self, rank: int) -> list[Span]:
        """Masks and their rows in blocks whose matrices fit into the cache."""
        size = block_size(rank)
        if self.repeated is None:
            spans = [slice(a, min(a + size, len(self.masks))) for a in range(0, len(self.masks), size)]
            return [(span, span) for span in spans]
        ends, found, a = np.r_[0, np.cumsum(self.repeated)], [], 0
        while a < len(self.masks):
            fit = int(np.searchsorted(ends, ends[a] + max(size, MANY), side="right")) - 1
            b = min(max(fit, a + 1), a + size, len(self.masks))
            found.append((slice(a, b), slice(int(ends[a]), int(ends[b]))))
            a = b
        return found

    def block(self, span: Span) -> TableBlock:
        masks, rows = span
        counts = None if self.repeated is None else self.repeated[masks]
        return TableBlock(self.values[rows], self.masks[masks].astype(np.float64), counts)

    def repeat(self, span: Span, values: Array) -> Array:
        """Repeat the values of the masks of a block for each of their rows."""
        return values if self.repeated is None else np.repeat(values, self.repeated[span[0]], axis=0)

    def work(self, columns: ColumnPosterior) -> float:
        """Cost of a pass over all rows, in steps of a simple loop."""
        return len(self.masks) * len(columns.spread) * (self.shape[1] / 16 + columns.rank / 4)

    def collect(self, columns: ColumnPosterior) -> ColumnSums:
        """One pass over all rows: their scores, and sums of them for the columns."""
        spans = self.spans(columns.rank)
        count = min(GROUPS, len(spans))
        groups = [range(len(spans) * g // count, len(spans) * (g + 1) // count) for g in range(count)]
        calls = [(groups[a:b], spans, columns) for a, b in shares(count, self.work(columns) / count)]
        with blas_at_most(1):
            found = [one for part in run(self._groups, calls) for one in part]
        total = found[0]
        for one in found[1:]:
            total = ColumnSums(*(a + b for a, b in zip(total, one, strict=True)))
        return total

    def _groups(self, groups: list[range], spans: list[Span], columns: ColumnPosterior) -> list[ColumnSums]:
        return [self._group(group, spans, columns) for group in groups]

    def _group(self, group: range, spans: list[Span], columns: ColumnPosterior) -> ColumnSums:
        r, size, q = columns.rank, len(columns.spread), self.shape[1]
        moments, linear, total = np.zeros((size, q)), np.zeros((r + 1, q)), np.zeros(size)
        evidence, change, cells, first = 0.0, 0.0, 0, size - r - 1
        every = -(-self.values.size // WATCHED)
        for k in group:
            block = self.block(spans[k])
            rows = ScorePosterior.of(columns, block)
            if k % every == 0:
                moved, seen = self._moved(k, columns, block, rows.means)
                change, cells = change + moved, cells + seen
            spread = rows.logs if block.counts is None else rows.logs * block.counts
            evidence += 0.5 * (float(np.vdot(rows.means, rows.linear)) - float(spread.sum()))
            squares, firsts = rows.moments(block.counts)
            moments[:first] += squares @ block.masks
            moments[first:-1] += firsts @ block.masks
            linear[:-1] += rows.means @ block.values
            total[:first] += squares.sum(axis=1)
            total[first:-1] += firsts.sum(axis=1)
            total[-1] += len(block.values)
        if group.start == 0:
            moments[-1], linear[-1] = self.counts, self.sums
        return ColumnSums(moments, linear, total, evidence, change, cells)

    def _moved(self, k: int, columns: ColumnPosterior, block: TableBlock, means: Array) -> tuple[float, int]:
        """Squared changes of the predictions of missing cells, or of all cells if none is missing."""
        predicted = means.T @ columns.means[:-1] + columns.means[-1]
        before = self._before.get(k)
        self._before[k] = predicted
        if before is None or len(before) != len(predicted):
            return np.inf, predicted.size
        squares = (predicted - before) ** 2
        if self.holes:
            squares = squares[block.known == 0]
        return float(squares.sum()), squares.size


def block_size(rank: int) -> int:
    return max(64, BLOCK // max(rank * (rank + 1) // 2, 1) // 64 * 64)


def lanes(packed: Array, rank: int) -> ModuleType:
    """Kernels for batches of matrices. For small ones NumPy is four times slower, but faster than loading numba."""
    return kernels.get("models.factor_analysis.lanes", packed, packed.size / 8, rank)


def _patterns(known: Array) -> tuple[Array, Array, Array]:
    """A row of each pattern, the pattern of each row, and the number of rows of each pattern."""
    bits = np.packbits(known, axis=1)
    wide = bits.shape[1] > 8
    padded = np.zeros((len(bits), bits.shape[1] if wide else 8), np.uint8)
    padded[:, : bits.shape[1]] = bits
    keys = padded.view(np.dtype((np.void, padded.shape[1])) if wide else np.uint64)[:, 0]  # integers are sorted faster
    _, first, inverse, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return first, inverse, counts


def _split(counts: Array, parts: Array) -> Array:
    """Split each count into this many parts that differ by at most one."""
    number = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    whole, pieces = np.repeat(counts, parts), np.repeat(parts, parts)
    found: Array = whole // pieces + (number < whole % pieces)
    return found


def _spans(counts: Array) -> list[tuple[int, int]]:
    return list(pairwise([0, *np.cumsum(counts).tolist()]))


MEAN_PRECISION = 0.01
"""Precision of the prior of a column's mean: columns are roughly standardised, so it is nearly uninformative."""

NOISE = (1.0, 0.02)
"""(a, b) of the prior τᵃ·exp(−bτ) of a column's precision τ = 1/ψ, equivalent to two cells with errors of 0.02."""

RIDGE = (2.0, 0.2)
"""(c, v₀) of the prior of a ridge α, α^{c/2}·exp(−αc·v₀/2): it pulls towards 1/v₀, with the strength of c loadings."""

VANISHED = 1e-3
"""Mean square of loadings below which a component is dropped, unless they stand out from the noise of their columns."""

NOTHING = 1e-10
"""Lower limit of squares of loadings, which keeps coordinates finite."""

SETTLED = 6
"""Rounds before components are dropped."""


@dataclass(frozen=True, eq=False)
class RoundState:
    """State between two rounds: the columns, the ridge of each component, and further terms of the bound."""

    columns: ColumnPosterior
    precisions: Array
    logs: float
    """Σ log det of the covariances of columns."""
    before: tuple[Array, Array] | None = None
    """Means of columns of the previous round, in the coordinates of this one, and its noise."""


class Rotation(NamedTuple):
    """New coordinates of scores, u → R⁻¹(u − t), and loadings, v → Rᵀv, and the best ridges for them."""

    onto: Array
    """Matrix that maps (u, 1) to the new scores, followed by a one."""
    precisions: Array


def start(table: BlockedTable, rank: int, one_noise: bool) -> RoundState:
    """The singular vectors of the table with zeros for missing entries, with covariance 0."""
    n, q = table.shape
    loadings = _directions(table.values, rank) / max(n, 1) ** 0.5
    squares = table.squares / np.maximum(table.counts, 1)
    noise = np.maximum(squares - np.sum(loadings**2, axis=0), 0.1 * squares) + 1e-3
    if one_noise:
        noise[:] = noise.mean()
    means = np.vstack([loadings, table.sums / np.maximum(table.counts, 1)])
    spread = np.zeros(((rank + 1) * (rank + 2) // 2, q))
    return RoundState(ColumnPosterior(means, spread, noise), np.ones(rank), -np.inf)


def _directions(values: Array, rank: int) -> Array:
    """The leading right singular vectors times their singular values, as rows."""
    if rank == 0:
        return np.zeros((0, values.shape[1]))
    tall = values.shape[0] >= values.shape[1]
    G = values.T @ values if tall else values @ values.T
    w, Q = scipy.linalg.eigh(G, subset_by_index=[len(G) - rank, len(G) - 1])
    w, Q = np.maximum(w[::-1], 0), Q[:, ::-1]
    return np.sqrt(w)[:, None] * Q.T if tall else Q.T @ values


def update_columns(table: BlockedTable, state: RoundState, sums: ColumnSums, age: int, one_noise: bool) -> RoundState:
    """Update the columns for these sums, then their noise, then the ridges."""
    turn = optimal_rotation(state, sums, table.counts if age >= SETTLED else None)
    moments, linear = rotate(sums.moments, turn.onto), turn.onto @ sums.linear
    rank = len(turn.precisions)
    noise = state.columns.noise
    packed = moments / noise
    packed[diagonal(rank + 1)] += np.append(turn.precisions, MEAN_PRECISION)[:, None]
    kernel = lanes(packed, rank + 1)
    logs = -float(kernel.invert(packed, rank + 1).sum())
    means = kernel.times(packed, linear / noise)
    columns = ColumnPosterior(means, packed, noise)
    noise = _best_noise(table, columns, moments, linear, one_noise)
    before = None
    if rank == state.columns.rank:
        before = np.linalg.solve(turn.onto.T, state.columns.means), state.columns.noise
    return _with_ridges(ColumnPosterior(means, packed, noise), logs, before)


def extrapolated(state: RoundState, factor: float) -> RoundState:
    """Extrapolate the step from the previous round by `factor`, in the means of columns and the logarithm of noise."""
    if state.before is None:
        return state
    (means, noise), columns = state.before, state.columns
    means = means + factor * (columns.means - means)
    noise = noise * (columns.noise / noise) ** factor
    return _with_ridges(ColumnPosterior(means, columns.spread, noise), state.logs)


def _with_ridges(columns: ColumnPosterior, logs: float, before: tuple[Array, Array] | None = None) -> RoundState:
    squares = np.diagonal(loading_moments(columns)[0])
    return RoundState(columns, ridges(squares, len(columns.noise)), logs, before)


def optimal_rotation(state: RoundState, sums: ColumnSums, counts: Array | None) -> Rotation:
    """Coordinates with the lowest cost of the priors; predictions do not depend on them, and rounds change them slowly.

    With M = ΣE[uuᵀ]/n and K = ΣE[vvᵀ], the bound with the best ridges is, up to constants,

        −½n·tr(R⁻¹MR⁻ᵀ) − (n − q)·log det R − ½(q + c)·Σ log((RᵀKR)ₖₖ + c·v₀).

    It is largest for R = LQ·diag(x)^½ with M = LLᵀ, Q the eigenvectors of LᵀKL, w its eigenvalues and x the positive
    root of (n + c)w·x² − (nw − (n − q)cv₀)·x − ncv₀ = 0. The prior of the means gives the best t. If `counts` of cells
    are given, vanished components are dropped.
    """
    K, cross = loading_moments(state.columns)
    n, q, rank, (c, v0) = float(sums.total[-1]), state.columns.means.shape[1], state.columns.rank, RIDGE
    whole = matrices(sums.total[:, None], rank + 1)[0] / n
    M, mean = whole[:-1, :-1], whole[:-1, -1]
    t = np.linalg.solve(n * np.eye(rank) + MEAN_PRECISION * K, n * mean - MEAN_PRECISION * cross)
    L = np.linalg.cholesky(M - np.outer(t, mean) - np.outer(mean, t) + np.outer(t, t))
    w, Q = np.linalg.eigh(L.T @ K @ L)
    w, Q = np.maximum(w[::-1], NOTHING), Q[:, ::-1]
    half = (n * w - (n - q) * c * v0) / 2
    root = np.sqrt(half**2 + (n + c) * w * n * c * v0)
    x = np.where(half > 0, (half + root) / ((n + c) * w), n * c * v0 / (root - np.minimum(half, 0)))
    back = (Q / np.sqrt(x)).T @ np.linalg.inv(L)
    stay = np.ones(rank, bool)
    if counts is not None:
        R, loadings = L @ Q * np.sqrt(x), state.columns.means[:-1]
        signal = (R.T @ loadings) ** 2 @ (counts / state.columns.noise)
        stay = (x * w >= VANISHED * q) | (signal >= q)
    onto = np.zeros((int(stay.sum()) + 1, rank + 1))
    onto[:-1, :-1], onto[:-1, -1], onto[-1, -1] = back[stay], -back[stay] @ t, 1
    return Rotation(onto, ridges((x * w)[stay], q))


def sort_components(state: RoundState, value: float) -> tuple[RoundState, float]:
    """The state with components that are orthogonal on average, the largest first, with reproducible signs.

    A rotation changes the bound only through the ridges; its new value is returned too.
    """
    columns, (c, v0) = state.columns, RIDGE
    K, q = loading_moments(columns)[0], columns.means.shape[1]
    w, Q = np.linalg.eigh(K)
    w, Q = np.maximum(w[::-1], 0), Q[:, ::-1]
    loadings = Q.T @ columns.means[:-1]
    largest = np.argmax(np.abs(loadings), axis=1)[:, None]
    onto = np.eye(columns.rank + 1)
    onto[:-1, :-1] = np.where(np.take_along_axis(loadings, largest, axis=1) < 0, -1, 1) * Q.T
    value += 0.5 * (q + c) * float(np.sum(np.log(np.diagonal(K) + c * v0) - np.log(w + c * v0)))
    columns = ColumnPosterior(onto @ columns.means, rotate(columns.spread, onto), columns.noise)
    return RoundState(columns, ridges(w, q), state.logs), value


def ridges(squares: Array, q: int) -> Array:
    """The best ridge of each component, from ΣE[v²]."""
    c, v0 = RIDGE
    return (q + c) / (squares + c * v0)


def loading_moments(columns: ColumnPosterior) -> tuple[Array, Array]:
    """ΣE[vvᵀ] and ΣE[vμ] over the columns."""
    whole = matrices(columns.moments.sum(axis=1)[:, None], columns.rank + 1)[0]
    return whole[:-1, :-1], whole[:-1, -1]


def rotate(packed: Array, onto: Array) -> Array:
    """BMBᵀ of each matrix."""
    whole = matrices(packed, onto.shape[1]) @ onto.T
    return packed_of(onto @ whole)


def _best_noise(table: BlockedTable, columns: ColumnPosterior, moments: Array, linear: Array, one_noise: bool) -> Array:
    """ψ from the expected squared errors and its prior."""
    first, second = triangle(columns.rank + 1)
    double = np.where(first == second, 1.0, 2.0)
    errors = table.squares - 2 * np.sum(columns.means * linear, axis=0) + double @ (moments * columns.moments)
    errors, (a, b) = np.maximum(errors, 0), NOISE
    if one_noise:
        return np.full(len(errors), (errors.sum() + 2 * b) / (table.counts.sum() + 2 * a))
    return (errors + 2 * b) / (table.counts + 2 * a)


def bound(table: BlockedTable, state: RoundState, sums: ColumnSums, one_noise: bool) -> float:
    """Lower bound of log p(Y, τ, α) with the best scores for this state."""
    columns, rank, q = state.columns, state.columns.rank, table.shape[1]
    noise, mu = columns.noise, columns.means[-1]
    errors = table.squares - 2 * mu * table.sums + table.counts * columns.moments[-1]
    found = sums.evidence - 0.5 * float(np.sum(table.counts * np.log(2 * np.pi * noise) + errors / noise))
    prior = np.append(state.precisions, MEAN_PRECISION)
    squares = columns.moments[diagonal(rank + 1)].sum(axis=1)
    found -= 0.5 * float(prior @ squares - q * (rank + 1 + np.log(prior).sum()) - state.logs)
    (a, b), (c, v0) = NOISE, RIDGE
    scale = c * v0 / 2
    found += _gamma(1 / (noise[:1] if one_noise else noise), a, b) + _gamma(state.precisions, c / 2, scale)
    return found


def _gamma(x: Array, a: float, b: float) -> float:
    """Σ of the log density of x, which is proportional to xᵃ·exp(−bx)."""
    return float(np.sum(a * np.log(x) - b * x)) + x.size * ((a + 1) * log(b) - lgamma(a + 1))
