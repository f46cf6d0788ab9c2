"""Kinds of factors that are not all unknown.

- `Symmetric`: X = UUᴴ, one array. Inner products count it twice, as the pair (U, U), so constants are those of pairs.
- `Fixed`: X = LCᴴ + BRᴴ + UVᴴ with L (m×k) and R (n×l) given: offsets (ones), covariates, exposures. The factors are
  [L, B, U] and [C, R, V]: the fixed columns and their partners come first. Gradients and directions are zero there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import (
    HERE,
    Array,
    beside,
    cast,
    dtype_of,
    epsilon,
    gaussian,
    host,
    hstack,
    is_numpy,
    norm,
    zeros,
)
from bifactor.errors import InputError
from bifactor.factors import Factors, Free, Kind, Sides
from bifactor.linear_map import LinearMap
from bifactor.svd import truncated_eigh
from bifactor.validation import require_flag


@dataclass(frozen=True)
class Symmetric(Kind):
    """X = UUᴴ: `left` and `right` are one array."""

    def check(self, shape: tuple[int, int]) -> None:
        if shape[0] != shape[1]:
            raise InputError(
                f"symmetric=True means X = UUᴴ, which is square, but X is {shape[0]}×{shape[1]}. Leave it out."
            )

    def describe(self) -> str:
        return "X = UUᴴ"

    def pair(self, U: Array, V: Array) -> Factors:
        return Factors(U, U, self)

    def given(self, U: Array, V: Array | None, rank: int) -> Factors:
        if V is not None and norm(U - V) > 0:
            raise InputError("The start has V different from U, but the problem is to find X = UUᴴ. Leave V out.")
        return self.pair(U, U)

    def random(
        self, rng: np.random.Generator, shape: tuple[int, int], width: int, dtype: Any, like: Array = HERE
    ) -> Factors:
        U = beside(gaussian(rng, (shape[0], width), dtype), like)
        return self.pair(U, U)

    def distinct(self, x: Factors) -> tuple[Array, ...]:
        return (x.left,)

    def both(self, function: Callable[..., Any], *pairs: Factors) -> tuple[Any, Any]:
        once = function(*(x.left for x in pairs))
        return once, once

    def balancing(self, x: Factors) -> None:
        return None

    def balanced(self, x: Factors) -> Factors:
        return x

    def gradient(self, left: Array, right: Array) -> Factors:
        half = (left + right) / 2  # half of the derivative in U; the other half is that in its copy V
        return Factors(half, half, self)

    def divided(self, g: Factors, blocks: Sides) -> Factors:
        once = blocks(0).averaged(blocks(1)).divide(g.left)
        return Factors(once, once, self)

    def leading(
        self,
        G: LinearMap,
        count: int,
        rng: np.random.Generator,
        tol: float,
        restarts: int,
        sign: int = 1,
        start: Factors | None = None,
    ) -> tuple[Array, Array, Array]:
        w, A = truncated_eigh(G, count, rng, tol, restarts, sign, None if start is None else (start.left, start.right))
        return A, w, A

    def from_triplets(self, A: Array, s: Array, B: Array) -> Factors:
        x = super().from_triplets(A, s, A)
        return self.pair(x.left, x.left)

    def unknowns(self, shape: tuple[int, int], rank: int) -> int:
        return rank * (2 * shape[0] - rank + 1) // 2

    def sided(self, x: Factors, ratio: float) -> Factors:
        return x

    def nuclear(self, left: float, right: float) -> float:
        return (left + right) / 2

    def marginals(self, rows: Any, cols: Any) -> tuple[Any, Any]:
        mean = (rows + cols) / 2  # an entry on one side of the diagonal is as informative about its mirror image
        return mean, mean

    def curvature(self, typical: float, gradient: Callable[[Factors], LinearMap], x: Factors) -> float:
        # Measurements of the Hermitian part of X only, such as Pauli expectations and intensities, have all their
        # curvature there: twice the average. Then ∇f(abᴴ) = ∇f(baᴴ).
        a, b = x.left[:, :1], x.left[:, 1:2]
        none, one, other = (gradient(Free().pair(*sides)) @ a for sides in ((0 * a, b), (a, b), (b, a)))
        alike = norm(one - other) <= epsilon(a) ** 0.5 * norm(one - none)
        return typical * (2.0 if alike else 1.0)


@dataclass(frozen=True, eq=False)
class Fixed(Kind):
    """X = LCᴴ + BRᴴ + UVᴴ with L and R given."""

    L: Array
    R: Array

    @property
    def fixed_columns(self) -> int:  # type: ignore[override]
        return int(self.L.shape[1] + self.R.shape[1])

    @property
    def _places(self) -> tuple[int, int]:
        """The end of the columns of L, and the end of those of R, which follow."""
        return int(self.L.shape[1]), self.fixed_columns

    def check(self, shape: tuple[int, int]) -> None:
        for name, F, rows in (("L", self.L, shape[0]), ("R", self.R, shape[1])):
            if F.ndim != 2 or F.shape[0] != rows:
                raise InputError(f"The fixed {name} has shape {F.shape}, but X is {shape}. Pass {rows} rows.")

    def lengthened(self, shape: tuple[int, int]) -> "Fixed":
        """The same with rows of zeros below, up to this shape."""
        sides = zip((self.L, self.R), shape, strict=True)
        return Fixed(*(np.pad(F, ((0, rows - len(F)), (0, 0))) for F, rows in sides))

    def same(self, other: Kind) -> bool:
        return isinstance(other, Fixed) and np.array_equal(self.L, other.L) and np.array_equal(self.R, other.R)

    def describe(self) -> str:
        return f"X = LCᴴ + BRᴴ + UVᴴ with {self.L.shape[1]} and {self.R.shape[1]} fixed columns"

    def start(self, U: Array, V: Array) -> Factors:
        (k, both), dtype = self._places, np.result_type(dtype_of(U), dtype_of(V))
        left = [beside(self.L, U), zeros((U.shape[0], both - k), dtype, U), U]
        right = [zeros((V.shape[0], k), dtype, V), beside(self.R, V), V]
        U, V = (hstack(*(cast(a, dtype) for a in side)) for side in (left, right))
        return Factors(U, V, self)

    def given(self, U: Array, V: Array | None, rank: int) -> Factors:
        if V is None or U.shape[1] != V.shape[1] or U.shape[1] == rank:
            return super().given(U, V, rank)
        k, both = self._places
        if not (np.array_equal(host(U)[:, :k], self.L) and np.array_equal(host(V)[:, k:both], self.R)):
            raise InputError("The fixed columns of the start are not those of the problem. Leave them out.")
        return self.pair(U, V)

    def unknowns(self, shape: tuple[int, int], rank: int) -> int:
        return super().unknowns(shape, rank) + shape[1] * self.L.shape[1] + shape[0] * self.R.shape[1]

    def balancing(self, x: Factors) -> None:
        return None  # the columns must keep their places

    def balanced(self, x: Factors) -> Factors:
        return x

    def gradient(self, left: Array, right: Array) -> Factors:
        k, both = self._places
        if is_numpy(left) and is_numpy(right):
            left, right = (side if side.flags.writeable else side.copy() for side in (left, right))
            left[:, :k] = 0
            right[:, k:both] = 0
            return Factors(left, right, self)
        left = hstack(0 * left[:, :k], left[:, k:])
        return Factors(left, hstack(right[:, :k], 0 * right[:, k:both], right[:, both:]), self)

    def unknown(self, width: int) -> tuple[Array, Array]:
        k, both = self._places
        index = np.arange(width)
        return index[k:], np.delete(index, slice(k, both))

    def divided(self, g: Factors, blocks: Sides) -> Factors:
        sides = [g.left, g.right]
        for side, unknown in enumerate(self.unknown(g.width)):
            if unknown.size:  # with only the fixed columns of one side, that side has no unknowns
                sides[side] = blocks(side).at(unknown).divide_among(sides[side], unknown)
            else:
                sides[side] = 0 * sides[side]
        return Factors(sides[0], sides[1], self)


def kind_of(
    shape: tuple[int, int],
    dtype: Any,
    symmetric: bool,
    offsets: bool,
    fixed: tuple[Array | None, Array | None] | None,
    lines: tuple[int, int] | None = None,
) -> Kind:
    """The kind for a user's arguments. On each side the first `lines` rows, by default all, have fixed columns.

    The rows after them are features, which have zeros in the fixed columns.
    """
    require_flag(symmetric, "symmetric")
    require_flag(offsets, "offsets")
    if fixed is not None and not (isinstance(fixed, (tuple, list)) and len(fixed) == 2):
        raise InputError(f"fixed={fixed!r} is not a pair. Pass (L, R), either of them None for no fixed columns.")
    if symmetric and (offsets or fixed is not None):
        raise InputError("Offsets and fixed columns are for X = UVᴴ, but symmetric=True means X = UUᴴ. Choose one.")
    if symmetric:
        kind: Kind = Symmetric()
    else:
        lines = lines or shape
        sides = zip(fixed or (None, None), lines, strict=True)
        given = Fixed(*(_given(columns, rows, dtype, offsets) for columns, rows in sides))
        given.check(lines)
        kind = given.lengthened(shape) if given.fixed_columns else Free()
    kind.check(shape)
    return kind


def _given(columns: Array | None, rows: int, dtype: Any, ones: bool) -> Array:
    parts = [np.ones((rows, 1), dtype)] if ones else []
    if columns is not None:
        given = np.asarray(columns)
        if given.ndim != 2 or given.dtype.kind not in "biufc" or not np.all(np.isfinite(given)):
            raise InputError(
                f"A fixed side is {given.dtype} of shape {given.shape}. Pass a finite matrix with one row per row of X "
                "on that side, or None."
            )
        if given.dtype.kind == "c" and np.dtype(dtype).kind != "c":
            raise InputError("A fixed side is complex, but X is real. Pass real columns, or complex measurements.")
        parts.append(given.astype(dtype))
    return np.hstack(parts) if parts else np.zeros((rows, 0), dtype)


def require_symmetric(what: Any, kind: Kind) -> None:
    """Raise `InputError` unless the problem is to find X = UUᴴ."""
    if not isinstance(kind, Symmetric):
        raise InputError(
            f"{type(what).__name__} is for X = UUᴴ, but the problem is to find {kind.describe()}. "
            f"Pass Problem(…, symmetric=True), or do not use {type(what).__name__}."
        )
