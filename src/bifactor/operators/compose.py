"""Functions of X made of others: sums, stacked measurements and multiples."""

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import islice
from numbers import Complex
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, is_complex, namespace, real, same_library, to_device_of, to_numpy
from bifactor.blocks import Exact, Shared
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.linear_map import LinearMap, ScaledMap, TotalMap
from bifactor.losses import DataFit, Loss
from bifactor.losses.composite import Grouped, records
from bifactor.operators.all_cells import AllCells, Cells
from bifactor.operators.base import Operator, power_norm_squared
from bifactor.operators.bound import Apply, Bound, DataBound, FittedParameters, Footprint, TrialPoint, WrappedBound
from bifactor.operators.curves import Curve, Evaluated, Measurements
from bifactor.operators.features import FeaturedBound
from bifactor.validation import MAX_SETTING, MIN_SETTING, require_measurements


class SumBound(Bound):
    """f₁(X) + f₂(X) + …; z is the concatenation of the parts' z if all are explicit, otherwise a tuple."""

    def __init__(self, *given: Bound):
        parts = tuple(part for one in given for part in _summands(one))
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

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: TrialPoint | None = None) -> Curve:
        there = [None] * len(self.parts) if ahead is None else [(ahead[0], own) for _, own in self._split(ahead[1])]
        curves = [part.curve(x, d, own, to) for (part, own), to in zip(self._split(z), there, strict=True)]
        return SumCurve(self, curves)

    def straight(self, x: Factors | None, new: Factors, z: Measurements = None) -> Curve:
        if self.explicit:
            return super().straight(x, new, z)
        return SumCurve(self, [part.straight(x, new, own) for part, own in self._split(z)])

    @cached_property
    def data(self) -> Bound:
        rest = [part for part in self.parts if not isinstance(part, Cells)]
        return self if len(rest) == len(self.parts) else rest[0] if len(rest) == 1 else SumBound(*rest)

    def curvatures(self, x: Factors) -> Array:
        return reduce(_plus, (part.curvatures(x) for part in self.parts))

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        # Observed entries of several parts count as those of one.
        patterns = (self.data, *(part for part in self.parts if isinstance(part, Cells)))
        if len(patterns) > 1:
            return reduce(_plus, (part.expected(x, side, alone=False) for part in patterns))
        if self.marginals is not None:
            return super().expected(x, side, alone)
        return reduce(_plus, (part.expected(x, side, alone) for part in self.parts))

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact | None:
        total = None
        for part in self.parts:
            own = part.exact(x, side, rows)
            if own is None:
                return None
            total = own if total is None else total.joined(own)
        return total

    @property
    def parameters(self) -> FittedParameters:
        parts = [part.parameters for part in self.parts]

        def refit(x: Factors, z: Measurements) -> tuple[float, ...]:
            pairs = zip(parts, self._split(z), strict=True)
            return tuple(number for part, (_, own) in pairs for number in part.refit(x, own))

        def replace(values: tuple[float, ...]) -> Bound:
            rest = iter(values)
            return type(self)(*(part.replace(tuple(islice(rest, len(part.values)))) for part in parts))

        values = tuple(number for part in parts for number in part.values)
        return FittedParameters(values, any(part.scales for part in parts), refit, replace)

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

    def hessian_z(self, z: Array) -> Callable[[Array], Array]:
        bends = [part.hessian_z(own) for part, own in self._split(z)]

        def bend(dz: Array) -> Array:
            return self._joined([one(own) for one, (_, own) in zip(bends, self._split(dz), strict=True)])

        return bend

    def adjoint_z(self, slopes: Array) -> LinearMap:
        return TotalMap(*(part.adjoint_z(own) for part, own in self._split(slopes)))

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


def _summands(f: Bound) -> tuple[Bound, ...]:
    """The functions whose sum is f; stacked operators are one function, whose data stay together."""
    return f.parts if isinstance(f, SumBound) and not isinstance(f, StackedBound) else (f,)


class SumCurve(Curve):
    """φ₁(a) + φ₂(a) + …"""

    def __init__(self, bound: SumBound, curves: list[Curve]):
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


