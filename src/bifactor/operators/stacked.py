"""Measurements of several operators, one after the other."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, beside, host, is_complex, namespace, real
from bifactor.errors import InputError
from bifactor.linear_map import LinearMap, TotalMap
from bifactor.losses import DataFit, Loss
from bifactor.losses.grouped import Grouped, records
from bifactor.operators.base import Operator, power_norm_squared
from bifactor.operators.bound import Bound, DataBound
from bifactor.operators.scaled import takes_real_measurements
from bifactor.operators.sum import Sum
from bifactor.validation import require_measurements

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


class StackedBound(Sum, DataBound):
    """The sum of the operators, each bound to its part of the data."""

    parts: tuple[DataBound, ...]

    def __init__(self, *parts: DataBound):
        super().__init__(*parts)
        self.operator = Stacked(*(part.operator for part in parts))

    @property
    def summands(self) -> tuple[Bound, ...]:
        return (self,)  # one operator, whose data stay together

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
    y, like, weights = np.concatenate([host(fit.values) for fit in fits]), fits[0].values, None
    if any(fit.weights is not None for fit in fits):
        each = [np.ones(fit.y.shape[0]) if fit.weights is None else host(fit.weights) for fit in fits]
        weights = beside(np.concatenate(each).astype(np.finfo(y.dtype).dtype), like)
    if len(losses) == 1:
        return DataFit(losses[0], beside(y, like), weights)
    group = np.concatenate([_places(fit, losses) for fit in fits])
    return DataFit(Grouped(tuple(losses)), records(losses, y, group)[1], weights)


def _places(fit: DataFit, losses: list[Loss]) -> Array:
    """The position of the loss of each measurement in a list of losses."""
    places = np.array([losses.index(loss) for loss in fit.each_loss])
    return np.full(fit.y.shape, places[0]) if fit.group is None else places[fit.group]
