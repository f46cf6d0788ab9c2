"""f(UVᴴ): a loss, an operator and data, validated once, at the door."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array, digest, floating, gaussian, is_complex
from bifactor.describe import describe
from bifactor.errors import InputError, SmoothnessError
from bifactor.factors import Factors
from bifactor.kernels import losses_numba, losses_reference
from bifactor.kinds import kind_of
from bifactor.line import Line, LossLine
from bifactor.linear_map import LinearMap
from bifactor.losses import Loss
from bifactor.objective import Objective
from bifactor.operators import Operator
from bifactor.operators.base import Fused
from bifactor.penalties import Penalty
from bifactor.validation import require_finite, require_instance

TRUSTED = 0.25, 2.0
"""The steps along a line whose z₁ is a difference of z there and here, in units of the distance to there.

An error δ of the z here is (1 − a)δ after a step a, so up to a = 2 it never grows. The rounding of a z there that is
much larger than where a short step leads would show in it."""


class Problem(Objective):
    """f(X) = Σᵢ wᵢ ℓ(zᵢ; yᵢ) with z = A(X), and perhaps a penalty on the factors.

    Parameters
    ----------
    loss : Loss
        What yᵢ means, e.g. `losses.Squared()`.
    operator : Operator
        How X is measured, e.g. `operators.Entries(rows, cols, shape)`.
    y : array of length operator.size
        The measurements; for an operator that observes every entry, also the m×n matrix itself.
        Its precision (single or double) is the one that is computed in. X is complex where y or the operator says so.
    weights : number or array of length operator.size, optional
        wᵢ ≥ 0. A number scales f: 1/ρ normalises a completion problem with a fraction ρ of entries observed.
    penalty : Penalty, optional
        Added to f by every solver, e.g. `penalties.Ridge(rho)`.
    offsets : bool
        Fit an offset for every row and column, X = b1ᵀ + 1cᵀ + a matrix of the rank asked for. The factors then have
        two columns more, in front: U = [1, b, …], V = [c, 1, …]. A penalty counts them in.
    symmetric : bool
        Look for a positive semidefinite X = UUᴴ.
    fixed : (L, R), optional
        Columns that are known, m×k and n×l, either of them None for none: X = LCᴴ + BRᴴ + a matrix of the rank asked
        for, with U = [L, B, …] and V = [C, R, …]. L can hold covariates of the rows, R those of the columns. Offsets
        are a column of ones in front of each.

    Attributes
    ----------
    operator, y, weights
        What was given, in the order of measurements that is fastest: they belong together, whatever order you used.
    """

    def __init__(
        self,
        loss: Loss,
        operator: Operator,
        y: Array,
        weights: Array | float | None = None,
        penalty: Penalty | None = None,
        offsets: bool = False,
        *,
        symmetric: bool = False,
        fixed: tuple[Array | None, Array | None] | None = None,
    ):
        if not isinstance(loss, Loss):
            raise InputError(f"loss is {loss!r}, not a Loss. Pass an instance such as losses.Squared().")
        if not isinstance(operator, Operator):
            raise InputError(f"operator is {operator!r}, not an Operator. See bifactor.operators.")
        if penalty is not None:
            require_instance(penalty, Penalty, "penalty")
        self.loss, self.penalty = loss, penalty
        self.shape = operator.shape
        if operator.complex_matrix:
            m, n = operator.shape
            _require_field(loss, operator.forward(np.zeros((m, 1), complex), np.zeros((n, 1), complex)))
        y = _targets(loss, operator, y)
        w = None if weights is None else _weights(weights, y, operator)
        self.operator, order = operator.arrange()
        self.y = y if order is None else y[order]
        self.weights = w if w is None or order is None else w[order]
        self.dtype = np.result_type(y.dtype, np.complex64) if operator.complex_matrix else y.dtype
        self.kind = kind_of(self.shape, self.dtype, symmetric, offsets, fixed)
        self._passes: dict[Any, Fused | None] = {}

    @cached_property
    def smoothness(self) -> float:
        if self.loss.smoothness is None:
            raise SmoothnessError(
                f"{type(self.loss).__name__} has no global smoothness constant L, which is needed here. "
                "Use a solver that needs none, such as PCG; for BFGD steps.Backtracking() or steps.Constant(eta), "
                "or give the rule an L that holds where you work."
            )
        return self.loss.smoothness * self.operator.norm_squared(self.weights)

    @cached_property
    def scale(self) -> float:
        return self.loss.typical_curvature(self.y) * self.operator.mean_square(self.weights)

    def entrywise(self, z: Array) -> LinearMap | None:
        return self.operator.entrywise(self.bend(z)(np.ones(self.y.shape, np.finfo(self.y.dtype).dtype)))

    @cached_property
    def marginals(self) -> tuple[Array, Array] | None:
        weights = np.ones(self.y.shape) if self.weights is None else self.weights.astype(np.float64)
        S = self.operator.entrywise(self.loss.typical_curvature(self.y) * weights)
        m, n = self.shape
        return None if S is None else self.kind.marginals((S @ np.ones((n, 1)))[:, 0], (S.H @ np.ones((m, 1)))[:, 0])

    @property
    def least(self) -> float | None:
        return None if self.loss.least is None else self.loss.least * self.total

    @cached_property
    def total(self) -> float:
        """Σ wᵢ, the number of measurements where they have no weights."""
        return float(self.y.size if self.weights is None else np.sum(self.weights, dtype=np.float64))

    def reweighted(self, weights: Array) -> "Problem":
        """The same measurements with other weights, given in the order of `y` here; 0 leaves one out."""
        other = object.__new__(Problem)
        kept = ("loss", "penalty", "kind", "shape", "operator", "y", "dtype")
        other.__dict__.update({name: self.__dict__[name] for name in kept}, _passes={})
        other.weights = _weights(weights, self.y, self.operator)
        return other

    def oversampling(self, rank: int) -> float | None:
        if self.marginals is None:
            return None
        seen = self.y.size if self.weights is None else int(np.count_nonzero(self.weights))
        return seen / self.kind.unknowns(self.shape, rank)

    def value(self, U: Array, V: Array) -> float:
        return self._sum(self.loss.value(self.operator.forward(U, V), self.y))

    def gradient(self, U: Array, V: Array) -> LinearMap:
        return self.operator.adjoint(self.evaluate(self.operator.forward(U, V))[1])

    def value_and_products(self, U: Array, V: Array) -> tuple[float, Array, Array]:
        one_pass = self._fused(np.result_type(U, V))
        if one_pass is not None:
            return one_pass(U, V)
        value, slopes = self.evaluate(self.operator.forward(U, V))
        return value, *self.operator.adjoint(slopes).products(U, V)

    def measure(self, U: Array, V: Array) -> Array:
        return self.operator.forward(U, V)

    def tangent(self, U: Array, V: Array, D: Array, E: Array) -> Array:
        return self.operator.forward(np.hstack([D, U]), np.hstack([V, E]))

    @property
    def quick_lines(self) -> bool:
        return self.operator.quick_curve

    @property
    def quadratic(self) -> bool:
        return self.loss.quadratic

    def line(self, x: Factors, d: Factors, z: Array, ahead: tuple[float, Array] | None = None) -> Line:
        if ahead is None:
            curve = self.operator.curve(x.left, x.right, d.left, d.right)
            return LossLine(self.loss, self.y, self.weights, z, *curve)
        a, there = ahead
        z2 = self.operator.forward(d.left, d.right)
        kernel = losses_numba if kernels.has_compiled(z.dtype) else losses_reference
        z1 = kernel.chord(z, there, z2, a)
        return LossLine(self.loss, self.y, self.weights, z, z1, z2, (TRUSTED[0] * a, TRUSTED[1] * a))

    def evaluate(self, z: Array) -> tuple[float, Array]:
        if self.loss.pointwise is not None and kernels.has_compiled(z.dtype):
            return losses_numba.evaluate(self.loss.pointwise, self.loss.parameter(z.dtype), z, *self._data(z.dtype))
        slope = self.loss.gradient(z, self.y)
        return self._sum(self.loss.value(z, self.y)), slope if self.weights is None else self.weights * slope

    def bend(self, z: Array) -> Callable[[Array], Array]:
        curvature = self.loss.curvature(z, self.y)
        w = curvature if self.weights is None else self.weights * curvature
        return lambda dz: w * dz

    def along(self, z: Array, z1: Array, z2: Array) -> Line:
        return LossLine(self.loss, self.y, self.weights, z, z1, z2)

    def pull_back(self, slopes: Array) -> LinearMap:
        return self.operator.adjoint(slopes)

    def check_factors(self, U: Array, V: Array) -> None:
        if is_complex(U) or is_complex(V):
            _require_field(self.loss, self.operator.forward(U[:, :1], V[:, :1]))

    @cached_property
    def fingerprint(self) -> str:
        # A probe stands for the operator, whatever it is made of: equal measurements of one fixed matrix.
        rng = np.random.default_rng(0)
        probe = [gaussian(rng, (k, 1), self.dtype) for k in self.shape]
        weights = np.empty(0) if self.weights is None else self.weights
        data = digest(self.operator.forward(*probe), self.y, weights)
        return f"{describe(self.loss)} {type(self.operator).__name__} {self.shape} {self.y.dtype} {data}"

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Problem({self.loss!r}, {self.y.size} measurements by {type(self.operator).__name__} of {m}×{n})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_passes": {}}  # compiled passes are made anew where they are needed

    def _data(self, dtype: Any) -> tuple[Array, Array]:
        """y and the weights (empty for none) as compiled loops want them."""
        w = self.y[:0] if self.weights is None else self.weights
        return np.ascontiguousarray(self.y, dtype=dtype), np.ascontiguousarray(w, dtype=dtype)

    def _sum(self, values: Array) -> float:
        return float(np.sum(values if self.weights is None else self.weights * values, dtype=np.float64))

    def _fused(self, dtype: Any) -> Fused | None:
        if dtype not in self._passes:
            self._passes[dtype] = self.operator.fused(self.loss, self.y, self.weights, dtype)
        return self._passes[dtype]


def _require_field(loss: Loss, z: Array) -> None:
    if is_complex(z) and not loss.targets.complex:
        raise InputError(
            f"{type(loss).__name__} takes real measurements, but here they are complex. Use a loss such as Squared."
        )


def _targets(loss: Loss, operator: Operator, y: Array) -> Array:
    if np.ma.is_masked(y):
        raise InputError("y has masked values. Leave them out of y and of the operator, or use Entries.from_dense.")
    y = floating(y, "y")
    if operator.takes_matrix and y.shape == operator.shape:
        y = y.reshape(-1)
    if y.shape != (operator.size,):
        raise InputError(
            f"y has shape {y.shape}, but {type(operator).__name__} takes {operator.size} measurements "
            f"of a {operator.shape[0]}×{operator.shape[1]} matrix. Pass one y per measurement, in the same order."
        )
    require_finite(y, "y", "Leave missing measurements out of both y and the operator.")
    loss.targets.check(y, type(loss).__name__)
    _check_range(y, "y")
    return np.array(y)  # a copy: what the caller does to y later is not what was checked


def _weights(weights: Array | float, y: Array, operator: Operator) -> Array:
    w = floating(weights, "weights")
    if operator.takes_matrix and w.shape == operator.shape:
        w = w.reshape(-1)
    if w.ndim and w.shape != y.shape:
        raise InputError(f"weights has shape {w.shape}, y has {y.size} values. Pass one weight per measurement.")
    if is_complex(w) or not np.all(np.isfinite(w)) or np.any(w < 0) or not np.any(w > 0):
        raise InputError("weights must be finite real numbers ≥ 0, not all zero. Check how they were made.")
    _check_range(w, "weights", np.finfo(y.dtype))
    return np.broadcast_to(w, y.shape).astype(np.finfo(y.dtype).dtype)


def _check_range(a: Array, name: str, precision: Any = None) -> None:
    """Refuse data so large or small that their squares leave the range of numbers."""
    info = np.finfo(a.dtype) if precision is None else precision
    top = float(np.max(np.abs(a)))
    low, high = 1e3 * float(info.tiny) ** 0.5, 1e-3 * float(info.max) ** 0.5
    if top > 0 and not low <= top <= high:
        raise InputError(
            f"The largest of {name} is {top:.3g}, and squares of it cannot be told from 0 or ∞ in {info.dtype}. "
            f"Rescale {name} to around 1."
        )