class DataAndCells(SumBound, DataBound):
    """An operator bound to data, plus terms on all cells."""

    def __init__(self, data: DataBound, *cells: Cells):
        super().__init__(data, *cells)
        self.operator = data.operator

    @property
    def fit(self) -> DataFit:  # type: ignore[override]
        return self.data.fit

    @property
    def data(self) -> DataBound:
        found = self.parts[0]
        assert isinstance(found, DataBound)
        return found

    @property
    def cells(self) -> tuple[Cells, ...]:  # type: ignore[override]
        return tuple(part for part in self.parts if isinstance(part, Cells))

    def refitted(self, fit: DataFit) -> DataBound:
        return DataAndCells(self.data.refitted(fit), *self.cells)

    def recomputed(self) -> DataBound:
        return DataAndCells(self.data.recomputed(), *self.cells)


def add_cells(f: Bound, given: AllCells) -> Bound:
    """The sum of f and a term on all cells, those of the measured matrix if there are features."""
    if isinstance(f, FeaturedBound):
        return f.with_bound(add_cells(f.bound, given))
    if f.measured_shape != f.shape:
        raise InputError(
            "all_cells cannot be added to a sum of functions with features. Add it to one of the parts, or wrap "
            "all operators in one Featured."
        )
    cells = Cells(given, f.shape, f.dtype, f.like)
    if isinstance(f, DataAndCells):
        return DataAndCells(f.data, *f.cells, cells)
    return DataAndCells(f, cells) if isinstance(f, DataBound) else SumBound(f, cells)


# An operator times a number.


class Scaled(Operator):
    """(cA)(X) = c·A(X). ‖cA‖² = |c|²‖A‖².

    Parameters
    ----------
    operator : Operator
        The operator A.
    factor : number
        The factor c, finite and not 0. A complex c makes X complex.
    """

    def __init__(self, operator: Operator, factor: complex):
        if not isinstance(operator, Operator):
            raise InputError(f"operator is {operator!r}, not an Operator. See bifactor.operators.")
        self.operator, self.factor = operator, _number(factor)
        self.shape, self.size, self.complex_matrix = operator.shape, operator.size, operator.complex_matrix
        if isinstance(self.factor, complex):
            if takes_real_measurements(operator):
                raise InputError(
                    f"factor={factor!r} is complex, but the measurements of {type(operator).__name__} are real for any "
                    "matrix. Use a real factor."
                )
            self.complex_matrix = True

    def __repr__(self) -> str:
        return f"Scaled({self.operator!r}, {self.factor!r})"

    def forward(self, U: Array, V: Array) -> Array:
        return self.factor * self.operator.forward(U, V)

    def adjoint(self, w: Array) -> LinearMap:
        return self.operator.adjoint(self.factor.conjugate() * w)

    def norm_squared(self, weights: Array | None = None) -> float:
        return abs(self.factor) ** 2 * self.operator.norm_squared(weights)

    def mean_square(self, weights: Array | None = None) -> float:
        return abs(self.factor) ** 2 * self.operator.mean_square(weights)

    def bind(self, fit: DataFit) -> DataBound:
        return _scaled(self.operator.bind(fit), self.factor)


def _scaled(bound: DataBound, factor: complex) -> DataBound:
    """f(cX) of a given f; inside features, which commute with a number."""
    if isinstance(bound, FeaturedBound):
        return bound.with_bound(_scaled(bound.bound, factor))
    return ScaledBound(bound, factor)


