"""A bound whose measurements are never stored."""

from bifactor.arrays import Array
from bifactor.blocks import Exact
from bifactor.factors import Factors
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.operators.bound import Ahead, Apply, Curve, DataBound, Evaluated
from bifactor.operators.followed import Followed
from bifactor.operators.footprint import Footprint


class Symbolic(DataBound):
    """The f of another bound, with z computed again in each pass and freed after it.

    A curve holds its z, z₁ and z₂ as long as it exists.
    """

    explicit = False

    def __init__(self, bound: DataBound):
        self.bound, self.operator, self.fit = bound, bound.operator, bound.fit
        self.shape, self.dtype, self.like = bound.shape, bound.dtype, bound.like
        self.quick, self.quadratic = bound.quick, bound.quadratic

    @property
    def smoothness(self) -> float:
        return self.bound.smoothness

    @property
    def scale(self) -> float:
        return self.bound.scale

    @property
    def least(self) -> float | None:
        return self.bound.least

    @property
    def marginals(self) -> tuple[Array, Array] | None:
        return self.bound.marginals

    @property
    def seen(self) -> int | None:
        return self.bound.seen

    def measure(self, x: Factors) -> None:
        return None

    def value(self, x: Factors) -> float:
        return self.bound.value(x)

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        return self.bound.evaluate(x)

    def gradient(self, x: Factors, z: Array | None = None) -> LinearMap:
        return self.bound.gradient(x)

    def hessian(self, x: Factors, z: Array | None = None) -> Apply:
        return self.bound.hessian(x)

    def curve(self, x: Factors, d: Factors, z: Array | None = None, ahead: Ahead | None = None) -> Curve:
        return Followed(self.bound.curve(x, d), lambda a, x: self.evaluate(x))

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact | None:
        return self.bound.exact(x, side, score, rows)

    def footprint(self, width: int) -> Footprint:
        # A search along a curve holds z, z₁ and z₂, so peak memory is not reduced.
        return self.bound.footprint(width)

    def check_factors(self, x: Factors) -> None:
        self.bound.check_factors(x)

    @property
    def fingerprint(self) -> str:
        return self.bound.fingerprint

    def refitted(self, fit: DataFit) -> DataBound:
        found = self.bound.refitted(fit).recomputed()
        found.operator = self.operator
        return found

    def recomputed(self) -> DataBound:
        return self
