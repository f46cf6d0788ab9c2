"""Accelerated proximal gradient descent for nuclear-norm regularisation."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from bifactor.arrays import Array, epsilon, inner, product_norm
from bifactor.errors import InputError
from bifactor.inits import Zero
from bifactor.linear_map import LowRankPlus
from bifactor.metrics import difference_norm
from bifactor.objective import Objective
from bifactor.path import MEASUREMENTS, state_at
from bifactor.penalties.nuclear import nuclear_weight, sided
from bifactor.shrinkage import factors, shrunk
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import padded, stripped
from bifactor.solvers.requirements import require_no_offsets, require_ridge
from bifactor.state import State
from bifactor.svd import leading
from bifactor.validation import require_flag, settle_positive

TOL, RESTARTS = 1e-9, 6
"""Accuracy of the singular pairs, and the work they may cost: each step starts from the pairs of the last."""

EASE, TIGHTEN = 0.9, 2.0
"""What the curvature L is multiplied by before each step, and as often as a step shows it to be too small."""

ROUNDING = 1e2
"""Differences of f below this multiple of its precision say nothing."""

STEADY = 0.05
"""A λ is done with when X changes by less than this fraction of λ/λ₀, about what lies between X and its limit."""


@dataclass(frozen=True)
class NuclearNorm(Solver):
    """Minimises the convex f(X) + ρ‖X‖_*, ρ from the problem's `penalties.Ridge`, by proximal steps from a point ahead.

        Y = X + β(X − X⁻),  X⁺ = S_{λ/L}(Y − ∇f(Y)/L),  S the soft threshold of singular values

    λ falls from near ‖∇f(X₀)‖₂ to ρ, so that X grows from low rank to high. L is found by backtracking. A step that
    raises the objective is taken again from X itself, and the momentum starts anew. Only the singular pairs above the
    threshold are computed, each time from those of the last step. Serves every loss and operator.

    The rank asked for bounds the columns kept; if all of them are in use, `Result.certificate` tells whether X is
    optimal among all matrices.

    Parameters
    ----------
    factor : float in (0, 1)
        What λ is multiplied by from stage to stage.
    psd : bool
        Minimise over semidefinite X, with the trace.

    References
    ----------
    K.-C. Toh and S. Yun, An accelerated proximal gradient algorithm for nuclear norm regularized linear least squares
    problems, Pac. J. Optim. 6 (2010). S. Becker, E. Candès and M. Grant, Templates for convex cone problems with
    applications to sparse signal recovery, Math. Program. Comput. 3 (2011): the rules for L. B. O'Donoghue and
    E. Candès, Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 15 (2015).
    """

    factor: float = 0.25
    psd: bool = False
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "factor", "It is a number between 0 and 1.")
        if self.factor >= 1:
            raise InputError(f"factor={self.factor!r} does not lower λ. Choose a number between 0 and 1.")
        require_flag(self.psd, "psd")

    def check(self, problem: Objective) -> None:
        require_ridge(self, problem)
        require_no_offsets(self, problem)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        z = problem.measure(U, V)
        f, slopes = problem.evaluate(z)
        steep = leading(problem.pull_back(slopes), 1, np.random.default_rng(0), 0.1, 1, self.psd, sign=-1)[1]
        lam = max(self.factor * float(steep[0]), nuclear_weight(problem.penalty, self.psd))
        first = state_at(problem, U, V, psd=self.psd, known=(f, slopes, z))
        numbers = {"t": 1.0, "L": problem.scale, "lam": lam, "first": lam, "over": False}
        # At X = 0 the factors have no gradient, which is not the end.
        return self._noted(first, first, U.shape[1], numbers, waiting=True)

    def step(self, problem: Objective, state: State) -> State:
        now, rho = stripped(state), nuclear_weight(problem.penalty, self.psd)
        t, L, lam, first = (float(state.extra[name]) for name in ("t", "L", "lam", "first"))
        if state.extra["over"]:
            lam = max(self.factor * lam, rho)
        ahead = (1 + (1 + 4 * t * t) ** 0.5) / 2
        new, L = self._proximal(problem, now, (t - 1) / ahead, state.U.shape[1], EASE * L, lam)
        if t > 1 and not _objective(problem, new, lam / rho) <= _objective(problem, now, lam / rho):
            ahead, (new, L) = 1.0, self._proximal(problem, now, 0.0, state.U.shape[1], L, lam)
        change = difference_norm(new.U, new.V, now.U, now.V)
        over = lam > rho and change <= STEADY * lam / first * product_norm(new.U, new.V)
        numbers = {"t": ahead, "L": L, "lam": lam, "first": first, "over": over}
        # An X that has just become 0 may leave it again.
        waiting = lam > rho or bool(now.U.any() and not new.U.any())
        return self._noted(new, now, state.U.shape[1], numbers, waiting)

    def _proximal(
        self, problem: Objective, now: State, beta: float, columns: int, L: float, lam: float
    ) -> tuple[State, float]:
        """The state after a step from Y, and the L that it took."""
        z, PU, PV = (now.extra[name] for name in (MEASUREMENTS, "PU", "PV"))
        YU, YV = np.hstack([(1 + beta) * now.U, -beta * PU]), np.hstack([now.V, PV])
        zY = z + beta * (z - now.extra["before"])
        fY, slopes = problem.evaluate(zY)
        if beta > 0 and not np.isfinite(fY):
            return self._proximal(problem, now, 0.0, columns, L, lam)
        G = problem.pull_back(slopes)
        while True:
            M, level = LowRankPlus(YU, YV, -1 / L, G), lam / L
            triplets = shrunk(M, columns, partial(_constant, level), TOL, RESTARTS, self.psd, (now.U, now.V))
            U, V = sided(problem.penalty, *factors(*triplets, self.psd))
            z = problem.measure(U, V)
            f, after = problem.evaluate(z)
            apart, dz = difference_norm(U, V, YU, YV) ** 2, z - zY
            bend = max(f - fY - inner(slopes, dz) - ROUNDING * epsilon(U) * abs(fY), inner(after - slopes, dz) / 2)
            if not bend > L / 2 * apart:
                return state_at(problem, U, V, psd=self.psd, known=(f, after, z)), L
            L *= TIGHTEN

    @staticmethod
    def _noted(new: State, old: State, columns: int, numbers: Mapping[str, float], waiting: bool) -> State:
        """The state in all its columns, with what the next step needs of this one."""
        before = {"PU": old.U, "PV": old.V, "before": old.extra[MEASUREMENTS]}
        return padded(new, columns, {**before, **{name: np.array(a) for name, a in numbers.items()}}, waiting)


def _constant(level: float, s: Array) -> float:
    return level


def _objective(problem: Objective, state: State, share: float) -> float:
    """f + λ‖X‖_*, where λ is `share` of the problem's own weight."""
    assert problem.penalty is not None  # checked at the door
    return state.value + (share - 1) * problem.penalty.evaluate(state.U, state.V)[0]
