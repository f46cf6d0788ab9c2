"""The base class of initialisations, which choose the first factors."""

from abc import ABC, abstractmethod

import numpy as np

from bifactor.factors import Factors
from bifactor.problems.footprint import pair_memory
from bifactor.problems.objective import Objective


class Init(ABC):
    """A choice of the first factors (U₀, V₀)."""

    @abstractmethod
    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        """U₀ (m×rank) and V₀ (n×rank), of the problem's kind; the columns that it fixes come before these."""

    def peak(self, problem: Objective, rank: int) -> int:
        """Peak bytes of temporary memory, besides the problem."""
        return 3 * pair_memory(problem, rank)
