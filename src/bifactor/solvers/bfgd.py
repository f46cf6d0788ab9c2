"""Bi-Factored Gradient Descent, Algorithm 1 of the paper with its sign corrected."""

from dataclasses import dataclass, replace

from bifactor.arrays import Array
from bifactor.balance import Balance, Frobenius
from bifactor.kernels.blas import gram, matmul
from bifactor.problem import Objective
from bifactor.solvers.base import Solver
from bifactor.state import State
from bifactor.steps import StepSize, StronglyConvex
from bifactor.validation import require_instance, settle_positive


@dataclass(frozen=True)
class BFGD(Solver):
    """Gradient descent on f(UVᴴ) + λ·g(UᴴU − VᴴV), in both factors at once.

    `BFGD()` is the paper's algorithm for smooth and strongly convex f.
    `BFGD(steps.Smooth(), balance=None)` is its algorithm for f that is only smooth.
    `BFGD(steps.Backtracking())` needs no L and is much faster than either in practice.

    Parameters
    ----------
    step_size : StepSize
    balance : Balance or None
        g, see `bifactor.balance` for the convention.
    lam : float
        λ. The theorems speak about 1/4.

    References
    ----------
    D. Park, A. Kyrillidis, C. Caramanis and S. Sanghavi, Finding low-rank solutions via non-convex matrix
    factorization, efficiently and provably, SIAM J. Imaging Sci. 11 (2018).
    """

    step_size: StepSize = StronglyConvex()
    balance: Balance | None = Frobenius()
    lam: float = 0.25

    def __post_init__(self) -> None:
        require_instance(self.step_size, StepSize, "step_size")
        if self.balance is not None:
            require_instance(self.balance, Balance, "balance")
        settle_positive(self, "lam", "Use balance=None for no balance term.")

    def check(self, problem: Objective) -> None:
        self.step_size.check(problem)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        state = self._at(problem, U, V)
        # The paper's L_g belongs to λ = 1/4; another λ scales it.
        L_g = 0.0 if self.balance is None else 4 * self.lam * self.balance.smoothness(problem.scale)
        return replace(state, memory=self.step_size.init(problem, state, L_g))

    def step(self, problem: Objective, state: State) -> State:
        def move(eta: float, memory: float) -> State:  # Alg. 1, lines 5 and 6, from the old (U, V) both
            return self._at(problem, state.U - eta * state.dU, state.V - eta * state.dV, memory)

        return self.step_size.next(problem, state, move)

    def _at(self, problem: Objective, U: Array, V: Array, memory: float = 0.0) -> State:
        f, GV, GhU = problem.value_and_products(U, V)  # f, ∇f(UVᴴ) V and ∇f(UVᴴ)ᴴ U
        if self.balance is None:
            return State(U, V, f, GV, GhU, memory)
        imbalance = gram(U, U) - gram(V, V)  # UᴴU − VᴴV
        g = self.lam * self.balance.value(imbalance, problem.scale)
        D = 2 * self.lam * self.balance.gradient(imbalance, problem.scale)  # r×r
        return State(U, V, f + g, GV + matmul(U, D), GhU - matmul(V, D), memory)
