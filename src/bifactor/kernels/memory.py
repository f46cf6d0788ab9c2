"""Large arrays in reused memory.

A new array of many megabytes costs a page fault per 4 kB when it is first written, which can take longer than the
computation (with 20 M observations, updating the measurements took 0.68 s in new memory and 0.03 s in reused memory).
Inside `recycle_buffers`, the memory of large arrays that are no longer referenced is reused.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from bifactor.arrays import Array

REUSED_BYTES = 1 << 20
"""The size in bytes from which memory is reused here; for smaller arrays, the allocator reuses it itself."""

SLACK = 1.5
"""The largest ratio of the size of a buffer to the requested size: blocks of rows differ in length."""

IDLE = 16
"""The number of new buffers after which one that was not in use meanwhile is freed: sizes have changed."""

_buffers: ContextVar["_Pool | None"] = ContextVar("buffers", default=None)


class _Pool:
    """Buffers, and for each the number of new ones that had been needed when it was last seen in use."""

    def __init__(self) -> None:
        self.buffers: list[Array] = []
        self.seen: list[int] = []
        self.needed = 0

    def take(self, size: int) -> Array:
        """The smallest free buffer that fits this many bytes, or a new one."""
        fitting = [k for k, held in enumerate(self.buffers) if size <= held.size <= SLACK * size]
        for k in sorted(fitting, key=lambda k: self.buffers[k].size):
            if _references(self.buffers, k) == _FREE:
                return self.buffers[k]
        self._let_go()
        self.buffers.append(np.empty(size, np.uint8))
        self.seen.append(self.needed)
        return self.buffers[-1]

    def _let_go(self) -> None:
        """Count a new buffer, and free those that have been idle for long."""
        self.needed += 1
        for k in range(len(self.buffers) - 1, -1, -1):
            if _references(self.buffers, k) > _FREE:
                self.seen[k] = self.needed
            elif self.needed - self.seen[k] > IDLE:
                del self.buffers[k], self.seen[k]


@contextmanager
def recycle_buffers() -> Iterator[None]:
    """While open in this thread, large arrays from `empty` share memory with earlier ones of the same context.

    Memory that no array uses is released at the end. A context inside another one has memory of its own.
    """
    token = _buffers.set(_Pool())
    try:
        yield
    finally:
        _buffers.reset(token)


def empty(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """`np.empty`, in reused memory if available."""
    dtype = np.dtype(dtype)
    needed = (prod(shape) if isinstance(shape, tuple) else shape) * dtype.itemsize
    pool = _buffers.get()
    if pool is None or needed < REUSED_BYTES:
        return np.empty(shape, dtype)
    return pool.take(needed)[:needed].view(dtype).reshape(shape)


def _references(buffers: list[Array], k: int) -> int:
    """The number of references to a buffer. All arrays on it count, since a view of a view refers to the buffer."""
    return sys.getrefcount(buffers[k])


_FREE = _references([np.empty(1, np.uint8)], 0)
"""The number of references to a free buffer, which differs between versions of Python."""


def zeros(shape: int | tuple[int, ...], dtype: Any) -> Array:
    """`np.zeros`, in reused memory if available."""
    array = empty(shape, dtype)
    array.fill(0)
    return array
