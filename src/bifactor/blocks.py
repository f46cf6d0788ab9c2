"""`Blocks`: the curvature of a function in the rows of a factor, one r×r matrix for each row."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import scipy

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import (
    Array,
    cast,
    columns,
    dtype_of,
    epsilon,
    herm,
    is_numpy,
    largest_of,
    mean_of,
    namespace,
    on_host,
    real,
    spread,
    to_device_of,
    to_numpy,
)
from bifactor.errors import InputError
from bifactor.kernels.blas import matmul, some_rows
from bifactor.kernels.memory import empty
from bifactor.kernels.row_blocks_reference import triangle

# Weights of rows as combinations of two of them.

Weight = Array | float
"""One number for each row, or one for all rows."""


def two_weights(weights: list[Weight], sizes: list[float]) -> tuple[Array, Weight, list[float], list[float]]:
    """(p, q, α, β) with aₖ ≈ αₖp + βₖq and αₖ, βₖ ≥ 0, where p is one of the weights a and q another one, or 1.

    The two are chosen to minimise the squared residuals, each times the size of the matrix that it belongs to. If all
    weights are such combinations, there are no residuals. At least one of the weights is a vector.
    """
    means = [mean_of(a) for a in weights]
    bases: list[Any] = [1.0]
    places = []
    for a, mean in zip(weights, means, strict=True):
        places.append(0 if isinstance(a, float) or mean == 0 else len(bases))
        bases += [a / mean] if places[-1] else []
    G = np.array([[mean_of(a * b) for a in bases] for b in bases])
    counts = np.bincount(places, (np.array(means) * sizes) ** 2, minlength=len(bases))
    pairs = [(p, q) for q in range(len(bases)) for p in range(q + 1, len(bases))]
    fits = [[_shares_of_two(G, p, q, k) for k in range(len(bases))] for p, q in pairs]
    left = [float(sum(count * share[2] for count, share in zip(counts, fit, strict=True))) for fit in fits]
    # The first of those that are equally good up to rounding.
    best = next(i for i, cost in enumerate(left) if cost <= min(left) + 1e-12 * float(np.sum(counts)))
    (p, q), fit = pairs[best], fits[best]
    first, second = ([mean * fit[k][side] for mean, k in zip(means, places, strict=True)] for side in (0, 1))
    nothing = bases[p] + bases[q] <= 0  # such rows count as average
    return namespace(nothing).where(nothing, 1.0, bases[p]), bases[q], first, second


def _shares_of_two(G: Array, p: int, q: int, k: int) -> tuple[float, float, float]:
    """(α, β, ‖aₖ − αp − βq‖²) at the minimum over α, β ≥ 0, from the inner products of all weights."""
    if k in (p, q):
        return float(k == p), float(k == q), 0.0
    tried = [(G[p, k] / G[p, p], 0.0), (0.0, G[q, k] / G[q, q])]
    det = G[p, p] * G[q, q] - G[p, q] ** 2
    if det > 1e-12 * G[p, p] * G[q, q]:
        alpha, beta = G[q, q] * G[p, k] - G[p, q] * G[q, k], G[p, p] * G[q, k] - G[p, q] * G[p, k]
        tried += [(alpha / det, beta / det)] if min(alpha, beta) >= 0 else []
    sides = np.array([G[p, k], G[q, k]])
    square = np.array([[G[p, p], G[p, q]], [G[p, q], G[q, q]]])
    left = [float(G[k, k] - 2 * sides @ c + c @ square @ c) for c in map(np.array, tried)]
    best = int(np.argmin(left))
    return *tried[best], max(left[best], 0.0)


class Blocks(ABC):
    """Hermitian Mᵢ for rows i = 0, 1, …: a change e of row i changes the gradient there by e·Mᵢ."""

    @abstractmethod
    def divide(self, rows: Array) -> Array:
        """aᵢ·Mᵢ⁻¹ for each row aᵢ."""

    def divide_among(self, rows: Array, chosen: Array) -> Array:
        """The same for the chosen columns of the rows, with zeros in the others."""
        return spread(self.divide(columns(rows, chosen)), chosen, rows.shape[1])

    @abstractmethod
    def __add__(self, other: "Shared") -> "Blocks":
        """Mᵢ + Nᵢ."""

    @abstractmethod
    def __rmul__(self, number: float) -> "Blocks":
        """number·Mᵢ."""

    @abstractmethod
    def at(self, chosen: Array) -> "Blocks":
        """The blocks of some of the columns."""

    @abstractmethod
    def averaged(self, other: "Blocks") -> "Blocks":
        """(Mᵢ + Nᵢ)/2 with blocks of the same type."""


@dataclass(frozen=True, eq=False)
class Shared(Blocks):
    """Mᵢ = Σₖ aₖ[i]·Bₖ + ridge[i]·I: a few matrices shared by all rows.

    Parameters
    ----------
    pairs : tuple of (a, B)
        The terms, with a ≥ 0, a float or a vector, and B semidefinite. Division is exact for one B and any ridge, and
        for several if the weights, including the ridge, are combinations of two: aₖ = αₖp + βₖq with αₖ, βₖ ≥ 0, and p
        and q among them or 1. Other weights are approximated by such combinations.
    ridge : number or vector
        The multiple of the identity.
    """

    pairs: tuple[tuple[Weight, Array], ...] = ()
    ridge: Weight = 0.0

    def __add__(self, other: "Shared") -> "Shared":
        return Shared((*self.pairs, *other.pairs), self.ridge + other.ridge)

    def __rmul__(self, number: float) -> "Shared":
        return Shared(tuple((float(number) * a, B) for a, B in self.pairs), float(number) * self.ridge)

    def damped(self, damping: float) -> "Shared":
        """The same with `damping` added to the eigenvalues of each B, so that division by small ones stays bounded."""
        return Shared(tuple((a, add_to_diagonal(B, damping)) for a, B in self.pairs), self.ridge)

    @property
    def largest(self) -> float:
        """An upper bound of the eigenvalues."""
        parts = (largest_of(a) * float(np.linalg.eigvalsh(B)[-1]) for a, B in self.pairs)
        return sum(parts, largest_of(self.ridge))

    @property
    def typical(self) -> float:
        """The trace of an average block, without the ridge."""
        return sum((mean_of(a) * float(np.trace(B).real) for a, B in self.pairs), 0.0)

    def at(self, chosen: Array) -> "Shared":
        return replace(self, pairs=tuple((a, B[np.ix_(chosen, chosen)]) for a, B in self.pairs))

    def times(self, rows: Array) -> Array:
        """aᵢ·Mᵢ for each row aᵢ."""
        dtype = np.finfo(dtype_of(rows)).dtype
        total = _column(self.ridge, dtype) * rows
        for a, B in self.pairs:
            total = total + _column(a, dtype) * matmul(rows, to_device_of(B.astype(dtype_of(rows)), rows))
        return total

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
        return self.divide_among(rows, np.arange(rows.shape[1]))

    def divide_among(self, rows: Array, chosen: Array) -> Array:
        pairs, alike = self.pairs, [a for a, _ in self.pairs if isinstance(a, float)]
        if len(alike) == len(pairs) > 1:
            pairs = ((1.0, _combined(alike, [B for _, B in pairs])),)
        if len(pairs) > 1:
            return self._by_two(rows, chosen)
        a, B = pairs[0] if pairs else (0.0, np.eye(len(chosen), dtype=rows.dtype))
        values, Q = np.linalg.eigh(B)
        kept, Q = _kept_from_zero(values), _among(Q, chosen, rows.shape[1])
        if isinstance(a, float) and isinstance(self.ridge, float):
            return matmul(rows, (Q / (a * kept + self.ridge).astype(values.dtype)) @ herm(Q))
        return _turned(rows, Q, herm(Q), a, kept, self.ridge)

    def _by_two(self, rows: Array, chosen: Array) -> Array:
        """Divide by the generalised eigenvectors of two matrices, P = TΛTᴴ and Q = T(I − Λ)Tᴴ with Mᵢ = pᵢP + qᵢQ."""
        r, eps = len(self.pairs[0][1]), epsilon(rows)
        matrices = [*(B.astype(np.result_type(B.dtype, np.float64)) for _, B in self.pairs), np.eye(r)]
        weights = [*(a for a, _ in self.pairs), self.ridge]
        p, q, first, second = two_weights(weights, [float(np.trace(B).real) for B in matrices])
        P, Q = _combined(first, matrices), _combined(second, matrices)
        total = P + Q
        least = max(10 * eps * float(np.trace(total).real), 1e6 * float(np.finfo(dtype_of(rows)).tiny))
        L = np.linalg.cholesky(add_to_diagonal(total, least))
        half = scipy.linalg.solve_triangular(L, P, lower=True)
        values, turn = np.linalg.eigh(scipy.linalg.solve_triangular(L, herm(half), lower=True))
        T = scipy.linalg.solve_triangular(herm(L), turn, lower=False).astype(dtype_of(rows))
        T = _among(T, chosen, rows.shape[1])
        values = np.clip(values, 0.0, 1.0 - 10 * eps)  # so that the divisor is positive where p is 0
        more = q if isinstance(q, float) else to_device_of(q, rows)
        return _turned(rows, T, herm(T), to_device_of(p - q, rows), values, more)  # pΛ + q(I − Λ)


def _combined(weights: list[float], matrices: list[Array]) -> Array:
    """Σ aₖBₖ."""
    parts = [a * B for a, B in zip(weights, matrices, strict=True)]
    return sum(parts[1:], parts[0])


def _among(Q: Array, chosen: Array, width: int) -> Array:
    """The rows of a small matrix at the chosen places among rows of zeros."""
    if len(Q) == width:
        return Q
    found = np.zeros((width, Q.shape[1]), Q.dtype)
    found[chosen] = Q
    return found


def _part(a: Any, rows: slice) -> Weight:
    return a if isinstance(a, float) else a[rows]


def add_to_diagonal(B: Array, number: float) -> Array:
    """B + number·I."""
    raised = np.array(B)
    raised.flat[:: len(B) + 1] += number
    return raised


def fill_zero_weights(a: Array) -> Array:
    """Weights to divide by, with the mean weight for rows that have none."""
    return np.where(a > 0, a, a.mean())


def _turned(rows: Array, before: Array, after: Array, a: Weight, values: Array, more: Weight) -> Array:
    """rows·before·(a·values + more)⁻¹·after, with one number for each row and column in the middle factor."""
    dtype = np.finfo(dtype_of(rows)).dtype
    own, each = _column(a, dtype), to_device_of(values.astype(dtype), rows)
    if is_numpy(rows):
        added, out = _column(more, dtype), empty(rows.shape, np.result_type(rows, before))
        for some in some_rows(rows):
            middle = own[some] * each if np.ndim(own) else own * each
            middle = middle + (added[some] if np.ndim(added) else added)
            turned = matmul(rows[some], before)
            turned /= middle
            matmul(turned, after, out[some])
        return out
    return matmul(matmul(rows, before) / (own * each + _column(more, dtype)), after)


def _column(a: Weight, dtype: Any) -> Any:
    """Weights of rows as a column, in this precision."""
    return a if isinstance(a, float) else cast(a, dtype)[:, None]


def _kept_from_zero(values: Array) -> Array:
    """Eigenvalues, kept above their rounding."""
    top = max(float(values[-1]), 0.0)
    floor = max(10 * len(values) * epsilon(values) * top, 1e6 * float(np.finfo(values.dtype).tiny))
    return np.maximum(values.astype(np.float64), 0.0) + floor


@dataclass(frozen=True, eq=False)
class Exact(Blocks):
    """Mᵢ given by its entries Mᵢ[k, l] with k ≤ l, in the order of `kernels.row_blocks_reference.triangle`."""

    packed: Array
    rank: int

    def __add__(self, other: Shared) -> "Exact":
        first, second = triangle(self.rank)
        total = np.array(self.packed)
        for a, B in other.pairs:
            total += np.multiply.outer(np.asarray(to_numpy(a), total.dtype), B[first, second].astype(total.dtype))
        total[:, first == second] += np.asarray(to_numpy(other.ridge), total.dtype)[..., None]
        return Exact(total, self.rank)

    def __rmul__(self, number: float) -> "Exact":
        return Exact(number * self.packed, self.rank)

    def at(self, chosen: Array) -> "Exact":
        first, second = triangle(self.rank)
        return Exact(self.packed[:, np.isin(first, chosen) & np.isin(second, chosen)], len(chosen))

    def averaged(self, other: Blocks) -> "Exact":
        assert isinstance(other, Exact)
        return Exact((self.packed + other.packed) / 2, self.rank)

    def joined(self, other: "Exact") -> "Exact":
        """Mᵢ + Nᵢ."""
        return Exact(self.packed + other.packed, self.rank)

    def lifted(self, own: float, mean: float) -> "Exact":
        """Mᵢ + c·I, for singular Mᵢ: c is a share of the trace of Mᵢ plus a share of the mean trace.

        Shares are kept above rounding, and a row with Mᵢ = 0 is divided by 1.
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
            raise InputError(
                f"There are {len(self.packed)} blocks of rank {self.rank}, but rows have shape {rows.shape}. "
                "Pass one row for each block."
            )
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
        return kernels.get("row_blocks", self.packed, self.packed.size, self.rank)

    @cached_property
    def _factor(self) -> Array:
        return self._kernel.cholesky(self.packed, self.rank)
