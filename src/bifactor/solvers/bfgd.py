"""Bi-Factored Gradient Descent, Algorithm 1 of the paper with its sign corrected."""

from dataclasses import dataclass, replace

from bifactor.arrays import Array
from bifactor.balance import Balance, BalanceTerm, Frobenius
from bifactor.errors import InputError
from bifactor.objective import Objective
from bifactor.path import Path, state_at
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
        if self.step_size.polynomial and not (self.balance is None or self.balance.polynomial):
            raise InputError(
                f"{type(self.step_size).__name__} needs a balance term that is a polynomial. Use balance.Frobenius."
            )

    def check(self, problem: Objective) -> None:
        self.step_size.check(problem)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        state = state_at(problem, U, V, self._term(problem))
        # The paper's L_g belongs to λ = 1/4; another λ scales it.
        L_g = 0.0 if self.balance is None else 4 * self.lam * self.balance.smoothness(problem.scale)
        return replace(state, memory=self.step_size.init(problem, state, L_g))

    def step(self, problem: Objective, state: State) -> State:
        # Alg. 1, lines 5 and 6, from the old (U, V) both
        return self.step_size.next(Path(problem, state, -state.dU, -state.dV, self._term(problem)))

    def _term(self, problem: Objective) -> BalanceTerm | None:
        return None if self.balance is None else BalanceTerm(self.balance, self.lam, problem.scale)
