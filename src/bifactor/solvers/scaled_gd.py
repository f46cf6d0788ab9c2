"""Scaled gradient descent."""

from dataclasses import dataclass

from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.problems.curve import FactorCurve
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.preconditioner import LIFT, distance, first_decrement, preconditioned
from bifactor.steps import CurveSearch, StepSize
from bifactor.steps.theory import TheoryStep
from bifactor.validation import require_instance, settle_nonnegative


@dataclass(frozen=True)
class ScaledGDMemory(Value, key="scaled_gd"):
    """The memory of the step rule, and ⟨∇F, S⟩ at the last point, S the preconditioned gradient."""

    memory: Value
    decrement: float


@dataclass(frozen=True)
class ScaledGD(Solver[ScaledGDMemory]):
    """U ← U − η ∇f V (VᴴV + δI)⁻¹, V ← V − η ∇fᴴ U (UᴴU + δI)⁻¹, both from the old factors.

    The rate does not depend on the condition number of X. The blocks are in the units of f (see
    `parts.preconditioner`), so that η = 1 is a Newton-like step and the choice of the article is
    `ScaledGD(steps.Constant(0.5), damping=0)`. It can diverge from a poor start; the curve search cannot.

    Parameters
    ----------
    step_size : StepSize
        The step rule.
    damping : float
        The ratio of δ to an estimate of the distance to the solution, as in `PCG`. Without damping, a column that
        vanishes because the rank is above that of the solution can stop the iteration anywhere.

    References
    ----------
    T. Tong, C. Ma and Y. Chi, Accelerating ill-conditioned low-rank matrix estimation via scaled gradient descent,
    JMLR 22 (2021). J. Zhang, S. Fattahi and R. Zhang, Preconditioned gradient descent for over-parameterized nonconvex
    matrix factorization, NeurIPS 2021.
    """

    step_size: StepSize = CurveSearch()
    damping: float = LIFT

    def __post_init__(self) -> None:
        settle_nonnegative(self, "damping", "0 turns it off.")
        require_instance(self.step_size, StepSize, "step_size")
        if isinstance(self.step_size, TheoryStep):
            raise InputError(
                f"{type(self.step_size).__name__} is for the plain gradient, but ScaledGD moves along a scaled one. "
                "Use steps.CurveSearch() or steps.Constant(0.5)."
            )

    def peak(self, problem: Objective, rank: int) -> int:
        return run_memory(problem, rank, pairs=10, lengths=self.step_size.lengths)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[ScaledGDMemory]:
        point = problem.at(x)
        return State(point, ScaledGDMemory(self.step_size.init(problem, point, 0.0), first_decrement(problem, point)))

    def step(self, problem: Objective, state: State[ScaledGDMemory]) -> State[ScaledGDMemory]:
        point, own = state.point, state.own
        s = preconditioned(problem, point.x, point.gradient, self.damping * distance(problem, own.decrement))
        taken = self.step_size.next(FactorCurve(problem, point, -s), own.memory)
        return State(taken.point, ScaledGDMemory(taken.memory, point.gradient.inner(s)), taken.phase)
