"""1-bit completion of a known low-rank matrix: how it is drawn, and each algorithm with its stopping rule."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bifactor.arrays import Array
from bifactor.inits import Init, Spectral
from bifactor.losses import Probit
from bifactor.metrics import relative_error
from bifactor.models.hyperparameters import select_rank_and_ridge
from bifactor.operators import Entries
from bifactor.penalties import Ridge
from bifactor.problems.objective import Problem
from bifactor.problems.state import State
from bifactor.running.holdout import Holdout
from bifactor.running.solve import solve
from bifactor.solvers import BFGD, PCG, SPG, Solver
from bifactor.steps import Smooth
from bifactor_reproduce.harness.experiment import Outcome
from bifactor_reproduce.harness.timed import Timed, timed

ALPHA = 1.0
"""‖X*‖_∞, which the paper gives to the convex estimators as Davenport et al. do."""

SOON, LATER = 200, 4000
"""Iterations of BFGD: good ones at r = 1, as one finds by looking at X*, and the paper's cap in other experiments."""

BALL, BOUND = "SPG, ball", "SPG, ball and bound"
VALIDATED, EARLY, LATE = "BFGD, validated", f"BFGD, T = {SOON}", f"BFGD, T = {LATER}"
OWN = "PCG, validated ridge"

PAPERS: Solver = BFGD(Smooth(), balance=None)
"""Eq. (20) of the paper, with L = 1/s²; f is smooth, but not strongly convex."""

START: Init = Spectral(fit=False)
"""The paper's, P_r(−∇f(0)/L)."""

SOONEST, FURTHER = 100, 2
"""A run in search of the best iteration goes on to the first, and to this many times the best so far."""


@dataclass(frozen=True)
class OneBitCell:
    """One algorithm on one draw; the draw is the same for all algorithms, and X* and Ω for all noise levels."""

    method: str
    size: int
    rank: int
    share: float
    """|Ω|/n²."""
    noise: float
    """s, the standard deviation of what is added to X* before the sign is taken."""
    seed: int
    max_iter: int
    tol: float


@dataclass(frozen=True, kw_only=True)
class Rules:
    """When each algorithm stops."""

    spg_tol: float
    """SPG stops when its projected step is this part of X, see `SPG`."""
    spg_iterations: int
    early: int = SOON
    late: int = LATER
    """Also the cap of the search for the best iteration."""
    pcg_tol: float = 1e-5
    pcg_iterations: int = 1000

    def stops(self) -> dict[str, tuple[int, float]]:
        """The max_iter and tol of each method."""
        return {
            BALL: (self.spg_iterations, self.spg_tol),
            BOUND: (self.spg_iterations, self.spg_tol),
            VALIDATED: (self.late, 0.0),
            EARLY: (self.early, 0.0),
            LATE: (self.late, 0.0),
            OWN: (self.pcg_iterations, self.pcg_tol),
        }


def debiased(name: str) -> str:
    return f"{name}, debiased"


@dataclass(frozen=True)
class Draw:
    """X* = UVᵀ with ‖X*‖_∞ = 1, and the signs of some of its entries under noise."""

    U: Array
    V: Array
    problem: Problem

    def judged(self, U: Array, V: Array) -> Outcome:
        """How far UVᵀ is from X*, and the share of all entries whose sign it has wrong."""
        wrong = (U @ V.T > 0) != (self.U @ self.V.T > 0)
        return {"error": self.error(U, V), "wrong_signs": float(np.mean(wrong))}

    def error(self, U: Array, V: Array) -> float:
        return relative_error(U, V, self.U, self.V)


def draw(cell: OneBitCell) -> Draw:
    """Factors with uniform entries, as many entries as asked for, uniformly, and y = sign(X* + s·noise) on them."""
    n, rng = cell.size, np.random.default_rng((cell.seed, 0))
    U, V = (rng.uniform(-0.5, 0.5, (n, cell.rank)) for _ in range(2))
    U *= ALPHA / np.max(np.abs(U @ V.T))
    rows, cols = np.divmod(rng.permutation(n * n)[: round(cell.share * n * n)], n)
    z = np.sum(U[rows] * V[cols], axis=1)
    y = np.where(z + cell.noise * rng.standard_normal(z.size) > 0, 1.0, -1.0)
    return Draw(U, V, Problem(Probit(cell.noise), Entries(rows, cols, (n, n)), y))


