"""Runs that are killed, or interrupted by Ctrl-C, at random moments and resumed: are they the uninterrupted ones?

`python -m benchmarks.fuzz.fuzz_kills --cases 500 --seed 1` runs as many as you like. "same" are cases whose result is,
bit for bit, that of the run that was never interrupted; each other one is shown with its number. Only "same" and
"refused" (by solvers that cannot take the problem, before any work) may be above 0.
"""

import argparse
import os
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.harness.children import outcomes
from benchmarks.harness.fuzzed import draw_parts, draw_solver, one_of
from benchmarks.harness.rows import Row, row
from bifactor.errors import BifactorError
from bifactor.solvers import Variational

ENDS = ("same", "refused", "other", "signal", "exit", "memory", "late")

ENTRIES = ("offsets", "weights", "ridge", "features", "all_cells", "ordinal", "logistic", "poisson", "huber", "plain")
"""Wrappers and losses of observed entries."""

IN_BLOCKS = tuple(name for name in ENTRIES if name not in ("features", "all_cells"))

DTYPES = (np.float32, np.float64)

Rng = np.random.Generator
Run = Callable[..., bf.Result]


class Different(Exception):
    """A resumed run that is not the uninterrupted one."""


def observed(rng: Rng, wrapper: str) -> tuple[Any, ...]:
    """Rows, columns, values and weights of a small matrix."""
    shape = tuple(map(int, rng.integers(12, 70, 2)))
    X = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    i, j = np.nonzero(rng.random(shape) < rng.uniform(0.2, 0.6))
    z = X[i, j] + 0.3 * rng.standard_normal(i.size)
    levels = {"ordinal": np.clip(np.rint(3 + z), 1, 5), "logistic": np.where(z > 0, 1.0, -1.0)}
    y = levels.get(wrapper, rng.poisson(np.exp(np.clip(z, -3, 3))) if wrapper == "poisson" else z)
    return i, j, y, (rng.random(i.size) + 0.5 if wrapper == "weights" else None), shape


def parts_of(rng: Rng, wrapper: str, y: np.ndarray, shape: tuple[int, int]) -> tuple[Any, dict[str, Any]]:
    """A loss, and options of a problem."""
    loss: Any = wrapper if wrapper in ("logistic", "poisson", "huber") else "squared"
    if wrapper == "ordinal":
        loss = bf.losses.Ordinal(5)
    options: dict[str, Any] = {}
    if wrapper == "offsets" or rng.random() < 0.3:
        options["offsets"] = True
    if wrapper in ("ridge", "features", "all_cells") or rng.random() < 0.3:
        options["penalty"] = bf.penalties.Ridge(10.0 ** rng.integers(-2, 2))
    return loss, options


def in_memory(rng: Rng, wrapper: str, folder: Path) -> Any:
    i, j, y, w, shape = observed(rng, wrapper)
    dtype = one_of(rng, DTYPES)
    loss, options = parts_of(rng, wrapper, y, shape)
    operator: Any = bf.operators.Entries(i, j, shape)
    if wrapper == "features":
        operator = bf.operators.Featured(operator, rng.standard_normal((shape[0], 3)), None)
    if wrapper == "all_cells":
        return bf.Problem(loss, operator, y.astype(dtype), None, **options) + bf.all_cells(0.2)
    return bf.Problem(loss, operator, y.astype(dtype), None if w is None else w.astype(dtype), **options)


def in_blocks(rng: Rng, wrapper: str, folder: Path) -> Any:
    from bifactor.data.store import partition

    i, j, y, w, shape = observed(rng, wrapper)
    loss, options = parts_of(rng, wrapper, y, shape)
    partition.SMALL = int(rng.integers(50, 2000))  # several blocks
    columns = (i, j, y) if w is None else (i, j, y, w)
    store = bf.data.partition(columns, folder / "blocks", force=True, dtype=one_of(rng, DTYPES))
    penalty = options.pop("penalty", None)
    f = bf.operators.Partitioned(loss, store, bf.executors.Streamed("1GB"))
    return bf.Objective(f, *([] if penalty is None else [penalty]), **options)


