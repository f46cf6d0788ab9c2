"""Names of a package that are imported when they are first used, so that importing the package is fast."""

import sys
from collections.abc import Callable
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import Any

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
