"""What an initialisation is: a first pair of factors."""

from abc import ABC, abstractmethod

import numpy as np

from bifactor.factors import Factors
from bifactor.problems.footprint import pair_memory
from bifactor.problems.objective import Objective


class Init(ABC):
    """Chooses (U₀, V₀)."""

    @abstractmethod
    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        """U₀ (m×rank) and V₀ (n×rank), of the problem's kind; columns that it fixes come in front of these."""

    def peak(self, problem: Objective, rank: int) -> int:
        """Bytes that it takes on the way, beside the problem."""
        return 3 * pair_memory(problem, rank)
