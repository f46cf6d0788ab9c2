"""Blocks on workers elsewhere: where they are, what is sent there, and how sums are added, whichever engine runs it.

`RemoteExecutor` is everything but the engine. The functions that workers run follow it: they depend only on their
arguments, so that lost results can be computed again.
"""

import pickle
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Semaphore
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError, LostError
from bifactor.executors.deferred import Deferred, DeferredPlan, ReductionBatch
from bifactor.executors.executor import (
    AxpyArray,
    Block,
    Executor,
    Open,
    PassResult,
    Task,
    add_sums,
    bytes_of,
    value_of,
)
from bifactor.executors.row_array import RowArray, RowPlacement, inner_products, spread
from bifactor.executors.streamed import READ
from bifactor.kernels.threading import threads, usable_cores
from bifactor.validation import is_count, positive

SHARED = 8
"""The number of shared arrays whose copies on workers are remembered."""

GLANCE = 2.0
"""Seconds between two checks of whether workers make progress while a result is outstanding."""

GROUPS = 128
"""The largest number of tasks in a pass; more blocks than this share them. A task takes about a millisecond to send."""

BRANCH = 8
"""The largest number of tasks of one worker whose sums are added in one more task; their memory is held until then."""

CONNECT = 20.0
"""Seconds that an engine may take to answer, and then to have its first worker."""

Future = Any
"""What an engine returns for a result that is elsewhere."""


