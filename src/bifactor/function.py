"""f given by two callables on X, for objectives that are not a loss on measurements."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array, digest, gaussian, herm, inner, norm
from bifactor.errors import InputError, SmoothnessError
from bifactor.factors import Factors
from bifactor.kinds import kind_of
from bifactor.line import ANYWHERE, Line
from bifactor.linear_map import Dense, LinearMap
from bifactor.objective import Objective
from bifactor.operators.base import matrix_shape
from bifactor.penalties import Penalty
from bifactor.validation import positive, require_instance

POWER_STEPS = 30


class Function(Objective):
    """Any smooth convex f(X). X is formed as a dense m×n array for each call.

    Parameters
    ----------
    value : callable, X -> float
    gradient : callable, X -> array of X's shape, or a SciPy sparse matrix
        For complex X the gradient is the G with df = Re⟨G, dX⟩. `testing.check_gradient` compares it with `value`.
    shape : (m, n)
    smoothness : float, optional
        L. Without it, rules that need one estimate it by power iteration on the Hessian at X = 0,
        which is exact for quadratics and local otherwise.
    dtype : dtype, default float64
        What is computed in.
    penalty : Penalty, optional
        Added to f by every solver, e.g. `penalties.Ridge(rho)`.
    offsets, symmetric, fixed
        Which factors of X are looked for; see `Problem`.
    """

    def __init__(
        self,
        value: Callable[[Array], float],
        gradient: Callable[[Array], Any],
        shape: tuple[int, int],
        smoothness: float | None = None,
        dtype: Any = np.float64,
        penalty: Penalty | None = None,
        *,
        offsets: bool = False,
        symmetric: bool = False,
        fixed: tuple[Array | None, Array | None] | None = None,
    ):
        for name, function in (("value", value), ("gradient", gradient)):
            if not callable(function):
                raise InputError(f"{name} is {function!r}, not callable. Pass a function of the matrix X.")
        if smoothness is not None:
            smoothness = positive(smoothness, "smoothness", "Leave it out if it is not known.")
        if penalty is not None:
            require_instance(penalty, Penalty, "penalty")
        self.shape, self.penalty = matrix_shape(shape), penalty
        try:
            self.dtype = np.dtype(dtype)
        except TypeError:
            self.dtype = np.dtype(object)
        if self.dtype.char not in "fdFD":
            raise InputError(f"dtype={dtype!r} is not float32, float64, complex64 or complex128. Choose one of these.")
        self.kind = kind_of(self.shape, self.dtype, symmetric, offsets, fixed)
        self._value, self._gradient, self._smoothness = value, gradient, smoothness

    @cached_property
    def smoothness(self) -> float:
        if self._smoothness is not None:
            return float(self._smoothness)
        estimate = self._curvature_at_zero()
        if not (np.isfinite(estimate) and estimate > 0):
            raise SmoothnessError(
                f"The curvature of this Function at X = 0 came out as {estimate:g}, so no L can be guessed. "
                "Pass smoothness=, or use steps.Backtracking()."
            )
        return estimate

    @cached_property
    def scale(self) -> float:
        estimate = self._smoothness or self._curvature_at_zero()
        return estimate if np.isfinite(estimate) and estimate > 0 else 1.0  # nothing better is known

    def entrywise(self, z: Array) -> None:
        return None

    @property
    def marginals(self) -> None:
        return None

    @property
    def least(self) -> None:
        return None

    def oversampling(self, rank: int) -> None:
        return None

    def value(self, U: Array, V: Array) -> float:
        return self._value_at(U @ herm(V))

    def gradient(self, U: Array, V: Array) -> LinearMap:
        return Dense(self._gradient_at(U @ herm(V)))

    def value_and_products(self, U: Array, V: Array) -> tuple[float, Array, Array]:
        value, G = self.evaluate(U @ herm(V))
        return value, *Dense(G).products(U, V)

    # z is X itself.

    def measure(self, U: Array, V: Array) -> Array:
        return U @ herm(V)

    def tangent(self, U: Array, V: Array, D: Array, E: Array) -> Array:
        return D @ herm(V) + U @ herm(E)

    @property
    def quick_lines(self) -> bool:
        return True

    @property
    def quadratic(self) -> bool:
        return False

    def line(self, x: Factors, d: Factors, z: Array, ahead: tuple[float, Array] | None = None) -> Line:
        return self.along(z, self.tangent(x.left, x.right, d.left, d.right), d.left @ herm(d.right))

    def evaluate(self, z: Array) -> tuple[float, Array]:
        return self._value_at(z), self._gradient_at(z)

    def bend(self, z: Array) -> Callable[[Array], Array]:
        reach = float(np.finfo(self.dtype).eps) ** (1 / 3) * max(norm(z), 1.0)

        def difference(dz: Array) -> Array:
            h = reach / max(norm(dz), 1e-300)
            return (self._gradient_at(z + h * dz) - self._gradient_at(z - h * dz)) / (2 * h)

        return difference

    def along(self, z: Array, z1: Array, z2: Array) -> Line:
        return _FunctionLine(self, z, z1, z2)

    def pull_back(self, slopes: Array) -> LinearMap:
        return Dense(slopes)

    def check_factors(self, U: Array, V: Array) -> None:
        self.gradient(U[:, :1], V[:, :1])

    @property
    def fingerprint(self) -> str:
        rng = np.random.default_rng(0)
        probe = [gaussian(rng, (k, 1), self.dtype) for k in self.shape]
        parts = self.value_and_products(*probe)
        return f"Function {self.shape} {self.dtype} {digest(*(np.asarray(part) for part in parts))}"

    def _value_at(self, X: Array) -> float:
        f = self._value(X)
        try:
            return float(f)
        except (TypeError, ValueError):
            raise InputError(f"value returned {f!r}. It must return a real number.") from None

    def _gradient_at(self, X: Array) -> Array:
        G = self._gradient(X)
        if getattr(G, "shape", None) != self.shape:
            raise InputError(
                f"gradient returned {type(G).__name__} of shape {getattr(G, 'shape', None)} for X of shape "
                f"{self.shape}. It must return a matrix of X's shape."
            )
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


class _FunctionLine(Line):
    """φ(a) = f(X + a·X₁ + a²·X₂), by calls of f and its gradient: nothing is known of its second derivative."""

    quartic = None
    reach = ANYWHERE

    def __init__(self, function: Function, X: Array, X1: Array, X2: Array):
        self.function, self.curve = function, (X, X1, X2)

    def at(self, a: float) -> tuple[float, float, None]:
        f, G, _ = self.to(a)
        _, X1, X2 = self.curve
        return f, inner(_dense(G), X1 + 2 * a * X2), None

    def to(self, a: float) -> tuple[float, Array, Array]:
        X, X1, X2 = self.curve
        at = X + a * X1 + a * a * X2
        return *self.function.evaluate(at), at


def _dense(G: Any) -> Array:
    return G.toarray() if sparse.issparse(G) else G
