"""THE loop: start, step, stop, record, report. No other loop over iterations exists in the library."""

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
from bifactor.kernels.blas_threads import blas_at_most
from bifactor.kernels.memory import recycled
from bifactor.operators import Bound
from bifactor.problems.function import Function
from bifactor.problems.objective import Objective
from bifactor.problems.problem import Problem
from bifactor.problems.state import State
from bifactor.running.checkpoint import Checkpoint
from bifactor.running.progress import progress_bar
from bifactor.running.rank_choice import rank_path
from bifactor.running.rank_path import RankPath
from bifactor.running.result import Result, Status
from bifactor.running.run import Run
from bifactor.running.secured import Secured
from bifactor.running.stationarity import gradient_is_small
from bifactor.running.stopping import Stopping
from bifactor.solvers import PCG, Solver
from bifactor.solvers.parts.recommended import recommended
from bifactor.validation import require_instance, require_rank

TOO_LARGE = (np.linalg.LinAlgError, OverflowError)
"""What is raised where factors are so large that their Gram matrices are not finite."""

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
        A `Function` is a bound.
    rank : int or "auto"
        Columns of the factors, 1 ≤ rank ≤ min(m, n); 0 for offsets and other fixed columns alone. "auto" grows the rank
        while a tenth of the measurements, held out, is predicted better, takes the least within one standard error of
        the best (`Result.rank_path`), and then fits all measurements; a callback, checkpoint or progress bar sees that
        last fit only, and Ctrl-C before it is raised.
    solver : Solver, optional
        By default PCG; where entries are observed and nothing is penalised, with rank continuation and, where
        they are scarce, racing against ridge homotopy. The answer is then balanced, UᴴU = VᴴV.
    init : Init, optional
        By default where the solver's authors start it, mostly `inits.Spectral()`.
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
    stopping = Stopping(max_iter, tol, gradient_tol, objective_tol, time_limit)
    problem = Objective(problem) if isinstance(problem, Bound) else problem
    columns = _check(problem, rank, solver, init, callback)
    path = None
    if columns is None:
        path = _path(problem, solver, generator(rng), started, time_limit)
        columns = path.chosen
    chosen = solver if solver is not None else PCG() if init is not None else recommended(problem, columns)
    first = chosen.start if init is None else init
    name, source = describe(chosen), generator(rng)
    same = _identity(problem, columns, name, first, rng) if checkpoint is not None else ()
    store = Checkpoint(checkpoint, checkpoint_every, problem.kind, problem.f.like, *same)
    # How a Function multiplies is its own affair.
    threads = nullcontext() if isinstance(problem.f, Function) else blas_at_most(1)
    bar = progress_bar(progress, stopping, type(chosen).__name__)
    # Overflow is an outcome that the loop looks for, not something to warn about.
    with np.errstate(all="ignore"), threads, recycled(), bar as show:
        secured = Secured(problem, checkpoint_every)
        run = secured.begun(lambda: store.load() or _begin(problem, columns, chosen, first, source, started), source)
        status = _iterate(run, problem, chosen, stopping, callback, store, show, secured)
        result = secured.persist(run, lambda: run.result(status, name, chosen.current(problem, run.state), columns))
        result = replace(result, rank_path=path, posterior=chosen.posterior(problem, run.state))
        run.end()
        return result.balanced() if solver is None else result


def _iterate(
    run: Run,
    problem: Objective,
    solver: Solver,
    stopping: Stopping,
    callback: Callback | None,
    store: Checkpoint,
    show: Callable[[Run], None],
    secured: Secured,
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
            store.save(secured.at_home(run), status)
            show(run)
        ended = status
        status = secured.persist(run, lambda: _proven(problem, solver, run, ended))
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        store.save(run, status)
    except TOO_LARGE:
        status = Status.DIVERGED
        store.save(run, status)
    return status


def _proven(problem: Objective, solver: Solver, run: Run, status: Status) -> Status:
    """`CONVERGED` where a rule has ended the run and the gradient is small; else as it ended."""
    if status is not Status.RELATIVE_CHANGE and status is not Status.PLATEAU:
        return status
    at = solver.current(problem, run.state)
    small = gradient_is_small(at, run.state.point, run.records[0].gradient_norm)
    return Status.CONVERGED if small else status


def _begin(problem: Objective, rank: int, solver: Solver, init: Init, rng: np.random.Generator, started: float) -> Run:
    x = _start(problem, rank, solver, init, rng)
    try:
        run = Run.begin(solver.init(problem, x, rank), time.perf_counter() - started)
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
    """The start, in the columns that the solver looks at, in the precision of the problem."""
    columns = rank if isinstance(init, Given) else solver.start_columns(problem, rank)
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
    """The rank, None for one to be chosen; everything a user can get wrong is refused here."""
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
            f"The typical curvature of this problem is {problem.scale:g}, which leaves no room for squares in "
            f"{problem.dtype}. Rescale the operator or the weights."
        )


def _path(
    problem: Objective, solver: Solver | None, rng: np.random.Generator, started: float, time_limit: float | None
) -> RankPath:
    """Held-out losses over ranks, by short fits of the solver."""
    inner = PCG() if solver is None else solver

    def fit(train: Problem, start: Given) -> Result:
        rank = start.U.shape[1] - train.kind.fixed_columns
        result = solve(train, rank, inner, start, 0, max_iter=60, tol=1e-4, objective_tol=1e-2)
        if result.status is Status.INTERRUPTED:  # there is no fit of all measurements to give back yet
            raise KeyboardInterrupt
        return result

    def late() -> bool:
        return time_limit is not None and time.perf_counter() - started > time_limit / 2

    assert isinstance(problem, Problem)  # checked at the door
    return rank_path(problem, rng, fit, late)
