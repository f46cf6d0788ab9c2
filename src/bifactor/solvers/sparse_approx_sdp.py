"""Rank-one steps inside a ball: Frank-Wolfe for low-rank matrices."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array, epsilon, inner
from bifactor.errors import SmoothnessError
from bifactor.inits import Zero
from bifactor.inits.spectral import best_multiple
from bifactor.metrics import nuclear_norm
from bifactor.objective import Objective
from bifactor.path import MEASUREMENTS, measured_at, state_at
from bifactor.shrinkage import blend
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import padded, stripped
from bifactor.solvers.requirements import require_plain
from bifactor.state import State
from bifactor.svd import leading
from bifactor.validation import require_flag, settle_nonnegative, settle_positive

LOOSE, TIGHT, RESTARTS = 0.1, 1e-10, 25
"""Accuracy of the singular pair, between these as the rule asks, and the work it may cost."""


@dataclass(frozen=True)
class SparseApproxSDP(Solver):
    """Minimises f over ‖X‖_* ≤ τ by steps towards one singular pair of the gradient at a time.

        X ← (1 − a)X − aτ·uvᴴ,  (u, v) the leading singular pair of ∇f(X) to within C_f/k²,  a = min(1, 2/k)

    With `psd` it is Hazan's algorithm as printed, over X ⪰ 0 with trace τ: v is the leading eigenvector of −∇f(X) and
    X moves towards τ·vvᴴ. The form above is that of Jaggi and Sulovský; on the lifted matrix [[·, X], [Xᴴ, ·]] of trace
    2τ it is the same. f comes within O(1/k) of its least value in the ball, and no faster: expect errors of a percent.

    An iteration adds a column until there are as many as the rank asked for; from then on the least singular value is
    left out each time. With rank min(m, n) nothing ever is.

    Parameters
    ----------
    radius : float
        τ. The articles take it as known: for exact recovery it is ‖X*‖_*.
    line_search : bool
        Take the best a in [0, 1] instead.
    curvature : float, optional
        C_f, how far f bends within the ball; it sets the accuracy of the singular pairs. By default the bound 2τ²L,
        with the typical curvature for L where f has none. The paper of BFGD takes 1.
    accuracy : float
        Stop when X is known to be within this of the least f in the ball, by the gap ⟨∇f(X), X⟩ + τ‖∇f(X)‖₂.
    psd : bool

    References
    ----------
    E. Hazan, Sparse approximate solutions to semidefinite programs, LATIN 2008. M. Jaggi and M. Sulovský, A simple
    algorithm for nuclear norm regularized problems, ICML 2010.
    """

    radius: float
    line_search: bool = False
    curvature: float | None = None
    accuracy: float = 0.0
    psd: bool = False
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "radius", "It bounds ‖X‖_*.")
        settle_positive(self, "curvature", "Leave it out for the bound of the theory.", optional=True)
        settle_nonnegative(self, "accuracy", "It is in the units of f; 0 turns it off.")
        require_flag(self.line_search, "line_search")
        require_flag(self.psd, "psd")

    def check(self, problem: Objective) -> None:
        require_plain(self, problem)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        size = nuclear_norm(U, V)
        if size > self.radius * (1 + 1e3 * epsilon(U)):
            U = (self.radius / size) ** 0.5 * U
            V = U if self.psd else (self.radius / size) ** 0.5 * V
        # X = 0 needs no more than one column, and there the factors have no gradient, which is not the end.
        k = U.shape[1] if U.any() else 1
        left = np.ascontiguousarray(U[:, :k])
        first = measured_at(problem, left, left if self.psd else np.ascontiguousarray(V[:, :k]), self.psd)
        extra = {"k": np.array(1), "u": U[:, :1], "v": V[:, :1], "steep": np.array(0.0)}
        return padded(first, U.shape[1], extra, waiting=True)

    def step(self, problem: Objective, state: State) -> State:
        now, k, limit = stripped(state), int(state.extra["k"]), state.U.shape[1]
        z = state.extra[MEASUREMENTS]
        slopes = problem.evaluate(z)[1]
        u, steep, v = self._pair(problem, state, slopes)
        P, Q = self.radius**0.5 * u, self.radius**0.5 * v
        dz = problem.measure(P, Q) - z
        gap = -inner(slopes, dz)
        a = min(1.0, 2 / k)
        if self.line_search:
            a = min(1.0, best_multiple(problem.along(z, dz, np.zeros_like(dz)), 1.0))
        U, V, exact = blend(now.U, now.V, P, P if self.psd else Q, a, limit)
        known = z + a * dz if exact else problem.measure(U, V)
        new = state_at(problem, U, V, psd=self.psd, known=(*problem.evaluate(known), known))
        extra = {"k": np.array(k + 1), "u": u, "v": v, "steep": np.array(steep)}
        return replace(padded(new, limit, extra, waiting=False), settled=gap <= self.accuracy)

    def _pair(self, problem: Objective, state: State, slopes: Array) -> tuple[Array, float, Array]:
        """The leading pair of −∇f, as exact as this step needs it."""
        k, steep = int(state.extra["k"]), float(state.extra["steep"])
        needed = self._curvature(problem) / (k * k * self.radius * steep) if steep > 0 else TIGHT
        tol = min(max(needed, TIGHT), LOOSE)
        rng = np.random.default_rng(k)  # another one each time, so that a direction missed once is not missed for ever
        known = (state.extra["u"], state.extra["v"]) if steep > 0 else None
        u, s, v = leading(problem.pull_back(slopes), 1, rng, tol, RESTARTS, self.psd, sign=-1, start=known)
        return u, float(s[0]), v

    def _curvature(self, problem: Objective) -> float:
        if self.curvature is not None:
            return self.curvature
        try:
            L = problem.smoothness
        except SmoothnessError:
            L = problem.scale
        return 2 * self.radius**2 * L
