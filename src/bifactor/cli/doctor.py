"""`bifactor doctor`: show the installation and its settings, and check that it works."""

import os
import platform
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_info

from bifactor import kernels
from bifactor.arrays import HOST_ARRAY
from bifactor.cli.options import json_option
from bifactor.cli.output import DONE, FAILED, print_result
from bifactor.kernels.entry_layout import arrange
from bifactor.kernels.threading import from_environment, thread_count, usable_cores
from bifactor.losses import Squared
from bifactor.metrics import relative_error
from bifactor.operators import Entries
from bifactor.problems.objective import Problem
from bifactor.running.solve import solve
from bifactor.validation import pluralize

NEEDED = (
    "bifactor",
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "narwhals",
    "array-api-compat",
    "threadpoolctl",
    "safetensors",
)
OPTIONAL = ("matplotlib", "pillow", "pandas", "polars", "pyarrow")

EXACT = 1e-8
"""Largest relative error of the solution to the completion problem."""

SPEED = (4000, 3000, 1_000_000, 10)
"""Rows, columns, entries and rank of the matrix that the speed is measured on."""

SECONDS = 1.0
"""Duration of that measurement."""


@click.command()
@json_option
def doctor() -> None:
    """Show versions, cores, caches and BLAS, and check in a few seconds that bifactor works on this machine.

    If something is wrong, advice is shown and the exit code is 1.
    """
    versions, machine, compiler = _versions(), _machine(), _numba()
    checks = [_kernels(), _recovery(), _speed()]
    wrong = [*_missing(versions), *(check["advice"] for check in checks if not check["ok"])]
    answer: dict[str, Any] = {
        "ok": not wrong,
        "versions": versions,
        "machine": machine,
        "numba": compiler,
        "blas": _blas(),
    }
    shown = [{name: value for name, value in check.items() if name != "advice"} for check in checks]
    answer |= {"checks": shown, "advice": [*wrong, *_advice(compiler, machine["usable"])]}
    print_result(answer, _summary(answer), FAILED if wrong else DONE)


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in (*NEEDED, *OPTIONAL):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def _missing(versions: dict[str, str | None]) -> list[str]:
    return [f"{name} is not installed. Run: pip install {name}" for name in NEEDED if versions[name] is None]


def _machine() -> dict[str, Any]:
    system = f"{platform.system()} {platform.machine()}"
    return {"system": system, "cores": os.cpu_count(), "usable": usable_cores()}


def _numba() -> dict[str, Any]:
    cache = _cache()
    return {
        "compiled": _entries(np.inf) is not _entries(0),
        "threads": thread_count(),
        # bifactor's kernels release the GIL and run on threads of its own, so no layer has to be installed.
        "threading_layer": "bifactor's own",
        "cache": None if cache is None else str(cache),
        "cache_writable": cache is not None and _writable(cache),
    }


def _cache() -> Path | None:
    """The folder of numba's cache; None if there is none, or if compilation is turned off."""
    stats = getattr(getattr(_entries(np.inf), "_dot", None), "stats", None)
    return None if stats is None or stats.cache_path is None else Path(stats.cache_path)


def _entries(size: float) -> ModuleType:
    """The kernels for this many observed entries."""
    kernel: ModuleType = kernels.get("entries", HOST_ARRAY, size)
    return kernel


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _blas() -> list[dict[str, Any]]:
    found = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return [
        {"library": library["internal_api"], "version": library["version"], "threads": library["num_threads"]}
        for library in found
    ]


def _advice(compiler: dict[str, Any], usable: int) -> list[str]:
    """Advice about settings that make bifactor slow, but not wrong."""
    said = []
    if not compiler["compiled"]:
        said.append("Kernels are not compiled, which is slow. Unset NUMBA_DISABLE_JIT.")
    elif not compiler["cache_writable"]:
        said.append("Kernels are compiled again in every process. Set NUMBA_CACHE_DIR to a writable folder.")
    variable = from_environment()
    if variable is not None and compiler["threads"] < usable:
        said.append(f"{compiler['threads']} of {usable} cores are used. Unset {variable[0]} to use all.")
    elif variable is not None and compiler["threads"] > usable:
        said.append(f"{compiler['threads']} threads share {usable} cores, which is slow. Unset {variable[0]}.")
    return said


