"""Curves: f along a line of factors, f with its gradient at a point of it, and lines in X as curves of factors."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bifactor.arrays import Array, hstack
from bifactor.factors import Factors, Free
from bifactor.kernels.blas import inners

if TYPE_CHECKING:
    from bifactor.operators.bound import Bound


Reach = tuple[float, float]

ANYWHERE: Reach = (0.0, np.inf)

Measurements = Any
"""z: an array in the order of a bound, or an opaque object of the bound, which is only passed back to it."""


class Evaluated(NamedTuple):
    """f at some factors, the products ∇f V and ∇fᴴ U in new arrays, which may be overwritten, and z if it is kept."""

    f: float
    GV: Array
    GhU: Array
    z: Measurements


class Curve(ABC):
    """φ(a) = f at x + a·d, for every a; the measurements are quadratic in a."""

    reach: Reach = ANYWHERE
    """The shortest and the longest step for which the measurements are correct up to rounding."""
    bends: bool = True
    """Whether φ″ costs no more than φ; otherwise a search along the curve does not use it."""

    @property
    @abstractmethod
    def quartic(self) -> Array | None:
        """Five numbers c with φ(a) = Σₖ cₖ aᵏ if f is quadratic, otherwise None."""

    @abstractmethod
    def at(self, a: float) -> tuple[float, float, float | None]:
        """φ(a), φ′(a) and φ″(a), or None if the second derivative is not known."""

    @abstractmethod
    def to(self, a: float, x: Factors) -> Evaluated:
        """f and its gradient at x, which is the point of the curve at a."""


# A curve with the values of another one, but its own evaluation of the end point.


class WrappedCurve(Curve):
    """φ of another curve; `to(a, x)` returns `arrive(a, x)`."""

    def __init__(self, curve: Curve, arrive: Callable[[float, Factors], Evaluated]):
        self.curve, self.reach, self.bends, self.arrive = curve, curve.reach, curve.bends, arrive

    @property
    def quartic(self) -> Array | None:
        return self.curve.quartic

    def at(self, a: float) -> tuple[float, float, float | None]:
        return self.curve.at(a)

    def to(self, a: float, x: Factors) -> Evaluated:
        return self.arrive(a, x)


# A curve for which each step takes a pass over the data.

First = Callable[[Factors, Factors], tuple[float, float, float | None]]
"""φ, φ′ and φ″ at a = 0, from the factors and the direction."""


class EvaluatedCurve(Curve):
    """φ(a) by a pass for each a, which also computes the gradient; the last one is kept for the end of the search."""

    quartic, bends = None, False

    def __init__(self, bound: "Bound", x: Factors, d: Factors, first: First):
        self.bound, self.x, self.d, self.first = bound, x, d, first
        self.last: tuple[float, Evaluated] | None = None

    def at(self, a: float) -> tuple[float, float, float | None]:
        if a == 0:
            return self.first(self.x, self.d)
        there = self._evaluated(a)
        return there.f, sum(inners((there.GV, self.d.left), (there.GhU, self.d.right))), None

    def to(self, a: float, x: Factors) -> Evaluated:
        there, self.last = self._evaluated(a), None  # the caller may overwrite its arrays
        return there

    def _evaluated(self, a: float) -> Evaluated:
        if self.last is None or self.last[0] != a:
            self.last = None  # free two tall arrays before others are allocated
            self.last = a, self.bound.evaluate(self.x.plus(a, self.d))
        return self.last[1]


# Lines in X as curves of factors.


def line_as_curve(x: Factors | None, new: Factors) -> tuple[Factors, Factors]:
    """Factors of X and a direction along which X moves by ΔX, whose factors are `new`; x = None stands for X = 0.

    X + t·ΔX = [U, A][V, tB]ᴴ for ΔX = ABᴴ.
    """
    nothing = 0 * new.right
    if x is None:
        return Free().pair(new.left, nothing), Free().pair(0 * new.left, new.right)
    here = Free().pair(hstack(x.left, new.left), hstack(x.right, nothing))
    return here, Free().pair(0 * here.left, hstack(0 * x.right, new.right))
