"""Fitted factor analysis: scores of rows, predictions, draws and likelihoods."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, floating, generator, is_complex
from bifactor.display.listing import Listing
from bifactor.display.svg import CARD, line_chart, thinned
from bifactor.errors import InputError
from bifactor.kernels.row_blocks_reference import triangle
from bifactor.kernels.threading import blas_at_most, run, shares
from bifactor.models.factor_analysis.lanes_reference import matrices, packed_of
from bifactor.models.factor_analysis.updates import BlockedTable, ColumnPosterior, ScorePosterior, Span, lanes
from bifactor.running.result import Status
from bifactor.validation import pluralize

KEPT = 1 << 23
"""Largest number of numbers in stored covariances of rows; for larger tables they are recomputed when needed."""


@dataclass(frozen=True, eq=False)
class RowPosterior:
    """Scores of rows, given their known entries: uᵢ ~ N(mᵢ, Cᵢ)."""

    means: Array
    """n × r."""
    table: BlockedTable
    columns: ColumnPosterior
    kept: Array | None
    """Packed covariances of rows, or of the patterns of missing entries; None if they would take too much memory."""

    def __len__(self) -> int:
        return len(self.means)

    @classmethod
    def of(cls, columns: ColumnPosterior, Y: Array) -> Self:
        table, rank = BlockedTable(Y), columns.rank
        size = rank * (rank + 1) // 2
        means, kept = np.empty((len(Y), rank)), None
        if size * len(table.masks) <= KEPT:
            kept = np.empty((size, len(table.masks)))

        def infer(spans: list[Span]) -> None:
            for span in spans:
                rows = ScorePosterior.of(columns, table.block(span))
                means[table.order[span[1]]] = rows.means.T
                if kept is not None:
                    kept[:, span[0]] = rows.covariances

        _over(infer, table, columns)
        return cls(means, table, columns, kept)

    @property
    def covariances(self) -> Array:
        """n × r × r: for large tables, take some of the rows at a time."""
        rank = self.columns.rank
        found = np.empty((len(self), rank, rank))
        for span in self.table.spans(rank):
            found[self.table.order[span[1]]] = self.table.repeat(span, matrices(self.packed(span), rank))
        return found

    def packed(self, span: Span) -> Array:
        """Covariances of a block of masks."""
        if self.kept is not None:
            return self.kept[:, span[0]]
        return ScorePosterior.of(self.columns, self.table.block(span)).covariances


@dataclass(frozen=True, repr=False)
class FactorResult(Listing):
    """How the rounds of a fit ended, and one line for each round that was accepted.

    `bound` is the lower bound of the log evidence, during rounds on a sample that of its rows; `change` the root mean
    square change of predictions; `seconds` counts from the start of the fit.
    """

    status: Status
    n_iter: int
    """Number of rounds, with those that were rejected because the bound decreased."""
    iteration: Array
    bound: Array
    change: Array
    seconds: Array

    def _about(self) -> str:
        return f"{self.status.name} after {pluralize(self.n_iter, 'round')}"

    def pictures(self) -> list[str]:
        """A chart of the bound against the rounds, as SVG."""
        some = thinned(self.bound.size)
        return [line_chart(self.iteration[some], self.bound[some], "round", "bound", whole_x=True, frame=CARD)]


@dataclass(frozen=True, eq=False)
class FactorModel:
    """yᵢⱼ = μⱼ + uᵢ·vⱼ + noise of variance ψⱼ, with uᵢ ~ N(0, I) and vⱼₖ ~ N(0, 1/αₖ): the posterior of v and μ."""

    mean: Array
    """μ, of q columns."""
    loadings: Array
    """v, q × r: components are orthogonal to each other on average over the posterior, the largest first."""
    covariances: Array
    """Covariances of (v, μ) of each column, q × (r + 1) × (r + 1)."""
    noise: Array
    """ψ."""
    precisions: Array
    """α."""
    bound: float
    """Lower bound of log p(Y, 1/ψ, α)."""
    result: FactorResult

    @cached_property
    def columns(self) -> ColumnPosterior:
        means = np.vstack([self.loadings.T, self.mean])
        return ColumnPosterior(np.ascontiguousarray(means), packed_of(self.covariances), self.noise)

    def rows(self, Y: Any) -> RowPosterior:
        """Scores of rows, new or not, with NaN for missing entries. A row without entries has those of the prior."""
        return RowPosterior.of(self.columns, checked_table(Y, len(self.mean)))

    def expected(self, rows: RowPosterior) -> Array:
        """Mean of each cell, n × q."""
        return rows.means @ self.loadings.T + self.mean

    def predict(self, rows: RowPosterior) -> tuple[Array, Array]:
        """Mean and variance of a new measurement of each cell, both n × q.

        The variance is vᵀCv + mᵀSm + tr(CS) + ψ, where v includes the mean of the column.
        """
        columns, rank = self.columns, len(self.precisions)
        size, variance = rank * (rank + 1) // 2, np.empty(rows.table.shape)
        first, second = triangle(rank + 1)
        double = np.where(first == second, 1.0, 2.0)[:, None]
        of_scores, of_columns = double[:size] * columns.moments[:size], double * columns.spread

        def tell(spans: list[Span]) -> None:
            for span in spans:
                index = rows.table.order[span[1]]
                squares = np.zeros((len(double), len(index)))
                lanes(squares, rank + 1).add_squares(squares, np.vstack([rows.means[index].T, np.ones(len(index))]))
                found = squares.T @ of_columns + self.noise
                found += rows.table.repeat(span, rows.packed(span).T @ of_scores)
                variance[index] = found

        _over(tell, rows.table, columns)
        return self.expected(rows), variance

    def sample_loadings(self, rng: Any) -> tuple[Array, Array]:
        """One draw of all loadings, q × r, and means of columns."""
        rng = generator(rng)
        L = np.linalg.cholesky(self.covariances)
        drawn = self.columns.means.T + np.einsum("jkl,jl->jk", L, rng.standard_normal(L.shape[:2]))
        return drawn[:, :-1], drawn[:, -1]

    def sample(self, rows: RowPosterior, rng: Any, loadings: tuple[Array, Array] | None = None) -> Array:
        """A joint draw of new measurements, n × q: one u for each row, one v and μ for all rows, and noise.

        `loadings` is a result of `sample_loadings`, if several calls share it.
        """
        rng = generator(rng)
        V, mu = self.sample_loadings(rng) if loadings is None else loadings
        scores = rng.standard_normal(rows.means.shape)
        for span in rows.table.spans(len(self.precisions)):
            index = rows.table.order[span[1]]
            L = np.linalg.cholesky(matrices(rows.packed(span), len(self.precisions)))
            scores[index] = np.einsum("ikl,il->ik", rows.table.repeat(span, L), scores[index])
        scores += rows.means
        return scores @ V.T + mu + rng.standard_normal((len(scores), len(mu))) * np.sqrt(self.noise)

    def log_likelihood(self, Y: Any) -> Array:
        """Log-likelihood of the known entries of each row, with its scores integrated out, at the means of v and μ."""
        Y = checked_table(Y, len(self.mean))
        plain = ColumnPosterior(self.columns.means, np.zeros_like(self.columns.spread), self.noise)
        table, found = BlockedTable(Y), np.empty(len(Y))

        def tell(spans: list[Span]) -> None:
            for span in spans:
                block = table.block(span)
                rows = ScorePosterior.of(plain, block)
                cells = (block.values - self.mean) ** 2 / self.noise + np.log(2 * np.pi * self.noise)
                logs = table.repeat(span, rows.logs) + np.sum(cells * block.known, axis=1)
                found[table.order[span[1]]] = 0.5 * (np.sum(rows.means * rows.linear, axis=0) - logs)

        _over(tell, table, plain)
        return found


def _over(function: Callable[[list[Span]], None], table: BlockedTable, columns: ColumnPosterior) -> None:
    """Call a function with blocks of rows, on several threads."""
    spans = table.spans(columns.rank)
    with blas_at_most(1):
        run(function, [(spans[a:b],) for a, b in shares(len(spans), table.work(columns) / max(len(spans), 1))])


def checked_table(Y: Any, q: int | None = None) -> Array:
    Y = floating(Y, "Y")
    if Y.ndim != 2 or is_complex(Y) or 0 in Y.shape[1:] or (q is None and len(Y) == 0):
        raise InputError(
            f"Y has shape {Y.shape} and dtype {Y.dtype}. Pass a table of real numbers, with NaN for missing entries."
        )
    if q is not None and Y.shape[1] != q:
        raise InputError(f"Y has {Y.shape[1]} columns, but the fit has {q}. Pass the columns of the fit.")
    if np.isinf(Y).any():
        raise InputError("Y contains infinity. Pass NaN for missing entries.")
    return Y
