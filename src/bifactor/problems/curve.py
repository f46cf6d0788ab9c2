"""A curve of factors that starts at a point, and the objective along it."""

from dataclasses import dataclass

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, epsilon
from bifactor.factors import Factors
from bifactor.operators.bound import TrialPoint
from bifactor.operators.curves import Curve
from bifactor.penalties import Term
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point

COLLAPSED = 1e-10
"""If f falls below this share of itself in one step, the rounding of the old measurements is visible in it."""


@dataclass(frozen=True)
class FactorCurve:
    """a ↦ x + a·d, from a point of the problem."""

    problem: Objective
    point: Point
    d: Factors
    near: float | None = None
    """A first step, if `curve` need not hold for steps of every length."""

    @cached_property
    def slope(self) -> float:
        """The derivative of F at a = 0; negative if the path descends."""
        return self.point.gradient.inner(self.d)

    def factors(self, a: float) -> Factors:
        return self.problem.projected(self.point.x.plus(a, self.d))

    @property
    def longest(self) -> float:
        """The longest step that the terms allow."""
        return min((term.reach(self.point.x, self.d) for term in self.problem.terms), default=np.inf)

    def to(self, a: float) -> Point:
        """The point at a, by one pass over the measurements."""
        return self.problem.at(self.factors(a))

    def along(self, a: float) -> Point:
        """The point at a, from the measurements on the curve."""
        x = self.factors(a)
        at = self.curve.to(a, x)
        collapsed = at.z is not None and abs(at.f) < COLLAPSED * abs(self.point.f)
        # At the edge of a domain x may have been moved off the curve.
        return self.problem.evaluate_keeping_z(x.fresh) if collapsed or a >= self.longest else self.problem.point(x, at)

    @cached_property
    def ahead(self) -> TrialPoint | None:
        """The step `near` and the measurements there, if they save work."""
        f = self.problem.f
        if self.near is None or f.quick or not f.explicit:
            return None
        if self.near * self.d.norm() <= epsilon(self.d.left) ** 0.5 * self.point.x.norm():
            return None  # in a difference, so short a step would be lost in rounding
        return self.near, f.measure(self.factors(self.near))

    @cached_property
    def curve(self) -> Curve:
        """f along the path."""
        return self.problem.f.curve(self.point.x, self.d, self.point.z, self.ahead)

    @cached_property
    def polynomial(self) -> Array:
        """The sum of the terms that are polynomials along the path, Σₖ cₖ aᵏ: five numbers c."""
        known = (c for _, c in self._terms if c is not None) if self.problem.terms else ()
        return sum(known, np.zeros(5))

    @property
    def others(self) -> tuple[Term, ...]:
        """The terms that are not polynomials along the path."""
        return tuple(term for term, c in self._terms if c is None) if self.problem.terms else ()

    @cached_property
    def _terms(self) -> list[tuple[Term, Array | None]]:
        return [(term, term.polynomial(self.point.x, self.d)) for term in self.problem.terms]