class ScaledBound(WrappedBound):
    """f(cX) of a given f, by its fast passes at (cU)Vᴴ: no array as long as the data is scaled."""

    def __init__(self, bound: DataBound, factor: complex):
        super().__init__(bound)
        self.factor, self.operator = factor, Scaled(bound.operator, factor)
        if isinstance(factor, complex):
            self.dtype = np.result_type(bound.dtype, np.complex64)
            bound.check_factors(Free().zero(self.shape, 1, self.dtype, self.like))

    def with_bound(self, bound: Any) -> DataBound:
        return ScaledBound(bound, self.factor)

    def image(self, x: Factors) -> Factors:
        return x if self.factor == 1 else Free().pair(self.factor * x.left, x.right)

    def pull(self, GV: Array, GhU: Array) -> tuple[Array, Array]:
        # c̄·∇f(cX); in its product with U, U already contains the factor.
        return (GV if self.factor == 1 else self.factor.conjugate() * GV), GhU

    def through(self, G: LinearMap) -> LinearMap:
        return ScaledMap(self.factor.conjugate(), G)

    @property
    def smoothness(self) -> float:
        return abs(self.factor) ** 2 * self.bound.smoothness

    @property
    def scale(self) -> float:
        return abs(self.factor) ** 2 * self.bound.scale

    @property
    def marginals(self) -> tuple[Array, Array] | None:
        if self.bound.marginals is None:
            return None
        rows, cols = self.bound.marginals
        return abs(self.factor) ** 2 * rows, abs(self.factor) ** 2 * cols

    parameters = DataBound.parameters  # fitted to z = c·A(X), once for all of its measurements

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        return abs(self.factor) ** 2 * self.bound.expected(x, side, alone)

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact | None:
        inner = self.bound.exact(self.at(x), side, rows)
        # For the right side, the blocks already contain the scaled factor.
        return inner if side or inner is None else abs(self.factor) ** 2 * inner

    def footprint(self, width: int) -> Footprint:
        z, work = self.bound.footprint(width)
        return Footprint(z, work + 2 * self.shape[0] * width * self.dtype.itemsize)  # the scaled factor

    @property
    def fingerprint(self) -> str:
        return f"{self.factor!r} · {self.bound.fingerprint}"


def _number(factor: Any) -> complex:
    """A Python float if possible, otherwise a complex: both take the precision of the array they are combined with."""
    if isinstance(factor, bool) or not isinstance(factor, Complex):
        raise InputError(f"factor={factor!r} is not a number. Pass a real or complex number.")
    c = complex(factor)
    if not MIN_SETTING <= abs(c) <= MAX_SETTING:
        raise InputError(f"factor={factor!r} is not a finite number other than 0. Check how it was computed.")
    return c if c.imag else c.real


def takes_real_measurements(operator: Operator) -> bool:
    """Whether A(X) is real even if X is complex, as intensities are. The adjoint of such an A needs a real w."""
    U, V = (np.zeros((k, 1), dtype=np.complex128) for k in operator.shape)
    return not is_complex(operator.forward(U, V))


# Measurements of several operators, one after the other.

LARGE = 4_000_000
"""The number of entries of X above which power iteration, which forms X, takes too much memory."""