class RemoteExecutor(Executor):
    """Blocks are read and processed by workers elsewhere, which also hold the factor of their rows.

    This is everything but the engine that runs functions on workers: blocks have homes, arrays that all blocks need are
    copied to each worker once, and sums are added on the way by a tree that depends on the number of blocks only. A
    subclass says how functions are sent to workers and how results are fetched: `address`, `workers`, `send`, `wait`
    and `gather`, and `progress`, `losses` and `capacity` if their defaults do not suit it.

    Parameters
    ----------
    memory : int or str
        Bytes of blocks that a worker keeps; it reads the others in every pass.
    threads : int, optional
        The number of threads of each task; by default, that of the smallest worker.
    patience : float
        Seconds without a finished task, or without workers, after which `LostError` is raised.
    """

    losses: tuple[type[Exception], ...] = (OSError,)
    """The errors by which an engine reports that results are lost; all others are those of a task."""

    def __init__(self, memory: int | str = "8GB", threads: int | None = None, patience: float = 600.0):
        self.memory = bytes_of(memory)
        self.patience = positive(patience, "patience", "It counts seconds.")
        if threads is not None and not is_count(threads, 1):
            raise InputError(f"threads={threads!r} is not an integer ≥ 1.")
        self.threads = threads or min(self._workers(min(CONNECT, self.patience)).values())
        self._placements: dict[tuple[int, ...], OnWorkers] = {}
        self._copied: list[tuple[Array, dict[str, Future]]] = []
        """Shared arrays with their copies, the latest first."""
        self._tall: dict[Task, int] = {}
        """The largest number of tall arrays that each task has returned."""

    @property
    @abstractmethod
    def address(self) -> str:
        """Where the workers are, for messages."""

    @abstractmethod
    def workers(self) -> dict[str, int]:
        """The names of the workers that are available now, with their numbers of threads."""

    @abstractmethod
    def send(self, function: Callable[..., Any], columns: Sequence[Sequence[Any]], home: str | None) -> list[Future]:
        """Call a function once for each row of arguments, on one worker if possible, and on any worker if it is None.

        Arguments may be futures, and lists of futures: the function is called with their results. Functions depend only
        on their arguments: results that are lost are computed again where they are needed.
        """

    @abstractmethod
    def wait(self, futures: Sequence[Future], seconds: float) -> bool:
        """Whether all results are available; returns after so many seconds at the latest."""

    @abstractmethod
    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """Fetch results that are available; raises one of `losses` if some are lost and were not computed again."""

    @staticmethod
    def capacity() -> int:
        """The number of threads of the worker that calls this, for all of its tasks together."""
        return usable_cores()

    def progress(self) -> Any:
        """A value that changes while workers make progress; by default, nothing is known about it."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r}, threads={self.threads})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError(
            f"A {type(self).__name__} executor holds a connection and is not pickled. Set executor=None, or use save."
        )

    def like(self, parts: Sequence[Block]) -> Array:
        none: Any = RowArray(None, self._placement(parts), np.empty(0))
        return none

    def run_pass(
        self,
        parts: Sequence[Block],
        opening: Open,
        task: Task,
        tall: Sequence[Array] = (),
        shared: Sequence[Array | AxpyArray] = (),
        settings: tuple[Any, ...] = (),
    ) -> PassResult:
        placement = self._placement(parts)
        homes = placement.renewed_homes()
        # Inner products of tall arrays come with the sums of a pass: the terms of an objective need them.
        question = ReductionBatch([spread(a, placement).noted for a in tall], inner_products(tall))
        plan, opened = question.plan, pickle.dumps(opening)
        copies = [self._copies(a, sorted(set(homes))) for a in shared]
        some = [tuple(parts[a:b]) for a, b in groups(len(parts))]
        works = [Work(group, opened, task, settings, len(tall), self.share, self.memory) for group in some]
        near = [[copy[home] for copy in copies] for home in homes]
        visits = self.map(run_blocks, works, near, *placement.arguments(plan), homes=homes)
        # Tall arrays, if any, are separated from the sums, so that these can be freed once added; this takes tasks.
        lasting = bool(plan.kept) or self._tall.get(task, 1) > 0
        kept = self.map(tall_of, visits, homes=homes) if lasting else []
        total = self._sum(visits, homes)
        del visits
        sums, reports = self.values([total])[0]
        metas = reports[0][2]
        self._tall[task] = max(len(metas), self._tall.get(task, 0))
        question.set_results([products for _, products, _ in reports])
        if metas and not lasting:  # with other settings, the task returned none
            return self.run_pass(parts, opening, task, tall, shared, settings)
        bundle = plan.settle(kept, len(metas) + len(plan.kept), len(metas))
        found = tuple(RowArray(Deferred.made(bundle, k), placement, meta) for k, meta in enumerate(metas))
        return PassResult(found, sums, [one for each, _, _ in reports for one in each])  # type: ignore[arg-type]

    @property
    def share(self) -> "Share":
        return Share(self.threads, self.capacity)

    def values(self, futures: Sequence[Future]) -> list[Any]:
        """The results of futures; raises `LostError` if they are lost or do not arrive."""
        since, last = time.monotonic(), None
        losses: tuple[type[Exception], ...] = (TimeoutError, *self.losses)
        try:
            while not self.wait(futures, GLANCE):
                now = self.progress()
                since, last = (since if now == last else time.monotonic()), now
                if time.monotonic() - since > self.patience:
                    raise TimeoutError
            return self.gather(futures)
        except losses as error:
            said = " ".join(str(error).split())[:120]
            raise LostError(
                f"Workers of {self.address} are lost, or finished no task for {self.patience:g} s "
                f"({type(error).__name__}: {said}). Start workers, and resume from the checkpoint."
            ) from error

    def submit(self, function: Callable[..., Any], *arguments: Any, home: str | None = None) -> Future:
        """Call the function on a worker."""
        return self.map(function, *([a] for a in arguments), homes=[home])[0]

    def map(self, function: Callable[..., Any], *columns: Sequence[Any], homes: Sequence[str | None]) -> list[Future]:
        """Call the function for each row of arguments; neighbours that have the same home are sent together."""
        found: list[Future] = []
        for start, stop in runs(homes):
            found += self.send(function, [column[start:stop] for column in columns], homes[start])
        return found

    def _sum(self, visits: Sequence[Future], homes: Sequence[str]) -> Future:
        """The sums of a pass, by a tree that depends only on the number of blocks; some branches are one task."""
        if len(visits) <= BRANCH and homes[0] == homes[-1]:
            return self.submit(sums_of, *visits, home=homes[0])
        half = 1 << (len(visits) - 1).bit_length() - 1
        left, right = self._sum(visits[:half], homes[:half]), self._sum(visits[half:], homes[half:])
        return self.submit(add_visits, left, right, home=homes[0])  # the right half has fewer sums to send

    def _copies(self, shared: Array | AxpyArray, workers: list[str]) -> dict[str, Future]:
        """A copy of the array for each worker, computed there if possible."""
        value = value_of(shared)
        found = self._known_copies(value)
        if found is None and isinstance(shared, AxpyArray):
            base, direction = self._known_copies(shared.base), self._known_copies(shared.direction)
            if base is not None and direction is not None:
                both = [w for w in workers if w in base and w in direction]
                found = {w: self.submit(axpy, base[w], direction[w], shared.a, home=w) for w in both}
        found = dict(found or {})
        for w in (w for w in workers if w not in found):
            given = list(found.values())  # each is passed on to two others, so no machine sends to all
            found[w] = self.submit(identity, given[(len(given) - 1) // 2] if given else value, home=w)
        self._copied = [(value, found), *(pair for pair in self._copied if pair[0] is not value)][:SHARED]
        return found

    def _known_copies(self, array: Array) -> dict[str, Future] | None:
        return next((copies for known, copies in self._copied if known is array), None)

    def homes(self, count: int) -> list[str]:
        """The worker of each block: neighbours share one, and all have about the same number of blocks."""
        workers = sorted(self._workers(self.patience))
        return [workers[k * len(workers) // count] for k in range(count)]

    def _workers(self, patience: float) -> dict[str, int]:
        """The workers and their numbers of threads; raises `LostError` if there are none for so many seconds."""
        began = time.monotonic()
        while not (found := self.workers()):
            if time.monotonic() - began > patience:
                raise LostError(f"{self.address} has had no workers for {patience:g} s. Start some.")
            time.sleep(0.1)
        return found

    def _placement(self, parts: Sequence[Block]) -> "OnWorkers":
        cuts = (*(parts[a].start for a, _ in groups(len(parts))), parts[-1].stop)
        if cuts not in self._placements:
            self._placements[cuts] = OnWorkers(self, cuts)
        return self._placements[cuts]


class OnWorkers(RowPlacement):
    """Parts of arrays as futures, each on the worker of its blocks."""

    def __init__(self, executor: RemoteExecutor, cuts: tuple[int, ...]):
        super().__init__(cuts)
        self.executor = executor

    @cached_property
    def homes(self) -> list[str]:
        return self.executor.homes(len(self.cuts) - 1)

    def renewed_homes(self) -> list[str]:
        """The homes among the workers that are available now."""
        self.homes = self.executor.homes(len(self.cuts) - 1)
        return self.homes

    def arguments(self, plan: DeferredPlan) -> list[Sequence[Any]]:
        """The program, and its operands for each part."""
        program = PickledProgram(pickle.dumps(plan.program), self.executor.share)
        count = len(self.homes)
        return [[program] * count, [plan.each_of(k) for k in range(count)], *(a.handles for a in plan.bundles)]

    def run(self, plan: DeferredPlan) -> list[tuple[Any, ...]]:
        homes, executor, kept = self.homes, self.executor, len(plan.kept)
        anywhere = [None] * len(homes)  # the engine knows best where arrays are
        made = executor.map(compute, *self.arguments(plan), homes=anywhere if plan.bundles else homes)
        if not kept:
            return executor.values(made)
        if kept == 1:
            plan.settle(made, 1 + len(plan.program.asked))
        else:  # one may be held for longer than the others, whose memory is then freed
            plan.settle_apart([executor.map(nth, made, [k] * len(made), homes=anywhere) for k in range(kept)])
        some = [executor.submit(requested, kept, *made[a:b], home=homes[a]) for a, b in runs(homes)]
        return [part for answers in executor.values(some) for part in answers]

    def spread(self, parts: Sequence[Array]) -> list[Future]:
        return self.executor.map(identity, [(part,) for part in parts], homes=self.renewed_homes())

    def __str__(self) -> str:
        return f"workers of {self.executor.address}"


def groups(count: int) -> list[tuple[int, int]]:
    """The ranges of neighbouring blocks that share a task, for this many blocks; they do not depend on workers."""
    most = min(count, GROUPS)
    return [(k * count // most, (k + 1) * count // most) for k in range(most)]


def runs(homes: Sequence[Any]) -> list[tuple[int, int]]:
    """The ranges of neighbours with the same home."""
    starts = [k for k in range(len(homes)) if k == 0 or homes[k] != homes[k - 1]]
    return list(zip(starts, [*starts[1:], len(homes)], strict=True))


# What workers run.


class Share(NamedTuple):
    """What a task may use of its worker."""

    threads: int
    capacity: Callable[[], int]
    """The number of threads of the worker."""


class Work(NamedTuple):
    """A task on some neighbouring blocks."""

    parts: tuple[Block, ...]
    opening: bytes
    """The function that opens blocks, pickled."""
    task: Task
    settings: tuple[Any, ...]
    tall: int
    """The number of tall arrays that it takes."""
    share: Share
    memory: int
    """Bytes of blocks that a worker keeps."""


class PickledProgram(NamedTuple):
    """Functions of the parts of tall arrays."""

    pickled: bytes
    """A `PartProgram`, pickled so that no engine looks into it."""
    share: Share


Report = tuple[list[Any], tuple[Any, ...], list[Array]]
"""The values of a task for some blocks, terms of sums over tall arrays, and the tall results without their rows.