def _kernels() -> dict[str, Any]:
    """Compare compiled kernels with their reference."""
    rng = np.random.default_rng(0)
    layout, _ = arrange(rng.integers(300, size=5000), rng.integers(200, size=5000), 300, 200)
    P, Q, w = rng.standard_normal((300, 5)), rng.standard_normal((200, 5)), rng.standard_normal(5000)
    pairs = [(kernel.dot(layout, P, Q), *kernel.both(layout, w, P, Q)) for kernel in map(_entries, (np.inf, 0))]
    error = max(float(np.max(np.abs(got - wanted))) for got, wanted in zip(*pairs, strict=True))
    return {
        "name": "compiled kernels agree with their reference",
        "ok": error <= 1e-9,  # false for NaN
        "found": f"largest difference {error:.1e}",
        "advice": "Compiled kernels return wrong numbers. Delete numba's cache, then reinstall numba and llvmlite.",
    }


def _recovery() -> dict[str, Any]:
    """Recover a matrix of rank 3 from a third of its entries."""
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((200, 3)), rng.standard_normal((150, 3))
    rows, cols = np.nonzero(rng.random((200, 150)) < 0.33)
    problem = Problem(Squared(), Entries(rows, cols, (200, 150)), np.einsum("ik,ik->i", U[rows], V[cols]))
    started = time.perf_counter()
    result = solve(problem, 3, rng=0, max_iter=1000, tol=1e-12)
    seconds = time.perf_counter() - started
    error = relative_error(result.U, result.V, U, V)
    return {
        "name": f"a completion problem is solved to {EXACT:g}",
        "ok": error <= EXACT,
        "found": f"relative error {error:.1e} after {pluralize(result.n_iter, 'iteration')} and {seconds:.2f} s",
        "advice": f"The run ended with: {result.status}. Reinstall numpy, scipy and numba; else report a bug.",
    }


def _speed() -> dict[str, Any]:
    """Measure how many entries per second go into one evaluation of the objective and its gradient."""
    m, n, size, rank = SPEED
    rng = np.random.default_rng(0)
    operator = Entries(rng.integers(m, size=size), rng.integers(n, size=size), (m, n))
    problem = Problem(Squared(), operator, rng.standard_normal(size))
    x = problem.kind.random(rng, (m, n), rank, problem.dtype)
    problem.f.evaluate(x)
    calls, started = 0, time.perf_counter()
    while (seconds := time.perf_counter() - started) < SECONDS:
        finite = np.isfinite(problem.f.evaluate(x).f)
        calls += 1
    rate = calls * size / seconds / 1e6
    return {
        "name": "the gradient is fast",
        "ok": bool(finite) and rate > 1,
        "found": f"{rate:.0f} million entries per second, rank {rank}, {thread_count()} threads",
        "million_entries_per_second": rate,
        "advice": f"{rate:.2g} million entries per second is slow. Unset NUMBA_DISABLE_JIT; check for other load.",
    }


def _summary(answer: dict[str, Any]) -> list[tuple[str, str]]:
    told, machine, compiler = answer["versions"], answer["machine"], answer["numba"]
    state = "writable" if compiler["cache_writable"] else "not writable"
    layer = f"{compiler['threads']} threads (layer: {compiler['threading_layer']})"
    return [
        ("versions", ", ".join(f"{name} {told[name]}" for name in ("python", *NEEDED) if told[name])),
        ("optional", ", ".join(f"{name} {told[name] or '(not installed)'}" for name in OPTIONAL)),
        ("machine", f"{machine['system']}, {machine['usable']} of {machine['cores']} cores"),
        ("numba", f"{layer}, cache {compiler['cache']} ({state})" if compiler["compiled"] else "turned off"),
        *(("BLAS", f"{one['library']} {one['version']}, {one['threads']} threads") for one in answer["blas"]),
        *(("ok" if check["ok"] else "FAILED", f"{check['name']}: {check['found']}") for check in answer["checks"]),
        *(("advice", sentence) for sentence in answer["advice"]),
        ("", "All is well." if answer["ok"] else "Something is wrong: see above."),
    ]
