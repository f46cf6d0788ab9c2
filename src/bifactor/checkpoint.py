"""Where a run is kept while it goes on."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from bifactor.errors import InputError
from bifactor.problem import Objective
from bifactor.result import Status
from bifactor.run import Run
from bifactor.solvers import Solver
from bifactor.validation import is_count


class Checkpoint:
    """Saves a run every `every` iterations and when it ends; without a path it does nothing."""

    def __init__(self, path: str | os.PathLike[str] | None, every: int, problem: Objective, rank: int, solver: Solver):
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise InputError(f"checkpoint={os.fspath(path)!r} is in a folder that does not exist. Create it first.")
        if not is_count(every, 1):
            raise InputError(f"checkpoint_every={every!r} is not an integer ≥ 1.")
        self.path = path
        self.every = every
        self.fingerprint = "" if path is None else _fingerprint(problem, rank, solver)

    def load(self) -> Run | None:
        """The run to go on with, if there is one."""
        if self.path is None or not Path(self.path).exists():
            return None
        return Run.load(self.path, self.fingerprint)

    def save(self, run: Run, status: Status | None) -> None:
        if self.path is not None and (status is not None or run.iteration % self.every == 0):
            run.save(self.path, self.fingerprint)


def describe(value: Any) -> str:
    """A repr that is the same in every process: settings by value, callables by name."""
    plain = getattr(type(value), "__repr__", None) is object.__repr__  # would show an address
    if is_dataclass(value) or plain:
        names = [f.name for f in fields(value)] if is_dataclass(value) else sorted(vars(value))
        settings = ", ".join(f"{name}={describe(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({settings})"
    if isinstance(value, Callable):  # type: ignore[arg-type]
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)


def _fingerprint(problem: Objective, rank: int, solver: Solver) -> str:
    text = f"{problem.fingerprint} {rank} {describe(solver)}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
