"""The memory that an object holds."""

from math import prod
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays.backends import Array, dtype_of, is_array

CLOSED = (str, bytes, int, float, complex, type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""Types that are not searched; these include functions, although they may hold arrays."""


def array_bytes(value: Any) -> int:
    """Bytes of the arrays that an object holds, directly or indirectly, each counted once; caches are not counted.

    For a view, the array that it is a view of counts, since that stays in memory.
    """
    found, seen, ahead = 0, set(), [value]
    while ahead:
        one = ahead.pop()
        if id(one) in seen or isinstance(one, CLOSED):
            continue
        seen.add(id(one))
        if is_array(one):
            owner = _owner(one)
            if owner is one or id(owner) not in seen:
                seen.add(id(owner))
                found += prod(owner.shape) * dtype_of(owner).itemsize
        elif isinstance(one, dict):
            ahead += one.values()
        elif isinstance(one, (list, tuple, set, frozenset)):
            ahead += one
        else:
            parts = getattr(one, "__dict__", {}).items()
            ahead += [part for name, part in parts if not _is_cache(one, name, part)]
    return found


def _owner(array: Array) -> Array:
    while isinstance(array, np.ndarray) and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _is_cache(one: Any, name: str, part: Any) -> bool:
    """Whether an attribute is a cache: a cached property or a private dict."""
    private = name.startswith("_") and isinstance(part, dict)
    return private or isinstance(getattr(type(one), name, None), cached_property)
