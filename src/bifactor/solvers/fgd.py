"""Factored Gradient Descent, for positive semidefinite X = UUᴴ."""

from dataclasses import dataclass

from bifactor.factors import Factors, require_symmetric
from bifactor.problems.curve import FactorCurve
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import State
from bifactor.solvers.base import Descent, Solver, descent_step
from bifactor.steps import Semidefinite, StepSize
from bifactor.validation import require_instance


@dataclass(frozen=True)
class FGD(Solver[Descent]):
    """U ← U − η ∇f(UUᴴ) U, real or complex.

    If ∇f is not Hermitian (as for entries sampled on one side of the diagonal), it is replaced by its Hermitian part,
    which is the gradient of f over Hermitian matrices.

    References
    ----------
    S. Bhojanapalli, A. Kyrillidis and S. Sanghavi, Dropping convexity for faster semi-definite optimization, COLT 2016.
    """

    step_size: StepSize = Semidefinite()

    def __post_init__(self) -> None:
        require_instance(self.step_size, StepSize, "step_size")

    def check(self, problem: Objective, rank: int) -> None:
        require_symmetric(self, problem.kind)
        self.step_size.check(problem)

    def peak(self, problem: Objective, rank: int) -> int:
        return run_memory(problem, rank, pairs=10, lengths=self.step_size.lengths)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Descent]:
        at = problem.at(x)
        return State(at, Descent(at, self.step_size.init(problem, at, 0.0)))

    def step(self, problem: Objective, state: State[Descent]) -> State[Descent]:
        at = state.own.at
        return descent_step(problem, self.step_size.next(FactorCurve(problem, at, -at.gradient), state.own.memory))
