"""The sum of the squares of all entries of X, computed without forming X."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, cast, digest, dtype_of, herm, inner, to_device_of, to_numpy
from bifactor.blocks import Exact, Shared, Weight, fill_zero_weights
from bifactor.factors import Factors, Grams, GramStep
from bifactor.kernels import blas
from bifactor.linear_map import LinearMap, LowRank
from bifactor.operators.bound import Apply, Bound, Footprint, TrialPoint
from bifactor.operators.curves import Curve, Evaluated, Measurements
from bifactor.validation import positive, require_pair, require_weights, weight_vector


@dataclass(frozen=True, eq=False)
class AllCells:
    """(w/2) Σᵢⱼ sᵢtⱼ|Xᵢⱼ|², for the X of the function that it is added to; `all_cells` makes one."""

    weight: float
    rows: Array | None = None
    cols: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weight", positive(self.weight, "weight", "Leave all_cells out for no such term."))
        for name in ("rows", "cols"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, weight_vector(getattr(self, name), name))

    def __repr__(self) -> str:
        weights = "".join(f", {name}=…" for name in ("rows", "cols") if getattr(self, name) is not None)
        return f"all_cells({self.weight!r}{weights})"


def all_cells(weight: float, rows: Array | None = None, cols: Array | None = None) -> AllCells:
    """h(X) = (w/2) Σᵢⱼ sᵢtⱼ|Xᵢⱼ|², a term to add to a problem: `problem + all_cells(0.2)`.

    It pulls every entry of X, observed or not, towards 0. Clicks or purchases, whose observed entries are all alike,
    can only be modelled with such a term: see the page on implicit feedback in the documentation.
    As h = (w/2)·tr(UᴴSU·VᴴTV), it takes O((m + n)r²) operations and no memory for the entries.

    Parameters
    ----------
    weight : float
        The weight w > 0.
    rows, cols : arrays, optional
        Weights s ≥ 0, one for each row of X, and t ≥ 0, one for each column. By default, ones.

    Returns
    -------
    AllCells
        A term that can be added to a `Problem` or `Objective`. The sum with a `Problem` is a `Problem`: `rank="auto"`
        holds out some of its measurements, and none of the entries here.
    """
    return AllCells(weight, rows, cols)


class Cells(Bound):
    """(w/2) Σᵢⱼ sᵢtⱼ|Xᵢⱼ|²."""

    explicit, quadratic = False, True

    def __init__(self, given: AllCells, shape: tuple[int, int], dtype: Any, like: Array):
        self.given, self.shape, self.dtype, self.like = given, shape, dtype, like
        for name, weights, size in zip(("rows", "cols"), (given.rows, given.cols), shape, strict=True):
            require_weights(weights, name, size, shape, "all_cells")
        real = np.finfo(dtype).dtype
        self.weight = given.weight
        self.sides = tuple(None if w is None else to_device_of(w.astype(real), like) for w in (given.rows, given.cols))
        self.plain = given.rows is None and given.cols is None

    @property
    def smoothness(self) -> float:
        return self.weight * float(np.max(self._whole[0])) * float(np.max(self._whole[1]))

    @property
    def scale(self) -> float:
        return self.weight * float(np.mean(self._whole[0])) * float(np.mean(self._whole[1]))

    @property
    def least(self) -> float:
        return 0.0

    @cached_property
    def marginals(self) -> tuple[Array, Array]:
        rows, cols = self._whole
        return self.weight * float(np.sum(cols)) * rows, self.weight * float(np.sum(rows)) * cols

    @property
    def seen(self) -> int:
        return self.shape[0] * self.shape[1]

    @property
    def _whole(self) -> tuple[Array, Array]:
        """s and t, with ones for None."""
        weights = zip((self.given.rows, self.given.cols), self.shape, strict=True)
        rows, cols = (np.ones(size) if w is None else w for w, size in weights)
        return rows, cols

    def measure(self, x: Factors) -> None:
        return None

    def value(self, x: Factors) -> float:
        return 0.5 * self.weight * inner(*self._grams(x))

    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        left, right = self._grams(x)
        GV, GhU = self._times(0, x.left, right), self._times(1, x.right, left)
        return Evaluated(0.5 * self.weight * inner(left, right), GV, GhU, None)

    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        return LowRank(self.weight * self._weighted(0, x.left), self._weighted(1, x.right))

    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        left, right = self._grams(x)

        def apply(d: Factors) -> tuple[Array, Array]:
            U, V = self._gram(0, d.left, x.left), self._gram(1, d.right, x.right)
            GV = self._times(0, d.left, right) + self._times(0, x.left, V)
            return GV, self._times(1, d.right, left) + self._times(1, x.right, U)

        return apply

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: TrialPoint | None = None) -> Curve:
        cross = self._gram(0, x.left, d.left), self._gram(1, x.right, d.right)
        return CellsCurve(self, GramStep(0.0, self._grams(x), cross, self._grams(d), x.carried + 1))

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        weights = self.sides[side]
        own: Weight = self.weight
        if weights is not None:
            own = self.weight * (to_device_of(fill_zero_weights(to_numpy(weights)), self.like) if alone else weights)
        return Shared(((own, self._own_gram(1 - side, x).astype(x.dtype)),))

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact:
        first, last = rows or (0, self.shape[side])
        nothing = np.zeros((last - first, x.width * (x.width + 1) // 2), x.dtype)
        return Exact(nothing, x.width) + self.expected(x, side, alone=False).part(slice(first, last))

    def footprint(self, width: int) -> Footprint:
        return Footprint(0, sum(self.shape) * width * np.dtype(self.dtype).itemsize)

    def check_factors(self, x: Factors) -> None:
        pass

    @cached_property
    def fingerprint(self) -> str:
        sides = ("1" if w is None else digest(w) for w in (self.given.rows, self.given.cols))
        return f"all cells {self.shape} {self.weight!r} {' '.join(sides)}"

    def _grams(self, x: Factors) -> Grams:
        """UᴴSU and VᴴTV."""
        require_pair(x.left, x.right, self.shape)
        return x.wide_grams if self.plain else (self._own_gram(0, x), self._own_gram(1, x))

    def _own_gram(self, side: int, x: Factors) -> Array:
        factor = x.right if side else x.left
        return x.wide_grams[side] if self.sides[side] is None else self._gram(side, factor, factor)

    def _gram(self, side: int, A: Array, B: Array) -> Array:
        """AᴴSB, or AᴴTB for side 1."""
        return blas.wide_gram(A, B, self.sides[side])

    def _times(self, side: int, A: Array, B: Array) -> Array:
        """w·SAB for a small B, or w·TAB for side 1."""
        return self._weighted(side, blas.matmul(A, (self.weight * B).astype(dtype_of(A))))

    def _weighted(self, side: int, A: Array) -> Array:
        """SA, or TA for side 1."""
        weights = self.sides[side]
        return A if weights is None else cast(weights, np.finfo(dtype_of(A)).dtype)[:, None] * A


class CellsCurve(Curve):
    """φ(a) = (w/2)·⟨L(a), R(a)⟩, where both Gram matrices are quadratics in a."""

    def __init__(self, bound: Cells, path: GramStep):
        self.bound, self.path = bound, path

    @cached_property
    def quartic(self) -> Array:
        grams = zip(self.path.start, self.path.cross, self.path.own, strict=True)
        left, right = ((G, C + herm(C), D) for G, C, D in grams)
        c = np.zeros(5)
        for i, L in enumerate(left):
            for j, R in enumerate(right):
                c[i + j] += 0.5 * self.bound.weight * inner(L, R)
        return c

    def at(self, a: float) -> tuple[float, float, float]:
        phi = np.polynomial.Polynomial(self.quartic)
        return float(phi(a)), float(phi.deriv()(a)), float(phi.deriv(2)(a))

    def to(self, a: float, x: Factors) -> Evaluated:
        if self.bound.plain and x.moved is None:
            x.remember_step(replace(self.path, step=a))
        return self.bound.evaluate(x)
