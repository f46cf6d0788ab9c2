"""Names for what is not done yet, beside what it will be; and an end to those that nobody will finish."""

import hashlib
import os
import platform
import re
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

LONGEST = 255
"""Bytes of a name in a folder."""

ASIDE = ".old"

END = 35
"""Bytes of the end of a temporary name: the machine, the process and twelve letters by chance."""


def temporary_for(target: Path) -> Path:
    """A hidden name beside `target` that nobody else has."""
    return target.with_name(f"{_start(target)}{os.getpid():010d}-{uuid4().hex[:12]}.tmp")


def aside_of(target: Path) -> Path:
    """A name for what has been at `target`, for the moment in which something else takes its place."""
    return temporary_for(target).with_suffix(ASIDE)


def sweep(target: Path) -> None:
    """Delete temporary files and folders for `target` of processes on this machine that run no more.

    What was put aside is put back where nothing has taken its place.
    """
    if os.name != "posix":  # elsewhere one cannot ask whether a process runs
        return
    pattern = re.compile(re.escape(_start(target)) + r"(\d{10})-[0-9a-f]{12}(\.tmp|\.old)")
    try:
        names = os.listdir(target.parent)
    except OSError:
        return
    for name in names:
        found = pattern.fullmatch(name)
        if found is None or _runs(int(found[1])):
            continue
        if found[2] == ASIDE and not os.path.lexists(target):
            with suppress(OSError):
                target.with_name(name).rename(target)
        else:
            discard(target.with_name(name))


def discard(path: Path) -> None:
    """Delete a temporary file or folder, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _start(target: Path) -> str:
    """The name, as much of it as there is room for, and a few letters for this machine, or container.

    On a shared disk others cannot be asked whether a process of theirs runs.
    """
    name = os.fsencode(target.name)[: LONGEST - END - 1].decode("utf-8", "ignore")
    here = platform.node()
    with suppress(OSError):  # of Linux: which processes can be seen
        here += os.readlink("/proc/self/ns/pid")
    return f".{name}.{hashlib.blake2b(here.encode(), digest_size=3).hexdigest()}-"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is somebody else's
        return True
    return True
