"""The default bound of an operator, by `forward` and `adjoint`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import Array, beside, digest, dtype_of, gaussian, hstack, is_complex, none_of, on_host
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.losses.data_fit import Moving
from bifactor.operators.bound import ANYWHERE, Ahead, Apply, Curve, DataBound, Evaluated, Reach
from bifactor.operators.symbolic import Symbolic

if TYPE_CHECKING:
    from bifactor.operators.base import Operator

TRUSTED = 0.25, 2.0
"""The range of steps along a curve whose z₁ is a difference of z at two points, in units of their distance.

An error δ of z at the first point is (1 − a)δ after a step a, so it does not grow up to a = 2. After a short step, the
rounding error of a much larger z at the second point would be visible."""


class Measured(DataBound):
    """f(X) = Σᵢ wᵢ ℓ(A(X)ᵢ; yᵢ).

    Parameters
    ----------
    operator : Operator
        The operator A.
    fit : DataFit
        The loss and data, with one y per measurement, in the order of the operator.
    """

    quick = False

    def __init__(self, operator: "Operator", fit: DataFit):
        self.operator, self.fit = operator, fit
        self.shape, self.quadratic, self.like = operator.shape, fit.quadratic, none_of(fit.y)
        self.dtype = np.result_type(fit.dtype, np.complex64) if operator.complex_matrix else fit.dtype
        if operator.complex_matrix:
            self.check_factors(Free().zero(self.shape, 1, self.dtype, self.like))

    @cached_property
    def smoothness(self) -> float:
        L, weights = self.fit.smooth
        return L * self.operator.norm_squared(weights)

    @cached_property
    def scale(self) -> float:
        curvature, weights = self.fit.typical
        return curvature * self.operator.mean_square(weights)

    @property
    def least(self) -> float | None:
        return self.fit.least

    def measure(self, x: Factors) -> Array:
        return self.operator.forward(x.left, x.right)

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        """(z₁, z₂), the change of z along d."""
        return self.tangent(x, d), self.measure(d)

    def tangent(self, x: Factors, d: Factors) -> Array:
        """z₁."""
        return self.operator.forward(hstack(d.left, x.left), hstack(x.right, d.right))

    def value(self, x: Factors) -> float:
        return self.fit.value(self.measure(x))

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        at = self.measure(x) if z is None else z
        f, slopes = self.fit.evaluate(at)
        return Evaluated(f, *self.pull_back(slopes).products(x.left, x.right), z)

    def gradient(self, x: Factors, z: Array | None = None) -> LinearMap:
        return self.pull_back(self.slopes(self.measure(x) if z is None else z)[1])

    def hessian(self, x: Factors, z: Array | None = None) -> Apply:
        bend = self.bend(self.measure(x) if z is None else z)
        return lambda d: self.pull_back(bend(self.tangent(x, d))).products(x.left, x.right)

    def curve(self, x: Factors, d: Factors, z: Array | None = None, ahead: Ahead | None = None) -> Curve:
        z = self.measure(x) if z is None else z
        if ahead is None:
            return MeasuredCurve(self, (z, *self.motion(x, d)))
        a, there = ahead
        z2 = self.measure(d)
        z1 = on_host(kernels.find("losses", dtype_of(z), z.shape[0]).chord, z, there, z2, a)
        return MeasuredCurve(self, (z, z1, z2), (TRUSTED[0] * a, TRUSTED[1] * a))

    def check_factors(self, x: Factors) -> None:
        if is_complex(x.left) or is_complex(x.right):
            one = x.columns(slice(1))
            require_field(self.fit, self.operator.forward(one.left, one.right))

    @cached_property
    def fingerprint(self) -> str:
        # Measurements of one fixed matrix stand for the operator.
        rng = np.random.default_rng(0)
        probe = [beside(gaussian(rng, (k, 1), self.dtype), self.like) for k in self.shape]
        seen = digest(self.operator.forward(*probe))
        return f"{type(self.operator).__name__} {self.shape} {seen} {self.fit.fingerprint}"

    def slopes(self, z: Array) -> tuple[float, Array]:
        return self.fit.evaluate(z)

    def bend(self, z: Array) -> Callable[[Array], Array]:
        curvature = self.fit.curvature(z)
        return lambda dz: curvature * dz

    def pull_back(self, slopes: Array) -> LinearMap:
        return self.operator.adjoint(slopes)

    def line(self, z: Array, dz: Array) -> Curve:
        return MeasuredCurve(self, (z, dz, dz[:0]))

    def recomputed(self) -> DataBound:
        return Symbolic(self)


class MeasuredCurve(Curve):
    """φ(a) = Σ wᵢ ℓ(zᵢ(a); yᵢ): a trial step costs O(p) for any operator."""

    def __init__(self, bound: Measured, moving: Moving, reach: Reach = ANYWHERE):
        self.bound, self.moving, self.reach = bound, moving, reach

    @property
    def quartic(self) -> Array | None:
        return self.bound.fit.quartic(self.moving)

    def at(self, a: float) -> tuple[float, float, float]:
        return self.bound.fit.along(self.moving, a)

    def to(self, a: float, x: Factors) -> Evaluated:
        f, slopes, z = self.bound.fit.advance(self.moving, a)
        return Evaluated(f, *self.bound.pull_back(slopes).products(x.left, x.right), z)


def require_field(fit: DataFit, z: Array) -> None:
    """Raise `InputError` if measurements are complex and a loss needs real ones."""
    for loss in fit.each_loss:
        if is_complex(z) and not loss.targets.complex:
            raise InputError(
                f"{type(loss).__name__} needs real measurements, but here they are complex. Use a loss such as Squared."
            )
