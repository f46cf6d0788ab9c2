"""f given by two callables on X, for objectives that are not a loss on measurements."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from bifactor._compat import cached_property
from bifactor.arrays import Array, digest, gaussian, herm, inner, norm
from bifactor.arrays.sparse import require_sound
from bifactor.errors import InputError, SmoothnessError
from bifactor.factors import Factors, Free
from bifactor.linear_map import Dense, LinearMap
from bifactor.operators.base import matrix_shape
from bifactor.operators.bound import Apply, Bound, TrialPoint
from bifactor.operators.curves import Curve, Evaluated
from bifactor.validation import positive

POWER_STEPS = 30


class Function(Bound):
    """A smooth convex f(X) given by callables. X is formed as a dense m×n array for each call.

    Pass it to `solve`; `Objective(Function(…), penalty=…, symmetric=…)` takes the other arguments of a `Problem`.

    Parameters
    ----------
    value : callable, X -> float
        The function f.
    gradient : callable, X -> array of X's shape, or a SciPy sparse matrix
        The gradient of f. For complex X it is the G with df = Re⟨G, dX⟩. `testing.check_gradient` compares it with
        `value`.
    shape : (m, n)
        The shape of X.
    smoothness : float, optional
        The constant L. Without it, step rules that need L estimate it by power iteration on the Hessian at X = 0, which
        is exact for quadratics and local otherwise.
    dtype : dtype, default float64
        The dtype of X.
    """

    def __init__(
        self,
        value: Callable[[Array], float],
        gradient: Callable[[Array], Any],
        shape: tuple[int, int],
        smoothness: float | None = None,
        dtype: Any = np.float64,
    ):
        for name, function in (("value", value), ("gradient", gradient)):
            if not callable(function):
                raise InputError(f"{name} is {function!r}, not callable. Pass a function of the matrix X.")
        if smoothness is not None:
            smoothness = positive(smoothness, "smoothness", "Leave it out if it is not known.")
        self.shape = matrix_shape(shape)
        try:
            self.dtype = np.dtype(dtype)
        except TypeError:
            self.dtype = np.dtype(object)
        if self.dtype.char not in "fdFD":
            raise InputError(f"dtype={dtype!r} is not float32, float64, complex64 or complex128. Choose one of these.")
        self._value, self._gradient, self._smoothness = value, gradient, smoothness

    @cached_property
    def smoothness(self) -> float:
        if self._smoothness is not None:
            return float(self._smoothness)
        estimate = self._curvature_at_zero()
        if not (np.isfinite(estimate) and estimate > 0):
            raise SmoothnessError(
                f"The curvature of this Function at X = 0 is {estimate:g}, so L cannot be estimated. "
                "Pass smoothness=, or use steps.Backtracking()."
            )
        return estimate

    @cached_property
    def scale(self) -> float:
        estimate = self._smoothness or self._curvature_at_zero()
        return estimate if np.isfinite(estimate) and estimate > 0 else 1.0  # nothing better is known

    @property
    def least(self) -> None:
        return None

    # z is X itself.

    def measure(self, x: Factors) -> Array:
        return x.left @ herm(x.right)

    def value(self, x: Factors) -> float:
        return self._value_at(self.measure(x))

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        f, G = self.slopes(self.measure(x) if z is None else z)
        return Evaluated(f, *Dense(G).products(x.left, x.right), z)

    def gradient(self, x: Factors, z: Array | None = None) -> LinearMap:
        return Dense(self._gradient_at(self.measure(x) if z is None else z))

    def hessian(self, x: Factors, z: Array | None = None) -> Apply:
        bend = self.hessian_z(self.measure(x) if z is None else z)
        return lambda d: Dense(bend(_tangent(x, d))).products(x.left, x.right)

    def curve(self, x: Factors, d: Factors, z: Array | None = None, ahead: TrialPoint | None = None) -> Curve:
        return FunctionCurve(self, self.measure(x) if z is None else z, _tangent(x, d), self.measure(d))

    def check_factors(self, x: Factors) -> None:
        self.gradient(x.columns(slice(1)))

    @property
    def fingerprint(self) -> str:
        rng = np.random.default_rng(0)
        f, GV, GhU, _ = self.evaluate(Free().pair(*(gaussian(rng, (k, 1), self.dtype) for k in self.shape)))
        return f"Function {self.shape} {self.dtype} {digest(np.asarray(f), GV, GhU)}"

    def slopes(self, z: Array) -> tuple[float, Array]:
        return self._value_at(z), self._gradient_at(z)

    def hessian_z(self, z: Array) -> Callable[[Array], Array]:
        reach = float(np.finfo(self.dtype).eps) ** (1 / 3) * max(norm(z), 1.0)

        def difference(dz: Array) -> Array:
            h = reach / max(norm(dz), 1e-300)
            return (self._gradient_at(z + h * dz) - self._gradient_at(z - h * dz)) / (2 * h)

        return difference

    def adjoint_z(self, slopes: Array) -> LinearMap:
        return Dense(slopes)

    def line(self, z: Array, dz: Array) -> Curve:
        return FunctionCurve(self, z, dz, np.zeros_like(dz))

    def _value_at(self, X: Array) -> float:
        f = self._value(X)
        try:
            return float(f)
        except (TypeError, ValueError):
            raise InputError(f"value returned {f!r}. Return a real number.") from None

    def _gradient_at(self, X: Array) -> Array:
        G = self._gradient(X)
        if getattr(G, "shape", None) != self.shape:
            raise InputError(
                f"gradient returned {type(G).__name__} of shape {getattr(G, 'shape', None)} for X of shape "
                f"{self.shape}. Return a matrix of the shape of X."
            )
        if sparse.issparse(G):
            require_sound(G, "The result of gradient")
        return G

    def _curvature_at_zero(self) -> float:
        zero = np.zeros(self.shape, dtype=self.dtype)
        step = float(np.finfo(self.dtype).eps) ** (1 / 3)
        G0 = _dense(self._gradient_at(zero))
        D = gaussian(np.random.default_rng(0), self.shape, self.dtype)
        curvature = 0.0
        for _ in range(POWER_STEPS):
            D = (_dense(self._gradient_at(step * D / norm(D))) - G0) / step
            curvature = norm(D)
            if not (np.isfinite(curvature) and curvature > 0):
                break
        return curvature


class FunctionCurve(Curve):
    """φ(a) = f(X + a·X₁ + a²·X₂), by calls of f and its gradient, without a second derivative."""

    quartic = None

    def __init__(self, function: Function, X: Array, X1: Array, X2: Array):
        self.function, self.moving = function, (X, X1, X2)

    def at(self, a: float) -> tuple[float, float, None]:
        f, G = self.function.slopes(self._matrix(a))
        _, X1, X2 = self.moving
        return f, inner(_dense(G), X1 + 2 * a * X2), None

    def to(self, a: float, x: Factors) -> Evaluated:
        return self.function.evaluate(x, self._matrix(a))

    def _matrix(self, a: float) -> Array:
        X, X1, X2 = self.moving
        return X + a * X1 + a * a * X2


def _tangent(x: Factors, d: Factors) -> Array:
    """X₁, the derivative of X along d."""
    return d.left @ herm(x.right) + x.left @ herm(d.right)


def _dense(G: Any) -> Array:
    return G.toarray() if sparse.issparse(G) else G
