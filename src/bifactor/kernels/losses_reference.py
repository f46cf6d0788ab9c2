"""Losses at many measurements, by array functions of any library: the definition of the compiled passes.

z(a) = z + a·z₁ + a²·z₂ are the measurements, so φ(a) = Σ w·ℓ(z(a); y). A loss is given by its methods.
Empty `weights` mean ones and an empty `z2` means zeros. Sums are taken in double precision.
"""

from typing import Any, Protocol

import numpy as np

from bifactor import arrays
from bifactor.arrays import Array, inner, namespace
from bifactor.kernels.sparse_table import SparseTable


class LossFunctions(Protocol):
    """A loss as kernels take it: ℓ, ℓ′ and ℓ″ of arrays, and all three at one measurement, if that form is known."""

    def value(self, z: Array, y: Array) -> Array: ...

    def gradient(self, z: Array, y: Array) -> Array: ...

    def curvature(self, z: Array, y: Array) -> Array: ...

    @property
    def pointwise(self) -> Any: ...

    def parameter(self, dtype: Any) -> Any: ...

    @property
    def quadratic(self) -> bool: ...


def record_type(dtype: Any) -> np.dtype:
    """A y and the number of its group."""
    return np.dtype([("y", dtype), ("group", np.uint8)], align=True)


def evaluate(loss: LossFunctions, z: Array, y: Array, weights: Array) -> tuple[float, Array]:
    """Σ w·ℓ(z; y) and w·ℓ′(z; y)."""
    slope = weighted(loss.gradient(z, y), weights)
    return total(loss.value(z, y), weights), slope


def line(
    loss: LossFunctions, z: Array, z1: Array, z2: Array, y: Array, weights: Array, a: float
) -> tuple[float, float, float]:
    """φ(a), φ′(a) = Σ w·Re(conj(ℓ′)·z′) and φ″(a) = Σ w·[ℓ″·|z′|² + 2 Re(conj(ℓ′)·z₂)] with z′ = z₁ + 2a·z₂.

    For complex measurements the third number is exact for the squared loss. Other losses also have curvature across the
    direction of ℓ′ (Huber's δ/|z − y| beyond δ), which is left out: the number is only good for estimating a step.
    """
    point, speed = _at(z, z1, z2, a), z1 + 2 * float(a) * z2 if z2.shape[0] else z1
    slope = weighted(loss.gradient(point, y), weights)
    second = total(loss.curvature(point, y) * namespace(speed).abs(speed) ** 2, weights)
    if z2.shape[0]:
        second += 2 * inner(slope, z2)
    return total(loss.value(point, y), weights), inner(slope, speed), second


def advance(
    loss: LossFunctions, z: Array, z1: Array, z2: Array, y: Array, weights: Array, a: float
) -> tuple[float, Array, Array]:
    """φ(a), the slopes w·ℓ′ at z(a), and z(a)."""
    point = _at(z, z1, z2, a)
    return total(loss.value(point, y), weights), weighted(loss.gradient(point, y), weights), point


def quartic(z: Array, z1: Array, z2: Array, y: Array, weights: Array) -> Array:
    """c₀ … c₄ with Σ w·½|z(a) − y|² = c₀ + c₁a + c₂a² + c₃a³ + c₄a⁴ for every a."""
    d = z - y
    wd, w1 = weighted(d, weights), weighted(z1, weights)
    c = np.array([inner(wd, d) / 2, inner(wd, z1), inner(w1, z1) / 2, 0.0, 0.0])
    if z2.shape[0]:
        c[2:] += inner(wd, z2), inner(w1, z2), inner(weighted(z2, weights), z2) / 2
    return c


def chord(z: Array, there: Array, z2: Array, a: float) -> Array:
    """z₁ = (z(a) − z)/a − a·z₂, where `there` is z(a) = z + a·z₁ + a²·z₂."""
    return (there - z) / float(a) - float(a) * z2


def _at(z: Array, z1: Array, z2: Array, a: float) -> Array:
    # A Python number, so that single precision stays single.
    a = float(a)
    return z + a * z1 + a * a * z2 if z2.shape[0] else z + a * z1


def weighted(values: Array, weights: Array) -> Array:
    return weights * values if weights.shape[0] else values


def total(values: Array, weights: Array) -> float:
    return arrays.total(weighted(values, weights))


# A loss and its derivatives at all cells of some rows, in NumPy: the definition of the compiled kernel.
#
# Z holds z at the rows of a sheet from `first` on.


def derivatives(loss: LossFunctions, sheet: SparseTable, first: int, Z: Array, C: Array) -> Array:
    """Σ w·ℓ(z; y) of each row; w·ℓ′(z; y) is written to Z, and w·ℓ″(z; y) to C, unless it has no rows."""
    y, w = sheet.part(first, first + len(Z)).dense()
    if len(C):
        C[:] = w * loss.curvature(Z, y)
    totals: Array = (w * loss.value(Z, y)).sum(axis=1, dtype=np.float64)
    Z[:] = w * loss.gradient(Z, y)
    return totals
