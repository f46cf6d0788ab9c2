"""Factored Gradient Descent, for positive semidefinite X = UUᴴ."""

from dataclasses import dataclass, replace

from bifactor.arrays import Array
from bifactor.objective import Objective
from bifactor.path import Path, state_at
from bifactor.solvers.base import Solver
from bifactor.state import State
from bifactor.steps import Semidefinite, StepSize
from bifactor.validation import require_instance


@dataclass(frozen=True)
class FGD(Solver):
    """U ← U − η ∇f(UUᴴ) U, real or complex.

    Where ∇f is not Hermitian (as for entries sampled on one side of the diagonal) its Hermitian part takes its place,
    which is the gradient of f over Hermitian matrices.

    References
    ----------
    S. Bhojanapalli, A. Kyrillidis and S. Sanghavi, Dropping convexity for faster semi-definite optimization, COLT 2016.
    """

    step_size: StepSize = Semidefinite()
    psd = True

    def __post_init__(self) -> None:
        require_instance(self.step_size, StepSize, "step_size")

    def check(self, problem: Objective) -> None:
        self.step_size.check(problem)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        state = state_at(problem, U, U, psd=True)
        return replace(state, memory=self.step_size.init(problem, state, 0.0))

    def step(self, problem: Objective, state: State) -> State:
        return self.step_size.next(Path(problem, state, -state.dU, -state.dU, psd=True))
