"""Functions that the workers of a cluster run: they depend only on arguments, so lost results can be computed again."""

import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Semaphore
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bifactor.arrays import Array
from bifactor.executors.executor import Block, PassResult, Task, add_sums
from bifactor.executors.streamed import READ
from bifactor.kernels.threading import threads

Sums = tuple[tuple[Any, ...], list[tuple[Any, Any, list[Array]]]]
"""Sums over some blocks, and what is reported for each visit to them."""

T = TypeVar("T")


class Work(NamedTuple):
    """A task on some neighbouring blocks."""

    parts: tuple[Block, ...]
    opening: bytes
    """The function that opens blocks, pickled."""
    task: Task
    settings: tuple[Any, ...]
    tall: int
    """The number of tall arrays that it takes."""
    threads: int
    memory: int
    """Bytes of blocks that a worker keeps."""


class PickledProgram(NamedTuple):
    """Functions of the parts of tall arrays."""

    pickled: bytes
    """A `planned.Program`, pickled so that Dask does not look into it."""
    threads: int


def compute(program: PickledProgram, each: list[Any], *bundles: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a part that are kept, followed by those that are asked for."""
    with _cores(program.threads):
        kept, asked = pickle.loads(program.pickled).run(aligned(each), aligned(bundles))
    return (*kept, *asked)


def aligned(value: Any) -> Any:
    """The same, with copies of arrays that are not aligned, as those sent by other workers may be.

    NumPy may round products of matrices differently if they are not.
    """
    if isinstance(value, np.ndarray):
        return value if value.flags.aligned else value.copy()
    if type(value) in (list, tuple):
        return type(value)(aligned(one) for one in value)
    return value


@contextmanager
def _cores(count: int) -> Iterator[None]:
    """Use this many threads, when they are free: tasks of one worker together have at most as many as it has."""
    from distributed import get_worker

    with _lock:
        if count not in _free:
            _free[count] = Semaphore(max(1, get_worker().state.nthreads // count))
    with _free[count], threads(count):
        yield


def nth(values: tuple[Any, ...], k: int) -> tuple[Any]:
    """A tuple of one of the values."""
    return (values[k],)


def requested(count: int, *values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The values of some parts that are asked for, without those that are kept."""
    return [value[count:] for value in values]


class VisitResult(NamedTuple):
    """The result of a pass over some blocks."""

    tall: tuple[Array, ...]
    """The tall arrays of the task, followed by others that were computed for it and are kept."""
    sums: tuple[Any, ...]
    told: tuple[Any, Any, list[Array]]
    """The values of the task for each block, sums of tall arrays, and its tall arrays without their rows."""


def run_blocks(
    work: Work, shared: list[Array], program: PickledProgram, each: list[Any], *bundles: tuple[Any, ...]
) -> VisitResult:
    with _cores(work.threads):
        kept, asked = pickle.loads(program.pickled).run(aligned(each), aligned(bundles))
        tall, sums = asked[: work.tall], asked[work.tall :]
        passed = _passed(work, tall, tuple(aligned(shared)))
    return VisitResult((*passed.tall, *kept), passed.sums, (passed.each, sums, [a[:0] for a in passed.tall]))


def _passed(work: Work, tall: tuple[Array, ...], shared: tuple[Array, ...]) -> PassResult:
    """Run the task on one block after the other."""
    sums, cut, each, first = None, [], [], work.parts[0].start
    for part in work.parts:
        own = tuple(a[part.start - first : part.stop - first] for a in tall)
        one = work.task(_opened(work, part), own, shared, *work.settings)
        sums = one.sums if sums is None else add_sums(sums, one.sums, into=True)
        cut.append(one.tall)
        each.append(one.each)
    whole = cut[0] if len(cut) == 1 else tuple(np.concatenate(column) for column in zip(*cut, strict=True))
    return PassResult(whole, sums or (), each)


def tall_of(visit: VisitResult) -> tuple[Array, ...]:
    return visit.tall


def identity(value: Any) -> Any:
    return value


def axpy(base: Array, direction: Array, a: float) -> Array:
    """The same as `Factors.plus`, to the last bit."""
    return base + a * direction


def sums_of(*visits: VisitResult) -> Sums:
    """The sums of some visits, by the same tree as with `add_visits`."""
    return tree([(visit.sums, [visit.told]) for visit in visits], add_visits)


def add_visits(left: Sums, right: Sums) -> Sums:
    return add_sums(left[0], right[0]), left[1] + right[1]


def tree(values: list[T], join: Callable[[T, T], T]) -> T:
    """All values joined, neighbours first: the order depends only on their number."""
    while len(values) > 1:
        pairs = [values[k : k + 2] for k in range(0, len(values), 2)]
        values = [pair[0] if len(pair) == 1 else join(*pair) for pair in pairs]
    return values[0]


_blocks: "OrderedDict[tuple[str, bytes], tuple[int, Any]]" = OrderedDict()
_free: dict[int, Semaphore] = {}
"""The tasks that may run at once, for each number of threads."""
_lock = Lock()


def _opened(work: Work, part: Block) -> Any:
    """The block, from memory if this worker has kept it."""
    name = (part.fingerprint, work.opening)
    with _lock:
        if name in _blocks:
            _blocks.move_to_end(name)
            return _blocks[name][1]
    opened = pickle.loads(work.opening)(part, part.load())
    with _lock:
        _blocks[name] = READ * part.size, opened
        while sum(size for size, _ in _blocks.values()) > work.memory and len(_blocks) > 1:
            _blocks.popitem(last=False)
    return opened


TASKS = tuple(f.__name__ for f in (run_blocks, compute, nth, requested, tall_of, sums_of, add_visits, identity, axpy))
"""The beginnings of the names that Dask gives to tasks."""
