"""f given by two callables on X, for objectives that are not a loss on measurements."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from bifactor.arrays import Array, digest, gaussian, herm, norm
from bifactor.errors import InputError, SmoothnessError
from bifactor.linear_map import Dense, LinearMap
from bifactor.operators.base import matrix_shape
from bifactor.problem import Objective
from bifactor.validation import positive

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
                f"The curvature of this Function at X = 0 came out as {estimate:g}, so no L can be guessed. "
                "Pass smoothness=, or use steps.Backtracking()."
            )
        return estimate

    @cached_property
    def scale(self) -> float:
        estimate = self._smoothness or self._curvature_at_zero()
        return estimate if np.isfinite(estimate) and estimate > 0 else 1.0  # nothing better is known

    def value(self, U: Array, V: Array) -> float:
        return self._value_at(U @ herm(V))

    def gradient(self, U: Array, V: Array) -> LinearMap:
        return self._gradient_at(U @ herm(V))

    def value_and_products(self, U: Array, V: Array) -> tuple[float, Array, Array]:
        X = U @ herm(V)
        return self._value_at(X), *self._gradient_at(X).products(U, V)

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

    def _gradient_at(self, X: Array) -> LinearMap:
        G = self._gradient(X)
        if getattr(G, "shape", None) != self.shape:
            raise InputError(
                f"gradient returned {type(G).__name__} of shape {getattr(G, 'shape', None)} for X of shape "
                f"{self.shape}. It must return a matrix of X's shape."
            )
        return Dense(G)

    def _curvature_at_zero(self) -> float:
        zero = np.zeros(self.shape, dtype=self.dtype)
        identity = np.eye(self.shape[1], dtype=self.dtype)
        step = float(np.finfo(self.dtype).eps) ** (1 / 3)
        G0 = self._gradient_at(zero) @ identity
        D = gaussian(np.random.default_rng(0), self.shape, self.dtype)
        curvature = 0.0
        for _ in range(POWER_STEPS):
            D = (self._gradient_at(step * D / norm(D)) @ identity - G0) / step
            curvature = norm(D)
            if not (np.isfinite(curvature) and curvature > 0):
                break
        return curvature
