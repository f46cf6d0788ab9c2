"""Laws of solvers."""

from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bifactor.arrays import Array
from bifactor.inits import Random
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, State
from bifactor.running.checkpoint import packed
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import Solver
from bifactor.testing.laws import close, true


def check_solver(solver: Solver, problem: Objective, rank: int, seed: int = 0) -> None:
    """Check that a solver descends, is reproducible, can be resumed, leaves states unchanged, and reports correctly."""
    name = type(solver).__name__
    result = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    true(f"{name}: does not diverge", result.status is not Status.DIVERGED)
    true(f"{name}: ends lower than it starts", result.objective < result.history.objective[0])
    _check_run(solver, problem, rank, seed, result)
    start = solver.init(problem, Random()(problem, rank, np.random.default_rng(seed)), rank)
    kept = _arrays(start)
    first, second = solver.step(problem, start), solver.step(problem, solver.prepare(problem, start))
    true(f"{name}: steps from one state, prepared or not, are the same", np.array_equal(first.U, second.U))
    for a, b in zip(kept, _arrays(start), strict=True):
        true(f"{name}: a step does not change its state", np.array_equal(a, b))
    for state in (start, first):
        _check_point(name, solver.current(problem, state), state.point)


def _arrays(state: State) -> list[Array]:
    arrays: dict[str, Array] = {}
    packed(state, arrays, {})
    return [np.array(a) for a in arrays.values()]


def _check_point(name: str, problem: Objective, point: Point) -> None:
    """Check that f, F and their gradients are those at the factors of the point."""
    same, tol = problem.at(point.x), 1e4 * float(np.finfo(point.x.dtype).eps)
    whole = point.f == point.value  # a solver need not separate f from other terms
    size = abs(same.f) + problem.scale * point.x.product_norm() ** 2 + 1e-300
    for part in ("value",) if whole else ("f", "value"):
        close(f"{name}: {part} of a point is that at its factors", getattr(point, part), getattr(same, part), tol, size)
    true(f"{name}: the gradient has the shape of the factors", point.gradient.left.shape == point.x.left.shape)
    difference = (point.gradient - same.gradient).norm()
    close(f"{name}: gradient of a point is that at its factors", difference, 0.0, tol, 1 + same.gradient.norm())
    value, gradient = point.original
    alone = value == point.value and gradient.inner(gradient) == point.gradient.inner(point.gradient)
    true(f"{name}: a point of the problem has no terms of the solver", alone)


def _check_run(solver: Solver, problem: Objective, rank: int, seed: int, result: Result) -> None:
    name, history = type(solver).__name__, result.history
    lengths = {len(column) for column in asdict(history).values()}
    true(f"{name}: one record per iteration, and one of the start", lengths == {result.n_iter + 1})
    tol = 1e4 * float(np.finfo(result.U.dtype).eps)
    least = history.objective.min()
    close(f"{name}: the best objective is the result's", result.objective, least, tol, 1 + history.objective.max())
    true(f"{name}: factors are of the problem's dtype", result.U.dtype == result.V.dtype == problem.dtype)
    shapes = [(k, rank + problem.kind.fixed_columns) for k in problem.shape]
    true(f"{name}: factors have as many columns as the rank", [result.U.shape, result.V.shape] == shapes)
    again = solve(problem, rank, solver, rng=seed, max_iter=20, tol=0.0)
    true(f"{name}: the same seed gives the same fit", np.array_equal(result.U, again.U))
    if result.n_iter < 4:
        return
    stopped = solve(problem, rank, solver, rng=seed, tol=0.0, callback=lambda t, state: t == 3)
    true(f"{name}: a callback stops it", stopped.status is Status.CALLBACK and stopped.n_iter == 3)
    with TemporaryDirectory() as folder:
        for iterations in (3, 20):
            resumed = solve(
                problem, rank, solver, rng=seed, max_iter=iterations, tol=0.0, checkpoint=Path(folder) / "run"
            )
    same = np.array_equal(result.U, resumed.U) and np.array_equal(result.V, resumed.V)
    same = same and np.array_equal(history.objective, resumed.history.objective)
    true(f"{name}: resumed, it ends as if it had not been interrupted", same)
