"""A curve with the values of another one, but its own evaluation of the end point."""

from collections.abc import Callable

from bifactor.arrays import Array
from bifactor.factors import Factors
from bifactor.operators.bound import Curve, Evaluated


class Followed(Curve):
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
