"""What an initialisation is: a first pair of factors."""

from abc import ABC, abstractmethod

import numpy as np

from bifactor.arrays import Array
from bifactor.objective import Objective


class Init(ABC):
    """Chooses (U₀, V₀)."""

    @abstractmethod
    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator, psd: bool) -> tuple[Array, Array]:
        """U₀ (m×rank) and V₀ (n×rank); with `psd`, V₀ is U₀."""
