"""A curve that has the values of another, and is evaluated at its points in its own way."""

from collections.abc import Callable

from bifactor.arrays import Array
from bifactor.factors import Factors
from bifactor.operators.bound import Curve, Evaluated


class Followed(Curve):
    """φ of another curve; `arrive(a, x)` is what `to` tells."""

    def __init__(self, curve: Curve, arrive: Callable[[float, Factors], Evaluated]):
        self.curve, self.reach, self.arrive = curve, curve.reach, arrive

    @property
    def quartic(self) -> Array | None:
        return self.curve.quartic

    def at(self, a: float) -> tuple[float, float, float | None]:
        return self.curve.at(a)

    def to(self, a: float, x: Factors) -> Evaluated:
        return self.arrive(a, x)