def posterior(rng: Rng, wrapper: str, stored: bool, shape: tuple[int, int]) -> Variational:
    noises = ("one", "columns", "rows", "both", *(() if stored else ("student",)))
    more: dict[str, Any] = {}
    if not stored and rng.random() < 0.4:
        more = {"row_features": rng.standard_normal((shape[0], 2)), "implicit": bool(rng.integers(2))}
    return Variational(one_of(rng, noises), one_of(rng, ("separate", "shared")), tol=one_of(rng, (0.0, 3e-3)), **more)


def drawn(rng: Rng, kind: str, folder: Path) -> tuple[Any, Any, int]:
    """A problem, a solver and a rank."""
    if kind == "any operator":
        problem, solver = draw_parts(rng).problem(), draw_solver(rng)
        return problem, solver, int(rng.integers(1, 1 + min(problem.shape)))
    stored, of_posterior = "blocks" in kind, "posterior" in kind
    names = IN_BLOCKS if stored else ENTRIES
    wrapper = one_of(rng, ("offsets", "weights", "plain") if of_posterior else names)
    problem = (in_blocks if stored else in_memory)(rng, wrapper, folder)
    if of_posterior:
        if problem.penalties:
            raise bf.errors.InputError("A posterior has no penalty. Draw again.")
        return problem, posterior(rng, wrapper, stored, problem.shape), int(rng.integers(1, 5))
    solver = one_of(rng, (None, bf.solvers.PCG(), bf.solvers.ScaledGD())) if stored else draw_solver(rng)
    return problem, solver, int(rng.integers(1, 5))


BATCH = 25
"""Cases of one process, whose address space is limited, and grows with what it compiles."""

KINDS = ("any operator", "entries", "blocks", "posterior", "posterior of blocks", "command")


