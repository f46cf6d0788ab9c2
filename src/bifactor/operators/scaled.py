"""An operator times a number."""

from collections.abc import Callable
from numbers import Complex
from typing import Any

import numpy as np

from bifactor.arrays import Array, is_complex
from bifactor.blocks import Exact, Shared
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.linear_map import LinearMap, ScaledMap
from bifactor.losses import DataFit
from bifactor.operators.base import Operator
from bifactor.operators.bound import Ahead, Apply, Curve, DataBound, Evaluated
from bifactor.operators.followed import Followed
from bifactor.operators.footprint import Footprint
from bifactor.validation import LARGEST, SMALLEST


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
        return self.operator.bind(fit).inside(self._scaled)  # inside features, which commute with a number

    def _scaled(self, bound: DataBound) -> DataBound:
        return ScaledBound(bound, self.factor)


class ScaledBound(DataBound):
    """f(cX) of a given f, by its fast passes at (cU)Vᴴ: no array as long as the data is scaled."""

    def __init__(self, bound: DataBound, factor: complex):
        self.bound, self.factor = bound, factor
        self.operator, self.fit = Scaled(bound.operator, factor), bound.fit
        self.shape, self.dtype, self.like = bound.shape, bound.dtype, bound.like
        self.explicit, self.quick, self.quadratic = bound.explicit, bound.quick, bound.quadratic
        self.expensive = bound.expensive
        if isinstance(factor, complex):
            self.dtype = np.result_type(bound.dtype, np.complex64)
            bound.check_factors(Free().zero(self.shape, 1, self.dtype, self.like))

    @property
    def measured_shape(self) -> tuple[int, int]:
        return self.bound.measured_shape

    @property
    def smoothness(self) -> float:
        return abs(self.factor) ** 2 * self.bound.smoothness

    @property
    def scale(self) -> float:
        return abs(self.factor) ** 2 * self.bound.scale

    @property
    def least(self) -> float | None:
        return self.bound.least

    @property
    def marginals(self) -> tuple[Array, Array] | None:
        if self.bound.marginals is None:
            return None
        rows, cols = self.bound.marginals
        return abs(self.factor) ** 2 * rows, abs(self.factor) ** 2 * cols

    @property
    def seen(self) -> int | None:
        return self.bound.seen

    def measure(self, x: Factors) -> Array | None:
        return self.bound.measure(self.scaled(x))

    def value(self, x: Factors) -> float:
        return self.bound.value(self.scaled(x))

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        return self.unscaled(self.bound.evaluate(self.scaled(x), z))

    def gradient(self, x: Factors, z: Array | None = None) -> LinearMap:
        return ScaledMap(self.factor.conjugate(), self.bound.gradient(self.scaled(x), z))

    def hessian(self, x: Factors, z: Array | None = None) -> Apply:
        inner = self.bound.hessian(self.scaled(x), z)

        def apply(d: Factors) -> tuple[Array, Array]:
            left, right = inner(self.scaled(d))
            return self.factor.conjugate() * left, right

        return apply

    def curve(self, x: Factors, d: Factors, z: Array | None = None, ahead: Ahead | None = None) -> Curve:
        curve = self.bound.curve(self.scaled(x), self.scaled(d), z, ahead)
        return Followed(curve, lambda a, x: self.unscaled(curve.to(a, self.scaled(x))))

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        return abs(self.factor) ** 2 * self.bound.expected(x, side, alone)

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact | None:
        inner = self.bound.exact(self.scaled(x), side, score, rows)
        # For the right side, the blocks already contain the scaled factor.
        return inner if side or inner is None else abs(self.factor) ** 2 * inner

    def footprint(self, width: int) -> Footprint:
        z, work = self.bound.footprint(width)
        return Footprint(z, work + 2 * self.shape[0] * width * self.dtype.itemsize)  # the scaled factor

    def check_factors(self, x: Factors) -> None:
        self.bound.check_factors(x)

    @property
    def fingerprint(self) -> str:
        return f"{self.factor!r} · {self.bound.fingerprint}"

    def slopes(self, z: Array) -> tuple[float, Array]:
        return self.bound.slopes(z)

    def bend(self, z: Array) -> Callable[[Array], Array]:
        return self.bound.bend(z)

    def pull_back(self, slopes: Array) -> LinearMap:
        return ScaledMap(self.factor.conjugate(), self.bound.pull_back(slopes))

    def line(self, z: Array, dz: Array) -> Curve:
        return self.bound.line(z, dz)

    def refitted(self, fit: DataFit) -> DataBound:
        return ScaledBound(self.bound.refitted(fit), self.factor)

    def recomputed(self) -> DataBound:
        return ScaledBound(self.bound.recomputed(), self.factor)

    def scaled(self, x: Factors) -> Factors:
        """Factors of cX."""
        return x if self.factor == 1 else Free().pair(self.factor * x.left, x.right)

    def unscaled(self, at: Evaluated) -> Evaluated:
        """The gradient of f(cX) in X, c̄·∇f(cX). In its product with U, U already contains the factor."""
        return at if self.factor == 1 else at._replace(GV=self.factor.conjugate() * at.GV)


def _number(factor: Any) -> complex:
    """A Python float if possible, otherwise a complex: both take the precision of the array they are combined with."""
    if isinstance(factor, bool) or not isinstance(factor, Complex):
        raise InputError(f"factor={factor!r} is not a number. Pass a real or complex number.")
    c = complex(factor)
    if not SMALLEST <= abs(c) <= LARGEST:
        raise InputError(f"factor={factor!r} is not a finite number other than 0. Check how it was computed.")
    return c if c.imag else c.real


def takes_real_measurements(operator: Operator) -> bool:
    """Whether A(X) is real even if X is complex, as intensities are. The adjoint of such an A needs a real w."""
    U, V = (np.zeros((k, 1), dtype=np.complex128) for k in operator.shape)
    return not is_complex(operator.forward(U, V))
