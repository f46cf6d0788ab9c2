"""The base class of variational Bayes sweeps, for data in memory or in blocks."""

from abc import ABC, abstractmethod
from typing import Generic, Literal, TypeVar

from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import Fitted, Fitting, Phase, State, Value
from bifactor.solvers.parts.moments import About
from bifactor.solvers.parts.posterior import Posterior

NoiseModel = Literal["one", "columns", "rows", "both", "student"]

STILL = 3
"""The number of consecutive sweeps that must move predictions by less than the tolerance."""

Own = TypeVar("Own", bound=Value)


class Sweeps(ABC, Generic[Own]):
    """The posterior of one problem, sweep by sweep.

    `varies` says whether rows and columns have their own precisions; `shared`, whether components share a prior.
    """

    about: About

    def __init__(self, problem: Objective, noise: NoiseModel, shared: bool, tol: float):
        self.problem, self.noise, self.shared, self.tol = problem, noise, shared, tol
        self.varies = noise in ("rows", "both"), noise in ("columns", "both")

    @abstractmethod
    def init(self, x: Factors) -> State[Own]:
        """The state around a start."""

    @abstractmethod
    def step(self, state: State[Own]) -> State[Own]:
        """The state after one more sweep."""

    @abstractmethod
    def current(self, state: State[Own]) -> Objective:
        """Least squares in the means, plus the contribution of the covariances."""

    @abstractmethod
    def posterior(self, state: State[Own]) -> Posterior:
        """The posterior of the factors."""

    def rested(self, moved: float, still: int) -> tuple[int, Phase]:
        """The number of consecutive sweeps that have hardly moved predictions, and the resulting phase."""
        count = still + 1 if moved <= self.tol else 0
        return count, Fitted() if count >= STILL else Fitting()
