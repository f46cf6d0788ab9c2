"""Spectral projected gradients in a nuclear-norm ball: the solver of one-bit matrix completion."""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array, epsilon, herm, inner, product_norm, thin_svd
from bifactor.errors import InputError
from bifactor.inits import Zero
from bifactor.line import Line
from bifactor.linear_map import LinearMap, LowRankPlus
from bifactor.metrics import difference_norm, nuclear_norm
from bifactor.objective import Objective
from bifactor.path import MEASUREMENTS, state_at
from bifactor.shrinkage import ball_threshold, blend, factors, shrunk
from bifactor.solvers.ball_and_box import Split, project
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import padded, stripped
from bifactor.solvers.requirements import require_plain
from bifactor.state import State
from bifactor.validation import is_count, settle_positive

TOL, RESTARTS = 1e-9, 6
"""Accuracy of the singular pairs, and the work they may cost: each projection starts from the pairs of the last."""

LARGEST = 4_000_000
"""Entries that X may have where they are bounded, which takes X itself."""

DECREASE, TRIALS = 1e-4, 20
"""Of a step, the share of the decrease it promises, and how often it is shortened."""

SHORTEST, LONGEST = 1e-4, 1e9
"""Spectral steps."""


class Target(NamedTuple):
    """A point of the ball to move to: factors, and where to begin the next projection on the ball and the box."""

    U: Array
    V: Array
    split: Split | None


