"""Ridge homotopy: from a heavy ridge to none."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.errors import InputError
from bifactor.objective import Objective
from bifactor.penalties import Ridge
from bifactor.penalties.nuclear import nuclear_weight
from bifactor.solvers.base import Solver
from bifactor.solvers.growth import grown, padded, stripped
from bifactor.solvers.pcg import PCG
from bifactor.state import State
from bifactor.svd import spectral_norm
from bifactor.validation import is_count, require_instance, settle_positive

NEGLIGIBLE = 1e-9
"""The fraction of the first ridge at which it is dropped altogether."""

SMALL_SHARE = 1e-3
"""Nor does a ridge help that makes up no more than this of the objective."""


@dataclass(frozen=True)
class RidgeHomotopy(Solver):
    """Minimises f + (λ/2)(‖U‖² + ‖V‖²) for λ falling from ½‖∇f(0)‖₂ to the ridge of the problem, or to none.

    At each λ the singular pairs of −∇f(X) with s > λ join the factors, up to the rank: the nuclear-norm path, followed
    by the factors. On flat spectra with few measurements it finds what rank continuation does not. Only the number of
    columns of the start is used.

    Parameters
    ----------
    solver : Solver
        The inner one.
    factor : float in (0, 1)
        What λ is multiplied by.
    stage_iterations : int
        Inner iterations per λ at most.
    stage_decrease : float
        A λ is done with when an iteration lowers the objective by no more than this fraction.
    """

    solver: Solver = PCG()
    factor: float = 0.5
    stage_iterations: int = 30
    stage_decrease: float = 5e-4

    def __post_init__(self) -> None:
        require_instance(self.solver, Solver, "solver")
        settle_positive(self, "factor", "It is a number between 0 and 1.")
        if self.factor >= 1:
            raise InputError(f"factor={self.factor!r} does not lower the ridge. Choose a number between 0 and 1.")
        if not is_count(self.stage_iterations, 1):
            raise InputError(f"stage_iterations={self.stage_iterations!r} is not an integer ≥ 1.")
        settle_positive(self, "stage_decrease", "It is the fraction below which a stage ends.")
        object.__setattr__(self, "psd", self.solver.psd)

    def check(self, problem: Objective) -> None:
        if problem.penalty is not None and not isinstance(problem.penalty, Ridge):
            raise InputError(f"RidgeHomotopy ends at a ridge, but the penalty is {problem.penalty!r}. Use PCG.")
        self.solver.check(problem)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return 0

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        left, right = (np.zeros((k, 1), U.dtype) for k in problem.shape)
        lam = self.factor * spectral_norm(problem.gradient(left, right), np.random.default_rng(0), 0.1)
        k = problem.offset_columns
        return self._stage(problem, U[:, :k], V[:, :k], U.shape[1], lam, lam)

    def step(self, problem: Objective, state: State) -> State:
        lam, first, count = (float(state.extra[name]) for name in ("lam", "first", "count"))
        rank, before = state.U.shape[1], stripped(state)
        if state.waiting and state.extra["over"]:
            lam = self._lowered(problem, before, lam, first)
            return self._stage(problem, before.U, before.V, rank, lam, first)
        new = self.solver.step(self._at(problem, lam), before)
        slow = before.value - new.value <= self.stage_decrease * abs(new.value)
        over = slow or count + 1 >= self.stage_iterations or new.stalled is not None or new.settled
        return self._recorded(new, rank, lam, first, count + 1, over)

    def _stage(self, problem: Objective, U: Array, V: Array, rank: int, lam: float, first: float) -> State:
        """The first state at a new λ."""
        if lam <= self._end(problem, first):
            lam = 0.0
        at = self._at(problem, lam)
        if U.shape[1] < rank:
            U, V = grown(at, U, V, rank - U.shape[1], self.psd)
        if U.shape[1] == 0:  # X = 0 is where it ends
            U, V, lam = np.zeros((U.shape[0], rank), U.dtype), np.zeros((V.shape[0], rank), V.dtype), 0.0
        return self._recorded(self.solver.init(at, U, U if self.psd else V), rank, lam, first, 0, False)

    def _recorded(self, new: State, rank: int, lam: float, first: float, count: float, over: bool) -> State:
        extra = {"lam": np.array(lam), "first": np.array(first), "count": np.array(count), "over": np.array(over)}
        return padded(new, rank, extra, waiting=lam > 0)

    def _lowered(self, problem: Objective, state: State, lam: float, first: float) -> float:
        """The next λ; 0 stands for the problem itself."""
        share = lam * (inner(state.U, state.U) + inner(state.V, state.V)) / 2
        return 0.0 if share <= SMALL_SHARE * abs(state.value) else self.factor * lam

    def _end(self, problem: Objective, first: float) -> float:
        return max(NEGLIGIBLE * first, nuclear_weight(problem.penalty, self.psd))

    @staticmethod
    def _at(problem: Objective, lam: float) -> Objective:
        if lam == 0:
            return problem
        left, right = (1.0, 1.0) if problem.penalty is None else problem.penalty.curvature
        ratio = (left / right) ** 0.5
        return problem.penalized(Ridge((lam * ratio, lam / ratio)))
