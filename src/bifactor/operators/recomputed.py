"""Measurements that are never stored."""

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.operators.base import Operator
from bifactor.operators.bound import DataBound


class Recomputed(Operator):
    """The same measurements as A, recomputed in each pass over the data instead of being stored.

    This saves memory: with `Entries`, an iteration then holds no array as long as the data besides y, the weights and
    the coordinates; other operators hold their measurements during one pass. Solvers that work on the measurements
    themselves (NuclearNorm, SPG, SparseApproxSDP) reject it.

    Parameters
    ----------
    operator : Operator
        The operator A.
    """

    def __init__(self, operator: Operator):
        if not isinstance(operator, Operator):
            raise InputError(f"operator is {operator!r}, not an Operator. See bifactor.operators.")
        self.operator = operator
        self.shape, self.size, self.complex_matrix = operator.shape, operator.size, operator.complex_matrix

    def __repr__(self) -> str:
        return f"Recomputed({self.operator!r})"

    def forward(self, U: Array, V: Array) -> Array:
        return self.operator.forward(U, V)

    def adjoint(self, w: Array) -> LinearMap:
        return self.operator.adjoint(w)

    def norm_squared(self, weights: Array | None = None) -> float:
        return self.operator.norm_squared(weights)

    def mean_square(self, weights: Array | None = None) -> float:
        return self.operator.mean_square(weights)

    def bind(self, fit: DataFit) -> DataBound:
        bound = self.operator.bind(fit).recomputed()
        bound.operator = Recomputed(bound.operator)
        return bound