@dataclass(frozen=True)
class SPG(Solver):
    """Minimises f over ‖X‖_* ≤ τ, and over |Xᵢⱼ| ≤ α too where a bound is given, by projected gradient steps.

        D = P(X − max(s, 1)∇f(X)) − X,  X ← X + tD,  s = ‖ΔX‖²/⟨ΔX, Δ∇f⟩

    t is the first, from 1 down by interpolation, with f(X + tD) below the largest of the last values plus 10⁻⁴t⟨∇f, D⟩.
    If twenty do not do, X moves along the curve of projections P(X − ts∇f(X)). P lowers singular values by a common
    amount; with a bound it comes from the method of multipliers on X itself, m×n, of which 4 million entries are
    allowed, and which needs the rank min(m, n).

    Without a bound the rank asked for limits the columns kept: P is then the nearest matrix of that rank in the ball,
    and where not all columns are in use at the end, X is optimal among all matrices. To cut X back to rank r, which
    the authors call debiasing, take `Result.truncated(r)`.

    Parameters
    ----------
    radius : float
        τ. The authors take α√(rmn) for entries within ±α and rank r.
    bound : float, optional
        α.
    memory : int
        How many of the last values count.
    tol : float
        Stop when ‖D‖_F ≤ tol·max(‖X‖_F, 1), with τ for 1 if it is smaller. The toolbox has more stopping rules, of
        which the one its scripts set is not used in it.

    References
    ----------
    M. Davenport, Y. Plan, E. van den Berg and M. Wootters, 1-bit matrix completion, Inf. Inference 3 (2014). E. Birgin,
    J. Martínez and M. Raydan, Nonmonotone spectral projected gradient methods on convex sets, SIAM J. Optim. 10 (2000).
    """

    radius: float
    bound: float | None = None
    memory: int = 3
    tol: float = 1e-9
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "radius", "It bounds ‖X‖_*.")
        settle_positive(self, "bound", "Leave it out for none.", optional=True)
        settle_positive(self, "tol", "It is relative to X.")
        if not is_count(self.memory, 1):
            raise InputError(f"memory={self.memory!r} is not an integer ≥ 1.")

    def check(self, problem: Objective) -> None:
        require_plain(self, problem)
        m, n = problem.shape
        if self.bound is not None and m * n > LARGEST:
            raise InputError(
                f"Bounds on entries take X itself, and {m}×{n} is more than {LARGEST} numbers. Leave out the bound."
            )

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        if self.bound is not None and U.shape[1] < min(problem.shape):
            raise InputError(
                f"With bounds on its entries X has no low rank, but {U.shape[1]} was asked for. "
                f"Pass rank={min(problem.shape)}, and cut the result back by truncated(r)."
            )
        here = Target(U, V, None)
        if self._outside(U, V):
            here = self._nearest(LowRankPlus(U, V, 0.0, problem.gradient(U, V)), U.shape[1], here)
        z = problem.measure(here.U, here.V)
        first = state_at(problem, here.U, here.V, known=(*problem.evaluate(z), z))
        # At X = 0 the factors have no gradient, which is not the end.
        return self._noted(first, U.shape[1], 1.0, np.array([first.value]), here.split, waiting=True)

    def step(self, problem: Objective, state: State) -> State:
        now, z = stripped(state), state.extra[MEASUREMENTS]
        slopes = problem.evaluate(z)[1]
        G = problem.pull_back(slopes)
        ahead = LowRankPlus(now.U, now.V, -max(float(state.extra["s"]), 1.0), G)
        target = self._nearest(ahead, state.U.shape[1], self._here(state))
        dz = problem.measure(target.U, target.V) - z
        slope, length = inner(slopes, dz), difference_norm(target.U, target.V, now.U, now.V)
        if slope >= 0 or length <= self.tol * max(product_norm(now.U, now.V), min(1.0, self.radius)):
            return replace(state, settled=True, waiting=False)
        t = search(problem.along(z, dz, np.zeros_like(dz)), slope, float(state.extra["recent"].max()))
        if t is None:
            return self._along_projections(problem, state, G, slopes)
        return self._moved(problem, state, target, t, dz)

    def _nearest(self, M: LinearMap, limit: int, here: Target) -> Target:
        """The projection of M; the search for it begins where X is."""
        if self.bound is None:
            known = (here.U, here.V) if here.U.any() else None
            threshold = partial(ball_threshold, radius=self.radius)
            A, s, B = shrunk(M, limit, threshold, TOL, RESTARTS, start=known)
            # After a long step the singular values are large, and rounding would leave them a little too long.
            s = s * min(1.0, self.radius / max(float(np.sum(s, dtype=np.float64)), self.radius))
            return Target(*factors(A, s, B), None)
        B = M @ np.eye(M.shape[1], dtype=M.dtype)
        X, split = project(B, self.radius, self.bound, here.split or Split(0 * B, 0 * B))
        A, s, Bh = thin_svd(X)
        return Target(*factors(A, s, herm(Bh)), split)

    def _outside(self, U: Array, V: Array) -> bool:
        """Whether X must be projected; rounding does not count."""
        excess = nuclear_norm(U, V) / self.radius
        if self.bound is not None:
            excess = max(excess, float(np.max(np.abs(U @ herm(V)))) / self.bound)
        return excess > 1 + 1e3 * epsilon(U)

    def _moved(self, problem: Objective, state: State, target: Target, t: float, dz: Array) -> State:
        """The state at X + t(target − X), with the spectral step for the next."""
        now, z, limit = stripped(state), state.extra[MEASUREMENTS], state.U.shape[1]
        U, V, exact = blend(now.U, now.V, target.U, target.V, t, limit)
        new_z = z + t * dz if exact else problem.measure(U, V)
        f, slopes = problem.evaluate(new_z)
        bend = inner(slopes - problem.evaluate(z)[1], new_z - z)
        s = difference_norm(U, V, now.U, now.V) ** 2 / bend if bend > 0 else LONGEST
        recent = np.append(state.extra["recent"], f)[-self.memory :]
        new = state_at(problem, U, V, known=(f, slopes, new_z))
        return self._noted(new, limit, min(max(s, SHORTEST), LONGEST), recent, target.split)

    def _along_projections(self, problem: Objective, state: State, G: LinearMap, slopes: Array) -> State:
        """The state at the first P(X − ts∇f(X)) that is low enough, t = 1, ½, ¼, …"""
        now, z, t = stripped(state), state.extra[MEASUREMENTS], float(state.extra["s"])
        here, ceiling = self._here(state), float(state.extra["recent"].max())
        slope, shortest = 0.0, min(t, 1.0) / 2**TRIALS  # a spectral step of LONGEST says nothing of the length needed
        while t > shortest:
            target = self._nearest(LowRankPlus(now.U, now.V, -t, G), state.U.shape[1], here)
            dz = problem.measure(target.U, target.V) - z
            slope = inner(slopes, dz)
            if slope < 0 and problem.evaluate(z + dz)[0] < ceiling + DECREASE * slope:
                return self._moved(problem, state, target, 1.0, dz)
            t /= 2
        return replace(state, stalled=-slope, waiting=False)

    @staticmethod
    def _here(state: State) -> Target:
        now, split = stripped(state), None
        if "X2" in state.extra:
            split = Split(state.extra["X2"], state.extra["Y"])
        return Target(now.U, now.V, split)

    @staticmethod
    def _noted(new: State, columns: int, s: float, recent: Array, split: Split | None, waiting: bool = False) -> State:
        """The state in all its columns, with what the next step needs of this one."""
        kept = {} if split is None else {"X2": split.X2, "Y": split.Y}
        return padded(new, columns, {**kept, "s": np.array(s), "recent": recent}, waiting)


def search(line: Line, slope: float, ceiling: float) -> float | None:
    """A step t that takes f below the ceiling, by 10⁻⁴ of what its slope promises; None where none is found."""
    t, first = 1.0, line.at(0.0)[0]
    for _ in range(TRIALS):
        f = line.at(t)[0]
        if f < ceiling + DECREASE * t * slope:
            return t
        bend = f - first - t * slope
        between = -slope * t * t / (2 * bend) if t > 0.1 and bend > 0 else 0.0
        t = between if 0.1 <= between <= 0.9 * t else t / 2
    return None