def run_cell(cell: OneBitCell) -> Outcome:
    """Errors and wrong signs (`raw`, and after SPG `debiased`), what it cost, and what was chosen on the way."""
    return RUNS[cell.method](cell, draw(cell))


def _convex(cell: OneBitCell, drawn: Draw) -> Outcome:
    radius = ALPHA * math.sqrt(cell.rank * cell.size**2)
    solver = SPG(radius, ALPHA if cell.method == BOUND else None, tol=cell.tol)
    run = timed(drawn.problem, cell.size, solver, max_iter=cell.max_iter, tol=0, seed=_start_seed(cell))
    cut = run.result.truncated(cell.rank)
    return _told(drawn, run) | {"debiased": drawn.judged(cut.U, cut.V)}


def _bfgd(cell: OneBitCell, drawn: Draw) -> Outcome:
    return _told(drawn, _descent(cell, drawn, cell.max_iter, drawn.error))


def _validated(cell: OneBitCell, drawn: Draw) -> Outcome:
    watch = BestHeldOut(Holdout.at_random(drawn.problem, _held_out(cell)))
    follow = partial(solve, watch.holdout.train, cell.rank, PAPERS, START, _start_seed(cell), tol=0)
    follow(max_iter=1)  # compilation does not count, as in `timed`
    began = time.process_time()
    follow(max_iter=cell.max_iter, callback=watch)
    choosing = time.process_time() - began
    return _told(drawn, _descent(cell, drawn, watch.iteration)) | {
        "chosen": watch.iteration,
        "choosing_seconds": choosing,
    }


def _descent(
    cell: OneBitCell, drawn: Draw, iterations: int, error: Callable[[Array, Array], float] | None = None
) -> Timed:
    seed = _start_seed(cell)
    return timed(drawn.problem, cell.rank, PAPERS, START, max_iter=iterations, tol=0, error=error, seed=seed)


def _own(cell: OneBitCell, drawn: Draw) -> Outcome:
    solve(drawn.problem.penalized(Ridge(1.0)), cell.rank, PCG(), rng=0, max_iter=1)  # compilation does not count
    began = time.process_time()
    rho = select_rank_and_ridge(drawn.problem, cell.rank, None, _held_out(cell))[1]
    choosing = time.process_time() - began
    ridged = drawn.problem.penalized(Ridge(rho))
    run = timed(ridged, cell.rank, PCG(), max_iter=cell.max_iter, tol=cell.tol, seed=_start_seed(cell))
    return _told(drawn, run) | {"chosen": rho, "choosing_seconds": choosing}


def _told(drawn: Draw, run: Timed) -> Outcome:
    U, V = run.result.U, run.result.V
    return run.outcome | {"raw": drawn.judged(U, V), "largest": float(np.max(np.abs(U @ V.T)))}


def _held_out(cell: OneBitCell) -> np.random.Generator:
    return np.random.default_rng((cell.seed, 1))


def _start_seed(cell: OneBitCell) -> int:
    return 10_000 + cell.seed


RUNS: dict[str, Callable[[OneBitCell, Draw], Outcome]] = {
    BALL: _convex,
    BOUND: _convex,
    EARLY: _bfgd,
    LATE: _bfgd,
    VALIDATED: _validated,
    OWN: _own,
}


@dataclass
class BestHeldOut:
    """A callback for `solve`: the iteration that predicts the measurements held out best."""

    holdout: Holdout
    iteration: int = 0
    loss: float = math.inf

    def __call__(self, iteration: int, state: State) -> bool:
        loss = self.holdout.mean(self.holdout.losses(state.U, state.V))
        if loss < self.loss:
            self.iteration, self.loss = iteration, loss
        return iteration >= max(SOONEST, FURTHER * self.iteration)
