"""THE loop: start, step, stop, record, report. No other loop over iterations exists in the library."""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from bifactor.arrays import epsilon, generator
from bifactor.checkpoint import Checkpoint
from bifactor.describe import describe
from bifactor.errors import InputError
from bifactor.inits import Init, Spectral
from bifactor.kernels.blas import one_thread
from bifactor.problem import Objective, Problem
from bifactor.progress import progress_bar
from bifactor.result import Result, Status
from bifactor.run import Run
from bifactor.solvers import BFGD, Solver
from bifactor.state import State
from bifactor.steps import Backtracking
from bifactor.stopping import Stopping
from bifactor.validation import is_count, require_instance

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
        Stop when ‖Xₜ − Xₜ₋₁‖_F ≤ tol·‖Xₜ‖_F three times in a row; never asked to be below the precision of the data.
        0 turns it off.
    gradient_tol : float
        Stop when the gradient norm falls to this fraction of its first value.
    objective_tol : float
        Stop when ten iterations lower the objective by no more than this fraction.
    time_limit : float, optional
        Seconds from the call, the start included; the clock runs on in a run that is resumed.
    callback : callable (iteration, state) -> bool or None, optional
        Called after each iteration; True stops.
    checkpoint : path, optional
        Written atomically every `checkpoint_every` iterations and at the end, Ctrl-C included. If the file is there at
        the start, the run goes on from it and ends, bit for bit, as if it had never been interrupted (with the same
        numbers of threads). The file of another problem, rank, solver, init or seed is refused.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Result
        With the best iterate seen, whatever happened in the loop: divergence and Ctrl-C too are a `Result.status`.
    """
    started = time.perf_counter()
    solver = BFGD(Backtracking()) if solver is None else solver
    init = Spectral() if init is None else init
    rank = _check(problem, rank, solver, init, callback)
    stopping = Stopping(max_iter, tol, gradient_tol, objective_tol, time_limit)
    name, source = describe(solver), generator(rng)
    same = (problem.fingerprint, f"rank {rank}", name, describe(init), describe(rng)) if checkpoint is not None else ()
    store = Checkpoint(checkpoint, checkpoint_every, *same)
    # How a Function multiplies is its own affair.
    threads = one_thread() if isinstance(problem, Problem) else nullcontext()
    # Overflow is an outcome that the loop looks for, not something to warn about.
    with np.errstate(all="ignore"), threads, progress_bar(progress, max_iter, type(solver).__name__) as show:
        run = store.load()
        if run is None:
            run = _begin(problem, rank, solver, init, source, started)
        status = _iterate(run, problem, solver, stopping, callback, store, show)
    return run.result(status, name)


def _iterate(
    run: Run,
    problem: Objective,
    solver: Solver,
    stopping: Stopping,
    callback: Callback | None,
    store: Checkpoint,
    show: Callable[[Run], None],
) -> Status:
    before = run.records[-1].seconds
    started = time.perf_counter() - before
    tested = stopping.at_precision(epsilon(run.state.U))
    status = tested.check(run, before)
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
        status = Status.INTERRUPTED
        store.save(run, status)
    return status


def _begin(problem: Objective, rank: int, solver: Solver, init: Init, rng: np.random.Generator, started: float) -> Run:
    U, V = init(problem, rank, rng, solver.psd)
    dtype = np.result_type(problem.dtype, np.complex64) if np.iscomplexobj(U) or np.iscomplexobj(V) else problem.dtype
    left = np.array(U, dtype=dtype, order="C")
    right = left if solver.psd else np.array(V, dtype=dtype, order="C")
    problem.check_factors(left, right)
    state = solver.init(problem, left, right)
    run = Run.begin(state, time.perf_counter() - started)
    if not np.all(np.isfinite(run.records[0])):
        raise InputError(
            f"The objective at the start is {run.records[0].objective:g}, with gradient norm "
            f"{run.records[0].gradient_norm:g}. Start from smaller factors, or rescale the data."
        )
    return run


def _check(problem: Objective, rank: int, solver: Solver, init: Init, callback: Callback | None) -> int:
    require_instance(problem, Objective, "problem")
    require_instance(solver, Solver, "solver")
    require_instance(init, Init, "init")
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {callback!r}, not callable. Pass a function of (iteration, state).")
    m, n = problem.shape
    if not is_count(rank, 1) or rank > min(m, n):
        raise InputError(f"rank={rank!r} is not possible for a {m}×{n} matrix. Choose one from 1 to {min(m, n)}.")
    if solver.psd and m != n:
        raise InputError(f"{type(solver).__name__} finds X = UUᴴ, which is square; this problem is {m}×{n}. Use BFGD.")
    info = np.finfo(problem.dtype)
    if not 1e3 * float(info.tiny) ** 0.5 <= problem.scale <= 1e-3 * float(info.max) ** 0.5:
        raise InputError(
            f"The typical curvature of this problem is {problem.scale:g}, which leaves no room for squares in "
            f"{problem.dtype}. Rescale the operator or the weights."
        )
    solver.check(problem)
    return int(rank)
