"""Lazy matrices: a gradient is used only as `G @ V` and `G.H @ U`, so it is never formed."""

from abc import ABC, abstractmethod
from copy import copy
from types import ModuleType
from typing import Any

import numpy as np
from scipy import sparse

from bifactor import kernels
from bifactor.arrays import HOST_ARRAY, Array, conj, dtype_of, empty_of, to_device_of, where, widest
from bifactor.errors import InputError
from bifactor.kernels import blas
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.validation import require_rows


class LinearMap(ABC):
    """An m×n matrix given by its products with thin matrices."""

    shape: tuple[int, int]
    dtype: Any
    """The NumPy dtype."""
    like: Array = HOST_ARRAY
    """An array of the library of the matrices that it multiplies."""

    @abstractmethod
    def matmul(self, V: Array) -> Array:
        """G V."""

    @abstractmethod
    def rmatmul(self, U: Array) -> Array:
        """Gᴴ U."""

    @abstractmethod
    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        """(G V, Gᴴ U), in one pass if that saves work."""

    def normal(self, V: Array, rows: Array | None = None) -> Array:
        """Gᴴ G V, in one pass if that saves work; with diag(rows)·G for G if `rows`, m×1, is given."""
        GV = self.matmul(V)
        return self.rmatmul(GV if rows is None else rows * (rows * GV))

    def __matmul__(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        return self.matmul(V)

    @property
    def H(self) -> "LinearMap":
        """Gᴴ, as lazy as G."""
        return Adjoint(self)


class Adjoint(LinearMap):
    """Gᴴ of a given G."""

    def __init__(self, base: LinearMap):
        self.base = base
        self.shape = (base.shape[1], base.shape[0])
        self.dtype, self.like = base.dtype, base.like

    @property
    def H(self) -> LinearMap:
        return self.base

    def matmul(self, V: Array) -> Array:
        return self.base.rmatmul(V)

    def rmatmul(self, U: Array) -> Array:
        return self.base.matmul(U)

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        left, right = self.base.products(V, U)
        return right, left


class Dense(LinearMap):
    """An explicit matrix: an array, or a SciPy sparse matrix."""

    def __init__(self, matrix: Array):
        self.matrix = matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.dtype = dtype_of(matrix)
        self.like = HOST_ARRAY if sparse.issparse(matrix) else empty_of(matrix)

    def matmul(self, V: Array) -> Array:
        return blas.matmul(self.matrix, V)

    def rmatmul(self, U: Array) -> Array:
        # (AᵀŪ)‾ = AᴴU needs only `.T` of the matrix, and conjugates only the thin side.
        return conj(blas.matmul(self.matrix.T, conj(U)))

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        return self.matmul(V), self.rmatmul(U)


class LowRank(LinearMap):
    """UVᴴ."""

    def __init__(self, U: Array, V: Array):
        self.U, self.V = U, V
        self.shape, self.like = (int(U.shape[0]), int(V.shape[0])), empty_of(U)
        self.dtype = np.result_type(dtype_of(U), dtype_of(V))

    def matmul(self, V: Array) -> Array:
        return blas.matmul(self.U, blas.gram(self.V, V))

    def rmatmul(self, U: Array) -> Array:
        return blas.matmul(self.V, blas.gram(self.U, U))

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        return self.matmul(V), self.rmatmul(U)


class TotalMap(LinearMap):
    """G₁ + G₂ + …, as lazy as its terms."""

    def __init__(self, *terms: LinearMap):
        self.terms = terms
        self.shape, self.like = terms[0].shape, terms[0].like
        self.dtype = np.result_type(*(term.dtype for term in terms))

    def matmul(self, V: Array) -> Array:
        return _sum([term.matmul(V) for term in self.terms])

    def rmatmul(self, U: Array) -> Array:
        return _sum([term.rmatmul(U) for term in self.terms])

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        pairs = [term.products(U, V) for term in self.terms]
        return _sum([GV for GV, _ in pairs]), _sum([GhU for _, GhU in pairs])


def _sum(parts: list[Array]) -> Array:
    return sum(parts[1:], parts[0])


class ScaledMap(LinearMap):
    """c·G."""

    def __init__(self, c: complex, G: LinearMap):
        self.c, self.G, self.shape, self.like = c, G, G.shape, G.like
        self.dtype = np.result_type(G.dtype, np.complex64) if isinstance(c, complex) else G.dtype

    def matmul(self, V: Array) -> Array:
        return self.c * self.G.matmul(V)

    def rmatmul(self, U: Array) -> Array:
        return self.c.conjugate() * self.G.rmatmul(U)

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        GV, GhU = self.G.products(U, V)
        return self.c * GV, self.c.conjugate() * GhU

    def normal(self, V: Array, rows: Array | None = None) -> Array:
        return abs(self.c) ** 2 * self.G.normal(V, rows)


class LowRankPlus(TotalMap):
    """UVᴴ + c·G with a real c: the result of a gradient step from a factored X."""

    def __init__(self, U: Array, V: Array, c: float, G: LinearMap):
        super().__init__(LowRank(U, V), ScaledMap(c, G))


class RowsAndColumns(LinearMap):
    """diag(a)·G·diag(b) with real a and b."""

    def __init__(self, a: Array, G: LinearMap, b: Array):
        real = np.finfo(G.dtype).dtype
        self.G, self.shape, self.dtype, self.like = G, G.shape, G.dtype, G.like
        self.a, self.b = (
            to_device_of(np.broadcast_to(w, k).astype(real)[:, None], G.like)
            for w, k in zip((a, b), G.shape, strict=True)
        )

    @property
    def H(self) -> LinearMap:
        other = copy(self)
        other.G, other.shape, other.a, other.b = self.G.H, self.G.H.shape, self.b, self.a
        return other

    def matmul(self, V: Array) -> Array:
        return self.a * self.G.matmul(self.b * V)

    def rmatmul(self, U: Array) -> Array:
        return self.b * self.G.rmatmul(self.a * U)

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        GV, GhU = self.G.products(self.a * U, self.b * V)
        return self.a * GV, self.b * GhU

    def normal(self, V: Array, rows: Array | None = None) -> Array:
        return self.b * self.G.normal(self.b * V, self.a if rows is None else rows * self.a)


class Sampled(LinearMap):
    """The sparse n_outer × n_inner matrix that holds `w` at the coordinates of a layout."""

    def __init__(self, layout: EntryLayout, w: Array):
        self.layout = layout
        self.w = w
        self.shape, self.like = (layout.n_outer, layout.n_inner), empty_of(w)
        self.dtype = dtype_of(w)

    def matmul(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        return self._kernel(V).left(self.layout, self.w, V)

    def rmatmul(self, U: Array) -> Array:
        require_rows(U, self.shape[0])
        return self._kernel(U).right(self.layout, self.w, U)

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        require_rows(U, self.shape[0])
        require_rows(V, self.shape[1])
        left, right = self._kernel(U, V).both(self.layout, self.w, U, V)
        return left, right

    def _kernel(self, *factors: Array) -> ModuleType:
        return entry_kernels(self.layout.size, factors[0].shape[1], self.w, *factors)


def entry_kernels(size: int, columns: int, *arrays: Array) -> ModuleType:
    """The kernels for products at entries; `InputError` if the library of the arrays has none on their device."""
    like = widest(*arrays)
    kernel = kernels.get("entries", like, size, columns)
    if kernel is None:
        raise InputError(f"There is no kernel for arrays in {where(like)}. Move the data to the host.")
    return kernel
