"""What an object holds in memory."""

from math import prod
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from bifactor.arrays.libraries import Array, dtype_of, is_array
from bifactor.caching import cached_property

CLOSED = (str, bytes, int, float, complex, type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)
"""What is not looked into. Functions are not, although they may hold arrays: nobody counts on these."""


def held(value: Any) -> int:
    """Bytes of the arrays that an object holds, directly or in others, each once; what it caches is not counted.

    Of an array that is a view it is the one it looks at that counts: that is what stays in memory.
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
    """Whether an attribute holds what can be made again; so a private dict is understood, too."""
    private = name.startswith("_") and isinstance(part, dict)
    return private or isinstance(getattr(type(one), name, None), cached_property)
