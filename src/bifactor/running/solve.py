"""The loop: start, step, stop, record, report. No other loop over iterations exists in the library."""

import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from bifactor.arrays import cast, contiguous, copied, epsilon, generator
from bifactor.describe import describe
from bifactor.errors import InputError, LostError
from bifactor.factors import Factors
from bifactor.inits import Given, Init
from bifactor.kernels.memory import recycle_buffers
from bifactor.kernels.threading import blas_at_most
from bifactor.operators import Bound
from bifactor.problems.function import Function
from bifactor.problems.objective import Objective, Problem
from bifactor.problems.state import State
from bifactor.running.checkpoint import Checkpoint
from bifactor.running.progress import progress_bar
from bifactor.running.rank_selection import select_rank
from bifactor.running.record import RunRecord
from bifactor.running.recovery import WorkerRecovery
from bifactor.running.result import Result, Status
from bifactor.running.search import Search
from bifactor.running.stopping import Stopping, gradient_is_small
from bifactor.solvers import PCG, Solver
from bifactor.solvers.default import default_solver
from bifactor.validation import require_instance, require_rank

TOO_LARGE = (np.linalg.LinAlgError, OverflowError)
"""What is raised if factors are so large that their Gram matrices are not finite."""

Callback = Callable[[int, State], bool | None]


