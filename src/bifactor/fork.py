"""What waits while the process forks.

A child has the thread that forked and no other. A lock that another thread held, or a module that it was importing,
would stay so in the child for ever, and the child would wait for it. So a fork waits until the locks named here are
free and no thread is importing a module of this package.
"""

import _imp
import concurrent.futures.thread  # noqa: F401  # see the end
import importlib._bootstrap
import os
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any

from bifactor.lazy import IMPORTING


class _NewImports:
    """While held, no thread begins to import a module."""

    acquire, release = staticmethod(_imp.acquire_lock), staticmethod(_imp.release_lock)


_locks: list[Any] = [threading.RLock(), IMPORTING]  # by the first, one thread forks at a time
_held: list[Any] = []


def hold_at_fork(lock: Any) -> None:
    """From now on no other thread holds the lock when the process forks, and in the child it is free."""
    _locks.append(lock)


def _importing() -> set[str]:
    """Modules of this package that are being imported, by any thread."""
    names: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})
    return {name for name in list(names) if name.startswith("bifactor")}


def _rest() -> None:
    waited: set[str] = set()  # what is still imported after that is imported by this thread
    while True:
        while begun := _importing() - waited:
            for name in begun:
                with suppress(Exception):  # it is raised where the module is imported
                    import_module(name)  # waits for the thread that is at it
            waited |= begun
        for lock in (*_locks, _NewImports):
            lock.acquire()
            _held.append(lock)
        if _importing() <= waited:
            return
        _resume()  # an import that has begun meanwhile may need one of the locks


def _resume() -> None:
    mine = _held[::-1]
    _held.clear()  # before the last of them is free, for which another thread that forks may wait
    for lock in mine:
        lock.release()


# Handlers that are registered while `_rest` waits are called after the fork alone. Those of `concurrent.futures` and of
# `logging`, which it imports, would then release what they have not acquired; so they are registered before.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_rest, after_in_parent=_resume, after_in_child=_resume)
