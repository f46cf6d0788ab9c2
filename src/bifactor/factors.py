"""`Factors`: points, directions and gradients are vectors of one space, the pairs (U, V) with X = UVᴴ.

The `Kind` of such a pair, which the problem chooses, says what is unknown in it. This file has the plain one, `Free`;
`kinds` has X = UUᴴ and factors with fixed columns. Most other code does not depend on the kind.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import (
    HOST_ARRAY,
    Array,
    cast,
    columns,
    contiguous,
    dtype_of,
    epsilon,
    gaussian,
    herm,
    hstack,
    is_numpy,
    orthonormal,
    product_norm,
    thin_svd,
    to_device_of,
    to_numpy,
    triangular,
    zeros,
)
from bifactor.blocks import Blocks
from bifactor.errors import InputError
from bifactor.kernels import blas
from bifactor.kernels.blas import difference, gram, matmul, negated_axpy_, norm, plus, scaled, total, wide_gram
from bifactor.linear_map import LinearMap
from bifactor.svd import truncated_eigh, truncated_svd
from bifactor.validation import require_flag

# Gram matrices of factors that are updated in steps, as measurements are: those of U′ = U + aD follow from U and D.

Grams = tuple[Array, Array]
"""The Gram matrices of U and V, r×r, in double precision."""

LONGEST = 25
"""The number of steps after which Gram matrices are computed again."""


@dataclass(frozen=True, eq=False)
class GramStep:
    """U′ = U + aD and V′ = V + aE, given by the Gram matrices of x, of x with d, and of d."""

    step: float
    start: Grams
    cross: Grams
    own: Grams
    age: int
    """The number of consecutive steps, including this one, in which Gram matrices were updated."""

    def to(self) -> Grams:
        """U′ᴴU′ and V′ᴴV′."""
        a = self.step
        parts = zip(self.start, self.cross, self.own, strict=True)
        left, right = (G + a * (C + herm(C)) + a * a * D for G, C, D in parts)
        return left, right


class GramCache:
    """The step that led to factors, stored outside the fields, so that `replace` drops it."""

    @property
    def moved(self) -> GramStep | None:
        """The step that led to these factors, if it is known."""
        return self.__dict__.get("_moved")

    @property
    def carried(self) -> int:
        """The number of consecutive steps in which Gram matrices were updated."""
        return self.__dict__.get("_carried", 0)

    def remember_step(self, moved: GramStep) -> None:
        """Store the step that led to these factors, and update Gram matrices, unless this was done too often."""
        self.__dict__["_moved"] = moved
        if moved.age < LONGEST:
            self.carrying(moved.to(), moved.age)

    def carrying(self, grams: Grams, age: int) -> Self:
        """These factors with Gram matrices that were updated in this many steps."""
        self.__dict__.update(wide_grams=grams, _carried=age)
        return self

    @property
    def fresh(self) -> Self:
        """The same factors without stored steps and Gram matrices."""
        return replace(self)  # type: ignore[type-var]


Sides = Callable[[int], Blocks]
"""The blocks of each side; 0 is U, 1 is V."""


@dataclass(frozen=True, eq=False)
class Factors(GramCache):
    """A pair of thin matrices, `left` (m×r) and `right` (n×r), of one kind."""

    left: Array
    right: Array
    kind: "Kind"

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.left.shape[0]), int(self.right.shape[0])

    @property
    def width(self) -> int:
        """The number of columns, fixed ones included."""
        return int(self.left.shape[1])

    @property
    def dtype(self) -> Any:
        """The NumPy dtype."""
        return dtype_of(self.left)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The arrays that are distinct: (U, V), or (U,) if X = UUᴴ."""
        return self.kind.distinct(self)

    def __add__(self, other: "Factors") -> "Factors":
        return self.each(total, other)

    def __sub__(self, other: "Factors") -> "Factors":
        return self.each(difference, other)

    def __neg__(self) -> "Factors":
        return self.each(lambda a: scaled(-1.0, a))

    def __rmul__(self, number: float) -> "Factors":
        return self.each(lambda a: scaled(number, a))

    def plus(self, a: float, d: "Factors") -> "Factors":
        """x + a·d."""
        return self.each(lambda x, y: plus(x, a, y), d)

    def inner(self, other: "Factors") -> float:
        """Re⟨U, U′⟩ + Re⟨V, V′⟩, summed in double precision."""
        return inners((self, other))[0]

    def norm(self) -> float:
        return float(np.hypot(*self.kind.both(norm, self)))

    def grams(self, other: "Factors | None" = None) -> tuple[Array, Array]:
        """UᴴU′ and VᴴV′, r×r."""
        return self.kind.both(gram, self, self if other is None else other)

    @cached_property
    def wide_grams(self) -> tuple[Array, Array]:
        """UᴴU and VᴴV in double precision, cached because they are needed several times."""
        return self.kind.both(wide_gram, self, self)

    def times(self, P: Array, Q: Array) -> "Factors":
        """(UP, VQ) for small P and Q."""
        return self.kind.pair(matmul(self.left, P), matmul(self.right, Q))

    def columns(self, chosen: Any) -> "Factors":
        """Some of the columns, by a slice, a mask or an index."""
        return self.each(lambda a: columns(a, chosen))

    def joined(self, other: "Factors") -> "Factors":
        """The columns of both, side by side."""
        return self.each(lambda a, b: contiguous(hstack(a, b)), other)

    def padded(self, width: int) -> "Factors":
        """The factors with columns of zeros at the end, up to this width."""
        if self.width == width:
            return self
        return self.each(lambda a: hstack(a, zeros((a.shape[0], width - a.shape[1]), dtype_of(a), a)))

    def scaled(self, left: float, right: float) -> "Factors":
        """(left·U, right·V)."""
        return self.kind.pair(left * self.left, right * self.right)

    def spectral_norm_squared(self) -> float:
        """‖[U; V]‖₂² = λ_max(UᴴU + VᴴV): an r×r eigenproblem."""
        UU, VV = self.grams()
        return max(float(np.linalg.eigvalsh(UU + VV)[-1]), 0.0) if self.width else 0.0

    def product_norm(self) -> float:
        """‖UVᴴ‖_F."""
        return product_norm(self.left, self.right)

    def any(self) -> bool:
        """Whether neither factor is 0."""
        return norm(self.left) > 0 and norm(self.right) > 0

    def triplets(self) -> tuple[Array, Array, Array]:
        """The singular triplets (A, s, B) of UVᴴ, without forming it."""
        (QU, RU), (QV, RV) = self.kind.both(orthonormal, self)
        left, s, right = thin_svd(RU @ herm(RV))
        return matmul(QU, left), s, matmul(QV, herm(right))

    def balancing(self) -> tuple[Array, Array] | None:
        """r×r (P, Q) with UP·(VQ)ᴴ = UVᴴ balanced; None if factors are not free, or X has a lower rank."""
        return self.kind.balancing(self)

    def balanced(self) -> "Factors":
        """The same X with UᴴU = VᴴV; unchanged if the factors are not free."""
        return self.kind.balanced(self)

    def gradient(self, left: Array, right: Array) -> "Factors":
        """The gradient of a function in this space, from its derivatives in U and V, which may be overwritten."""
        return self.kind.gradient(left, right)

    def negated_axpy_(self, a: float, d: "Factors") -> "Factors":
        """−x + a·d, in the memory of x if possible: x must not be used afterwards."""
        return self.each(lambda x, y: negated_axpy_(x, a, y), d)

    def divided(self, blocks: Sides) -> "Factors":
        """Each row divided by its block; fixed columns stay zero."""
        return self.kind.divided(self, blocks)

    def each(self, function: Callable[..., Array], *others: "Factors") -> "Factors":
        """The function applied to each side."""
        left, right = self.kind.both(function, self, *others)
        return Factors(left, right, self.kind)


