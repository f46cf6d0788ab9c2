"""A curve for which each step takes a pass over the data."""

from collections.abc import Callable

from bifactor.factors import Factors
from bifactor.kernels.inner import inner
from bifactor.operators.bound import Bound, Curve, Evaluated

First = Callable[[Factors, Factors], tuple[float, float, float | None]]
"""φ, φ′ and φ″ at a = 0, from the factors and the direction."""


class Visited(Curve):
    """φ(a) by a pass for each a, which also computes the gradient; the last one is kept for the end of the search."""

    quartic, bends = None, False

    def __init__(self, bound: Bound, x: Factors, d: Factors, first: First):
        self.bound, self.x, self.d, self.first = bound, x, d, first
        self.last: tuple[float, Evaluated] | None = None

    def at(self, a: float) -> tuple[float, float, float | None]:
        if a == 0:
            return self.first(self.x, self.d)
        there = self._evaluated(a)
        return there.f, inner(there.GV, self.d.left) + inner(there.GhU, self.d.right), None

    def to(self, a: float, x: Factors) -> Evaluated:
        there, self.last = self._evaluated(a), None  # the caller may overwrite its arrays
        return there

    def _evaluated(self, a: float) -> Evaluated:
        if self.last is None or self.last[0] != a:
            self.last = None  # free two tall arrays before others are allocated
            self.last = a, self.bound.evaluate(self.x.plus(a, self.d))
        return self.last[1]