def child(work: Callable[[], Any]) -> int:
    """A process that does the work. A signal that arrives while it is made has to wait until it can be handled."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return pid
    code = 1
    try:
        signal.alarm(0)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        work()
        code = 0
    except KeyboardInterrupt:  # before the run began
        code = 130
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        os._exit(code)


def stopped(work: Callable[[], Any], seconds: float, number: int) -> None:
    """Do the work in a process that gets a signal after some time; raise if it ends in another way."""
    pid = child(work)
    time.sleep(seconds)
    os.kill(pid, number)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == number == signal.SIGKILL:
        return
    if not os.WIFEXITED(status) or os.WEXITSTATUS(status) not in (0, 130):
        raise Different(f"The process that got signal {number} ended with status {status}.")


def require_same(one: bf.Result, two: bf.Result) -> None:
    pairs = {name: (getattr(one, name), getattr(two, name)) for name in ("U", "V", "objective", "n_iter", "status")}
    for name in ("objective", "gradient_norm", "relative_change"):
        pairs[f"history of {name}"] = getattr(one.history, name), getattr(two.history, name)
    if one.posterior is not None and two.posterior is not None:
        pairs["variance"] = one.posterior.variance, two.posterior.variance
        pairs["means"] = one.posterior.rows.means, two.posterior.rows.means
    for name, (a, b) in pairs.items():
        same = np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        if not same:
            raise Different(f"{name} differs: {str(a)[:60]} and {str(b)[:60]}")


def signals(rng: Rng, duration: float) -> list[tuple[float, int]]:
    """When, and by what, the run is ended, up to three times."""
    numbers = [int(one_of(rng, (signal.SIGKILL, signal.SIGKILL, signal.SIGINT))) for _ in range(rng.integers(1, 4))]
    return [(float(rng.random()) * 1.1 * duration, number) for number in numbers]


def of_solve(kind: str, rng: Rng, folder: Path) -> str:
    problem, solver, rank = drawn(rng, kind, folder)
    path, every = folder / "run", int(rng.integers(1, 6))
    settings = {"max_iter": int(rng.integers(5, 60)), "tol": one_of(rng, (0.0, 1e-5)), "rng": int(rng.integers(9))}
    path.unlink(missing_ok=True)

    def run(**more: Any) -> bf.Result:
        return bf.solve(problem, rank, solver, **settings, **more)

    def kept() -> bf.Result:
        return run(checkpoint=path, checkpoint_every=every)

    run()  # compiles
    started = time.perf_counter()
    whole = run()
    for seconds, number in signals(rng, time.perf_counter() - started):
        stopped(kept, seconds, number)
    require_same(whole, kept())
    return "same"


def draw_command(rng: Rng, folder: Path) -> list[str]:
    """Write data.csv, and draw the options of a command that fits it."""
    wrapper = one_of(rng, ("plain", "ordinal", "logistic", "weights"))
    i, j, y, w, _ = observed(rng, wrapper)
    sure = np.ones(len(y)) if w is None else w
    lines = [f"u{a},{b},{c},{d}\n" for a, b, c, d in zip(i, j, y, sure, strict=True)]
    (folder / "data.csv").write_text("user,item,rating,sure\n" + "".join(lines), encoding="utf-8")
    loss = wrapper if wrapper in ("ordinal", "logistic") else "squared"
    options = ["--rank", str(rng.integers(1, 4)), "--loss", loss, "--value", "rating"]
    options += ["--weight", "sure"] if wrapper == "weights" else []
    options += ["--ridge", "1"] if wrapper == "logistic" or rng.random() < 0.5 else []
    return options + (["--holdout", "0.2"] if rng.random() < 0.5 else [])


def of_command(rng: Rng, folder: Path) -> str:
    """`bifactor complete`: after a kill the same command continues; after Ctrl-C there is a fit, or nothing."""
    from click.testing import CliRunner

    from bifactor.cli.main import main

    options = draw_command(rng, folder)

    def run(name: str, *more: str) -> int:
        arguments = ["complete", str(folder / "data.csv"), *options, "-o", str(folder / name), "--force", *more]
        done = CliRunner().invoke(main, arguments)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        if done.exit_code not in (0, 130):
            print(done.output, file=sys.stderr)
        return 130 if "Aborted!" in done.output else done.exit_code  # before the command began

    if run("whole"):
        return "refused"
    started = time.perf_counter()
    run("whole")
    duration, kept = time.perf_counter() - started, ("--checkpoint", str(folder / "run"))
    (folder / "run").unlink(missing_ok=True)

    def killed() -> None:
        raise SystemExit(run("other", *kept))

    for seconds, number in signals(rng, duration):
        stopped(killed, seconds, number)
        if (folder / "other").exists():
            bf.load(folder / "other")
    if code := run("other", *kept):
        raise Different(f"The command that was resumed ended with {code}.")
    whole, other = (bf.load(folder / name).model for name in ("whole", "other"))
    if not (np.array_equal(whole.U, other.U) and np.array_equal(whole.V, other.V)):
        raise Different(f"Factors of the command differ by up to {np.abs(whole.U - other.U).max():.3g}.")
    return "same"


def case(kind: str, seed: int, folder: Path) -> str:
    """One run, ended and resumed."""
    rng = np.random.default_rng([seed, *kind.encode()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            try:
                return of_command(rng, folder) if kind == "command" else of_solve(kind, rng, folder)
            except BifactorError as error:
                if "checkpoint" in str(error) or "damaged" in str(error):
                    raise Different(str(error)) from error
    return "refused"


def run(cases: int = 30, seed: int = 0) -> Iterator[Row]:
    each = -(-cases // len(KINDS))
    for kind in KINDS:
        told, examples = Counter[str](), list[str]()
        for first in range(0, each, BATCH):
            found, bad = outcomes(case, kind, 1_000_000 * seed + first, min(BATCH, each - first))
            told, examples = told + found, examples + bad
        yield row(
            "resumed",
            f"{each} cases of seed {seed}",
            kind,
            **{end: told[end] for end in ENDS},
            example="; ".join(examples[:5]),
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz.fuzz_kills", description=__doc__)
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    for line in run(asked.cases, asked.seed):
        print(*(f"{key}: {value}" for key, value in line.items()), sep=" | ", flush=True)


if __name__ == "__main__":
    main()
