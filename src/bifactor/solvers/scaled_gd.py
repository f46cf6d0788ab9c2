"""Scaled gradient descent."""

from dataclasses import dataclass

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.problems.footprint import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.path import Path
from bifactor.problems.state import State
from bifactor.solvers.base import Solver
from bifactor.solvers.parts.descent import Descent, descended
from bifactor.solvers.parts.preconditioner import preconditioned
from bifactor.steps import CurveSearch, StepSize
from bifactor.steps.theory import TheoryStep
from bifactor.validation import require_instance


@dataclass(frozen=True)
class ScaledGD(Solver[Descent]):
    """U ← U − η ∇f V (VᴴV)⁻¹, V ← V − η ∇fᴴ U (UᴴU)⁻¹, both from the old factors.

    Its rate does not depend on the condition number of X. The blocks are in the units of f (see
    `parts.preconditioner`), so that η = 1 is a Newton-like step and the article's choice is `steps.Constant(0.5)`.
    That one can diverge from a poor start; the curve search cannot.

    References
    ----------
    T. Tong, C. Ma and Y. Chi, Accelerating ill-conditioned low-rank matrix estimation via scaled gradient descent,
    JMLR 22 (2021).
    """

    step_size: StepSize = CurveSearch()

    def __post_init__(self) -> None:
        require_instance(self.step_size, StepSize, "step_size")
        if isinstance(self.step_size, TheoryStep):
            raise InputError(
                f"{type(self.step_size).__name__} is made for the plain gradient, but ScaledGD moves by a scaled one. "
                "Use steps.CurveSearch() or steps.Constant(0.5)."
            )

    def peak(self, problem: Objective, rank: int) -> int:
        return run_memory(problem, rank, pairs=10, lengths=self.step_size.lengths)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Descent]:
        at = problem.at(x)
        return State(at, Descent(at, self.step_size.init(problem, at, 0.0)))

    def step(self, problem: Objective, state: State[Descent]) -> State[Descent]:
        at = state.own.at
        path = Path(problem, at, -preconditioned(problem, at.x, at.gradient, 0.0))
        return descended(problem, self.step_size.next(path, state.own.memory))