class Stacked(Operator):
    """A(X) = (A₁(X), A₂(X), …), one after the other. max ‖Aₖ‖² ≤ ‖A‖² ≤ Σ ‖Aₖ‖².

    ‖A‖² is computed by power iteration, or is the upper bound if X is large. y and weights follow the same order:
    `np.concatenate([y1, y2])`. X is complex if it is for any part.

    Parameters
    ----------
    *operators : Operator
        The operators A₁, A₂, …, all for matrices of the same shape. Use `Scaled` to weight them against each other.
    """

    def __init__(self, *operators: Operator):
        if not operators:
            raise InputError("Stacked got no operators. Pass at least one.")
        for operator in operators:
            if not isinstance(operator, Operator):
                raise InputError(f"{operator!r} is not an Operator. Pass operators as arguments, Stacked(A, B).")
            if operator.shape != operators[0].shape:
                raise InputError(
                    f"The operators are for matrices of shapes {operators[0].shape} and {operator.shape}. "
                    "Stack operators for the same shape."
                )
        self.operators = operators
        self.shape = operators[0].shape
        self.size = sum(operator.size for operator in operators)
        self.complex_matrix = any(operator.complex_matrix for operator in operators) or None

    def __repr__(self) -> str:
        return f"Stacked({', '.join(map(repr, self.operators))})"

    def forward(self, U: Array, V: Array) -> Array:
        return _joined([operator.forward(U, V) for operator in self.operators])

    def adjoint(self, w: Array) -> LinearMap:
        require_measurements(w, self.size)
        # Next to complex measurements, real ones get a complex w, of which only the real part matters.
        mixed = self._real_parts if is_complex(w) else [False] * len(self.operators)
        return TotalMap(
            *(
                operator.adjoint(real(part) if is_real else part)
                for (operator, part), is_real in zip(self._split(w), mixed, strict=True)
            )
        )

    def norm_squared(self, weights: Array | None = None) -> float:
        parts = [operator.norm_squared(w) for operator, w in self._split(weights)]
        if len(parts) == 1 or self.shape[0] * self.shape[1] > LARGE:
            return sum(parts)  # a bound that forms nothing
        # Power iteration estimates from below, so the norm of a part with a formula may be larger.
        return max(power_norm_squared(self, weights), *parts)

    def mean_square(self, weights: Array | None = None) -> float:
        return sum(operator.mean_square(w) for operator, w in self._split(weights))

    def bind(self, fit: DataFit) -> DataBound:
        if len(self.operators) == 1:
            return StackedBound(self.operators[0].bind(fit))
        fits = fit.sized(self.size, self.takes).shared_out([operator.size for operator in self.operators])
        mixed = zip(self.operators, fits, self._real_parts, strict=True)
        return StackedBound(*(A.bind(_real(own, A) if is_real else own) for A, own, is_real in mixed))

    def _split(self, w: Array | None) -> Iterator[tuple[Operator, Any]]:
        """Each operator with its part of a vector."""
        start = 0
        for operator in self.operators:
            yield operator, None if w is None else w[start : start + operator.size]
            start += operator.size

    @cached_property
    def _real_parts(self) -> list[bool]:
        return [takes_real_measurements(operator) for operator in self.operators]


class StackedBound(SumBound, DataBound):
    """The sum of the operators, each bound to its part of the data."""

    parts: tuple[DataBound, ...]

    def __init__(self, *parts: DataBound):
        super().__init__(*parts)
        self.operator = Stacked(*(part.operator for part in parts))

    @cached_property
    def fit(self) -> DataFit:
        return _one_fit([part.fit for part in self.parts])

    @cached_property
    def smoothness(self) -> float:
        # Smaller than the sum of the parts' constants, whose curvature may be in different directions.
        L, weights = self.fit.smooth
        return L * self.operator.norm_squared(weights)

    def recomputed(self) -> DataBound:
        return StackedBound(*(part.recomputed() for part in self.parts))


def _joined(parts: list[Array]) -> Array:
    return namespace(*parts).concat(parts)


def _real(fit: DataFit, operator: Operator) -> DataFit:
    """The data of real measurements that are stacked with complex ones."""
    if not is_complex(fit.values):
        return fit
    if np.any(np.imag(fit.values)):
        raise InputError(f"y has imaginary parts, but the measurements of {type(operator).__name__} are real. Check y.")
    return fit.with_values(real(fit.values))


def _one_fit(fits: list[DataFit]) -> DataFit:
    """The measurements of several fits, one after the other."""
    losses: list[Loss] = []
    for loss in (loss for fit in fits for loss in fit.each_loss):
        losses += [] if loss in losses else [loss]
    y, like, weights = np.concatenate([to_numpy(fit.values) for fit in fits]), fits[0].values, None
    if any(fit.weights is not None for fit in fits):
        each = [np.ones(fit.y.shape[0]) if fit.weights is None else to_numpy(fit.weights) for fit in fits]
        weights = to_device_of(np.concatenate(each).astype(np.finfo(y.dtype).dtype), like)
    if len(losses) == 1:
        return DataFit(losses[0], to_device_of(y, like), weights)
    group = np.concatenate([_places(fit, losses) for fit in fits])
    return DataFit(Grouped(tuple(losses)), records(losses, y, group)[1], weights)


def _places(fit: DataFit, losses: list[Loss]) -> Array:
    """The position of the loss of each measurement in a list of losses."""
    places = np.array([losses.index(loss) for loss in fit.each_loss])
    return np.full(fit.y.shape, places[0]) if fit.group is None else places[fit.group]
