"""Nothing at all."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array
from bifactor.inits.base import Init
from bifactor.objective import Objective


@dataclass(frozen=True)
class Zero(Init):
    """X₀ = 0, for solvers that work on X: in the factors that is a saddle point, which no gradient leads away from."""

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator, psd: bool) -> tuple[Array, Array]:
        m, n = problem.shape
        U = np.zeros((m, rank), problem.dtype)
        return U, U if psd else np.zeros((n, rank), problem.dtype)
