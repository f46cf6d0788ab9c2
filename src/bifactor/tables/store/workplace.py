"""A folder in which a block store is written, by one process at a time; an interrupted one can be continued."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from bifactor.errors import FileError, InputError
from bifactor.running import files
from bifactor.running.files import discard
from bifactor.tables.source import reading
from bifactor.tables.store.manifest import MANIFEST, MARGINALS, NAMES, restored, signed, unsigned

JOURNAL, LOCK = "journal.json", ".lock"

BEGUN, NAMED, SORTED = range(3)
"""Stages: nothing is finished; names and counts are written; observations are in the buckets of their blocks."""

OURS = re.compile(r"block-\d{5,}\.bin|bucket-\d{5,}\.tmp|\.(block|manifest|journal|names|marginals).*\.tmp")


class Workplace:
    """The folder, with a journal of the work so far."""

    def __init__(self, folder: Path, request: dict[str, Any], resumable: bool):
        self.folder, self.request = folder, request
        self.id, self.stage = uuid4().hex, BEGUN
        self.facts: dict[str, Any] = {}
        found = self._journal() if resumable else None
        if found is not None:
            self.id, self.stage, self.facts = found
        else:
            self.clear()
            self.note(BEGUN, {})

    def _journal(self) -> tuple[str, int, dict[str, Any]] | None:
        """The work that an earlier process has done for the same request."""
        try:
            content = unsigned(self.folder / JOURNAL)
            if content.get("request") != self.request or content.get("stage") not in (NAMED, SORTED):
                return None
            found = restored({**content["facts"], "blocks": []})
        except (FileError, ValueError, TypeError, KeyError):
            return None
        return (found.id, content["stage"], content["facts"]) if found.id == content["id"] else None

    def note(self, stage: int, facts: dict[str, Any]) -> None:
        """Record the stage."""
        self.stage, self.facts = stage, facts
        content = {"bifactor": "partition", "request": self.request, "id": self.id, "stage": stage, "facts": facts}
        files.put(self.folder / JOURNAL, signed(content))

    def bucket(self, number: int) -> Path:
        return self.folder / f"bucket-{number:05d}.tmp"

    def empty_buckets(self) -> None:
        for path in self.folder.glob("bucket-*.tmp"):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete the files of a store, the manifest first, so that half a store does not look complete."""
        for name in (MANIFEST, JOURNAL, NAMES, MARGINALS):
            (self.folder / name).unlink(missing_ok=True)
        for path in list(self.folder.iterdir()):
            if OURS.fullmatch(path.name):
                discard(path)

    def finish(self) -> None:
        """Delete all files but those of the store."""
        self.empty_buckets()
        (self.folder / JOURNAL).unlink(missing_ok=True)


def require_room(folder: Path, force: bool) -> None:
    """Raise `InputError` if a folder holds files that must not be replaced."""
    if not folder.exists():
        if not folder.parent.is_dir():
            raise InputError(f"{folder} is in a folder that does not exist. Create it first.")
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is a file. Pass the name of a folder.")
    for path in (folder / MANIFEST, folder / JOURNAL):
        if path.is_file() and not _is_signed(path):
            raise InputError(f"{path} does not belong to a block store. Choose another folder, or delete this file.")
    if force or (folder / JOURNAL).is_file():
        return
    if (folder / MANIFEST).is_file():
        raise InputError(f"{folder} holds a block store. Pass force (--force) to replace it, or choose another folder.")
    if any(path.name != LOCK for path in folder.iterdir()):
        raise InputError(f"{folder} holds other files. Choose another folder, or pass force (--force) to use it.")


def _is_signed(path: Path) -> bool:
    """Whether a file, perhaps damaged, was written by `signed`."""
    with reading(path), open(path, "rb") as file:
        return re.match(rb'\s*(\{\s*("content"|$)|$)', file.read(64)) is not None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder and lock it; raise if another process holds the lock, which ends with that process."""
    try:
        folder.mkdir(exist_ok=True)
        file = open(folder / LOCK, "a")  # noqa: SIM115
    except OSError as error:
        raise FileError(f"Cannot write to {folder}: {error.strerror}. Choose another folder.") from None
    with file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(file.fileno()), os.stat(folder / LOCK)):
                raise BlockingIOError  # the file was replaced after it was opened
        except ImportError:  # Windows
            pass
        except OSError:
            raise FileError(f"Another process is writing a block store to {folder}. Wait for it, or end it.") from None
        try:
            yield
        finally:
            with suppress(OSError):
                os.unlink(folder / LOCK)
