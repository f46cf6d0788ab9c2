"""The sum of several functions of X."""

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any, Self

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, is_complex, namespace, real, same_library
from bifactor.blocks import Exact, Shared
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.linear_map import LinearMap, TotalMap
from bifactor.operators.bound import Ahead, Apply, Bound, Curve, Evaluated, Measurements
from bifactor.operators.footprint import Footprint


class Sum(Bound):
    """f₁(X) + f₂(X) + …; z is the concatenation of the parts' z if all are explicit, otherwise a tuple."""

    def __init__(self, *given: Bound):
        parts = tuple(part for one in given for part in one.summands)
        for part in parts:
            if part.shape != parts[0].shape:
                raise InputError(
                    f"The parts are for matrices of shapes {parts[0].shape} and {part.shape}. Add parts for one shape."
                )
        self.parts, self.shape = parts, parts[0].shape
        self.dtype = np.result_type(*(part.dtype for part in parts))
        self.explicit = all(part.explicit for part in parts)
        self.expensive = any(part.expensive for part in parts)
        self.quick = all(part.quick for part in parts)
        self.quadratic = all(part.quadratic for part in parts)
        self.like = parts[0].like
        if not same_library(*(part.like for part in parts)):
            raise InputError("The parts have data in different array libraries or on different devices. Use one.")
        zero = self._zero()
        for part in parts:
            part.check_factors(zero)

    @property
    def measured_shape(self) -> tuple[int, int]:
        shapes = {part.measured_shape for part in self.parts}
        return shapes.pop() if len(shapes) == 1 else self.shape

    @cached_property
    def smoothness(self) -> float:
        return sum(part.smoothness for part in self.parts)

    @cached_property
    def scale(self) -> float:
        return sum(part.scale for part in self.parts)

    @property
    def least(self) -> float | None:
        least = [part.least for part in self.parts]
        return None if None in least else sum(value for value in least if value is not None)

    @cached_property
    def marginals(self) -> tuple[Array, Array] | None:
        pairs = [part.marginals for part in self.parts]
        if any(pair is None for pair in pairs):
            return None
        rows, cols = zip(*(pair for pair in pairs if pair is not None), strict=True)
        return sum(rows), sum(cols)

    @property
    def seen(self) -> int | None:
        counts = [part.seen for part in self.parts]
        return None if None in counts else sum(count for count in counts if count is not None)

    def measure(self, x: Factors) -> Measurements:
        return self._joined([part.measure(x) for part in self.parts])

    def value(self, x: Factors) -> float:
        return sum(part.value(x) for part in self.parts)

    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        return self.total([part.evaluate(x, own) for part, own in self._split(z)])

    def total(self, parts: list[Evaluated]) -> Evaluated:
        """The sum of the evaluations of the parts at one x."""
        f, GV, GhU, z = zip(*parts, strict=True)
        return Evaluated(sum(f), reduce(_plus, GV), reduce(_plus, GhU), self._joined(list(z)))

    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        return TotalMap(*(part.gradient(x, own) for part, own in self._split(z)))

    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        parts = [part.hessian(x, own) for part, own in self._split(z)]

        def apply(d: Factors) -> tuple[Array, Array]:
            left, right = zip(*(part(d) for part in parts), strict=True)
            return reduce(_plus, left), reduce(_plus, right)

        return apply

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: Ahead | None = None) -> Curve:
        there = [None] * len(self.parts) if ahead is None else [(ahead[0], own) for _, own in self._split(ahead[1])]
        curves = [part.curve(x, d, own, to) for (part, own), to in zip(self._split(z), there, strict=True)]
        return SumCurve(self, curves)

    def straight(self, x: Factors | None, new: Factors, z: Measurements = None) -> Curve:
        if self.explicit:
            return super().straight(x, new, z)
        return SumCurve(self, [part.straight(x, new, own) for part, own in self._split(z)])

    @property
    def summands(self) -> tuple[Bound, ...]:
        return self.parts

    @cached_property
    def data(self) -> Bound:
        rest = [part for part in self.parts if not part.whole]
        return self if len(rest) == len(self.parts) else rest[0] if len(rest) == 1 else Sum(*rest)

    def curvatures(self, x: Factors) -> Array:
        return reduce(_plus, (part.curvatures(x) for part in self.parts))

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        # Observed entries of several parts count as those of one.
        patterns = (self.data, *(part for part in self.parts if part.whole))
        if len(patterns) > 1:
            return reduce(_plus, (part.expected(x, side, alone=False) for part in patterns))
        if self.marginals is not None:
            return super().expected(x, side, alone)
        return reduce(_plus, (part.expected(x, side, alone) for part in self.parts))

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact | None:
        total = None
        for part in self.parts:
            own = part.exact(x, side, score, rows)
            if own is None:
                return None
            total = own if total is None else total.joined(own)
        return total

    @property
    def fitted(self) -> tuple[float, ...]:
        return tuple(number for part in self.parts for number in part.fitted)

    @property
    def scales(self) -> bool:
        return any(part.scales for part in self.parts)

    def refit(self, x: Factors, z: Measurements = None) -> Self:
        return type(self)(*(part.refit(x, own) for part, own in self._split(z)))

    def with_fitted(self, fitted: tuple[float, ...]) -> Self:
        found, rest = [], fitted
        for part in self.parts:
            count = len(part.fitted)
            found.append(part.with_fitted(rest[:count]))
            rest = rest[count:]
        return type(self)(*found)

    def footprint(self, width: int) -> Footprint:
        z, work = (sum(part) for part in zip(*(part.footprint(width) for part in self.parts), strict=True))
        return Footprint(z, work + sum(self.shape) * width * np.dtype(self.dtype).itemsize)  # a gradient to be summed

    def check_factors(self, x: Factors) -> None:
        for part in self.parts:
            part.check_factors(x)

    @cached_property
    def fingerprint(self) -> str:
        return " + ".join(part.fingerprint for part in self.parts)

    def slopes(self, z: Array) -> tuple[float, Array]:
        f, slopes = zip(*(part.slopes(own) for part, own in self._split(z)), strict=True)
        return sum(f), self._joined(list(slopes))

    def bend(self, z: Array) -> Callable[[Array], Array]:
        bends = [part.bend(own) for part, own in self._split(z)]

        def bend(dz: Array) -> Array:
            return self._joined([one(own) for one, (_, own) in zip(bends, self._split(dz), strict=True)])

        return bend

    def pull_back(self, slopes: Array) -> LinearMap:
        return TotalMap(*(part.pull_back(own) for part, own in self._split(slopes)))

    def line(self, z: Array, dz: Array) -> Curve:
        pairs = zip(self._split(z), self._split(dz), strict=True)
        return SumCurve(self, [part.line(own, change) for (part, own), (_, change) in pairs])

    def _joined(self, parts: list[Measurements]) -> Measurements:
        if not self.explicit:
            return None if all(part is None for part in parts) else tuple(parts)
        if any(part is None for part in parts):
            return None
        return parts[0] if len(parts) == 1 else namespace(*parts).concat([_flat(part) for part in parts])

    def _split(self, z: Measurements) -> Iterator[tuple[Bound, Measurements]]:
        """Each part with its own measurements."""
        if z is None or (self.explicit and len(self.parts) == 1):
            yield from ((part, z) for part in self.parts)
            return
        if not self.explicit:
            if not isinstance(z, tuple):
                raise self._symbolic()
            yield from zip(self.parts, z, strict=True)
            return
        start = 0
        for part, (shape, is_real) in zip(self.parts, self._measured, strict=True):
            size = int(np.prod(shape))
            own = namespace(z).reshape(z[start : start + size], shape)
            # Next to complex measurements, real ones are stored as complex, too.
            yield part, real(own) if is_real and is_complex(own) else own
            start += size

    def _zero(self) -> Factors:
        return Free().zero(self.shape, 1, self.dtype, self.like)

    @cached_property
    def _measured(self) -> list[tuple[tuple[int, ...], bool]]:
        """The shape of the measurements of each part, and whether they are real."""
        zs = [part.measure(self._zero()) for part in self.parts]
        return [(tuple(z.shape), not is_complex(z)) for z in zs if z is not None]


class SumCurve(Curve):
    """φ₁(a) + φ₂(a) + …"""

    def __init__(self, bound: Sum, curves: list[Curve]):
        self.bound, self.curves = bound, curves
        self.bends = all(curve.bends for curve in curves)
        shortest, longest = zip(*(curve.reach for curve in curves), strict=True)
        self.reach = max(shortest), min(longest)

    @property
    def quartic(self) -> Array | None:
        if not self.bound.quadratic:
            return None
        parts = [c for curve in self.curves if (c := curve.quartic) is not None]
        return sum(parts[1:], parts[0])

    def at(self, a: float) -> tuple[float, float, float | None]:
        value, slope, bend = zip(*(curve.at(a) for curve in self.curves), strict=True)
        return sum(value), sum(slope), None if None in bend else sum(bend)

    def to(self, a: float, x: Factors) -> Evaluated:
        return self.bound.total([curve.to(a, x) for curve in self.curves])


def _plus(a: Any, b: Any) -> Any:
    return a + b


def _flat(z: Array) -> Array:
    return namespace(z).reshape(z, (-1,))
