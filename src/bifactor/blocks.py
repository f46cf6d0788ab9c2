"""`Blocks`: the curvature of a function in the rows of a factor, one r×r matrix for each row."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import scipy

from bifactor import kernels
from bifactor.arrays import Array, beside, cast, dtype_of, epsilon, herm, host, is_numpy, on_host, real
from bifactor.caching import cached_property
from bifactor.errors import InputError
from bifactor.kernels.blas import matmul
from bifactor.kernels.blocks_reference import triangle
from bifactor.kernels.memory import empty

Weight = Array | float
"""One number for each row, or one for all."""


class Blocks(ABC):
    """Mᵢ, Hermitian, for rows i = 0, 1, …: a change e of row i changes the gradient there by e·Mᵢ."""

    @abstractmethod
    def divide(self, rows: Array) -> Array:
        """aᵢ·Mᵢ⁻¹ for each row aᵢ."""

    @abstractmethod
    def __add__(self, other: "Shared") -> "Blocks":
        """Mᵢ + Nᵢ."""

    @abstractmethod
    def __rmul__(self, number: float) -> "Blocks":
        """number·Mᵢ."""

    @abstractmethod
    def at(self, columns: Array) -> "Blocks":
        """The blocks of some of the columns."""

    @abstractmethod
    def averaged(self, other: "Blocks") -> "Blocks":
        """(Mᵢ + Nᵢ)/2 with blocks that were made in the same way."""


@dataclass(frozen=True, eq=False)
class Shared(Blocks):
    """Mᵢ = Σₖ aₖ[i]·Bₖ + ridge[i]·I: a few matrices shared by all rows.

    Parameters
    ----------
    pairs : tuple of (a, B)
        With a > 0, a float or a vector. One B with weights that vary is told from those with one weight for all rows.
        Of several that vary, all but the one that varies most have theirs averaged.
    ridge : number or vector
    """

    pairs: tuple[tuple[Weight, Array], ...] = ()
    ridge: Weight = 0.0

    def __add__(self, other: "Shared") -> "Shared":
        return Shared((*self.pairs, *other.pairs), self.ridge + other.ridge)

    def __rmul__(self, number: float) -> "Shared":
        return Shared(tuple((float(number) * a, B) for a, B in self.pairs), float(number) * self.ridge)

    def damped(self, damping: float) -> "Shared":
        """With `damping` added to the eigenvalues of each B, where zero ones would otherwise be blown up."""
        return Shared(tuple((a, raised(B, damping)) for a, B in self.pairs), self.ridge)

    @property
    def largest(self) -> float:
        """A bound of the eigenvalues."""
        parts = (float(np.max(host(a))) * float(np.linalg.eigvalsh(B)[-1]) for a, B in self.pairs)
        return sum(parts, float(np.max(host(self.ridge))))

    def at(self, columns: Array) -> "Shared":
        return replace(self, pairs=tuple((a, B[np.ix_(columns, columns)]) for a, B in self.pairs))

    def part(self, rows: slice) -> "Shared":
        """The blocks of some rows."""
        return Shared(tuple((_part(a, rows), B) for a, B in self.pairs), _part(self.ridge, rows))

    def averaged(self, other: Blocks) -> "Shared":
        assert isinstance(other, Shared)
        if len(self.pairs) != len(other.pairs):
            return 0.5 * self + 0.5 * other
        both = zip(self.pairs, other.pairs, strict=True)
        pairs = tuple(((a + b) / 2, (A + B) / 2) for (a, A), (b, B) in both)
        return Shared(pairs, (self.ridge + other.ridge) / 2)

    def divide(self, rows: Array) -> Array:
        alike, varied = self._two()
        if alike is not None and varied is not None:
            return self._by_both(rows, alike, varied)
        a, B = varied or alike or (0.0, np.eye(rows.shape[1], dtype=rows.dtype))
        values, Q = np.linalg.eigh(B)
        kept = _kept_from_zero(values)
        if isinstance(a, float) and isinstance(self.ridge, float):
            return matmul(rows, (Q / (a * kept + self.ridge).astype(values.dtype)) @ herm(Q))
        return _turned(rows, Q, herm(Q), a, kept, self.ridge)

    def _by_both(self, rows: Array, alike: tuple[float, Array], varied: tuple[Array, Array]) -> Array:
        """By the generalised eigenvectors of two matrices, B = TΛTᴴ and C = T(I − Λ)Tᴴ."""
        (c, C), (a, B) = alike, varied
        wide, r = np.result_type(B.dtype, np.float64), len(B)
        eye = np.eye(r)
        C = c * C.astype(wide) + float(np.mean(host(self.ridge))) * eye
        B = B.astype(wide)
        total: Array = B + C
        L = np.linalg.cholesky(total + 10 * r * epsilon(rows) * float(np.trace(total).real) * eye)
        half = scipy.linalg.solve_triangular(L, B, lower=True)
        values, Q = np.linalg.eigh(scipy.linalg.solve_triangular(L, herm(half), lower=True))
        T = scipy.linalg.solve_triangular(herm(L), Q, lower=False).astype(dtype_of(rows))
        values = np.clip(values, 0.0, 1.0)
        return _turned(rows, T, herm(T), a - 1, values, 1.0)  # a·Λ + I − Λ

    def _two(self) -> tuple[tuple[float, Array] | None, tuple[Array, Array] | None]:
        """The pairs with one weight for all rows as one, and one with a weight for each; None where there is none."""
        if len(self.pairs) == 1:
            a, B = self.pairs[0]
            return ((a, B), None) if isinstance(a, float) else (None, (a, B))
        alike = [(a, B) for a, B in self.pairs if isinstance(a, float)]
        varied = [(a, B) for a, B in self.pairs if not isinstance(a, float)]
        varied.sort(key=lambda pair: float(np.std(host(pair[0]))) * float(np.trace(pair[1]).real))
        own = varied.pop() if varied else None
        alike += [(float(np.mean(host(a))), B) for a, B in varied]
        if len(alike) > 1:
            weight = sum(a for a, _ in alike)
            shares = [a / weight * B for a, B in alike]
            alike = [(weight, sum(shares[1:], shares[0]))]
        return (alike[0] if alike else None), own


def _part(a: Any, rows: slice) -> Weight:
    return a if isinstance(a, float) else a[rows]


def raised(B: Array, number: float) -> Array:
    """B + number·I."""
    raised = np.array(B)
    raised.flat[:: len(B) + 1] += number
    return raised


def filled(a: Array) -> Array:
    """Weights to divide by, with the mean for rows that have none."""
    return np.where(a > 0, a, a.mean())


def _turned(rows: Array, before: Array, after: Array, a: Weight, values: Array, more: Weight) -> Array:
    """rows·before·(a·values + more)⁻¹·after, with one number for each row and column in the middle."""
    dtype = np.finfo(dtype_of(rows)).dtype
    own, each = _column(a, dtype), beside(values.astype(dtype), rows)
    if is_numpy(rows):
        middle = np.multiply(own, each, out=empty(rows.shape, dtype))
        middle += _column(more, dtype)
        turned = matmul(rows, before)
        turned /= middle
        return matmul(turned, after)
    return matmul(matmul(rows, before) / (own * each + _column(more, dtype)), after)


def _column(a: Weight, dtype: Any) -> Any:
    """Numbers of rows as a column, in a precision."""
    return a if isinstance(a, float) else cast(a, dtype)[:, None]


def _kept_from_zero(values: Array) -> Array:
    """Eigenvalues, kept above their rounding."""
    top = max(float(values[-1]), 0.0)
    floor = max(10 * len(values) * epsilon(values) * top, 1e6 * float(np.finfo(values.dtype).tiny))
    return np.maximum(values.astype(np.float64), 0.0) + floor


@dataclass(frozen=True, eq=False)
class Exact(Blocks):
    """Mᵢ by its entries Mᵢ[k, l] with k ≤ l, in the order of `kernels.blocks_reference.triangle`."""

    packed: Array
    rank: int

    def __add__(self, other: Shared) -> "Exact":
        first, second = triangle(self.rank)
        total = np.array(self.packed)
        for a, B in other.pairs:
            total += np.multiply.outer(np.asarray(host(a), total.dtype), B[first, second].astype(total.dtype))
        total[:, first == second] += np.asarray(host(other.ridge), total.dtype)[..., None]
        return Exact(total, self.rank)

    def __rmul__(self, number: float) -> "Exact":
        return Exact(number * self.packed, self.rank)

    def at(self, columns: Array) -> "Exact":
        first, second = triangle(self.rank)
        return Exact(self.packed[:, np.isin(first, columns) & np.isin(second, columns)], len(columns))

    def averaged(self, other: Blocks) -> "Exact":
        assert isinstance(other, Exact)
        return Exact((self.packed + other.packed) / 2, self.rank)

    def joined(self, other: "Exact") -> "Exact":
        """Mᵢ + Nᵢ."""
        return Exact(self.packed + other.packed, self.rank)

    def lifted(self, own: float, mean: float) -> "Exact":
        """Mᵢ + c·I, for rows that do not fix all of their columns: c in shares of the trace of Mᵢ and of the mean.

        Shares are kept above rounding, and a row of which nothing is known is divided by 1.
        """
        first, second = triangle(self.rank)
        diagonal = first == second
        traces = real(self.packed[:, diagonal]).sum(axis=1)
        least = 10 * self.rank * epsilon(self.packed)
        lift = max(own, least) * traces + mean * float(traces.mean()) / self.rank if len(traces) else traces
        total = np.array(self.packed)
        total[:, diagonal] += np.where(lift > 0, lift, 1)[:, None]
        return Exact(total, self.rank)

    def divide(self, rows: Array) -> Array:
        if tuple(rows.shape) != (len(self.packed), self.rank):  # compiled loops do not check bounds
            raise InputError(f"{len(self.packed)} blocks of rank {self.rank} met rows of shape {rows.shape}.")
        return on_host(self._kernel.solve, self._factor, rows)

    def times(self, rows: Array) -> Array:
        """aᵢ·Mᵢ for each row aᵢ."""
        return self._kernel.times(self.packed, rows)

    def turned(self, R: Array) -> "Exact":
        """RᵀMᵢR."""
        return Exact(self._kernel.turned(self.packed, R), self.rank)

    def inverse(self) -> "Exact":
        """Mᵢ⁻¹."""
        return Exact(self._kernel.inverse(self._factor, self.rank), self.rank)

    def log_determinants(self) -> Array:
        """log det Mᵢ."""
        found: Array = self._kernel.log_determinants(self._factor, self.rank)
        return found

    @property
    def _kernel(self) -> ModuleType:
        return kernels.find("blocks", self.packed.dtype, self.packed.size, self.rank)

    @cached_property
    def _factor(self) -> Array:
        return self._kernel.cholesky(self.packed, self.rank)
