"""Singular value projection."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.inits import Zero
from bifactor.linear_map import LinearMap, LowRankPlus
from bifactor.objective import Objective
from bifactor.path import MEASUREMENTS, measured_at
from bifactor.shrinkage import factors
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_plain
from bifactor.solvers.units import typical_curvature
from bifactor.state import State
from bifactor.svd import leading
from bifactor.validation import require_flag, settle_positive

DELTA = 1 / 3
"""The restricted isometry constant δ₂ᵣ that the article's theory allows at most."""

TOL, RESTARTS = 1e-9, 6
"""Accuracy of the singular pairs, and the work they may cost: each step starts from the pairs of the last."""


@dataclass(frozen=True)
class SVP(Solver):
    """X ← P_r(X − μ∇f(X)), P_r the best approximation of rank r, by a truncated SVD of factors plus lazy gradient.

    Parameters
    ----------
    mu : float, optional
        μ. By default the article's 1/(1 + δ) with δ = 1/3, in the units of f: over the typical curvature of f, so that
        the measurements preserve norms on average as the article has it (3/(4ρ) where a fraction ρ of the entries is
        seen). The paper of BFGD takes 1/3 where ‖A‖ = 1.
    normalized : bool
        Take at each step the best μ along the gradient projected on the columns of X (Tanner and Wei, 2013). Slower by
        one forward, and not led astray by a δ that does not hold.
    psd : bool
        Find X = UUᴴ: P_r keeps the r largest positive eigenvalues.

    References
    ----------
    P. Jain, R. Meka and I. Dhillon, Guaranteed rank minimization via singular value projection, NIPS 2010. J. Tanner
    and K. Wei, Normalized iterative hard thresholding for matrix completion, SIAM J. Sci. Comput. 35 (2013).
    """

    mu: float | None = None
    normalized: bool = False
    psd: bool = False
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "mu", "Leave it out for the step of the theory.", optional=True)
        require_flag(self.normalized, "normalized")
        require_flag(self.psd, "psd")

    def check(self, problem: Objective) -> None:
        require_plain(self, problem)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        # At X = 0 the factors have no gradient, which is not the end.
        return replace(measured_at(problem, U, V, self.psd), waiting=not U.any())

    def step(self, problem: Objective, state: State) -> State:
        G = problem.pull_back(problem.evaluate(state.extra[MEASUREMENTS])[1])
        moved = LowRankPlus(state.U, state.V, -self._step(problem, state, G), G)
        rng = np.random.default_rng(0)
        known = (state.U, state.V) if state.U.any() else None
        A, s, B = leading(moved, state.U.shape[1], rng, TOL, RESTARTS, self.psd, start=known)
        U, V = factors(A, np.maximum(s, 0), B, self.psd)
        return measured_at(problem, U, V, self.psd)

    def _step(self, problem: Objective, state: State, G: LinearMap) -> float:
        mu = 1 / ((1 + DELTA) * typical_curvature(problem, self.psd)) if self.mu is None else self.mu
        if not self.normalized:
            return mu
        if state.U.any():
            Q = np.linalg.qr(state.U)[0]
        else:  # X = 0 has no columns; those that the gradient leads to take their place
            Q = leading(G, state.U.shape[1], np.random.default_rng(0), TOL, RESTARTS, self.psd, sign=-1)[0]
        P = G.H @ Q  # the projected gradient is QPᴴ
        dz = problem.measure(Q, P)
        bend = inner(dz, problem.bend(state.extra[MEASUREMENTS])(dz))
        return inner(P, P) / bend if bend > 0 else mu
