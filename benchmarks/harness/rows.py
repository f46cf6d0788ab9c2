"""Rows of results, the cases that can be timed on any commit, and the names of the benchmarks."""

import importlib
import pkgutil
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import benchmarks

Row = dict[str, Any]
NOUNS = ("objective", "data", "solver")
GROUPS = ("speed", "accuracy", "scale", "fuzz")
"""Packages of benchmarks; a name occurs in one of them, or beside them."""


class Absent(Exception):
    """Data or a library is missing; the message says which, and what to do."""

    def __init__(self, message: str, what: str = "") -> None:
        super().__init__(message)
        self.what = what


class Mistake(Exception):
    """A wrong name, commit or file on the command line."""


def library(name: str) -> ModuleType:
    """A module of another library."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise Absent(f"{error.name} is not installed. Install the `bench` extra, as `make bench` does.") from None


@dataclass(frozen=True)
class Case:
    """Something to time. `prepare` makes the data and returns `once`, which returns its seconds and iterations.

    This is what two commits must agree on, so it stays small: the three nouns are the identity of a case.
    """

    objective: str
    data: str
    solver: str
    prepare: Callable[[], Callable[[], Row]]

    @property
    def nouns(self) -> Row:
        return {"objective": self.objective, "data": self.data, "solver": self.solver}


def row(objective: str, data: str, solver: str, **numbers: Any) -> Row:
    """One measurement. Rows with the same nouns are repeats, told apart by `draw`: a seed, fold, round or picture."""
    return {"objective": objective, "data": data, "solver": solver, **numbers}


def timed(function: Callable[[], Any]) -> Row:
    """Seconds of a call, and the iterations of the fit it returns, where it returns one."""
    started = time.perf_counter()
    fit = function()
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "iterations": getattr(fit, "n_iter", None)}


def or_skipped(make: Callable[[], Iterable[Row]], **nouns: str) -> list[Row]:
    """The rows, or one that says why there are none."""
    try:
        return list(make())
    except Absent as reason:
        return [{**row("", reason.what, ""), **nouns, "skipped": str(reason)}]


def run_cases(cases: Iterable[Case], rounds: int = 5) -> list[Row]:
    """Each case on its own, repeated."""
    rows = []
    for case in cases:
        once = case.prepare()
        once()  # compiles
        rows += [row(**case.nouns, draw=k, **once()) for k in range(rounds)]
    return rows


def paths() -> dict[str, str]:
    """The module of each benchmark, by its name."""
    found = {}
    for root in benchmarks.__path__:
        for package in ("", *GROUPS):
            for module in pkgutil.iter_modules([str(Path(root, package))]):
                if not module.ispkg and module.name[0] != "_":
                    found[module.name] = ".".join(filter(None, ("benchmarks", package, module.name)))
    return found


def names() -> list[str]:
    return sorted(paths())


def load(name: str) -> ModuleType:
    found = paths()
    if name not in found:
        raise Mistake(f"There is no benchmark named {name!r}. Choose from: {', '.join(sorted(found))}.")
    return importlib.import_module(found[name])


def median(numbers: Iterable[float]) -> float:
    return float(statistics.median(numbers))
