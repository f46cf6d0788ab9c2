"""Rank continuation: one direction after the other."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.objective import Objective
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import grown, padded, stripped
from bifactor.solvers.pcg import PCG
from bifactor.state import State
from bifactor.validation import is_count, require_instance, settle_positive


@dataclass(frozen=True)
class RankContinuation(Solver):
    """Begins with the leading columns of the start and adds the leading singular pairs of −∇f(X) until all are there.

    Between additions the inner solver runs briefly. The strong directions are then in place before the weak ones, which
    the start cannot tell from the noise of sampling, are looked for: it rescues ill-conditioned and barely sampled
    completion problems. If fewer columns than asked for already fit, no more are added.

    Parameters
    ----------
    solver : Solver
        The inner one.
    stages : int
        Columns are added one at a time, or by more where that would take more than this many stages.
    stage_iterations : int
        Inner iterations per stage at most.
    stage_decrease : float
        A stage ends when an iteration lowers the objective by no more than this fraction.
    """

    solver: Solver = PCG()
    stages: int = 10
    stage_iterations: int = 40
    stage_decrease: float = 5e-3

    def __post_init__(self) -> None:
        require_instance(self.solver, Solver, "solver")
        for name in ("stages", "stage_iterations"):
            if not is_count(getattr(self, name), 1):
                raise InputError(f"{name}={getattr(self, name)!r} is not an integer ≥ 1.")
        settle_positive(self, "stage_decrease", "It is the fraction below which a stage ends.")
        object.__setattr__(self, "psd", self.solver.psd)

    def check(self, problem: Objective) -> None:
        self.solver.check(problem)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return 0 if problem.offsets else self._chunk(rank)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        # Offsets alone come first, where there are any: the rest of the start knows nothing of them.
        k = problem.offset_columns or self._chunk(U.shape[1])
        first = np.ascontiguousarray(U[:, :k])
        inner = self.solver.init(problem, first, first if self.psd else np.ascontiguousarray(V[:, :k]))
        return self._stage(inner, U.shape[1], 0)

    def step(self, problem: Objective, state: State) -> State:
        rank, inner, count = state.U.shape[1], stripped(state), int(state.extra["count"])
        if state.waiting and state.extra["over"]:
            new = self._next_stage(problem, inner, rank)
            if new is None:
                return self._stage(inner, rank, count, finished=True)
            inner, count = new, 0
        new = self.solver.step(problem, inner)
        return self._stage(new, rank, count + 1, inner.value, finished=not state.waiting)

    def _next_stage(self, problem: Objective, inner: State, rank: int) -> State | None:
        """The state with more columns; None where the gradient shows nothing more to add."""
        k = inner.U.shape[1]
        count = min(self._chunk(rank - problem.offset_columns), rank - k)
        U, V = grown(problem, inner.U, inner.V, count, self.psd)
        return None if U.shape[1] == k else self.solver.init(problem, U, V)

    def _stage(self, inner: State, rank: int, count: int, before: float | None = None, finished: bool = False) -> State:
        slow = before is not None and before - inner.value <= self.stage_decrease * abs(inner.value)
        over = slow or count >= self.stage_iterations or inner.stalled is not None or inner.settled
        waiting = inner.U.shape[1] < rank and not finished
        return padded(inner, rank, {"count": np.array(count), "over": np.array(over)}, waiting)

    def _chunk(self, rank: int) -> int:
        return -(-rank // self.stages)
