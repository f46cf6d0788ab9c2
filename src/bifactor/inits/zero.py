"""A start from X = 0."""

from dataclasses import dataclass

import numpy as np

from bifactor.factors import Factors
from bifactor.inits.base import Init
from bifactor.problems.objective import Objective


@dataclass(frozen=True)
class Zero(Init):
    """X₀ = 0, for solvers that work on X: in the factors it is a saddle point with a zero gradient."""

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        return problem.zero(rank)
