"""A curve of factors that leaves a point, with the function that is minimised along it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bifactor.arrays import Array, epsilon
from bifactor.factors import Factors
from bifactor.line import Line
from bifactor.objective import Objective
from bifactor.state import Point

COLLAPSED = 1e-10
"""Where f falls to less than this share of itself in one step, the rounding of the old measurements shows in it."""


@dataclass(frozen=True)
class Path:
    """a ↦ x + a·d, from a point of the problem."""

    problem: Objective
    point: Point
    d: Factors
    near: float | None = None
    """A step to begin from, where `line` need not hold for steps of any length."""

    @cached_property
    def slope(self) -> float:
        """The derivative of F at a = 0; below 0 where the path descends."""
        return self.point.gradient.inner(self.d)

    def factors(self, a: float) -> Factors:
        return self.point.x.plus(a, self.d)

    def to(self, a: float) -> Point:
        """The point at a, by one pass over the measurements."""
        return self.problem.at(self.factors(a))

    def along(self, a: float) -> Point:
        """The point at a, from the measurements on the curve."""
        f, slopes, z = self.line.to(a)
        x = self.factors(a)
        return (
            self.problem.measured(x) if abs(f) < COLLAPSED * abs(self.point.f) else self.problem.known(x, f, slopes, z)
        )

    @cached_property
    def ahead(self) -> tuple[float, Array] | None:
        """The step `near` and the measurements there, where they save work."""
        if self.near is None or self.problem.quick_lines:
            return None
        if self.near * self.d.norm() <= epsilon(self.d.left) ** 0.5 * self.point.x.norm():
            return None  # a difference would not show so short a step
        x = self.factors(self.near)
        return self.near, self.problem.measure(x.left, x.right)

    @cached_property
    def line(self) -> Line:
        """f along the path."""
        x, z = self.point.x, self.point.z
        return self.problem.line(x, self.d, self.problem.measure(x.left, x.right) if z is None else z, self.ahead)

    @cached_property
    def polynomial(self) -> Array:
        """The terms along the path: five numbers c with Σₖ cₖ aᵏ their sum."""
        return sum((term.polynomial(self.point.x, self.d) for term in self.problem.terms), np.zeros(5))
