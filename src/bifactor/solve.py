"""THE loop: start, step, stop, record, report. No other loop over iterations exists in the library."""

import os
import time
from collections.abc import Callable

import numpy as np

from bifactor.arrays import epsilon, generator
from bifactor.checkpoint import Checkpoint, describe
from bifactor.errors import InputError
from bifactor.inits import Init, Spectral
from bifactor.problem import Objective
from bifactor.progress import progress_bar
from bifactor.result import Result, Status
from bifactor.run import Run
from bifactor.solvers import BFGD, Solver
from bifactor.state import State
from bifactor.steps import Backtracking
from bifactor.stopping import Stopping
from bifactor.validation import is_count

Callback = Callable[[int, State], bool | None]


def solve(
    problem: Objective,
    rank: int,
    solver: Solver | None = None,
    init: Init | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    max_iter: int = 2000,
    tol: float = 1e-7,
    gradient_tol: float = 0.0,
    objective_tol: float = 0.0,
    time_limit: float | None = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 50,
    progress: bool = False,
) -> Result:
    """Minimise f(UVᴴ) over U (m×rank) and V (n×rank).

    Parameters
    ----------
    problem : Problem or Function
    rank : int
        Columns of the factors, 1 ≤ rank ≤ min(m, n).
    solver : Solver, default BFGD(steps.Backtracking())
    init : Init, default inits.Spectral()
    rng : Generator, int or None
        The only source of randomness.
    max_iter : int
    tol : float
        Stop when ‖Xₜ − Xₜ₋₁‖_F ≤ tol·‖Xₜ‖_F; never asked to be below the precision of the data. 0 turns it off.
    gradient_tol : float
        Stop when the gradient norm falls to this fraction of its first value.
    objective_tol : float
        Stop when ten iterations lower the objective by no more than this fraction.
    time_limit : float, optional
        Seconds, counted over all the runs that share a checkpoint.
    callback : callable (iteration, state) -> bool or None, optional
        Called after each iteration; True stops.
    checkpoint : path, optional
        Written atomically every `checkpoint_every` iterations and at the end. If the file is there at the start, the
        run goes on from it and ends, bit for bit, as if it had never been interrupted (on the same number of threads).
    progress : bool
        Show a progress bar.

    Returns
    -------
    Result
        With the best iterate seen, whatever happened: divergence and Ctrl-C too are a `Result.status`.
    """
    solver = BFGD(Backtracking()) if solver is None else solver
    init = Spectral() if init is None else init
    rank = _check(problem, rank, solver, init)
    stopping = Stopping(max_iter, tol, gradient_tol, objective_tol, time_limit)
    store = Checkpoint(checkpoint, checkpoint_every, problem, rank, solver)
    # Overflow is an outcome that the loop looks for, not something to warn about.
    with np.errstate(all="ignore"), progress_bar(progress, max_iter, type(solver).__name__) as show:
        run = store.load() or _begin(problem, rank, solver, init, generator(rng))
        status = _iterate(run, problem, solver, stopping, callback, store, show)
    return run.result(status, describe(solver))


def _iterate(
    run: Run,
    problem: Objective,
    solver: Solver,
    stopping: Stopping,
    callback: Callback | None,
    store: Checkpoint,
    show: Callable[[Run], None],
) -> Status:
    started = time.perf_counter() - run.seconds[-1]
    tested = stopping.at_precision(epsilon(run.state.U))
    status = tested.check(run, run.seconds[-1])
    try:
        while status is None:
            state = solver.step(problem, run.state)
            seconds = time.perf_counter() - started
            if not run.advance(state, problem.scale, seconds):
                status = Status.DIVERGED
            elif callback is not None and callback(run.iteration, run.state):
                status = Status.CALLBACK
            else:
                status = tested.check(run, seconds)
            store.save(run, status)
            show(run)
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    return status


def _begin(problem: Objective, rank: int, solver: Solver, init: Init, rng: np.random.Generator) -> Run:
    U, V = init(problem, rank, rng, solver.psd)
    dtype = np.result_type(problem.dtype, np.complex64) if np.iscomplexobj(U) or np.iscomplexobj(V) else problem.dtype
    left = np.array(U, dtype=dtype, order="C")
    right = left if solver.psd else np.array(V, dtype=dtype, order="C")
    problem.check_factors(left, right)
    run = Run.begin(solver.init(problem, left, right))
    if not np.isfinite(run.objective[0]) or not np.isfinite(run.gradient_norm[0]):
        raise InputError(
            f"The objective at the start is {run.objective[0]}, with gradient norm {run.gradient_norm[0]}. "
            "Start from smaller factors."
        )
    return run


def _check(problem: Objective, rank: int, solver: Solver, init: Init) -> int:
    for value, kind, name in (
        (problem, Objective, "problem"),
        (solver, Solver, "solver"),
        (init, Init, "init"),
    ):
        if not isinstance(value, kind):
            raise InputError(f"{name} is {value!r}, not a {kind.__name__}. Pass an instance, not a class or a name.")
    m, n = problem.shape
    if not is_count(rank, 1) or rank > min(m, n):
        raise InputError(
            f"rank={rank!r} is not possible for a {m}×{n} matrix. Choose an integer from 1 to {min(m, n)}."
        )
    if solver.psd and m != n:
        raise InputError(f"{type(solver).__name__} finds X = UUᴴ, which is square; this problem is {m}×{n}. Use BFGD.")
    return int(rank)