def inners(*pairs: tuple[Factors, Factors]) -> list[float]:
    """Re⟨U, U′⟩ + Re⟨V, V′⟩ for each pair; those of factors on other machines come in one round."""
    sides = [list(zip(x.arrays, x.kind.distinct(y), strict=True)) for x, y in pairs]
    found = iter(blas.inners(*(pair for some in sides for pair in some)))
    each = ([next(found) for _ in some] for some in sides)
    return [own[0] + own[-1] for own in each]  # X = UUᴴ has one array, which counts twice


class Kind(ABC):
    """What is unknown in a pair of factors."""

    fixed_columns: int = 0
    """The number of columns in addition to the rank; they come first."""

    @abstractmethod
    def check(self, shape: tuple[int, int]) -> None:
        """Raise `InputError` if matrices of this shape have no such factors."""

    @abstractmethod
    def describe(self) -> str:
        """The kind in words, for messages."""

    def same(self, other: "Kind") -> bool:
        """Whether both kinds have the same factors."""
        return type(self) is type(other)

    def pair(self, U: Array, V: Array) -> Factors:
        """The factors with these columns, fixed ones included."""
        return Factors(U, V, self)

    def start(self, U: Array, V: Array) -> Factors:
        """The factors with these columns besides the fixed ones, whose partners are zero."""
        return self.pair(U, V)

    def given(self, U: Array, V: Array | None, rank: int) -> Factors:
        """A user's factors, with or without the fixed columns; raises `InputError` if they are not of this kind."""
        if V is None or U.shape[1] != V.shape[1]:
            missing = "no V" if V is None else f"{U.shape[1]} columns in U and {V.shape[1]} in V"
            raise InputError(
                f"The start has {missing}, but the problem is to find {self.describe()}. Pass both factors."
            )
        return self.start(U, V)

    def zero(self, shape: tuple[int, int], width: int, dtype: Any, like: Array = HOST_ARRAY) -> Factors:
        """X = 0 with this many columns besides the fixed ones, in the library of another array."""
        return self.start(*(zeros((k, width), dtype, like) for k in shape))

    def random(
        self, rng: np.random.Generator, shape: tuple[int, int], width: int, dtype: Any, like: Array = HOST_ARRAY
    ) -> Factors:
        """Gaussian columns, without fixed ones; drawn on the host, so that a seed gives the same numbers everywhere."""
        U, V = (to_device_of(gaussian(rng, (k, width), dtype), like) for k in shape)
        return Factors(U, V, self)

    def distinct(self, x: Factors) -> tuple[Array, ...]:
        return x.left, x.right

    def both(self, function: Callable[..., Any], *pairs: Factors) -> tuple[Any, Any]:
        """The function applied to the left sides, and to the right sides."""
        return function(*(x.left for x in pairs)), function(*(x.right for x in pairs))

    def unknown(self, width: int) -> tuple[Array, Array]:
        """The columns of U, and of V, that are not fixed."""
        return np.arange(width), np.arange(width)

    def balancing(self, x: Factors) -> tuple[Array, Array] | None:
        RU, RV = triangular(x.left), triangular(x.right)
        left, s, right = thin_svd(RU @ herm(RV))
        if not s[-1] > len(s) * float(np.finfo(s.dtype).eps) * s[0]:
            return None
        # U = Q_U R_U, so the balanced U, Q_U·left·s^½, is U R_U⁻¹·left·s^½, and R_U⁻¹·left·s = R_Vᴴ·right.
        return herm(RV) @ (herm(right) / np.sqrt(s)), herm(RU) @ (left / np.sqrt(s))

    def balanced(self, x: Factors) -> Factors:
        return self.from_triplets(*x.triplets())

    def gradient(self, left: Array, right: Array) -> Factors:
        return Factors(left, right, self)

    def divided(self, g: Factors, blocks: Sides) -> Factors:
        return Factors(blocks(0).divide(g.left), blocks(1).divide(g.right), self)

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
        """The leading singular triplets (A, s, B) of ±G; if X = UUᴴ, its largest eigenpairs, with A = B."""
        A, s, B = truncated_svd(G, count, rng, tol, restarts, None if start is None else (start.left, start.right))
        return sign * A, s, B

    def from_triplets(self, A: Array, s: Array, B: Array) -> Factors:
        """Balanced factors of A diag(s) Bᴴ; X = 0 is one column of zeros."""
        if s.size == 0:
            left, right = (zeros((F.shape[0], 1), dtype_of(F), F) for F in (A, B))
            return Factors(left, right, self)
        root = np.sqrt(s).astype(s.dtype)
        return Factors(contiguous(A * to_device_of(root, A)), contiguous(B * to_device_of(root, B)), self)

    def unknowns(self, shape: tuple[int, int], rank: int) -> int:
        """The degrees of freedom of an X of this rank."""
        return rank * (shape[0] + shape[1] - rank)

    def rescale_sides(self, x: Factors, ratio: float) -> Factors:
        """(ratio·U, V/ratio), the same X, if the kind allows it."""
        return x if ratio == 1 else x.scaled(ratio, 1 / ratio)

    def nuclear(self, left: float, right: float) -> float:
        """The least of (left/2)‖U‖² + (right/2)‖V‖² over the factors of one X, as a multiple of ‖X‖_*."""
        return (left * right) ** 0.5

    def marginals(self, rows: Any, cols: Any) -> tuple[Any, Any]:
        """How much of each row of U and of V is observed, from how much of each row and column of X is."""
        return rows, cols

    def curvature(self, typical: float, gradient: Callable[[Factors], LinearMap], x: Factors) -> float:
        """The typical curvature of f over the X of this kind, from that over all X; x is any pair of vectors."""
        return typical


