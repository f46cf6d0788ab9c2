"""Exchange two folders, in one step if the system can."""

import ctypes
import os
import sys
from pathlib import Path

from bifactor.running.temporaries import aside_of

HERE, EXCHANGE = -100, 2
"""AT_FDCWD and RENAME_EXCHANGE of Linux."""


def exchange(new: Path, old: Path) -> None:
    """Exchange the names of two folders.

    On systems other than Linux, and on file systems that cannot do this in one step, it takes three: a process that is
    killed between them leaves `old` under another name, and `sweep` restores it.
    """
    if _exchanged(new, old):
        return
    aside = aside_of(old)
    try:
        old.rename(aside)
        new.rename(old)
    except BaseException:
        if aside.exists() and not old.exists():
            aside.rename(old)
        raise
    aside.rename(new)


def _exchanged(new: Path, old: Path) -> bool:
    """Try it in one step, and return whether the system has done it."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:  # a C library from before 2018
        return False
    return rename(HERE, os.fsencode(new), HERE, os.fsencode(old), ctypes.c_uint(EXCHANGE)) == 0
