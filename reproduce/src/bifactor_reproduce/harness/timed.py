"""A run of a solver with its processor time, in which looking at the error does not count."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bifactor.arrays import Array
from bifactor.inits import Init
from bifactor.problems.objective import Objective
from bifactor.problems.state import State
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import Solver
from bifactor_reproduce.harness.experiment import Outcome

SPREAD = 1.04
"""Iterations at which the error is looked at: all at first, later each this factor beyond the last."""

STOPPED = {
    Status.MAX_ITER: "all iterations",
    Status.DIVERGED: "diverged",
    Status.STALLED: "stalled",
}

BUDGET = "budget"
"""The first word about a run that has used it up."""

Error = Callable[[Array, Array], float]


@dataclass
class Stopwatch:
    """A callback for `solve`: processor seconds without those spent in here, and the errors on the way."""

    error: Error | None
    budget: float
    seconds: float = 0.0
    steps: list[float] = field(default_factory=list)
    curve: dict[str, list[float]] = field(default_factory=lambda: {"iteration": [], "seconds": [], "error": []})
    _next: int = 1
    _since: float = field(default_factory=time.process_time)

    def __call__(self, iteration: int, state: State) -> bool:
        took = time.process_time() - self._since
        self.seconds += took
        self.steps.append(took)
        if self.error is not None and iteration >= self._next:
            self.note(iteration, self.error(state.U, state.V))
            self._next = max(iteration + 1, math.ceil(SPREAD * iteration))
        self._since = time.process_time()
        return self.seconds >= self.budget

    def note(self, iteration: int, error: float) -> None:
        for name, value in (("iteration", iteration), ("seconds", self.seconds), ("error", error)):
            self.curve[name].append(float(value))


@dataclass(frozen=True)
class Timed:
    """What came out, and what it cost."""

    result: Result
    outcome: Outcome
    """`iterations`, `seconds`, `seconds_per_iteration`, `stopped`, and with an error function `error` and `curve`."""


def timed(
    problem: Objective,
    rank: int,
    solver: Solver,
    init: Init | None = None,
    *,
    max_iter: int,
    tol: float,
    error: Error | None = None,
    budget: float = math.inf,
    gradient_tol: float = 0.0,
    seed: int = 0,
) -> Timed:
    """Solve with a stopwatch; where `budget` seconds are used up, the run ends and says so.

    Seconds are those of the processor, so that other programs do not count; `reproduce` gives each cell one thread.
    The start and the solver's preparations count. Compilation does not: a short run goes before.
    """
    solve(problem, rank, solver, init, seed, max_iter=1, tol=0)
    watch = Stopwatch(error, budget)
    result = solve(
        problem, rank, solver, init, seed, max_iter=max_iter, tol=tol, gradient_tol=gradient_tol, callback=watch
    )
    over = result.status is Status.CALLBACK
    outcome: Outcome = {
        "iterations": result.n_iter,
        "seconds": watch.seconds,
        # The first holds the start.
        "seconds_per_iteration": statistics.median(watch.steps[1:] or watch.steps or [0.0]),
        "stopped": f"{BUDGET} of {budget:g} s" if over else STOPPED.get(result.status, "converged"),
    }
    if error is not None:
        outcome["error"] = error(result.U, result.V)
        if not watch.curve["iteration"] or watch.curve["iteration"][-1] != result.n_iter:
            watch.note(result.n_iter, outcome["error"])
        outcome["curve"] = watch.curve
    return Timed(result, outcome)
