"""Sweeps of variational Bayes, wherever entries and factors are."""

from abc import ABC, abstractmethod
from typing import Generic, Literal, TypeVar

from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import Fitted, Fitting, Phase, State, Value
from bifactor.solvers.parts.moments import About
from bifactor.solvers.parts.posterior import Posterior

NoiseModel = Literal["one", "columns", "rows", "both", "student"]

STILL = 3
"""Sweeps in a row that must move predictions by less than the tolerance."""

Own = TypeVar("Own", bound=Value)


class Sweeps(ABC, Generic[Own]):
    """The posterior of one problem, sweep by sweep.

    `varies` says whether rows, and columns, have precisions of their own; `shared`, whether components share a prior.
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
        """One sweep further."""

    @abstractmethod
    def current(self, state: State[Own]) -> Objective:
        """Least squares in the means, with what the covariances add."""

    @abstractmethod
    def posterior(self, state: State[Own]) -> Posterior:
        """How sure the factors are."""

    def rested(self, moved: float, still: int) -> tuple[int, Phase]:
        """Sweeps in a row that have moved predictions by next to nothing, and whether they are enough."""
        count = still + 1 if moved <= self.tol else 0
        return count, Fitted() if count >= STILL else Fitting()
