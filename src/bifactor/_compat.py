"""Names of a package that are imported when they are first used, so that importing the package is fast."""

import _imp
import concurrent.futures.thread  # noqa: F401  # see the end
import importlib._bootstrap
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any, Generic, Self, TypeVar, overload

IMPORTING = RLock()
"""Held during a late import: two threads that import the same packages in different orders see half of them."""


def imported(name: str) -> ModuleType:
    """A module, imported by one thread at a time."""
    with IMPORTING:
        return import_module(name)


def lazy(package: str, homes: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package.

    `homes` maps each name to its module, in the package or by its full name; a module is its own home.
    """
    names = sorted(homes)

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = imported(home if home.startswith("bifactor.") else f"{package}.{home}")
        value = module if home == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return __getattr__, lambda: names, names


# Properties that are computed once.

T = TypeVar("T")


class cached_property(Generic[T]):
    """`functools.cached_property` as in Python 3.12 and later.

    Before 3.12, it holds one lock for all objects of a class during the computation: fits in several threads wait for
    each other, and a child process forked meanwhile waits for ever. Without the lock, threads that need the value at
    the same time may each compute it.
    """

    def __init__(self, function: Callable[[Any], T]):
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> T | Self:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.function(instance)
        return value


# Locks that are held while the process forks.
#
# A child process has only the thread that forked. A lock that another thread held would stay locked in the child for
# ever, and a module that it was importing would never be finished. So a fork waits until the locks registered here are
# free and no thread is importing a module of this package.


class _NewImports:
    """A lock that keeps all threads from beginning to import a module."""

    acquire, release = staticmethod(_imp.acquire_lock), staticmethod(_imp.release_lock)


_locks: list[Any] = [threading.RLock(), IMPORTING]  # with the first, one thread forks at a time
_held: list[Any] = []


def hold_at_fork(lock: Any) -> None:
    """Ensure that no other thread holds the lock when the process forks, so that it is free in the child."""
    _locks.append(lock)


def _importing() -> set[str]:
    """The modules of this package that are being imported by any thread."""
    names: dict[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})
    return {name for name in list(names) if name.startswith("bifactor")}


def _rest() -> None:
    waited: set[str] = set()  # modules that are still being imported after this are imported by this thread
    while True:
        while begun := _importing() - waited:
            for name in begun:
                with suppress(Exception):  # it is raised in the thread that imports the module
                    import_module(name)  # waits for the thread that imports it
            waited |= begun
        known = (*_locks, _NewImports)
        for lock in known:
            lock.acquire()
            _held.append(lock)
        if _importing() <= waited and known == (*_locks, _NewImports):
            return
        _resume()  # an import has begun meanwhile, and may need one of the locks; or one has registered another lock


def _resume() -> None:
    mine = _held[::-1]
    _held.clear()  # before the last one is released, for which another forking thread may wait
    for lock in mine:
        lock.release()


# Handlers that are registered while `_rest` waits are called only after the fork. Those of `concurrent.futures` and of
# `logging`, which it imports, would then release locks that they have not acquired; so they are registered before.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_rest, after_in_parent=_resume, after_in_child=_resume)
