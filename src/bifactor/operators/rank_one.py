"""Measurements by rank-one matrices: bilinear forms, and intensities."""

from typing import Any

import numpy as np

from bifactor.arrays import (
    Array,
    common_dtype,
    conj,
    dtype_of,
    empty_of,
    floating,
    is_complex,
    match_precision,
    namespace,
    real,
    row_squares,
    to_device_of,
    to_numpy,
)
from bifactor.errors import InputError
from bifactor.kernels.blas import matmul
from bifactor.linear_map import LinearMap
from bifactor.operators.base import Operator, power_norm_squared
from bifactor.validation import require_finite


class RankOne(Operator):
    """A(X)ᵢ = aᵢᴴ X bᵢ; without b, the intensities A(X)ᵢ = Re(aᵢᴴ X aᵢ) of phase retrieval and tomography.

    For X = UUᴴ an intensity is ‖Uᴴaᵢ‖² ≥ 0. With complex vectors X is complex, and intensities stay real.

    Parameters
    ----------
    a : array, size × m
        The vectors aᵢ, one per row.
    b : array, size × n, optional
        The vectors bᵢ.
    """

    def __init__(self, a: Array, b: Array | None = None):
        self.a = _vectors(a, "a")
        self.intensity = b is None
        self.b = self.a if b is None else _vectors(b, "b")
        if self.a.shape[0] != self.b.shape[0]:
            raise InputError(
                f"a has {self.a.shape[0]} rows and b has {self.b.shape[0]}. Pass one of each per measurement."
            )
        self.shape = (int(self.a.shape[1]), int(self.b.shape[1]))
        self.size = int(self.a.shape[0])
        self.complex_matrix = is_complex(self.a) or is_complex(self.b) or None

    def forward(self, U: Array, V: Array) -> Array:
        a, b = self._vectors(U)
        z = namespace(U).sum(matmul(conj(a), U) * conj(matmul(conj(b), V)), axis=1)
        return real(z) if self.intensity else z

    def adjoint(self, w: Array) -> LinearMap:
        return Weighted(*self._vectors(w), w)

    def work(self, width: int, dtype: Any) -> int:
        item, m, n = np.dtype(dtype).itemsize, *self.shape
        copied = max(m, n) if self.complex_matrix else 0  # conjugates of one side at a time
        if any(np.finfo(vectors.dtype).eps != np.finfo(dtype).eps for vectors in (self.a, self.b)):
            copied += 2 * (m + n)  # in another precision, held by forward and an adjoint at once
        return self.size * (3 * width + copied) * item

    def _vectors(self, like: Array) -> tuple[Array, Array]:
        """a and b in the precision and library of an array."""
        a, b = (to_device_of(match_precision(vectors, dtype_of(like)), like) for vectors in (self.a, self.b))
        return a, b

    def norm_squared(self, weights: Array | None = None) -> float:
        return power_norm_squared(self, weights)

    def mean_square(self, weights: Array | None = None) -> float:
        rows = row_squares(self.a) * row_squares(self.b)
        if self.intensity and self.complex_matrix:
            rows = rows / 2  # the real part contains half of ‖X‖²
        return float(np.sum(rows if weights is None else weights * rows)) / (self.shape[0] * self.shape[1])


class Weighted(LinearMap):
    """Σᵢ wᵢ aᵢ bᵢᴴ."""

    def __init__(self, a: Array, b: Array, w: Array):
        self.a, self.b, self.w = a, b, w[:, None]
        self.shape = (int(a.shape[1]), int(b.shape[1]))
        self.dtype, self.like = common_dtype(a, b, w), empty_of(w)

    def matmul(self, V: Array) -> Array:
        return matmul(self.a.T, self.w * matmul(conj(self.b), V))

    def rmatmul(self, U: Array) -> Array:
        return matmul(self.b.T, conj(self.w) * matmul(conj(self.a), U))

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        return self.matmul(V), self.rmatmul(U)


def _vectors(rows: Array, name: str) -> Array:
    a = to_numpy(floating(rows, name))
    if a.ndim != 2 or 0 in a.shape:
        raise InputError(f"{name} has shape {a.shape}. Pass a matrix with one vector per row.")
    require_finite(a, name, "Check how the vectors were computed.")
    return np.array(a)  # a copy, because the caller may change it later
