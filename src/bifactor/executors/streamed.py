"""Passes over blocks on this machine, one after the other, in bounded memory."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from bifactor.arrays import Array
from bifactor.executors.executor import (
    AxpyArray,
    Block,
    BlockData,
    Executor,
    Open,
    PassResult,
    Task,
    Workspace,
    add_sums,
    bytes_of,
    value_of,
)
from bifactor.kernels.memory import empty

READ = 16
"""Bytes of an observation in memory, without its weight: its coordinates, its value, and what is read from disk."""


class Streamed(Executor):
    """Blocks are read one after the other, each while the one before is processed; tall arrays are NumPy arrays.

    As many blocks as fit into the budget stay in memory; the others are read in every pass.

    Parameters
    ----------
    memory : int or str
        Bytes for blocks, such as 2_000_000_000 or "2GB", in addition to the factors. Two blocks are always held.
    """

    def __init__(self, memory: int | str = "2GB"):
        self.memory = bytes_of(memory)
        self._kept: WeakKeyDictionary[Any, dict[str, tuple[int, Any]]] = WeakKeyDictionary()
        self._idle: list[Workspace] = []

    def __repr__(self) -> str:
        return f"Streamed(memory={self.memory})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.memory,)  # without blocks in memory, which can be read again

    def run_pass(
        self,
        parts: Sequence[Block],
        opening: Open,
        task: Task,
        tall: Sequence[Array] = (),
        shared: Sequence[Array | AxpyArray] = (),
        settings: tuple[Any, ...] = (),
    ) -> PassResult:
        rows = parts[-1].stop if parts else 0
        found: tuple[Array, ...] = ()
        sums: tuple[Any, ...] = ()
        each = []
        for part, opened in self._opened(parts, opening):
            own = tuple(a[part.start : part.stop] for a in tall)
            passed = task(opened, own, tuple(map(value_of, shared)), *settings)
            found = found or tuple(empty((rows, *a.shape[1:]), a.dtype) for a in passed.tall)
            for whole, block in zip(found, passed.tall, strict=True):
                whole[part.start : part.stop] = block
            sums = add_sums(sums, passed.sums, into=True) if sums else passed.sums
            each.append(passed.each)
        return PassResult(found, sums, each)

    def footprint(self, parts: Sequence[Block]) -> int:
        largest = max((part.size for part in parts), default=0)
        return max(2 * READ * largest, min(self.memory, READ * sum(part.size for part in parts)))

    def _opened(self, parts: Sequence[Block], opening: Open) -> Iterator[tuple[Block, Any]]:
        """Each block, ready for tasks."""
        kept = self._kept.setdefault(opening, {})
        queue = [part for part in parts if part.fingerprint not in kept]
        room = self._room(queue)
        with ThreadPoolExecutor(1, "bifactor-reader") as reader, self._spaces() as spaces:
            ahead = _ahead(reader, queue, spaces, room)
            for part in parts:
                if part.fingerprint in kept:
                    yield part, kept[part.fingerprint][1]
                    continue
                opened = opening(part, next(ahead))
                if part.fingerprint in room:
                    kept[part.fingerprint] = READ * part.size, opened
                yield part, opened

    @contextmanager
    def _spaces(self) -> Iterator[list[Workspace]]:
        """Two workspaces that no other pass uses."""
        spaces = [self._idle.pop() if self._idle else Workspace() for _ in range(2)]
        try:
            yield spaces
        finally:
            self._idle += spaces

    def _room(self, parts: Sequence[Block]) -> set[str]:
        """More blocks to keep in memory: the first ones that fit, besides two of the others if there are any."""
        sizes = [READ * part.size for part in parts]
        memory = self.memory - sum(size for held in self._kept.values() for size, _ in held.values())
        if sum(sizes) <= memory:
            return {part.fingerprint for part in parts}
        left, stay = memory - 2 * max(sizes), set()
        for part, size in zip(parts, sizes, strict=True):
            if size > left:
                break
            left -= size
            stay.add(part.fingerprint)
        return stay


def _ahead(
    reader: ThreadPoolExecutor, parts: list[Block], spaces: list[Workspace], stay: set[str]
) -> Iterator[BlockData]:
    """The blocks of some parts; while one is used, the next one is read into the other workspace."""

    def read(k: int) -> "Future[BlockData] | None":
        if k >= len(parts):
            return None
        # Blocks that stay in memory have their own arrays.
        return reader.submit(parts[k].load, None if parts[k].fingerprint in stay else spaces[k % 2])

    coming = read(0)
    for k in range(len(parts)):
        assert coming is not None
        here, coming = coming.result(), read(k + 1)
        yield here
