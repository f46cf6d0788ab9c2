"""Singular value projection."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import inner
from bifactor.factors import Factors, Free
from bifactor.inits import Zero
from bifactor.linear_map import LinearMap, LowRankPlus
from bifactor.operators.curves import line_as_curve
from bifactor.problems.memory import pair_memory, run_memory, search_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Moving, Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_numpy, require_plain
from bifactor.validation import require_flag, settle_positive

DELTA = 1 / 3
"""The largest restricted isometry constant δ₂ᵣ in the theory of the article."""

TOL, RESTARTS = 1e-9, 6
"""Accuracy of the singular pairs, and the largest number of restarts: each step starts from the pairs of the last."""


@dataclass(frozen=True)
class Limited(Value, key="svp"):
    """The rank to which X is truncated."""

    rank: int


@dataclass(frozen=True)
class SVP(Solver[Limited]):
    """X ← P_r(X − μ∇f(X)), P_r the best approximation of rank r, by a truncated SVD of factors plus lazy gradient.

    If X = UUᴴ, P_r keeps the r largest positive eigenvalues.

    Parameters
    ----------
    mu : float, optional
        The step μ. By default 1/(1 + δ) with δ = 1/3, as in the article, divided by the typical curvature of f, so that
        the measurements preserve norms on average as in the article (3/(4ρ) if a fraction ρ of the entries is
        observed). The paper of BFGD takes 1/3 for ‖A‖ = 1.
    normalized : bool
        Whether to take the best μ along the gradient projected on the columns of X at each step (Tanner and Wei, 2013).
        This costs one more forward and does not depend on δ.

    References
    ----------
    P. Jain, R. Meka and I. Dhillon, Guaranteed rank minimization via singular value projection, NIPS 2010. J. Tanner
    and K. Wei, Normalized iterative hard thresholding for matrix completion, SIAM J. Sci. Comput. 35 (2013).
    """

    mu: float | None = None
    normalized: bool = False
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "mu", "Leave it out for the step of the theory.", optional=True)
        require_flag(self.normalized, "normalized")

    def check(self, problem: Objective, rank: int) -> None:
        require_plain(self, problem)
        if self.normalized:
            require_numpy(self, problem)

    def peak(self, problem: Objective, rank: int) -> int:
        projection = search_memory(problem, rank) + 4 * pair_memory(problem, rank)
        return max(run_memory(problem, rank, pairs=18 if self.normalized else 6, lengths=6), projection)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Limited]:
        # At X = 0 the gradient in the factors is 0, but the run continues.
        return State(problem.evaluate_keeping_z(x), Limited(rank), Moving() if x.any() else Staged())

    def step(self, problem: Objective, state: State[Limited]) -> State[Limited]:
        x, G = state.point.x, problem.f.gradient(state.point.x, state.point.z)
        moved = LowRankPlus(x.left, x.right, -self._step(problem, state, G), G)
        start = x if x.any() else None
        A, s, B = problem.kind.leading(moved, state.own.rank, np.random.default_rng(0), TOL, RESTARTS, start=start)
        return State(problem.evaluate_keeping_z(problem.kind.from_triplets(A, np.maximum(s, 0), B)), state.own)

    def _step(self, problem: Objective, state: State[Limited], G: LinearMap) -> float:
        mu = 1 / ((1 + DELTA) * problem.curvature_of_kind) if self.mu is None else self.mu
        if not self.normalized:
            return mu
        x = state.point.x
        if x.any():
            Q = np.linalg.qr(x.left)[0]
        else:  # X = 0 has no columns, so those of the gradient are used
            Q = problem.kind.leading(G, state.own.rank, np.random.default_rng(0), TOL, RESTARTS, sign=-1)[0]
        P = G.H @ Q  # the projected gradient is QPᴴ
        here, d = line_as_curve(x, Free().pair(Q, P))
        bend = d.inner(Free().pair(*problem.f.hessian(here, state.point.z)(d)))
        return inner(P, P) / bend if bend > 0 else mu
