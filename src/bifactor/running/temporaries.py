"""Names of temporary files and folders, next to their targets, and the deletion of those left unfinished."""

import hashlib
import os
import platform
import re
import shutil
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

LONGEST = 255
"""The largest number of bytes in a file name."""

ASIDE = ".old"

END = 35
"""The number of bytes at the end of a temporary name: the machine, the process and twelve random digits."""


def temporary_for(target: Path) -> Path:
    """A unique hidden name next to `target`."""
    return target.with_name(f"{_start(target)}{os.getpid():010d}-{uuid4().hex[:12]}.tmp")


def aside_of(target: Path) -> Path:
    """A name for the old content of `target` while it is being replaced."""
    return temporary_for(target).with_suffix(ASIDE)


def sweep(target: Path) -> None:
    """Delete temporary files and folders for `target` of processes on this machine that no longer run.

    Old content that was moved aside is moved back if nothing has replaced it.
    """
    if os.name != "posix":  # on other systems, there is no way to see whether a process runs
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
    """Delete a temporary file or folder, if possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _start(target: Path) -> str:
    """The name, shortened if needed, and a short hash of this machine or container.

    On a shared disk, one cannot see whether a process of another machine still runs.
    """
    name = os.fsencode(target.name)[: LONGEST - END - 1].decode("utf-8", "ignore")
    here = platform.node()
    with suppress(OSError):  # on Linux, the set of visible processes
        here += os.readlink("/proc/self/ns/pid")
    return f".{name}.{hashlib.blake2b(here.encode(), digest_size=3).hexdigest()}-"


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it belongs to another user
        return True
    return True
