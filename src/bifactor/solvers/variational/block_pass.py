"""The work of variational Bayes sweeps on one block of rows: plain functions, which other processes can run.

The posterior of rows is computed some rows at a time, from the posterior of the columns in which they have entries;
their covariances are added to the sums of these columns at once, and are not kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bifactor import kernels
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.blocks import Exact
from bifactor.executors import BlockResult
from bifactor.kernels.moments_reference import Span, Tables
from bifactor.kernels.row_blocks_reference import chunks
from bifactor.operators.entries import SymbolicEntries
from bifactor.solvers.variational.factor_posterior import FactorPosterior, pooled_sums
from bifactor.solvers.variational.moments import EntrySums, MomentSums, Places, weight_by_precision
from bifactor.solvers.variational.noise import GammaPrior, Precisions
from bifactor.solvers.variational.posterior import Gaussians

Arrays = tuple[Array, ...]

NUMBERS = 1 << 19
"""Numbers in the packed matrices of the rows that are processed at a time, 4 MB: fewer rows share too few columns."""


@dataclass(frozen=True, eq=False)
class RowSettings:
    """The settings with which rows are found, besides the posterior of columns."""

    places: Places
    prior: Array
    variance: float
    """The variance of the noise."""
    noise: GammaPrior | None = None
    """The prior of the precisions of rows; None if these are all equal."""


def summarise_block(block: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """The statistics of the data that do not depend on factors, and the number of entries of each column."""
    data = EntrySums(block.bound)
    return BlockResult(sums=(*data.about, data.counts[1]))


def sweep_block(block: SymbolicEntries, tall: Arrays, shared: Arrays, how: RowSettings) -> BlockResult:
    """Find all rows: means, and precisions if these differ; sums of columns; errors, totals and the noise of rows.

    `tall` are the previous means, and precisions; `shared` is the posterior of columns, and their means before and now.
    """
    data, known = EntrySums(block.bound), (shared[0], shared[1], shared[2])
    means, *precisions = (np.empty_like(a) for a in tall)
    columns, numbers = data.private(means.shape[1]), _Numbers(how.places.rank)
    for span, sums, half in find_rows(data, tall, known, how):
        errors, rows = half.errors(sums), slice(*span)
        if how.noise is not None:
            mean, told = how.noise.update(half.counts, errors / how.variance)
            half = replace(half, rows=replace(half.rows, precision=mean))
            numbers.told += told
            precisions[0][rows] = mean
        means[rows] = half.means
        numbers.take(half, float(half.rows.precision @ errors))
        data.scatter(weight_by_precision(*half.known), span, columns)
    pairs = (tall[0], shared[3]), (means, shared[4])
    kernel = kernels.get("moments", HOST_ARRAY, data.layout.size, means.shape[1])
    moved = kernel.moved(data.layout, data.weights, *pairs)
    return BlockResult((means, *precisions), (*data.collected(columns), *numbers.sums, moved))


class _Numbers:
    """Sums over rows."""

    def __init__(self, rank: int) -> None:
        self.errors, self.moments, self.volume, self.seen = 0.0, np.zeros((rank, rank)), 0.0, 0
        self.told = np.zeros(3)

    def take(self, half: FactorPosterior, errors: float) -> None:
        totals = half.totals
        self.errors += errors
        self.moments += totals.moments
        self.volume += totals.volume
        self.seen += totals.seen

    @property
    def sums(self) -> tuple[float, Array, float, int, Array]:
        return self.errors, self.moments, self.volume, self.seen, self.told


def pool_block(block: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """The number of entries of each row, and the sums of all rows together for the difference from `tall`."""
    data, (rows,) = EntrySums(block.bound), tall
    packed, linear = np.zeros((1, shared[0].shape[1])), np.zeros((1, shared[1].shape[1]))
    for span in _spans(len(rows), shared[0].shape[1]):
        sums = data.gathered((shared[0], shared[1], shared[2]), span)
        some = pooled_sums(sums, rows[slice(*span)].astype(np.float64))
        packed += some.packed
        linear += some.linear
    return BlockResult((data.counts[0].astype(np.float64),), (packed, linear))


def spreads(block: SymbolicEntries, tall: Arrays, shared: Arrays, how: RowSettings) -> BlockResult:
    """The contribution of the covariances of rows to the sums of second moments for columns.

    `tall` are the means, the precisions to find them with, and the present precisions, if they differ.
    """
    data, known = EntrySums(block.bound), (shared[0], shared[1], shared[2])
    columns = data.private(tall[0].shape[1])
    for span, _, half in find_rows(data, tall[:2], known, how):
        precision = tall[2][slice(*span)] if len(tall) > 2 else half.rows.precision
        data.scatter(weight_by_precision(0 * half.means, half.rows.spread, precision), span, columns)
    return BlockResult(sums=(data.collected(columns).packed,))


def spread_times(block: SymbolicEntries, tall: Arrays, shared: Arrays) -> BlockResult:
    """u·Σw·qS for each row u, summed over the columns of its entries, of which `shared` has qS."""
    data, (rows,) = EntrySums(block.bound), tall
    times = np.empty_like(rows)
    known = shared[0], np.zeros((len(shared[0]), 1)), np.zeros(len(shared[0]))
    for span in _spans(len(rows), shared[0].shape[1]):
        packed = data.gathered(known, span).packed
        times[slice(*span)] = Exact(packed, rows.shape[1]).times(rows[slice(*span)].astype(np.float64))
    return BlockResult((times,))


def covariances(block: SymbolicEntries, tall: Arrays, shared: Arrays, how: RowSettings) -> BlockResult:
    """The covariances of some rows, which the last of `tall` marks."""
    *known, wanted = tall
    parts = [np.empty((0, how.places.rank * (how.places.rank + 1) // 2))]
    for span, _, half in find_rows(
        EntrySums(block.bound), tuple(known), (shared[0], shared[1], shared[2]), how, wanted
    ):
        assert half.rows.covariance is not None
        parts.append(half.rows.covariance[wanted[slice(*span)]])
    return BlockResult(each=np.concatenate(parts))


def slopes(means: Array, *precisions: Array, free: Array, prior: Array, before: Array) -> Array:
    """means·(prior − ratio·before), with the ratio of two precisions of each row if these differ."""
    found = np.zeros_like(means)
    for rows in chunks(len(means), means.shape[1]):
        ratio = (precisions[0][rows] / precisions[1][rows])[:, None] if precisions else 1.0
        found[rows, free] = means[rows, free] * (prior - ratio * before)  # in double precision: priors may be large
    return found


def with_prior(times: Array, means: Array, *precisions: Array, free: Array, prior: Array) -> Array:
    """times·precision + means·prior."""
    found = times * precisions[0][:, None].astype(times.dtype) if precisions else times.copy()
    for rows in chunks(len(means), means.shape[1]):
        found[rows, free] += means[rows, free] * prior
    return found


def squares(means: Array) -> Array:
    """Σ m² of each column."""
    return np.einsum("ik,ik->k", means, means, dtype=np.float64)


def find_rows(
    data: EntrySums, tall: Arrays, known: Tables, how: RowSettings, wanted: Array | None = None
) -> Iterator[tuple[Span, MomentSums, FactorPosterior]]:
    """Rows of a block, some at a time: their range, sums and posterior; only those that are wanted, if given."""
    counts = data.counts[0]
    for first, last in _spans(len(tall[0]), known[0].shape[1]):
        if wanted is not None:
            asked = np.flatnonzero(wanted[first:last])
            if asked.size == 0:
                continue
            first, last = first + int(asked[0]), first + int(asked[-1]) + 1
        rows, sums = slice(first, last), data.gathered(known, (first, last))
        means = tall[0][rows].astype(np.float64)
        alike = Precisions(np.ones(len(means)) if len(tall) == 1 else tall[1][rows])
        before = Gaussians(means, np.empty((len(means), 0)), how.places, how.prior, alike.mean)
        yield (first, last), sums, FactorPosterior(before, counts[rows], 0.0, alike).solve_rows(sums, how.variance)


def _spans(rows: int, each: int) -> Iterator[Span]:
    step = max(16, NUMBERS // each)
    return ((first, min(first + step, rows)) for first in range(0, rows, step))
