"""What the workers of a cluster run: plain functions of their arguments, so that whatever is lost can be made again."""

import pickle
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

from bifactor.arrays import Array
from bifactor.executors.base import Part, Passed, Task, added
from bifactor.executors.streamed import READ
from bifactor.kernels.threads import threads

Sums = tuple[tuple[Any, ...], list[tuple[Any, list[Array]]]]
"""Sums over some blocks, and what is told of each of them, with its tall arrays but for their rows."""


class Work(NamedTuple):
    """A task on one block."""

    part: Part
    opening: bytes
    """How the block is opened, pickled."""
    task: Task
    settings: tuple[Any, ...]
    threads: int
    memory: int
    """Bytes of blocks that a worker keeps."""


def run_block(work: Work, tall: list[Array], shared: list[Array]) -> Passed:
    with threads(work.threads):
        return work.task(_opened(work), tuple(tall), tuple(shared), *work.settings)


def call(count: int, function: Callable[..., Any], *arguments: Any) -> Any:
    with threads(count):
        return function(*arguments)


def same(value: Any) -> Any:
    return value


def moved(base: Array, direction: Array, a: float) -> Array:
    """As `Factors.plus` has it, to the last bit."""
    return base + a * direction


def tall_of(passed: Passed, k: int) -> Array:
    return passed.tall[k]


def sums_of(passed: Passed) -> Sums:
    return passed.sums, [(passed.each, [a[:0] for a in passed.tall])]


def joined(left: Sums, right: Sums) -> Sums:
    return added(left[0], right[0]), left[1] + right[1]


_blocks: "OrderedDict[tuple[str, bytes], tuple[int, Any]]" = OrderedDict()
_lock = Lock()


def _opened(work: Work) -> Any:
    """The block, from memory where this worker has it."""
    name = (work.part.fingerprint, work.opening)
    with _lock:
        if name in _blocks:
            _blocks.move_to_end(name)
            return _blocks[name][1]
    opened = pickle.loads(work.opening)(work.part, work.part.load())
    with _lock:
        _blocks[name] = READ * work.part.size, opened
        while sum(size for size, _ in _blocks.values()) > work.memory and len(_blocks) > 1:
            _blocks.popitem(last=False)
    return opened
