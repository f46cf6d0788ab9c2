"""Rank-one steps inside a ball: Frank-Wolfe for low-rank matrices."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array, epsilon, inner, norm
from bifactor.errors import SmoothnessError
from bifactor.inits import Zero
from bifactor.inits.spectral import best_multiple
from bifactor.metrics import nuclear_norm
from bifactor.objective import Objective
from bifactor.path import MEASUREMENTS, state_at
from bifactor.shrinkage import blend
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import padded, stripped
from bifactor.solvers.requirements import require_plain
from bifactor.state import State
from bifactor.svd import leading
from bifactor.validation import require_flag, settle_nonnegative, settle_positive

LOOSE, TIGHT, RESTARTS = 0.1, 1e-10, 25
"""Accuracy of the singular pair, between these as the rule asks, and the work it may cost."""


class Corner(NamedTuple):
    """A corner PQᴴ of the ball, what going there changes in z, the gap of X it shows, and the length of ∇f there."""

    P: Array
    Q: Array
    dz: Array
    gap: float
    steep: float


@dataclass(frozen=True)
class SparseApproxSDP(Solver):
    """Minimises f over ‖X‖_* ≤ τ by steps towards one singular pair of the gradient at a time.

        X ← (1 − a)X − aτ·uvᴴ,  (u, v) the leading singular pair of ∇f(X) to within C_f/k²,  a = min(1, 2/k)

    With `psd` it is Hazan's algorithm as printed, over X ⪰ 0 with trace τ: v is the leading eigenvector of −∇f(X) and
    X moves towards τ·vvᴴ. The form above is that of Jaggi and Sulovský; on the lifted matrix [[·, X], [Xᴴ, ·]] of trace
    2τ it is the same. f comes within O(1/k) of its least value in the ball, and no faster: expect errors of a percent.

    An iteration adds a column until there are as many as the rank asked for; from then on the least singular value is
    left out each time (with `psd` the others make up for its trace). With rank min(m, n) nothing ever is.

    It starts from X = 0; with `psd` from the X of rank one that this leads to, in place of the article's random one.
    With `psd` any other start is scaled to the trace.

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
        if self.psd and not U.any():
            U = V = self._corner(problem, U)
        size = nuclear_norm(U, V)
        if self.psd or size > self.radius * (1 + 1e3 * epsilon(U)):
            U = (self.radius / size) ** 0.5 * U
            V = U if self.psd else (self.radius / size) ** 0.5 * V
        # X = 0 needs no more than one column, and there the factors have no gradient, which is not the end.
        columns = U.shape[1] if U.any() else 1
        left = np.ascontiguousarray(U[:, :columns])
        right = left if self.psd else np.ascontiguousarray(V[:, :columns])
        first = self._at(problem, left, right, problem.measure(left, right))
        numbers = {"k": np.array(1), "steep": np.array(0.0), "first": np.array(first.value)}
        return padded(first, U.shape[1], {"u": U[:, :1], "v": V[:, :1], **numbers}, waiting=True)

    def step(self, problem: Objective, state: State) -> State:
        now, k, limit = stripped(state), int(state.extra["k"]), state.U.shape[1]
        z, first = state.extra[MEASUREMENTS], state.extra["first"]
        corner = self._next(problem, state, self._tol(problem, state))
        if corner.gap <= self.accuracy:
            corner = self._next(problem, state, TIGHT)  # a more exact pair may tell otherwise
            if corner.gap <= self.accuracy:
                return replace(state, settled=True, waiting=False)
        a = min(1.0, 2 / k)
        if self.line_search:
            a = min(1.0, best_multiple(problem.along(z, corner.dz, np.zeros_like(z)), 1.0))
        U, V, exact = blend(now.U, now.V, corner.P, corner.Q, a, limit)
        if self.psd and not exact:
            U = V = (self.radius**0.5 / norm(U)) * U
        new = self._at(problem, U, V, z + a * corner.dz if exact else problem.measure(U, V))
        extra = {"k": np.array(k + 1), "u": corner.P, "v": corner.Q, "steep": np.array(corner.steep), "first": first}
        # The first steps of a fixed length may go far beyond a small X; a saddle point of the factors is not the end.
        return padded(new, limit, extra, waiting=new.value > float(first) or not new.dU.any())

    def _at(self, problem: Objective, U: Array, V: Array, z: Array) -> State:
        """The state at a pair of factors; with `psd` its gradient is that along factors of the same trace."""
        state = state_at(problem, U, V, psd=self.psd, known=(*problem.evaluate(z), z))
        if not self.psd:
            return state
        dU = state.dU - (inner(U, state.dU) / self.radius) * U
        return replace(state, dU=dU, dV=dU)

    def _next(self, problem: Objective, state: State, tol: float) -> Corner:
        """−τuvᴴ by the leading pair of ∇f."""
        z, k = state.extra[MEASUREMENTS], int(state.extra["k"])
        slopes = problem.evaluate(z)[1]
        rng = np.random.default_rng(k)  # another one each time, so that a direction missed once is not missed for ever
        known = (state.extra["u"], state.extra["v"]) if state.extra["steep"] > 0 else None
        u, s, v = leading(problem.pull_back(slopes), 1, rng, tol, RESTARTS, self.psd, sign=-1, start=known)
        P = self.radius**0.5 * u
        Q = P if self.psd else self.radius**0.5 * v
        dz = problem.measure(P, Q) - z
        return Corner(P, Q, dz, -inner(slopes, dz), float(s[0]))

    def _tol(self, problem: Objective, state: State) -> float:
        """How exact this step needs the pair: to C_f/k² in the units of f."""
        k, steep = int(state.extra["k"]), float(state.extra["steep"])
        needed = self._curvature(problem) / (k * k * self.radius * steep) if steep > 0 else TIGHT
        return min(max(needed, TIGHT), LOOSE)

    def _corner(self, problem: Objective, U: Array) -> Array:
        """A factor of the X of trace τ and rank one that X = 0 leads to; as many columns as U has."""
        G, rng = problem.gradient(U, U), np.random.default_rng(0)
        v = leading(G, 1, rng, LOOSE, RESTARTS, psd=True, sign=-1)[0]
        return np.hstack([self.radius**0.5 * v, U[:, 1:]])

    def _curvature(self, problem: Objective) -> float:
        if self.curvature is not None:
            return self.curvature
        try:
            L = problem.smoothness
        except SmoothnessError:
            L = problem.scale
        return 2 * self.radius**2 * L
