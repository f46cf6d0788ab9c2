"""An operator times a number."""

from numbers import Complex
from typing import Any

import numpy as np

from bifactor.arrays import Array, is_complex
from bifactor.errors import InputError
from bifactor.linear_map import LinearMap
from bifactor.operators.base import Operator
from bifactor.validation import LARGEST, SMALLEST


class Scaled(Operator):
    """(cA)(X) = c·A(X). ‖cA‖² = |c|²‖A‖².

    Parameters
    ----------
    operator : Operator
        A.
    factor : number
        c, finite and not 0. A complex c makes X complex.
    """

    def __init__(self, operator: Operator, factor: complex):
        if not isinstance(operator, Operator):
            raise InputError(f"operator is {operator!r}, not an Operator. See bifactor.operators.")
        self.operator, self.factor = operator, _number(factor)
        self.shape, self.size = operator.shape, operator.size
        self.complex_matrix, self.quick_curve = operator.complex_matrix, operator.quick_curve
        if isinstance(self.factor, complex):
            if takes_real_measurements(operator):
                raise InputError(
                    f"factor={factor!r} is complex, but {type(operator).__name__} here takes real measurements of any "
                    "matrix. Use a real factor."
                )
            self.complex_matrix = True

    def forward(self, U: Array, V: Array) -> Array:
        return self.factor * self.operator.forward(U, V)

    def adjoint(self, w: Array) -> LinearMap:
        return self.operator.adjoint(self.factor.conjugate() * w)

    def curve(self, U: Array, V: Array, D: Array, E: Array) -> tuple[Array, Array]:
        z1, z2 = self.operator.curve(U, V, D, E)
        return self.factor * z1, self.factor * z2

    def entrywise(self, weights: Array) -> LinearMap | None:
        return self.operator.entrywise(abs(self.factor) ** 2 * weights)

    def arrange(self) -> tuple[Operator, Array | None]:
        arranged, order = self.operator.arrange()
        return Scaled(arranged, self.factor), order

    def norm_squared(self, weights: Array | None = None) -> float:
        return abs(self.factor) ** 2 * self.operator.norm_squared(weights)

    def mean_square(self, weights: Array | None = None) -> float:
        return abs(self.factor) ** 2 * self.operator.mean_square(weights)


def _number(factor: Any) -> complex:
    """A Python float where it can be, else a complex: they take the precision of what they meet."""
    if isinstance(factor, bool) or not isinstance(factor, Complex):
        raise InputError(f"factor={factor!r} is not a number. Pass a real or complex one.")
    c = complex(factor)
    if not SMALLEST <= abs(c) <= LARGEST:
        raise InputError(f"factor={factor!r} is not a finite number other than 0. Check how it was made.")
    return c if c.imag else c.real


def takes_real_measurements(operator: Operator) -> bool:
    """Whether A(X) is real even where X is complex, as intensities are. Such an A* is made for real w only."""
    U, V = (np.zeros((k, 1), dtype=np.complex128) for k in operator.shape)
    return not is_complex(operator.forward(U, V))
