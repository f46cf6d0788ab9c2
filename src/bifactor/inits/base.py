"""What an initialisation is: a first pair of factors."""

from abc import ABC, abstractmethod

import numpy as np

from bifactor.factors import Factors
from bifactor.problems.objective import Objective


class Init(ABC):
    """Chooses (U₀, V₀)."""

    @abstractmethod
    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        """U₀ (m×rank) and V₀ (n×rank), of the problem's kind; columns that it fixes come in front of these."""
