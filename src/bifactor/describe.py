"""Reproducible descriptions of settings."""

import zlib
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import digest


def describe(value: Any) -> str:
    """A repr that is the same in every process: settings are shown by value, arrays by content, callables by name."""
    if isinstance(value, np.ndarray):
        return f"array({value.shape}, {value.dtype}, {digest(value)})"
    if sparse.issparse(value):
        entries = value.tocoo()
        return f"sparse({value.shape}, {value.dtype}, {digest(entries.row, entries.col, entries.data)})"
    if isinstance(value, np.random.Generator):
        return f"Generator({zlib.crc32(repr(value.bit_generator.state).encode())})"
    if isinstance(value, partial):
        return f"partial({describe(value.func)}, {describe(value.args)}, {describe(value.keywords)})"
    if isinstance(value, Callable) and hasattr(value, "__qualname__"):  # type: ignore[arg-type]
        code = getattr(value, "__code__", None)  # distinguishes lambdas with the same name
        body = "" if code is None else f"#{zlib.crc32(code.co_code + repr(code.co_consts).encode())}"
        return f"{value.__module__}.{value.__qualname__}{body}"
    plain = getattr(type(value), "__repr__", None) is object.__repr__  # would show an address
    if is_dataclass(value) or plain:
        names = [f.name for f in fields(value)] if is_dataclass(value) else sorted(getattr(value, "__dict__", {}))
        settings = ", ".join(f"{name}={describe(getattr(value, name))}" for name in names)
        return f"{type(value).__name__}({settings})"
    return repr(value)
