"""Spectral projected gradients in a nuclear-norm ball: the solver of one-bit matrix completion."""

from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array, epsilon, herm, inner, norm, thin_svd
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Zero
from bifactor.linear_map import LinearMap, LowRankPlus
from bifactor.metrics import difference_norm, nuclear_norm
from bifactor.operators.curves import Curve
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Settled, Staged, Stalled, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_explicit, require_free, require_numpy, require_plain
from bifactor.solvers.shrinkage import ball_threshold, blend, shrink_singular_values
from bifactor.steps.base import backtrack
from bifactor.validation import is_count, settle_positive

RELAXATION = 1.6
"""The over-relaxation of X₁ (Boyd et al., 2011, section 3.4.3)."""

EVERY, APART, UNTIL = 10, 3.0, 500
"""The penalty μ is doubled or halved every EVERY iterations, up to UNTIL, if the relative sizes of X₁ − X₂ and of the
change of X₂ differ by more than the factor APART (section 3.4.1). In the authors' toolbox, μ starts at 1 and grows by
1.05, with which X stops up to 1e-4 away from the nearest matrix, and farther if B lies far outside (measured against
Dykstra's algorithm)."""

PROJECTION_TOL, MOST = 1e-10, 1000
"""Accuracy, relative to X, and the largest number of iterations."""


@dataclass(frozen=True)
class ProjectionStart(Value, key="spg.split"):
    """X₂ in the ball, and the multiplier of X₁ = X₂ with X₁ in the box: a start for the next projection."""

    X2: Array
    Y: Array


def project(B: Array, radius: float, bound: float, known: ProjectionStart) -> tuple[Array, ProjectionStart]:
    """argmin ‖X − B‖_F over ‖X‖_* ≤ radius and |Xᵢⱼ| ≤ bound, always feasible.

    If the nearest matrix in one of the sets is also in the other, it is the solution. Otherwise the result is scaled
    down at the end to satisfy the constraints exactly.

    References
    ----------
    S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, Distributed optimization and statistical learning via the
    alternating direction method of multipliers, Found. Trends Mach. Learn. 3 (2011).
    """
    cut = clip_entries(B, bound)
    if _nuclear(cut) <= radius:
        return cut, ProjectionStart(cut, 0 * B)
    low = project_on_ball(B, radius)
    if float(np.max(np.abs(low))) > bound:
        return _alternating(B, radius, bound, known, cut)
    return _inside(low, radius, bound), ProjectionStart(low, low - B)


def _alternating(
    B: Array, radius: float, bound: float, known: ProjectionStart, cut: Array
) -> tuple[Array, ProjectionStart]:
    near = project_on_ball(cut, radius)
    X2, Y, mu = known.X2, known.Y, max(1.0, norm(B - near) / norm(near))  # Y ends up as large as B − X
    tol = max(PROJECTION_TOL, 10 * epsilon(B))
    for count in range(1, MOST + 1):
        X1 = clip_entries((B + Y + mu * X2) / (1 + mu), bound)
        between = RELAXATION * X1 + (1 - RELAXATION) * X2
        old, X2 = X2, project_on_ball(between - Y / mu, radius)
        Y = Y - mu * (between - X2)
        size, apart, change = norm(X1), norm(X1 - X2), norm(X2 - old)
        if not max(apart, change) > tol * size:
            break
        if count % EVERY == 0 and count <= UNTIL:
            left, right = apart * norm(Y), mu * change * size
            mu *= 2.0 if left > APART * right else 0.5 if right > APART * left else 1.0
    return _inside((X1 + X2) / 2, radius, bound), ProjectionStart(X2, Y)


def _inside(X: Array, radius: float, bound: float) -> Array:
    return X / max(1.0, _nuclear(X) / radius, float(np.max(np.abs(X))) / bound)


def clip_entries(X: Array, bound: float) -> Array:
    """The nearest matrix with entries of modulus ≤ bound."""
    size = np.abs(X)
    return np.where(size > bound, X * (bound / np.where(size > 0, size, 1.0)), X).astype(X.dtype)


def project_on_ball(X: Array, radius: float) -> Array:
    """The nearest matrix with ‖X‖_* ≤ radius."""
    A, s, Bh = thin_svd(X)
    return (A * np.maximum(s.astype(np.float64) - ball_threshold(s, radius), 0).astype(s.dtype)) @ Bh


