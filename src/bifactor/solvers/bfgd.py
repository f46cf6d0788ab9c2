"""Bi-Factored Gradient Descent, Algorithm 1 of the paper with its sign corrected."""

from dataclasses import dataclass

from bifactor.factors import Factors
from bifactor.penalties.balance import Balance, BalanceTerm, Frobenius
from bifactor.problems.curve import FactorCurve
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import State
from bifactor.solvers.base import Descent, Solver, descent_step
from bifactor.steps import StepSize, StronglyConvex
from bifactor.validation import require_instance, settle_positive


@dataclass(frozen=True)
class BFGD(Solver[Descent]):
    """Gradient descent on f(UVᴴ) + λ·g(UᴴU − VᴴV), in both factors at once.

    `BFGD()` is the paper's algorithm for smooth and strongly convex f.
    `BFGD(steps.Smooth(), balance=None)` is its algorithm for f that is only smooth.
    `BFGD(steps.Backtracking())` needs no L and is much faster than either in practice.

    Parameters
    ----------
    step_size : StepSize
        The step rule.
    balance : Balance or None
        The balance function g; see `bifactor.penalties.balance` for the convention.
    lam : float
        The weight λ of the balance term. The theorems hold for 1/4.

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

    def check(self, problem: Objective, rank: int) -> None:
        self.step_size.check(problem)

    def peak(self, problem: Objective, rank: int) -> int:
        return run_memory(problem, rank, pairs=12, lengths=self.step_size.lengths)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Descent]:
        at = self._descended(problem).at(x)
        # The paper's L_g belongs to λ = 1/4; another λ scales it.
        L_g = 0.0 if self.balance is None else 4 * self.lam * self.balance.smoothness(problem.scale)
        return State(problem.seen(at), Descent(at, self.step_size.init(problem, at, L_g)))

    def step(self, problem: Objective, state: State[Descent]) -> State[Descent]:
        at = state.own.at
        # Alg. 1, lines 5 and 6: x − η·(∇f(x) + λ∇g(x)), from the old (U, V) both.
        path = FactorCurve(self._descended(problem), at, -at.gradient)
        return descent_step(problem, self.step_size.next(path, state.own.memory))

    def _descended(self, problem: Objective) -> Objective:
        """f + λ·g, the function that the iteration descends on."""
        if self.balance is None:
            return problem
        return problem.plus(BalanceTerm(self.balance, self.lam, problem.scale))
