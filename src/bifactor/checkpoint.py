"""Where a run is kept while it goes on."""

import hashlib
import os
import warnings
from pathlib import Path

from bifactor import files
from bifactor.errors import FileError, InputError
from bifactor.result import Status
from bifactor.run import Run
from bifactor.validation import is_count


class Checkpoint:
    """Saves a run every `every` iterations and when it ends; without a path it does nothing.

    A write that fails in the middle of a run warns and lets the run go on: the answer is worth more than its copy.
    """

    def __init__(self, path: str | os.PathLike[str] | None, every: int, *identity: str):
        if not is_count(every, 1):
            raise InputError(f"checkpoint_every={every!r} is not an integer ≥ 1. It counts iterations.")
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise InputError(f"checkpoint={path!r} is not a path. Pass the name of a file.")
        self.path = None if path is None else Path(path)
        self.every = every
        self.fingerprint = hashlib.blake2b(" ".join(identity).encode(), digest_size=16).hexdigest()
        if self.path is not None:
            files.require_writable(self.path)

    def load(self) -> Run | None:
        """The run to go on with, if there is one."""
        if self.path is None or not self.path.exists():
            return None
        return Run.load(self.path, self.fingerprint)

    def save(self, run: Run, status: Status | None) -> None:
        if self.path is not None and (status is not None or run.iteration % self.every == 0):
            try:
                run.save(self.path, self.fingerprint)
            except FileError as error:
                warnings.warn(f"Iteration {run.iteration} is not in the checkpoint. {error}", stacklevel=4)
