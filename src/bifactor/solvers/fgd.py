"""Factored Gradient Descent, for positive semidefinite X = UUᴴ."""

from dataclasses import dataclass, replace

from bifactor.arrays import Array
from bifactor.problem import Objective
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
        state = self._at(problem, U)
        return replace(state, memory=self.step_size.init(problem, state, 0.0))

    def step(self, problem: Objective, state: State) -> State:
        def move(eta: float, memory: float) -> State:
            return self._at(problem, state.U - eta * state.dU, memory)

        return self.step_size.next(problem, state, move)

    @staticmethod
    def _at(problem: Objective, U: Array, memory: float = 0.0) -> State:
        f, GU, GhU = problem.value_and_products(U, U)
        d = (GU + GhU) / 2  # ∇f(UUᴴ) U
        return State(U, U, f, d, d, memory)