It is a plain tuple, which takes fewer bytes when it is sent.
"""


class VisitResult(NamedTuple):
    """The result of a pass over some blocks."""

    tall: tuple[Array, ...]
    """The tall arrays of the task, followed by others that were computed for it and are kept."""
    sums: tuple[Any, ...]
    report: Report


Sums = tuple[tuple[Any, ...], list[Report]]
"""Sums over some blocks, and what is reported for each visit to them."""

T = TypeVar("T")


def compute(program: PickledProgram, each: list[Any], *bundles: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of a part that are kept, followed by those that are asked for."""
    with _cores(program.share):
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
def _cores(share: Share) -> Iterator[None]:
    """Use a share of the threads when they are free: tasks of one worker together have at most as many as it has."""
    with _lock:
        if share not in _free:
            _free[share] = Semaphore(max(1, share.capacity() // share.threads))
    with _free[share], threads(share.threads):
        yield


def nth(values: tuple[Any, ...], k: int) -> tuple[Any]:
    """A tuple of one of the values."""
    return (values[k],)


def requested(count: int, *values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The values of some parts that are asked for, without those that are kept."""
    return [value[count:] for value in values]


def run_blocks(
    work: Work, shared: list[Array], program: PickledProgram, each: list[Any], *bundles: tuple[Any, ...]
) -> VisitResult:
    with _cores(work.share):
        kept, asked = pickle.loads(program.pickled).run(aligned(each), aligned(bundles))
        tall, products = asked[: work.tall], asked[work.tall :]
        passed = _passed(work, tall, tuple(aligned(shared)))
    report = passed.each, products, [a[:0] for a in passed.tall]
    return VisitResult((*passed.tall, *kept), passed.sums, report)


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
    return tree([(visit.sums, [visit.report]) for visit in visits], add_visits)


def add_visits(left: Sums, right: Sums) -> Sums:
    return add_sums(left[0], right[0]), left[1] + right[1]


def tree(values: list[T], join: Callable[[T, T], T]) -> T:
    """All values joined, neighbours first: the order depends only on their number."""
    while len(values) > 1:
        pairs = [values[k : k + 2] for k in range(0, len(values), 2)]
        values = [pair[0] if len(pair) == 1 else join(*pair) for pair in pairs]
    return values[0]


_blocks: "OrderedDict[tuple[str, bytes], tuple[int, Any]]" = OrderedDict()
_free: dict[Share, Semaphore] = {}
"""The tasks that may run at once, for each share."""
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
"""The names of the functions that are sent to workers."""