def _nuclear(X: Array) -> float:
    return float(np.sum(thin_svd(X)[1]))


TOL, RESTARTS = 1e-9, 6
"""Accuracy of the singular pairs, and the number of restarts: each projection starts from the pairs of the last."""

LARGEST = 4_000_000
"""The largest number of entries of X if these are bounded, because X is then formed."""

DECREASE, TRIALS = 1e-4, 20
"""The share of the predicted decrease that a step must achieve, and the largest number of trial steps."""

SHORTEST, LONGEST = 1e-4, 1e9
"""The range of spectral steps."""


class Target(NamedTuple):
    """A point of the ball to move to: factors, and a start for the next projection on the ball and the box."""

    x: Factors
    split: ProjectionStart | None


@dataclass(frozen=True)
class SPGMemory(Value, key="spg"):
    """The data of the last steps for the next."""

    length: float
    """The spectral step s."""
    recent: tuple[float, ...]
    """The last values of f."""
    rank: int
    """The largest number of columns of X."""
    split: ProjectionStart | None
    """A start for the next projection on ball and box."""


@dataclass(frozen=True)
class SPG(Solver[SPGMemory]):
    """Minimise f over ‖X‖_* ≤ τ, and over |Xᵢⱼ| ≤ α if a bound is given, by projected gradient steps.

        D = P(X − max(s, 1)∇f(X)) − X,  X ← X + tD,  s = ‖ΔX‖²/⟨ΔX, Δ∇f⟩

    t, reduced from 1 by interpolation, is the first with f(X + tD) below the largest of the last values of f plus
    10⁻⁴t⟨∇f, D⟩.
    If twenty trials fail, X moves along the curve of projections P(X − ts∇f(X)). P reduces singular values by a common
    amount; with a bound it is computed by the method of multipliers on X itself, m×n, which is limited to 4 million
    entries and needs the rank min(m, n).

    Without a bound the rank limits the number of columns: P is then the nearest matrix of that rank in the ball, and if
    not all columns are in use at the end, X is optimal among all matrices. To truncate X to rank r, which the authors
    call debiasing, use `Result.truncated(r)`.

    Parameters
    ----------
    radius : float
        The radius τ. The authors take α√(rmn) for entries within ±α and rank r.
    bound : float, optional
        The bound α of the entries.
    memory : int
        The number of previous values of f to compare with.
    tol : float
        The tolerance: the run stops when ‖D‖_F ≤ tol·max(‖X‖_F, min(1, τ)). The toolbox of the authors has more
        stopping rules, but does not use the one that its scripts set.

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
        settle_positive(self, "radius", "Pass the bound of ‖X‖_*.")
        settle_positive(self, "bound", "Leave it out for no bound.", optional=True)
        settle_positive(self, "tol", "Pass a tolerance relative to X.")
        if not is_count(self.memory, 1):
            raise InputError(f"memory={self.memory!r} is not possible. Pass an integer ≥ 1.")

    def check(self, problem: Objective, rank: int) -> None:
        require_numpy(self, problem)
        require_explicit(self, problem)
        require_plain(self, problem)
        require_free(self, problem)
        m, n = problem.shape
        if self.bound is not None and m * n > LARGEST:
            raise InputError(
                f"With a bound X is formed, but {m}×{n} is more than {LARGEST} entries. Leave the bound out."
            )
        if self.bound is not None and rank < min(m, n):
            raise InputError(
                f"With a bound on its entries X has full rank, but rank={rank}. "
                f"Pass rank={min(m, n)}, and truncate the result with truncated(r)."
            )

    def peak(self, problem: Objective, rank: int) -> int:
        return run_memory(problem, rank, pairs=16, lengths=9)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[SPGMemory]:
        here = Target(x, None)
        if self._outside(x):
            here = self._nearest(LowRankPlus(x.left, x.right, 0.0, problem.f.gradient(x)), rank, here)
        point = problem.evaluate_keeping_z(here.x)
        # At X = 0 the gradient in the factors is 0, but the run continues.
        return State(point, SPGMemory(1.0, (point.value,), rank, here.split), Staged())

    def step(self, problem: Objective, state: State[SPGMemory]) -> State[SPGMemory]:
        now, own = state.point, state.own
        slopes = problem.f.slopes(now.z)[1]
        G = problem.f.adjoint_z(slopes)
        ahead = LowRankPlus(now.x.left, now.x.right, -max(own.length, 1.0), G)
        target = self._nearest(ahead, own.rank, Target(now.x, own.split))
        dz = problem.f.measure(target.x) - now.z
        slope, length = inner(slopes, dz), _apart(target.x, now.x)
        if slope >= 0 or length <= self.tol * max(now.x.product_norm(), min(1.0, self.radius)):
            return replace(state, phase=Settled())
        t = search(problem.f.line(now.z, dz), slope, max(own.recent))
        if t is None:
            return self._along_projections(problem, state, G, slopes)
        return self._moved(problem, state, target, t, dz)

    def _nearest(self, M: LinearMap, limit: int, here: Target) -> Target:
        """The projection of M; its computation starts from X."""
        kind = here.x.kind
        if self.bound is None:
            threshold = partial(ball_threshold, radius=self.radius)
            A, s, B = shrink_singular_values(
                kind, M, limit, threshold, TOL, RESTARTS, start=here.x if here.x.any() else None
            )
            # After a long step the singular values are large, and rounding would leave their sum slightly too large.
            s = s * min(1.0, self.radius / max(float(np.sum(s, dtype=np.float64)), self.radius))
            return Target(kind.from_triplets(A, s, B), None)
        B = M @ np.eye(M.shape[1], dtype=M.dtype)
        X, split = project(B, self.radius, self.bound, here.split or ProjectionStart(0 * B, 0 * B))
        A, s, Bh = thin_svd(X)
        return Target(kind.from_triplets(A, s, herm(Bh)), split)

    def _outside(self, x: Factors) -> bool:
        """Whether X must be projected; rounding does not count."""
        excess = nuclear_norm(x.left, x.right) / self.radius
        if self.bound is not None:
            excess = max(excess, float(np.max(np.abs(x.left @ herm(x.right)))) / self.bound)
        return excess > 1 + 1e3 * epsilon(x.left)

    def _moved(
        self, problem: Objective, state: State[SPGMemory], target: Target, t: float, dz: Array
    ) -> State[SPGMemory]:
        """The state at X + t(target − X), with the spectral step for the next."""
        now, own = state.point, state.own
        x, exact = blend(now.x, target.x, t, own.rank)
        z = now.z + t * dz if exact else problem.f.measure(x)
        f, slopes = problem.f.slopes(z)
        bend = inner(slopes - problem.f.slopes(now.z)[1], z - now.z)
        length = _apart(x, now.x) ** 2 / bend if bend > 0 else LONGEST
        recent = (*own.recent, f)[-self.memory :]
        length = min(max(length, SHORTEST), LONGEST)
        return State(problem.known(x, f, slopes, z), SPGMemory(length, recent, own.rank, target.split))

    def _along_projections(
        self, problem: Objective, state: State[SPGMemory], G: LinearMap, slopes: Array
    ) -> State[SPGMemory]:
        """The state at the first P(X − ts∇f(X)) that is low enough, t = 1, ½, ¼, …"""
        now, own, slope = state.point, state.own, 0.0

        def attempt(t: float) -> State[SPGMemory] | None:
            nonlocal slope
            ahead = LowRankPlus(now.x.left, now.x.right, -t, G)
            target = self._nearest(ahead, own.rank, Target(now.x, own.split))
            dz = problem.f.measure(target.x) - now.z
            slope = inner(slopes, dz)
            low = slope < 0 and problem.f.slopes(now.z + dz)[0] < max(own.recent) + DECREASE * slope
            return self._moved(problem, state, target, 1.0, dz) if low else None

        # A spectral step of LONGEST is not an estimate of the length.
        taken = backtrack(attempt, own.length, min(own.length, 1.0) / 2**TRIALS)
        return replace(state, phase=Stalled(-slope)) if taken is None else taken


def _apart(x: Factors, y: Factors) -> float:
    return difference_norm(x.left, x.right, y.left, y.right)


def search(line: Curve, slope: float, ceiling: float) -> float | None:
    """A step t that takes f below the ceiling by 10⁻⁴ of the decrease predicted by its slope; None if none is found."""
    t, first = 1.0, line.at(0.0)[0]
    for _ in range(TRIALS):
        f = line.at(t)[0]
        if f < ceiling + DECREASE * t * slope:
            return t
        bend = f - first - t * slope
        between = -slope * t * t / (2 * bend) if t > 0.1 and bend > 0 else 0.0
        t = between if 0.1 <= between <= 0.9 * t else t / 2
    return None
