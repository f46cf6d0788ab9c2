"""Measurements of several operators, one after the other."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from bifactor.arrays import Array, is_complex, namespace, real
from bifactor.errors import InputError
from bifactor.linear_map import LinearMap
from bifactor.operators.base import Operator, power_norm_squared
from bifactor.operators.scaled import takes_real_measurements
from bifactor.validation import require_measurements

LARGE = 4_000_000
"""Entries of X from which power iteration, which forms X, is not worth its memory."""


class Stacked(Operator):
    """A(X) = (A₁(X), A₂(X), …), one after the other. max ‖Aₖ‖² ≤ ‖A‖² ≤ Σ ‖Aₖ‖², by power iteration, or
    the upper bound where X is large.

    y and weights follow the same order: `np.concatenate([y1, y2])`. X is complex if any part says so.

    Parameters
    ----------
    *operators : Operator
        A₁, A₂, …, all for matrices of one shape. Use `Scaled` to say how much one counts beside another.
    """

    def __init__(self, *operators: Operator):
        if not operators:
            raise InputError("Stacked got no operators. Pass at least one.")
        for operator in operators:
            if not isinstance(operator, Operator):
                raise InputError(f"{operator!r} is not an Operator. Pass operators one by one, Stacked(A, B).")
            if operator.shape != operators[0].shape:
                raise InputError(
                    f"The operators are for matrices of shapes {operators[0].shape} and {operator.shape}. "
                    "Stack operators for one shape."
                )
        self.operators = operators
        self.shape = operators[0].shape
        self.size = sum(operator.size for operator in operators)
        self.quick_curve = all(operator.quick_curve for operator in operators)
        self.complex_matrix = any(operator.complex_matrix for operator in operators) or None

    def forward(self, U: Array, V: Array) -> Array:
        return _joined([operator.forward(U, V) for operator in self.operators])

    def adjoint(self, w: Array) -> LinearMap:
        require_measurements(w, self.size)
        # Beside complex measurements a real one has a complex w, of which it feels the real part.
        mixed = self._real_parts if is_complex(w) else [False] * len(self.operators)
        return Sum(
            *(
                operator.adjoint(real(part) if is_real else part)
                for (operator, part), is_real in zip(self._split(w), mixed, strict=True)
            )
        )

    def curve(self, U: Array, V: Array, D: Array, E: Array) -> tuple[Array, Array]:
        curves = [operator.curve(U, V, D, E) for operator in self.operators]
        return _joined([z1 for z1, _ in curves]), _joined([z2 for _, z2 in curves])

    def norm_squared(self, weights: Array | None = None) -> float:
        parts = [operator.norm_squared(w) for operator, w in self._split(weights)]
        if len(parts) == 1 or self.shape[0] * self.shape[1] > LARGE:
            return sum(parts)  # a bound that forms nothing
        # Power iteration finds no more than there is, so a part with a formula may know better.
        return max(power_norm_squared(self, weights), *parts)

    def mean_square(self, weights: Array | None = None) -> float:
        return sum(operator.mean_square(w) for operator, w in self._split(weights))

    def _split(self, w: Array | None) -> Iterator[tuple[Operator, Array | None]]:
        """Each operator with its part of a vector."""
        start = 0
        for operator in self.operators:
            yield operator, None if w is None else w[start : start + operator.size]
            start += operator.size

    @cached_property
    def _real_parts(self) -> list[bool]:
        return [takes_real_measurements(operator) for operator in self.operators]


class Sum(LinearMap):
    """G₁ + G₂ + …, as lazy as its terms."""

    def __init__(self, *terms: LinearMap):
        self.terms = terms
        self.shape = terms[0].shape
        self.dtype = np.result_type(*(term.dtype for term in terms))

    def matmul(self, V: Array) -> Array:
        return sum(term.matmul(V) for term in self.terms)

    def rmatmul(self, U: Array) -> Array:
        return sum(term.rmatmul(U) for term in self.terms)

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        pairs = [term.products(U, V) for term in self.terms]
        return sum(GV for GV, _ in pairs), sum(GhU for _, GhU in pairs)


def _joined(parts: list[Array]) -> Array:
    return namespace(*parts).concat(parts)
