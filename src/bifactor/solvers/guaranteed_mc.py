"""GuaranteedMC: descent on the factors with a regulariser that keeps their rows from growing large."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.penalties import Term
from bifactor.problems.curve import FactorCurve
from bifactor.problems.memory import pair_memory, run_memory, search_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Moving, Point, Stalled, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_free, require_numpy, require_plain
from bifactor.steps import Backtracking, StepSize
from bifactor.validation import require_flag, require_instance, settle_positive


@dataclass(frozen=True)
class Incoherence(Term):
    """R·[Σᵢ G(‖Uᵢ‖/b₁) + Σⱼ G(‖Vⱼ‖/b₂) + G(‖U‖_F/b_T) + G(‖V‖_F/b_T)],   G(t) = max(0, (3/2)t² − 1)².

    Uᵢ and Vⱼ are rows. The term is 0 up to √(2/3) of a bound b. It is convex in U and in V, once continuously
    differentiable, and not a polynomial along a curve.

    Parameters
    ----------
    rows, cols, whole : float
        The bounds b₁, b₂ and b_T.
    weight : float
        The weight R.

    References
    ----------
    R. Sun and Z.-Q. Luo, Guaranteed matrix completion via non-convex factorization, IEEE Trans. Inf. Theory 62 (2016).
    """

    rows: float
    cols: float
    whole: float
    weight: float

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        left, dU = self._side(x.left, self.rows)
        right, dV = self._side(x.right, self.cols)
        return left + right, x.gradient(dU, dV)

    def _side(self, F: Array, bound: float) -> tuple[float, Array]:
        """The two parts of one factor, and their gradient."""
        above = np.maximum(1.5 * (np.linalg.norm(F, axis=1, keepdims=True) / bound) ** 2 - 1, 0)
        beyond = max(1.5 * inner(F, F) / self.whole**2 - 1, 0.0)
        value = (
            float(np.sum(above**2, dtype=np.float64)) + beyond * beyond
        )  # not a power, which raises an error on overflow
        pull = (6 / bound**2) * above + 6 / self.whole**2 * beyond  # G₀′(z)·∇z, with G₀′(z) = 2(z − 1)₊ and ∇z = 3F/b²
        return self.weight * value, self.weight * pull * F


def shrink_rows(F: Array, bound: float) -> Array:
    """The factor with its long rows shortened to √(2/3)·bound, the length up to which the term is 0."""
    limit = (2 / 3) ** 0.5 * bound
    return F * (limit / np.maximum(np.linalg.norm(F, axis=1, keepdims=True), limit))


C_T = 5.0
"""The ratio of ‖U‖²_F to Σ_max·r that the article allows."""

TOL, RESTARTS = 1e-3, 10
"""Accuracy of the singular pairs from which bounds are estimated, and the largest number of restarts."""


@dataclass(frozen=True)
class Bounded(Value, key="guaranteed_mc"):
    """The point with the regulariser included, the memory of the step rule (in both factors if these alternate), and
    the parameters of the regulariser."""

    at: Point
    memory: Value
    right_memory: Value
    rows: float
    cols: float
    whole: float
    weight: float

    @property
    def term(self) -> Incoherence:
        return Incoherence(self.rows, self.cols, self.whole, self.weight)


@dataclass(frozen=True)
class GuaranteedMC(Solver[Bounded]):
    """Descent on F = f(UVᴴ) + R[Σᵢ G(‖Uᵢ‖/b₁) + Σⱼ G(‖Vⱼ‖/b₂) + G(‖U‖_F/b_T) + G(‖V‖_F/b_T)], see `Incoherence`.

        b_T² = 5r·Σ_max,   b₁² = 3μr·b_T²/m,   b₂² = 3μr·b_T²/n,   R = 8·scale·(Σ_min/6)²

    with Σ the singular values of X and μ its incoherence. `scale`, the typical curvature of f, replaces the share of
    observed entries of the article, so that any operator and loss can be used; its theory is about completion.

    The start is the spectral one with long rows shortened, Uᵢ ← Uᵢ·min(1, √(2/3) b₁/‖Uᵢ‖), so that the regulariser is 0
    there. Any start is treated so; most others, such as small random ones, have no rows that long.

    Parameters
    ----------
    sigma_max, sigma_min, incoherence : float, optional
        Σ_max, Σ_min and μ. Those left out are estimated at the start from P_r(−∇f(0))/scale: its largest and r-th
        singular values, and the larger of (m/r)·maxᵢ‖Aᵢ‖² and (n/r)·maxⱼ‖Bⱼ‖² over the rows of its singular vectors.
    alternating : bool
        Whether to move U, then V with the new U, each by its own step length, instead of both at once. The article
        minimises over each block, or over an upper bound of F in it; a descent step is the cheapest of the latter.
    step_size : StepSize
        The step rule, by default Armijo's. The "restricted" rule of the article also bounds the distance to the start,
        for its proof only; this is left out.

    References
    ----------
    R. Sun and Z.-Q. Luo, Guaranteed matrix completion via non-convex factorization, FOCS 2015; IEEE Trans. Inf. Theory
    62 (2016).
    """

    sigma_max: float | None = None
    sigma_min: float | None = None
    incoherence: float | None = None
    alternating: bool = False
    step_size: StepSize = Backtracking()

    def __post_init__(self) -> None:
        for name in ("sigma_max", "sigma_min", "incoherence"):
            settle_positive(self, name, "Leave it out to have it estimated.", optional=True)
        if self.sigma_max is not None and self.sigma_min is not None and self.sigma_min > self.sigma_max:
            raise InputError(f"sigma_min={self.sigma_min} is above sigma_max={self.sigma_max}. Swap them.")
        if self.incoherence is not None and self.incoherence < 1:
            raise InputError(f"incoherence={self.incoherence} is below 1, the smallest value. Leave it out if unsure.")
        require_flag(self.alternating, "alternating")
        require_instance(self.step_size, StepSize, "step_size")

    def check(self, problem: Objective, rank: int) -> None:
        require_numpy(self, problem)
        require_plain(self, problem)
        require_free(self, problem)
        self.step_size.check(problem)

    def peak(self, problem: Objective, rank: int) -> int:
        descent = run_memory(problem, rank, pairs=14, lengths=self.step_size.lengths)
        return max(descent, search_memory(problem, rank) + 2 * pair_memory(problem, rank))

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Bounded]:
        term = self._term(problem, x.width)
        at = problem.plus(term).at(problem.kind.pair(shrink_rows(x.left, term.rows), shrink_rows(x.right, term.cols)))
        memory = self.step_size.init(problem, at, 0.0)
        return State(problem.seen(at), Bounded(at, memory, memory, term.rows, term.cols, term.whole, term.weight))

    def step(self, problem: Objective, state: State[Bounded]) -> State[Bounded]:
        own, regularised = state.own, problem.plus(state.own.term)
        if not self.alternating:
            taken = self.step_size.next(FactorCurve(regularised, own.at, -own.at.gradient), own.memory)
            return State(problem.seen(taken.point), replace(own, at=taken.point, memory=taken.memory), taken.phase)
        g = own.at.gradient
        left = self.step_size.next(FactorCurve(regularised, own.at, g.scaled(-1.0, 0.0)), own.memory)
        g = left.point.gradient
        right = self.step_size.next(FactorCurve(regularised, left.point, g.scaled(0.0, -1.0)), own.right_memory)
        stalls = [taken.phase for taken in (left, right) if isinstance(taken.phase, Stalled)]
        phase = max(stalls, key=lambda stall: stall.promised) if len(stalls) == 2 else Moving()
        at = right.point
        return State(problem.seen(at), replace(own, at=at, memory=left.memory, right_memory=right.memory), phase)

    def _term(self, problem: Objective, rank: int) -> Incoherence:
        given = (self.sigma_max, self.sigma_min, self.incoherence)
        guesses = _estimates(problem, rank) if None in given else (1.0, 1.0, 1.0)
        top, low, mu = (guess if number is None else number for number, guess in zip(given, guesses, strict=True))
        whole = (C_T * rank * top) ** 0.5
        rows, cols = (whole * (3 * mu * rank / k) ** 0.5 for k in problem.shape)
        return Incoherence(rows, cols, whole, 8 * problem.scale * (low / 6) ** 2)


def _estimates(problem: Objective, rank: int) -> tuple[float, float, float]:
    """Σ_max, Σ_min and μ of P_r(−∇f(0))/scale."""
    G = problem.gradient_at_zero()
    if not np.all(np.isfinite(G @ np.ones((problem.shape[1], 1), problem.dtype))):
        raise InputError("∇f(0) is not finite, so no bounds can be estimated. Pass sigma_max, sigma_min, incoherence.")
    A, s, B = problem.kind.leading(G, rank, np.random.default_rng(0), TOL, RESTARTS, sign=-1)  # the same each time
    mu = max(float(np.max(np.sum(np.abs(F) ** 2, axis=1))) * F.shape[0] / rank for F in (A, B))
    # If the gradient is 0, X = 0 is the solution, and any size will do.
    top = float(s[0]) / problem.scale if s[0] > 0 else 1.0
    return top, float(s[-1]) / problem.scale, mu
