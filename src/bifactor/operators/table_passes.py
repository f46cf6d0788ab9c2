"""Passes over all cells of a table, some rows at a time: a product, a loss, and two products."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.factors import Factors
from bifactor.kernels import cells_reference
from bifactor.kernels.blas_threads import blas_at_most
from bifactor.kernels.blocks_reference import triangle
from bifactor.kernels.pool import run, shares
from bifactor.kernels.sheet import Sheet
from bifactor.losses import Loss

CELLS, FEWEST = 1 << 17, 32
"""The number of cells that are formed at a time, and the smallest number of rows: products of few rows are slow."""

Sums = tuple[float, Array, Array]
"""The sum of the losses, and two products."""


class Passes:
    """f(X) = Σ w·ℓ(X + LRᵀ; y) over the cells of a sheet, and its derivatives."""

    def __init__(self, loss: Loss, sheet: Sheet, known: tuple[Array, Array]):
        self.loss, self.known = loss, known
        self.sheets = {sheet.dtype: sheet}
        self.shape = sheet.shape

    def value(self, x: Factors) -> float:
        return float(np.sum(self.row_values(x)))

    def row_values(self, x: Factors) -> Array:
        """f of each row."""
        found = np.empty(self.shape[0])

        def part(start: int, stop: int) -> None:
            for rows, Z, C in self._blocks(x, start, stop):
                found[rows] = self._derivatives(rows, Z, C)

        self._run(part, x.width)
        return found

    def products(self, x: Factors, A: Array, B: Array) -> Sums:
        """f, ∇f·B and ∇fᵀ·A."""
        left = np.empty((self.shape[0], B.shape[1]), x.dtype)

        def part(start: int, stop: int) -> tuple[float, Array]:
            total, right = 0.0, np.zeros((A.shape[1], self.shape[1]))
            for rows, Z, C in self._blocks(x, start, stop):
                total += float(np.sum(self._derivatives(rows, Z, C)))
                np.matmul(Z, B, out=left[rows])
                right += A[rows].T @ Z
            return total, right

        return self._summed(self._run(part, 3 * x.width), left)

    def along(self, x: Factors, d: Factors) -> tuple[float, float, float]:
        """φ(0), φ′(0) and φ″(0) with φ(a) = f at x + a·d."""
        E = np.ascontiguousarray(d.right.T)

        def part(start: int, stop: int) -> Array:
            total = np.zeros(3)
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                total[0] += float(np.sum(self._derivatives(rows, Z, C)))
                change = self._change(x, d, rows)
                total[1] += float(np.vdot(Z, change))
                total[2] += 2 * float(np.vdot(Z, d.left[rows] @ E))
                C *= change
                total[2] += float(np.vdot(C, change))
            return total

        value, first, second = np.sum(self._run(part, 4 * x.width), axis=0)
        return float(value), float(first), float(second)

    def bent(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        """H·V and Hᵀ·U, where H is the Hessian in X applied to the change of X along d."""
        left = np.empty(x.left.shape, x.dtype)

        def part(start: int, stop: int) -> tuple[float, Array]:
            right = np.zeros((x.width, self.shape[1]))
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                self._derivatives(rows, Z, C)
                C *= self._change(x, d, rows)
                np.matmul(C, x.right, out=left[rows])
                right += x.left[rows].T @ C
            return 0.0, right

        return self._summed(self._run(part, 6 * x.width), left)[1:]

    def _change(self, x: Factors, d: Factors, rows: slice) -> Array:
        """The derivative of X along d, in some rows."""
        return np.hstack([d.left[rows], x.left[rows]]) @ np.hstack([x.right, d.right]).T

    def sums(self, x: Factors) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """The sums of w·ℓ′ over each row and over each column, and those of w·ℓ″."""
        rows_sums = np.empty((2, self.shape[0]))

        def part(start: int, stop: int) -> Array:
            across = np.zeros((2, self.shape[1]))
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                self._derivatives(rows, Z, C)
                for k, each in enumerate((Z, C)):
                    rows_sums[k, rows] = each.sum(axis=1)
                    across[k] += each.sum(axis=0)
            return across

        slopes, bends = np.sum(self._run(part, x.width), axis=0)
        return (rows_sums[0], slopes), (rows_sums[1], bends)

    def rows(self, x: Factors, first: int) -> tuple[Array, Array, Array]:
        """f of each row of U, its slopes in the columns from `first` on, and the blocks of curvature there."""
        k, h = triangle(x.width - first)
        V = np.ascontiguousarray(x.right[:, first:])
        squares = V[:, k] * V[:, h]
        values, slopes = np.empty(self.shape[0]), np.empty((self.shape[0], V.shape[1]), x.dtype)
        blocks = np.empty((self.shape[0], k.size), x.dtype)

        def part(start: int, stop: int) -> None:
            for rows, Z, C in self._blocks(x, start, stop, bends=True):
                values[rows] = self._derivatives(rows, Z, C)
                np.matmul(Z, V, out=slopes[rows])
                np.matmul(C, squares, out=blocks[rows])

        self._run(part, x.width + k.size)
        return values, slopes, blocks

    def squares(self, x: Factors, side: int, score: bool, span: tuple[int, int]) -> Array:
        """Σ q·bbᵀ over the cells of each row (side 0) or column, q = w·ℓ″ or (w·ℓ′)², b rows of the other factor."""
        first, second = triangle(x.width)
        other = (x.right, x.left)[side]
        products = other[:, first] * other[:, second]
        low, high = (0, self.shape[0]) if side else span
        found = np.empty((span[1] - span[0], first.size), x.dtype)

        def part(start: int, stop: int) -> Array | None:
            across = np.zeros((first.size, self.shape[1])) if side else None
            for rows, Z, C in self._blocks(x, low + start, low + stop, bends=not score):
                self._derivatives(rows, Z, C)
                q = Z * Z if score else C
                if across is None:
                    np.matmul(q, products, out=found[rows.start - low : rows.stop - low])
                else:
                    across += products[rows].T @ q
            return across

        parts = self._run(part, first.size, high - low)
        return sum(parts[1:], parts[0]).T[slice(*span)].astype(x.dtype) if side else found

    def _blocks(self, x: Factors, start: int, stop: int, bends: bool = False) -> Iterator[tuple[slice, Array, Array]]:
        """Some rows at a time, their z, and an array for the curvature; both in memory that is reused."""
        L, R = self.known
        left = x.left if not L.shape[1] else np.hstack([x.left[start:stop], L[start:stop].astype(x.dtype)])
        offset = 0 if not L.shape[1] else start
        right = np.ascontiguousarray(np.hstack([x.right, R]).T.astype(x.dtype))
        n = self.shape[1]
        height = min(max(CELLS // n, FEWEST), max(stop - start, 1))
        Z, C = np.empty((height, n), x.dtype), np.empty((height if bends else 0, n), x.dtype)
        for low in range(start, stop, height):
            rows = slice(low, min(low + height, stop))
            count = rows.stop - rows.start
            z = Z[:count]
            np.matmul(left[low - offset : rows.stop - offset], right, out=z)
            yield rows, z, C[:count]

    def _derivatives(self, rows: slice, Z: Array, C: Array) -> Array:
        sheet = self._sheet(Z.dtype)
        if self.loss.pointwise is not None and kernels.has_compiled(Z.dtype, np.prod(self.shape, dtype=float)):
            settings = self.loss.pointwise, self.loss.parameter(Z.dtype)
            found: Array = kernels.compiled("cells").derivatives(*settings, sheet, rows.start, Z, C)
            return found
        parts = self.loss.value, self.loss.gradient, self.loss.curvature
        return cells_reference.derivatives(*parts, sheet, rows.start, Z, C)

    def _sheet(self, dtype: Any) -> Sheet:
        if dtype not in self.sheets:
            one = next(iter(self.sheets.values()))
            parts = {name: getattr(one, name).astype(dtype) for name in ("y", "rows", "own")}
            self.sheets[dtype] = replace(one, **parts)
        return self.sheets[dtype]

    def _run(self, part: Any, width: int, count: int | None = None) -> list[Any]:
        """A pass over rows, on all threads."""
        with blas_at_most(1):
            return run(part, shares(self.shape[0] if count is None else count, self.shape[1] * (1 + width / 8)))

    def _summed(self, parts: list[tuple[float, Array]], left: Array) -> Sums:
        totals, rights = zip(*parts, strict=True)
        right = sum(rights[1:], rights[0])
        return float(sum(totals)), left, np.ascontiguousarray(right.T.astype(left.dtype))