def solve(
    problem: Objective | Bound,
    rank: int | Literal["auto"],
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
    problem : Problem, Objective or Bound
        The function to minimise. A `Function` is a `Bound`.
    rank : int or "auto"
        The number of columns of the factors, from 1 to min(m, n); 0 fits offsets and other fixed columns alone. "auto"
        increases the rank while a held-out tenth of the measurements is predicted better, takes the smallest rank
        within one standard error of the best (`Result.rank_search`), and then fits all measurements. A callback, a
        checkpoint and a progress bar apply to that last fit only. Ctrl-C before it ends the search, if a rank has been
        tried, without a checkpoint; otherwise it raises `KeyboardInterrupt`.
    solver : Solver, optional
        By default PCG. If entries are observed and there is neither a penalty nor an `init`, it is combined with rank
        continuation and, if entries are scarce, a race against ridge homotopy. With the default solver, the answer is
        balanced, UᴴU = VᴴV.
    init : Init, optional
        By default the start that the authors of the solver use, mostly `inits.Spectral()`.
    rng : Generator, int or None
        The only source of randomness.
    max_iter : int
        The largest number of iterations.
    tol : float
        Stop when ‖Xₜ − Xₜ₋₁‖_F ≤ tol·‖Xₜ‖_F in three consecutive iterations. A tol below four times the machine
        precision is raised to that; 0 turns the test off.
    gradient_tol : float
        Stop when the gradient norm falls to this fraction of its first value.
    objective_tol : float
        Stop when ten iterations lower the objective by no more than this fraction.
    time_limit : float, optional
        Seconds from the call, including the start. In a resumed run, the time before the interruption counts, too.
    callback : callable (iteration, state) -> bool or None, optional
        Called after each iteration; True stops the run.
    checkpoint : path, optional
        Written atomically every `checkpoint_every` iterations and at the end, also after Ctrl-C. If the file already
        exists, the run is resumed from it, and the result is the same, bit for bit, as without the interruption (with
        the same numbers of threads). The file of another problem, rank, solver, init or seed raises `FileError`.
    progress : bool
        Show a progress bar.

    Returns
    -------
    Result
        The best iterate, whatever happened in the loop: divergence and Ctrl-C are reported in `Result.status`.
    """
    started = time.perf_counter()
    stopping = Stopping(max_iter, tol, gradient_tol, objective_tol, time_limit)
    problem = Objective(problem) if isinstance(problem, Bound) else problem
    columns = _check(problem, rank, solver, init, callback)
    search = None
    if columns is None:
        search = _search_rank(problem, solver, generator(rng), started, time_limit)
        columns = int(search.chosen["rank"])
        checkpoint = None if search.interrupted else checkpoint  # another search may choose another rank
    chosen = solver if solver is not None else PCG() if init is not None else default_solver(problem, columns)
    first = chosen.start if init is None else init
    name, source = describe(chosen), generator(rng)
    same = _identity(problem, columns, name, first, rng) if checkpoint is not None else ()
    store = Checkpoint(checkpoint, checkpoint_every, problem.kind, problem.f.like, *same)
    # A Function may use as many threads as it likes.
    threads = nullcontext() if isinstance(problem.f, Function) else blas_at_most(1)
    bar = progress_bar(progress, stopping, type(chosen).__name__)
    # The loop checks for overflow, so NumPy need not warn.
    with np.errstate(all="ignore"), threads, recycle_buffers(), bar as show:
        secured = WorkerRecovery(problem, checkpoint_every)
        run = secured.start(lambda: store.load() or _begin(problem, columns, chosen, first, source, started), source)
        status = _iterate(run, problem, chosen, stopping, callback, store, show, secured)

        def finished(status: Status) -> Result:
            found = secured.retry(run, lambda: run.result(status, name, chosen.current(problem, run.state), columns))
            posterior = secured.retry(run, lambda: chosen.posterior(problem, run.state))
            found = replace(found, rank_search=search, posterior=posterior)
            return found.balanced() if solver is None else found

        try:
            result = finished(status)
        except KeyboardInterrupt:  # what is left takes a pass or two
            result = finished(Status.INTERRUPTED)
        run.end()
        return result


def _iterate(
    run: RunRecord,
    problem: Objective,
    solver: Solver,
    stopping: Stopping,
    callback: Callback | None,
    store: Checkpoint,
    show: Callable[[RunRecord], None],
    secured: WorkerRecovery,
) -> Status:
    before = run.records[-1].seconds
    started = time.perf_counter() - before
    tested = stopping.at_precision(epsilon(run.state.U))
    status = tested.check(run, before)

    def turn() -> Status | None:
        run.state = solver.prepare(problem, run.state)
        state = solver.step(problem, run.state)
        seconds = time.perf_counter() - started
        if not run.advance(state, problem.scale, seconds):
            return Status.DIVERGED
        if callback is not None and callback(run.iteration, run.state):
            return Status.CALLBACK
        return tested.check(run, seconds)

    try:
        while status is None:
            try:
                status = turn()
                secured.keep(run, now=status is not None)
            except LostError as lost:
                secured.recover(run, lost)
                status = None
                continue
            store.save(secured.local(run), status)
            show(run)
        ended = status
        status = secured.retry(run, lambda: _proven(problem, solver, run, ended))
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        store.save(run, status)
    except TOO_LARGE:
        status = Status.DIVERGED
        store.save(run, status)
    return status


def _proven(problem: Objective, solver: Solver, run: RunRecord, status: Status) -> Status:
    """`CONVERGED` if tol or objective_tol has ended the run and the gradient is small; otherwise the same status."""
    if status is not Status.RELATIVE_CHANGE and status is not Status.PLATEAU:
        return status
    at = solver.current(problem, run.state)
    small = gradient_is_small(at, run.state.point, run.records[0].gradient_norm)
    return Status.CONVERGED if small else status


def _begin(
    problem: Objective, rank: int, solver: Solver, init: Init, rng: np.random.Generator, started: float
) -> RunRecord:
    x = _start(problem, rank, solver, init, rng)
    try:
        run = RunRecord.begin(solver.init(problem, x, rank), time.perf_counter() - started)
        finite = bool(np.all(np.isfinite(run.records[0])))
    except TOO_LARGE:
        finite = False
    if not finite:
        point = problem.at(x)
        raise InputError(
            f"The objective at the start is {point.value:g}, with gradient norm {point.gradient.norm():g}. "
            "Start from smaller factors, or rescale the data."
        )
    return run


def _start(problem: Objective, rank: int, solver: Solver, init: Init, rng: np.random.Generator) -> Factors:
    """The start, with the columns that the solver uses and in the precision of the problem."""
    columns = rank if isinstance(init, Given) else solver.start_columns(problem, rank)
    with recycle_buffers():  # a start may have wider arrays, whose memory the run does not need
        x = init(problem, columns, rng) if columns > 0 else problem.zero(0)
    complex_start = x.dtype.kind == "c"
    dtype = np.result_type(problem.dtype, np.complex64) if complex_start else problem.dtype
    x = problem.projected(x.each(lambda a: contiguous(copied(cast(a, dtype)))))
    if x.width:
        problem.f.check_factors(x)
    return x


def _identity(problem: Objective, rank: int, solver: str, init: Init, rng: Any) -> tuple[str, ...]:
    """What must be the same for a run to be resumed."""
    added = f"{[describe(penalty) for penalty in problem.penalties]} {describe(problem.kind)}"
    return problem.fingerprint, added, f"rank {rank}", solver, describe(init), describe(rng)


def _check(
    problem: Objective,
    rank: int | Literal["auto"],
    solver: Solver | None,
    init: Init | None,
    callback: Callback | None,
) -> int | None:
    """Check the arguments, and return the rank, or None if it is to be chosen."""
    require_instance(problem, Objective, "problem")
    for value, kind, name in ((solver, Solver, "solver"), (init, Init, "init")):
        if value is not None:
            require_instance(value, kind, name)
    if callback is not None and not callable(callback):
        raise InputError(f"callback is {callback!r}, not callable. Pass a function of (iteration, state).")
    automatic = isinstance(rank, str) and rank == "auto"
    columns = None if automatic else require_rank(rank, problem.shape, problem.least_rank, ", or 'auto'")
    if automatic and (init is not None or not isinstance(problem, Problem)):
        raise InputError("rank='auto' holds out measurements of a Problem and makes its own starts. Pass a rank.")
    _check_scale(problem)
    if solver is not None:
        solver.check(problem, columns or 1)
    return columns


def _check_scale(problem: Objective) -> None:
    info = np.finfo(problem.dtype)
    if not 1e3 * float(info.tiny) ** 0.5 <= problem.scale <= 1e-3 * float(info.max) ** 0.5:
        raise InputError(
            f"The typical curvature of this problem is {problem.scale:g}, so squares leave the range of "
            f"{problem.dtype}. Rescale the operator or the weights."
        )


def _search_rank(
    problem: Objective, solver: Solver | None, rng: np.random.Generator, started: float, time_limit: float | None
) -> Search:
    """The held-out losses of increasing ranks, from short fits with the solver."""
    inner = PCG() if solver is None else solver

    def fit(train: Problem, start: Given) -> Result:
        rank = start.U.shape[1] - train.kind.fixed_columns
        return solve(train, rank, inner, start, 0, max_iter=60, tol=1e-4, objective_tol=1e-2)

    def late() -> bool:
        return time_limit is not None and time.perf_counter() - started > time_limit / 2

    assert isinstance(problem, Problem)  # see _check
    return select_rank(problem, rng, fit, late)
