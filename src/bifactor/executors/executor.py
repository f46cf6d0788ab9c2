"""The base class of executors, which run passes over blocks of observations."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from bifactor.arrays import HOST_ARRAY, Array
from bifactor.errors import InputError
from bifactor.kernels.entry_layout import EntryLayout, arrange


class BlockData(NamedTuple):
    """The observations of a block, as kernels take them."""

    layout: EntryLayout
    y: Array
    weights: Array | None = None

    @classmethod
    def of(
        cls, outer: Array, inner: Array, y: Array, shape: tuple[int, int], weights: Array | None = None
    ) -> "BlockData":
        """Sort observations into the order of kernels.

        `outer` counts the rows of the longer side from the start of the block, `inner` is the index on the other side,
        and `shape` has the rows of the block and the length of the other side.
        """
        layout, order = arrange(outer, inner, *shape)
        if order is None:
            return cls(layout, y, weights)
        return cls(layout, y[order], None if weights is None else weights[order])


class Block(Protocol):
    """A block: some rows of the longer side of a matrix, and the observations there. It is small and can be pickled."""

    @property
    def start(self) -> int:
        """Its first row."""

    @property
    def stop(self) -> int:
        """The first row of the next block."""

    @property
    def size(self) -> int:
        """The number of observations."""

    @property
    def fingerprint(self) -> str:
        """Identifies its content."""

    def load(self, workspace: "Workspace | None" = None) -> BlockData:
        """Read it, into arrays of the workspace if there is one."""


class BlockResult(NamedTuple):
    """The result of a pass over one block."""

    tall: tuple[Array, ...] = ()
    """Arrays with one row for each row of the block."""
    sums: tuple[Any, ...] = ()
    """Values that are added over all blocks."""
    each: Any = None
    """A small value that is returned for each block."""


class PassResult(NamedTuple):
    """The result of a pass over all blocks."""

    tall: tuple[Array, ...]
    sums: tuple[Any, ...]
    each: list[Any]


class AxpyArray(NamedTuple):
    """A shared array that is `base + a·direction`: it need not be sent to workers that have these two."""

    value: Array
    base: Array
    direction: Array
    a: float


def value_of(shared: "Array | AxpyArray") -> Array:
    return shared.value if isinstance(shared, AxpyArray) else shared


Open = Callable[[Block, BlockData], Any]
"""Converts a block to the object that tasks work on. Can be pickled."""

Task = Callable[..., BlockResult]
"""`task(opened, tall, shared, *settings)`: `tall` are arrays with the rows of the block. A plain function."""


class Executor(ABC):
    """Runs tasks on all blocks, and adds their results in the order of the blocks."""

    def __deepcopy__(self, memo: Any) -> "Executor":
        """Itself: a copy of an estimator runs on the same machines."""
        return self

    @abstractmethod
    def run_pass(
        self,
        parts: Sequence[Block],
        opening: Open,
        task: Task,
        tall: Sequence[Array] = (),
        shared: Sequence[Array | AxpyArray] = (),
        settings: tuple[Any, ...] = (),
    ) -> PassResult:
        """Run a task on all blocks. Tall arrays have one row for each row of all blocks; shared ones are not cut."""

    def like(self, parts: Sequence[Block]) -> Array:
        """An array of the library of tall arrays."""
        return HOST_ARRAY

    def footprint(self, parts: Sequence[Block]) -> int:
        """Bytes that blocks take on this machine during a pass."""
        return 0


def add_sums(sums: tuple[Any, ...], more: tuple[Any, ...], into: bool = False) -> tuple[Any, ...]:
    """The sums so far plus those of one more block; arrays of the former are overwritten if `into`."""
    return tuple(_plus(a, b, into) for a, b in zip(sums, more, strict=True))


def _plus(a: Any, b: Any, into: bool) -> Any:
    return np.add(a, b, out=a) if into and isinstance(a, np.ndarray) and a.ndim else a + b


class Workspace:
    """Arrays that are reused for the next block."""

    def __init__(self) -> None:
        self._held: dict[str, Array] = {}

    def take(self, name: str, size: int, dtype: Any) -> Array:
        """An array of this size and dtype, in the memory of the last one of this name if that is large enough."""
        dtype = np.dtype(dtype)
        held = self._held.get(name)
        if held is None or held.size < size * dtype.itemsize:
            self._held.pop(name, None)
            held = self._held[name] = np.empty(size * dtype.itemsize, np.uint8)
        return held[: size * dtype.itemsize].view(dtype)


# Amounts of memory in text, such as "2GB".

UNITS = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

WRITTEN = re.compile(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?i?)b?\s*", re.IGNORECASE)

MOST = 1 << 60


def bytes_of(memory: Any, least: int = 1) -> int:
    """The number of bytes in "2GB", "512 MiB" or 2_000_000_000."""
    found = WRITTEN.fullmatch(memory) if isinstance(memory, str) else None
    if found is not None:
        number = float(found[1]) * UNITS[found[2].lower()]
    elif isinstance(memory, (int, np.integer)) and not isinstance(memory, bool):
        number = float(max(-1, min(int(memory), MOST)))  # others may be too large for a float
    elif isinstance(memory, (float, np.floating)) and np.isfinite(memory):
        number = float(memory)
    else:
        raise InputError(f"memory={memory!r} is not an amount of memory. Pass, for example, '2GB' or '512MiB'.")
    if not least <= number < MOST:
        needed = f"{least >> 20} MiB" if least >= 1 << 20 else f"{least} byte"
        raise InputError(f"memory={memory!r} is too little, or too much. Pass at least {needed}.")
    return int(number)
