"""A start given by the user."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, DistributedArray, beside, floating, same_library, where
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits.base import Init
from bifactor.problems.objective import Objective
from bifactor.validation import require_finite


@dataclass(frozen=True, eq=False)
class Given(Init):
    """The given pair (U, V); V may be left out for X = UUᴴ. It may include the columns that a problem fixes."""

    U: Array
    V: Array | None = None

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        (m, n), kind = problem.shape, problem.kind
        U = self._factor(self.U, "U", m, rank, kind.fixed_columns, problem.f.like)
        V = None if self.V is None else self._factor(self.V, "V", n, rank, kind.fixed_columns, problem.f.like)
        return kind.given(U, V, rank)

    @staticmethod
    def _factor(factor: Array, name: str, rows: int, rank: int, extra: int, like: Array) -> Array:
        F = floating(factor, name)
        if isinstance(like, DistributedArray) and type(F) is np.ndarray:  # one of the two is divided into blocks
            F = beside(F, like)
        elif not same_library(F, like):
            raise InputError(f"{name} is in {where(F)}, but y is in {where(like)}. Pass both in the same library.")
        if F.ndim != 2 or F.shape[0] != rows or F.shape[1] not in (rank, rank + extra):
            raise InputError(f"{name} has shape {tuple(F.shape)}. Pass one of shape {(rows, rank)} for this rank.")
        require_finite(F, name, "Start from finite factors.")
        return F
