"""Rank-one steps inside a ball: Frank-Wolfe for low-rank matrices."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array, epsilon, inner, norm
from bifactor.errors import SmoothnessError
from bifactor.factors import Factors, Free, Kind, Symmetric
from bifactor.inits import Zero, best_multiple
from bifactor.metrics import nuclear_norm
from bifactor.problems.memory import pair_memory, run_memory, search_memory, stages_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Moving, Point, Settled, Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_explicit, require_numpy, require_plain
from bifactor.solvers.shrinkage import blend
from bifactor.validation import require_flag, settle_nonnegative, settle_positive

LOOSE, TIGHT, RESTARTS = 0.1, 1e-10, 25
"""The range of the accuracy of the singular pair, and the largest number of restarts."""


class Corner(NamedTuple):
    """A corner of the ball, the change of z towards it, the duality gap of X, and ‖∇f‖₂."""

    x: Factors
    dz: Array
    gap: float
    steep: float


@dataclass(frozen=True)
class SDPMemory(Value, key="sparse_approx_sdp"):
    """The data of the last step for the next."""

    k: int
    """The number of the step."""
    corner: Factors | None
    """The corner of the last step."""
    steep: float
    """‖∇f‖₂ at the last step."""
    first: float
    """f at the start."""
    rank: int
    """The largest number of columns of X."""


class Ball:
    """‖X‖_* ≤ τ."""

    @staticmethod
    def first(problem: Objective, x: Factors, radius: float) -> Factors:
        """The start, within the set."""
        if not x.any():  # no more than one column is needed
            return problem.zero()
        size = nuclear_norm(x.left, x.right)
        return (radius / size) ** 0.5 * x if size > radius * (1 + 1e3 * epsilon(x.left)) else x

    @staticmethod
    def back(x: Factors, radius: float) -> Factors:
        """X in the set again, after singular values were left out."""
        return x


class Spectrahedron:
    """X ⪰ 0 of trace τ."""

    @staticmethod
    def first(problem: Objective, x: Factors, radius: float) -> Factors:
        if not x.any():
            G = problem.gradient_at_zero()
            v, _, _ = problem.kind.leading(G, 1, np.random.default_rng(0), LOOSE, RESTARTS, sign=-1)
            x = problem.kind.pair(v, v)
        return Spectrahedron.back(x, radius)

    @staticmethod
    def back(x: Factors, radius: float) -> Factors:
        return radius**0.5 / norm(x.left) * x


SETS: dict[type[Kind], type[Ball] | type[Spectrahedron]] = {Free: Ball, Symmetric: Spectrahedron}


@dataclass(frozen=True)
class SparseApproxSDP(Solver[SDPMemory]):
    """Minimise f over ‖X‖_* ≤ τ by steps towards one singular pair of the gradient at a time.

        X ← (1 − a)X − aτ·uvᴴ,  (u, v) the leading singular pair of ∇f(X) to within C_f/k²,  a = min(1, 2/k)

    If X = UUᴴ, it is Hazan's algorithm as printed, over X ⪰ 0 with trace τ: v is the leading eigenvector of −∇f(X)
    and X moves towards τ·vvᴴ. The form above is that of Jaggi and Sulovský; on the lifted matrix [[·, X], [Xᴴ, ·]] of
    trace 2τ it is the same. f comes within O(1/k) of its least value in the ball, and no faster: expect errors of a
    percent.

    Each iteration adds a column up to the given rank; from then on the smallest singular value is left out each time
    (if X = UUᴴ, the others make up for its trace). With rank min(m, n) nothing is left out.

    It starts from X = 0. If X = UUᴴ, it starts from the X of rank one that the first step from 0 leads to, instead of
    the random one of the article, and any other start is scaled to the trace.

    Parameters
    ----------
    radius : float
        The radius τ. The articles assume that it is known: for exact recovery it is ‖X*‖_*.
    line_search : bool
        Whether to take the best a in [0, 1] instead.
    curvature : float, optional
        The curvature C_f of f within the ball, which determines the accuracy of the singular pairs. By default the
        bound 2τ²L, with the typical curvature instead of L if f has no L. The paper of BFGD takes 1.
    accuracy : float
        The accuracy at which to stop: f(X) is within this of its least value in the ball, by the gap
        ⟨∇f(X), X⟩ + τ‖∇f(X)‖₂.

    References
    ----------
    E. Hazan, Sparse approximate solutions to semidefinite programs, LATIN 2008. M. Jaggi and M. Sulovský, A simple
    algorithm for nuclear norm regularized problems, ICML 2010.
    """

    radius: float
    line_search: bool = False
    curvature: float | None = None
    accuracy: float = 0.0
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "radius", "Pass the bound of ‖X‖_*.")
        settle_positive(self, "curvature", "Leave it out for the bound of the theory.", optional=True)
        settle_nonnegative(self, "accuracy", "Pass it in the units of f; 0 turns it off.")
        require_flag(self.line_search, "line_search")

    def check(self, problem: Objective, rank: int) -> None:
        require_numpy(self, problem)
        require_explicit(self, problem)
        require_plain(self, problem)

    def peak(self, problem: Objective, rank: int) -> int:
        corner = search_memory(problem, 1) + 4 * pair_memory(problem, rank)
        return max(run_memory(problem, rank, pairs=8, lengths=5), corner) + stages_memory(problem, range(1, rank), 1.0)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[SDPMemory]:
        point = problem.evaluate_keeping_z(SETS[type(problem.kind)].first(problem, x, self.radius))
        # At X = 0 the gradient in the factors is 0, but the run continues.
        return State(point, SDPMemory(1, None, 0.0, point.value, rank), Staged())

    def step(self, problem: Objective, state: State[SDPMemory]) -> State[SDPMemory]:
        own = state.own
        corner = self._next(problem, state, self._tol(problem, own))
        if corner.gap <= self.accuracy:
            corner = self._next(problem, state, TIGHT)  # a more accurate pair may show a larger gap
            if corner.gap <= self.accuracy:
                return replace(state, phase=Settled())
        new = self._moved(problem, state, corner)
        # The first steps of fixed length may overshoot a small X; the run continues from a saddle point of the factors.
        staged = new.value > own.first or not new.gradient.left.any()
        following = SDPMemory(own.k + 1, corner.x, corner.steep, own.first, own.rank)
        return State(new, following, Staged() if staged else Moving())

    def _moved(self, problem: Objective, state: State[SDPMemory], corner: Corner) -> Point:
        """The point after a step towards the corner."""
        now, own = state.point, state.own
        a = min(1.0, 2 / own.k)
        if self.line_search:
            a = min(1.0, best_multiple(problem.f.line(now.z, corner.dz), 1.0))
        x, exact = blend(now.x, corner.x, a, own.rank)
        # Measured again: the first corners are far away, and their rounding would stay in an updated z.
        return problem.evaluate_keeping_z(x if exact else SETS[type(problem.kind)].back(x, self.radius))

    def _next(self, problem: Objective, state: State[SDPMemory], tol: float) -> Corner:
        """−τuvᴴ, from the leading pair (u, v) of ∇f."""
        own, z = state.own, state.point.z
        slopes = problem.f.slopes(z)[1]
        # Another seed each time, so that a direction missed once is found later.
        rng = np.random.default_rng(own.k)
        start = own.corner if own.steep > 0 else None
        u, s, v = problem.kind.leading(problem.f.adjoint_z(slopes), 1, rng, tol, RESTARTS, sign=-1, start=start)
        x = self.radius**0.5 * problem.kind.pair(u, v)
        dz = problem.f.measure(x) - z
        return Corner(x, dz, -inner(slopes, dz), float(s[0]))

    def _tol(self, problem: Objective, own: SDPMemory) -> float:
        """The accuracy of the pair that this step needs: C_f/k² in the units of f."""
        needed = self._curvature(problem) / (own.k**2 * self.radius * own.steep) if own.steep > 0 else TIGHT
        return min(max(needed, TIGHT), LOOSE)

    def _curvature(self, problem: Objective) -> float:
        if self.curvature is not None:
            return self.curvature
        try:
            L = problem.smoothness
        except SmoothnessError:
            L = problem.scale
        return 2 * self.radius**2 * L
