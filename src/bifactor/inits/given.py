"""A start of the user's own."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, floating
from bifactor.errors import InputError
from bifactor.inits.base import Init
from bifactor.objective import Objective
from bifactor.validation import require_finite


@dataclass(frozen=True, eq=False)
class Given(Init):
    """The pair (U, V) as it is; V may be left out for X = UUᴴ. It may hold a problem's offset columns too."""

    U: Array
    V: Array | None = None

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator, psd: bool) -> tuple[Array, Array]:
        if self.V is None and not psd:
            raise InputError("Given has no V, but this solver works on X = UVᴴ. Pass both factors.")
        U = self._factor(self.U, "U", problem.shape[0], rank, problem.offset_columns)
        if psd:
            if self.V is not None and not np.array_equal(np.asarray(self.U), np.asarray(self.V)):
                raise InputError("Given has V different from U, but this solver works on X = UUᴴ. Leave V out.")
            return U, U
        return U, self._factor(self.V, "V", problem.shape[1], rank, problem.offset_columns)

    @staticmethod
    def _factor(factor: Array, name: str, rows: int, rank: int, extra: int) -> Array:
        F = floating(factor, name)
        if F.ndim != 2 or F.shape[0] != rows or F.shape[1] not in (rank, rank + extra):
            raise InputError(f"{name} has shape {F.shape}, the problem at this rank needs {(rows, rank)}.")
        require_finite(F, name, "Start from finite factors.")
        return F
