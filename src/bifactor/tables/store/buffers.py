"""Memory that is used again."""

from typing import Any

import numpy as np

from bifactor.arrays import Array


class Buffers:
    """Hands out arrays by name; one that is asked for again lies in the memory that the last one of its name had."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def take(self, name: str, size: int, dtype: Any) -> Array:
        """A vector with undefined content."""
        dtype = np.dtype(dtype)
        needed = size * dtype.itemsize
        held = self._held.get(name)
        if held is None or held.size < needed:
            held = self._held[name] = np.empty(needed, np.uint8)
        return held[:needed].view(dtype)