@dataclass(frozen=True)
class Free(Kind):
    """X = UVᴴ, all of U and V unknown."""

    def check(self, shape: tuple[int, int]) -> None:
        pass

    def describe(self) -> str:
        return "X = UVᴴ"


# Kinds of factors that are not all unknown.
#
# - `Symmetric`: X = UUᴴ, one array. Inner products count it twice, as the pair (U, U), so constants are those of pairs.
# - `Fixed`: X = LCᴴ + BRᴴ + UVᴴ with L (m×k) and R (n×l) given: offsets (ones), covariates, exposures. The factors are
#   [L, B, U] and [C, R, V]: the fixed columns and their partners come first. Gradients and directions are zero there.


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
        self, rng: np.random.Generator, shape: tuple[int, int], width: int, dtype: Any, like: Array = HOST_ARRAY
    ) -> Factors:
        U = to_device_of(gaussian(rng, (shape[0], width), dtype), like)
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

    def rescale_sides(self, x: Factors, ratio: float) -> Factors:
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
        left = [to_device_of(self.L, U), zeros((U.shape[0], both - k), dtype, U), U]
        right = [zeros((V.shape[0], k), dtype, V), to_device_of(self.R, V), V]
        U, V = (hstack(*(cast(a, dtype) for a in side)) for side in (left, right))
        return Factors(U, V, self)

    def given(self, U: Array, V: Array | None, rank: int) -> Factors:
        if V is None or U.shape[1] != V.shape[1] or U.shape[1] == rank:
            return super().given(U, V, rank)
        k, both = self._places
        if not (np.array_equal(to_numpy(U)[:, :k], self.L) and np.array_equal(to_numpy(V)[:, k:both], self.R)):
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
