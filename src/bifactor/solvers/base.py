"""What a solver is: frozen settings, and a state that is passed in and returned."""

from abc import ABC, abstractmethod

from bifactor.arrays import Array
from bifactor.inits import Init, Spectral
from bifactor.objective import Objective
from bifactor.state import State


class Solver(ABC):
    """Decides where to move. `solve` owns the loop."""

    psd: bool = False
    """Whether the solver works on X = UUᴴ, with V = U throughout."""

    start: Init = Spectral()
    """Where the solver starts unless told otherwise."""

    def check(self, problem: Objective) -> None:  # noqa: B027 (a solver that serves every problem has nothing to say)
        """Raise `InputError` where the solver cannot serve a problem; called before any work."""

    def start_columns(self, problem: Objective, rank: int) -> int:
        """How many columns of a start of this rank the solver looks at; the others need not be computed."""
        return rank

    @abstractmethod
    def init(self, problem: Objective, U: Array, V: Array) -> State:
        """The state at the start."""

    @abstractmethod
    def step(self, problem: Objective, state: State) -> State:
        """The state one iteration further."""
