"""Preconditioned nonlinear conjugate gradients on the factors: the fast solver."""

from dataclasses import dataclass, replace

from bifactor.arrays import Array
from bifactor.factors import Factors, inners
from bifactor.problems.curve import FactorCurve
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.preconditioner import LIFT, blocks_memory, distance, exact_blocks, first_decrement, preconditioned
from bifactor.steps import CurveSearch
from bifactor.steps.base import Step
from bifactor.steps.line_search import Searched
from bifactor.validation import require_flag, settle_nonnegative

EXACT = 5
"""The number of iterations for which exact blocks are used."""

RENEW = 25
"""The number of iterations after which measurements are computed again, to remove rounding, and factors balanced."""

ORTHOGONAL = 0.01
"""A direction whose slope is below this fraction of that of the preconditioned gradient is replaced by the latter."""


@dataclass(frozen=True)
class Conjugate(Value, key="pcg"):
    """The direction of the next step, or the data to compute it from."""

    d: Factors | None
    """The direction; None until the step is prepared."""
    last: tuple[Factors, Factors] | None
    """∇F and the direction at the last point, until then; None if the next direction is −S."""
    decrement: float
    """⟨∇F, S⟩ at the point where the latest direction was chosen."""
    age: int
    """The number of steps since the measurements were computed again."""
    memory: Searched
    blocks: tuple[Array, Array] | None = None
    """Exact blocks of the preconditioner, packed."""
    blocks_age: int = 0
    """The number of steps for which they have been used."""


@dataclass(frozen=True)
class PCG(Solver[Conjugate]):
    """Polak-Ribière conjugate gradients in (U, V), preconditioned on the right, with a search along the curve.

        S = ∇F·M⁻¹,  β = max(0, ⟨∇F − ∇F⁻, S⟩/⟨∇F⁻, S⁻⟩),  D = −S + βD⁻,  (U, V) += a·D with the best a

    M is the block diagonal of f's curvature in the factors, see `solvers.preconditioner`: damped Gram matrices
    VᴴV and UᴴU, weighted by how often each row and column is observed, plus the penalty. An iteration costs one pair of
    products with ∇f and the two directions of the measurements along the curve; z is updated. Every loss, operator and
    penalty is supported, real or complex.

    Parameters
    ----------
    damping : float
        The Gram matrices are damped by this multiple of an estimate of the distance to the solution,
        (⟨∇F, S⟩/scale)^½, so that a rank above that of the solution does no harm (Zhang, Fattahi and Zhang, 2021).
    exact : bool
        Whether to use the exact blocks of f's curvature, computed every few iterations, instead of expected ones, if
        each measurement is of one entry and the blocks are not too large. This takes passes of O(r²) operations per
        entry. It saves half of the iterations if the curvature differs much between entries, as with counts.

    References
    ----------
    T. Tong, C. Ma and Y. Chi, Accelerating ill-conditioned low-rank matrix estimation via scaled gradient descent,
    JMLR 22 (2021). J. Zhang, S. Fattahi and R. Zhang, Preconditioned gradient descent for over-parameterized nonconvex
    matrix factorization, NeurIPS 2021.
    """

    damping: float = LIFT
    exact: bool = False

    def __post_init__(self) -> None:
        settle_nonnegative(self, "damping", "0 turns it off.")
        require_flag(self.exact, "exact")

    def peak(self, problem: Objective, rank: int) -> int:
        blocks = blocks_memory(problem, rank + problem.kind.fixed_columns) if self.exact else 0
        return run_memory(problem, rank, pairs=10 if problem.f.explicit else 6, lengths=8) + blocks

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Conjugate]:
        point = problem.evaluate_keeping_z(x)
        return State(point, Conjugate(None, None, first_decrement(problem, point), 0, Searched()))

    def prepare(self, problem: Objective, state: State[Conjugate]) -> State[Conjugate]:
        """The state with its direction, −S + βD⁻; ∇F⁻ and D⁻ are released."""
        own, g = state.own, state.point.gradient
        if own.d is not None:
            return state
        own = self._with_blocks(problem, state.point.x, own)
        s = preconditioned(problem, state.point.x, g, self.damping * distance(problem, own.decrement), own.blocks)
        if own.last is None or not own.decrement > 0:
            size, beta, d = g.inner(s), 0.0, s
        else:
            before, d = own.last
            size, cross, along = inners((g, s), (before, s), (d, g))
            beta = max(0.0, (size - cross) / own.decrement)
            slope = beta * along - size  # of −S + βD⁻
            beta = beta if slope <= -ORTHOGONAL * size else 0.0
        d = s.negated_axpy_(beta, d)
        return replace(state, own=replace(own, d=d, last=None, decrement=size))

    def step(self, problem: Objective, state: State[Conjugate]) -> State[Conjugate]:
        state = self.prepare(problem, state)
        # If measurements are not updated, there is no rounding to remove.
        if state.own.age >= RENEW and problem.f.explicit:
            state = _renewed(problem, state)
        taken = _search(problem, state)
        if taken.phase.at_rest:  # drop the last direction, and the rounding of updated measurements
            fresh = problem.evaluate_keeping_z(state.point.x.fresh) if state.own.age else state.point
            own = replace(state.own, d=None, age=0, blocks=None)
            state = self.prepare(problem, State(fresh, own))
            taken = _search(problem, state)
        if taken.phase.at_rest:
            return replace(state, phase=taken.phase)
        own, last = state.own, (state.point.gradient, _direction(state))
        return State(taken.point, replace(own, d=None, last=last, age=own.age + 1, memory=taken.memory))

    def _with_blocks(self, problem: Objective, x: Factors, own: Conjugate) -> Conjugate:
        """The same with exact blocks, if requested, and the number of steps for which they have been used."""
        if not self.exact:
            return own
        if own.blocks is not None and own.blocks_age < EXACT - 1:
            return replace(own, blocks_age=own.blocks_age + 1)
        return replace(own, blocks=exact_blocks(problem, x), blocks_age=0)


def _direction(state: State[Conjugate]) -> Factors:
    assert state.own.d is not None  # the state has been prepared
    return state.own.d


def _search(problem: Objective, state: State[Conjugate]) -> Step:
    return CurveSearch().next(FactorCurve(problem, state.point, _direction(state)), state.own.memory)


def _renewed(problem: Objective, state: State[Conjugate]) -> State[Conjugate]:
    """The same X and the same direction, with balanced factors and measurements computed again."""
    x, d = state.point.x.fresh, _direction(state)
    # A penalty that is not invariant balances by itself, and would change with the factors.
    change = x.balancing() if problem.invariant else None
    if change is not None:
        x, d = x.times(*change), d.times(*change)
    return State(problem.evaluate_keeping_z(x), replace(state.own, d=d, age=0, blocks=None))
