"""How long solvers take to come within a given error of the truth, without the time to evaluate the error."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import bifactor as bf
from bifactor.problems.state import State

SEED = 1
"""Of starts; problems are drawn with others, or a random start would be the truth."""

EVERY, SELDOM = 200, 20
"""The error is measured in this many first iterations; after that, in one of so many."""


@dataclass(frozen=True)
class Reach:
    """Iterations and seconds to the goal; `extrapolated` where the limit came first."""

    iterations: float
    seconds: float
    per_iteration: float
    extrapolated: bool = False

    @property
    def numbers(self) -> dict[str, Any]:
        return {"iterations": self.iterations, "seconds": self.seconds, "extrapolated": self.extrapolated}


def reach(
    problem: bf.Problem,
    rank: int,
    solver: bf.solvers.Solver | None,
    init: bf.inits.Init | None,
    measure: Callable[[State], float],
    goal: float,
    limit: int,
) -> Reach:
    """Runs until `measure` is at or below `goal`; then again without measuring, for the time.

    Beyond the limit the number of iterations follows from the rate over the last half.
    """
    seen: dict[int, float] = {}

    def look(t: int, state: State) -> bool:
        if t > EVERY and t % SELDOM:
            return False
        seen[t] = measure(state)
        return seen[t] <= goal

    fit = bf.solve(problem, rank, solver, init, SEED, max_iter=limit, tol=0, callback=look)
    timed = bf.solve(problem, rank, solver, init, SEED, max_iter=min(fit.n_iter, EVERY), tol=0)
    seconds = timed.history.seconds
    each = statistics.median(np.diff(seconds))
    (half, there), (last, here) = list(seen.items())[len(seen) // 2], list(seen.items())[-1]
    if here <= goal:
        return Reach(last, seconds[-1] if last <= EVERY else seconds[0] + each * last, each)
    rate = (np.log(here) - np.log(there)) / (last - half)
    total = last + (np.log(goal / here) / rate if rate < 0 else np.inf)
    return Reach(total, each * total, each, extrapolated=True)


def best_constant(run: Callable[[float], Reach], first: float, factor: float = 1.25) -> tuple[float, Reach]:
    """The best constant step: from `first` up by doubling while it gets faster, then back by smaller factors."""
    steps: dict[float, Reach] = {first: run(first)}

    def better(eta: float) -> bool:
        best = min(r.iterations for r in steps.values())
        steps[eta] = run(eta)
        return steps[eta].iterations < best

    eta = 2 * first
    while better(eta):
        eta *= 2
    best = min(steps, key=lambda e: steps[e].iterations)
    for grow in (factor, 1 / factor):
        eta = best * grow
        while better(eta):
            eta *= grow
    best = min(steps, key=lambda e: steps[e].iterations)
    return best, steps[best]


def error_to(U: np.ndarray, V: np.ndarray) -> Callable[[Any], float]:
    return lambda state: bf.metrics.relative_error(state.U, state.V, U, V)
