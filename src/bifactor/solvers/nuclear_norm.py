"""Accelerated proximal gradient descent for nuclear-norm regularisation."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from bifactor.arrays import Array, epsilon, inner
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Zero
from bifactor.linear_map import LowRankPlus
from bifactor.metrics import difference_norm
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Moving, Point, Staged, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_explicit, require_no_fixed, require_numpy, require_ridge
from bifactor.solvers.shrinkage import shrink_singular_values
from bifactor.validation import settle_positive

TOL, RESTARTS = 1e-9, 6
"""Accuracy of the singular pairs, and the largest number of restarts: each step starts from the pairs of the last."""

EASE, TIGHTEN = 0.9, 2.0
"""The factors of the curvature L before each step, and each time that a step shows L to be too small."""

ROUNDING = 1e2
"""Differences of f below this multiple of its precision are not significant."""

STEADY = 0.05
"""A stage ends when X changes by less than this fraction of λ/λ₀, which is about its distance to the limit."""


@dataclass(frozen=True)
class Ahead(Value, key="nuclear_norm"):
    """The data for the step to an extrapolated point."""

    before: Point
    """X⁻."""
    rank: int
    """The largest number of columns of X."""
    t: float
    """The parameter of the momentum; 1 at its start."""
    L: float
    lam: float
    first: float
    """The first λ."""
    over: bool
    """Whether the stage of this λ is over."""


@dataclass(frozen=True)
class NuclearNorm(Solver[Ahead]):
    """Minimise the convex f(X) + ρ‖X‖_*, ρ from the problem's `penalties.Ridge`, by accelerated proximal steps.

        Y = X + β(X − X⁻),  X⁺ = S_{λ/L}(Y − ∇f(Y)/L),  S the soft threshold of singular values

    λ decreases from near ‖∇f(X₀)‖₂ to ρ, so that X grows from low rank to high. L is found by backtracking. A step that
    increases the objective is repeated from X itself, and the momentum is reset. Only the singular pairs above the
    threshold are computed, starting from those of the last step. Every loss and operator is supported.

    If X = UUᴴ, it minimises over semidefinite X, with the trace. The rank limits the number of columns; if all of them
    are in use, `Result.certificate` says whether X is optimal among all matrices.

    Parameters
    ----------
    factor : float in (0, 1)
        The factor of λ from stage to stage.

    References
    ----------
    K.-C. Toh and S. Yun, An accelerated proximal gradient algorithm for nuclear norm regularized linear least squares
    problems, Pac. J. Optim. 6 (2010). S. Becker, E. Candès and M. Grant, Templates for convex cone problems with
    applications to sparse signal recovery, Math. Program. Comput. 3 (2011): the rules for L. B. O'Donoghue and
    E. Candès, Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 15 (2015).
    """

    factor: float = 0.25
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "factor", "Choose a number between 0 and 1.")
        if self.factor >= 1:
            raise InputError(f"factor={self.factor!r} does not lower λ. Choose a number between 0 and 1.")

    def check(self, problem: Objective, rank: int) -> None:
        require_numpy(self, problem)
        require_explicit(self, problem)
        require_ridge(self, problem)
        require_no_fixed(self, problem)

    def peak(self, problem: Objective, rank: int) -> int:
        return run_memory(problem, rank, pairs=20, lengths=9)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Ahead]:
        point = problem.evaluate_keeping_z(x)
        G = problem.f.gradient(point.x, point.z)
        steep = problem.kind.leading(G, 1, np.random.default_rng(0), 0.1, 1, sign=-1)[1]
        lam = max(self.factor * float(steep[0]), problem.new_columns.rho(problem.kind))
        # At X = 0 the gradient in the factors is 0, but the run continues.
        return State(point, Ahead(point, rank, 1.0, problem.scale, lam, lam, over=False), Staged())

    def step(self, problem: Objective, state: State[Ahead]) -> State[Ahead]:
        now, own, rho = state.point, state.own, problem.new_columns.rho(problem.kind)
        lam = max(self.factor * own.lam, rho) if own.over else own.lam
        t = (1 + (1 + 4 * own.t * own.t) ** 0.5) / 2
        new, L = self._proximal(problem, state, (own.t - 1) / t, EASE * own.L, lam)
        if own.t > 1 and not _objective(problem, new, lam / rho) <= _objective(problem, now, lam / rho):
            t, (new, L) = 1.0, self._proximal(problem, state, 0.0, L, lam)
        change = difference_norm(new.x.left, new.x.right, now.x.left, now.x.right)
        over = lam > rho and change <= STEADY * lam / own.first * new.x.product_norm()
        # An X that has just become 0 may become nonzero again.
        staged = lam > rho or (now.x.any() and not new.x.any())
        return State(new, Ahead(now, own.rank, t, L, lam, own.first, over), Staged() if staged else Moving())

    def _proximal(
        self, problem: Objective, state: State[Ahead], beta: float, L: float, lam: float
    ) -> tuple[Point, float]:
        """The point after a step from Y, and the L that it took."""
        now, before = state.point, state.own.before
        YU = np.hstack([(1 + beta) * now.x.left, -beta * before.x.left])
        YV = np.hstack([now.x.right, before.x.right])
        zY = now.z + beta * (now.z - before.z)
        fY, slopes = problem.f.slopes(zY)
        if beta > 0 and not np.isfinite(fY):
            return self._proximal(problem, state, 0.0, L, lam)
        G, start = problem.f.adjoint_z(slopes), now.x if now.x.any() else None
        while True:
            M, level = LowRankPlus(YU, YV, -1 / L, G), lam / L
            triplets = shrink_singular_values(
                problem.kind, M, state.own.rank, partial(_constant, level), TOL, RESTARTS, start
            )
            x = problem.new_columns.rescale_sides(problem.kind.from_triplets(*triplets))
            z = problem.f.measure(x)
            f, after = problem.f.slopes(z)
            apart, dz = difference_norm(x.left, x.right, YU, YV) ** 2, z - zY
            bend = max(f - fY - inner(slopes, dz) - ROUNDING * epsilon(z) * abs(fY), inner(after - slopes, dz) / 2)
            if not bend > L / 2 * apart:
                return problem.known(x, f, after, z), L
            L *= TIGHTEN


def _constant(level: float, s: Array) -> float:
    return level


def _objective(problem: Objective, point: Point, share: float) -> float:
    """f + λ‖X‖_*, where λ is `share` times the weight of the problem."""
    return point.f + share * (point.value - point.f)
