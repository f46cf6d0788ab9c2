"""Blocks on the workers of a Dask cluster."""

import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.errors import InputError, LostError
from bifactor.executors import remote
from bifactor.executors.deferred import Deferred, DeferredPlan, ReductionBatch
from bifactor.executors.executor import AxpyArray, Block, Executor, Open, PassResult, Task, bytes_of, value_of
from bifactor.executors.row_array import RowArray, RowPlacement, inner_products, spread
from bifactor.validation import is_count, positive

SHARED = 8
"""The number of shared arrays whose copies on workers are remembered."""

GLANCE = 2.0
"""Seconds between two checks of whether workers make progress while a result is outstanding."""

GROUPS = 128
"""The largest number of tasks in a pass; more blocks than this share them. Dask takes about a millisecond per task."""

BRANCH = 8
"""The largest number of tasks of one worker whose sums are added in one more task; their memory is held until then."""

CONNECT = 20.0
"""Seconds that a scheduler may take to answer, and then to have its first worker."""

LARGE = "1TB"
"""The size of a graph above which Dask warns: here arrays are sent on purpose."""


class Dask(Executor):
    """Blocks are read and processed by the workers of a Dask cluster, which also hold the factor of their rows.

    Tasks are plain functions of blocks that can be read again: what is lost when a worker dies is computed again by
    others, bit for bit. Sums are taken in the order of the blocks, so that the result does not depend on the number of
    workers, not even in the last bit; it does depend on the number of threads.

    Parameters
    ----------
    client : distributed.Client or str
        The client, or the address of a scheduler, such as "tcp://127.0.0.1:8786".
    memory : int or str
        Bytes of blocks that a worker keeps; it reads the others in every pass.
    threads : int, optional
        The number of threads of each task; by default, that of the smallest worker.
    patience : float
        Seconds without a finished task, or without workers, after which `LostError` is raised.
    """

    def __init__(self, client: Any, memory: int | str = "8GB", threads: int | None = None, patience: float = 600.0):
        self.client = _client(client)
        self.memory = bytes_of(memory)
        self.patience = positive(patience, "patience", "It counts seconds.")
        if threads is not None and not is_count(threads, 1):
            raise InputError(f"threads={threads!r} is not an integer ≥ 1.")
        self.threads = threads or min(self._workers(min(CONNECT, self.patience)).values())
        self._placements: dict[tuple[int, ...], OnWorkers] = {}
        self._known: list[tuple[Array, dict[str, Any]]] = []
        self._tall: dict[Task, int] = {}
        """The largest number of tall arrays that each task has returned."""

    def __repr__(self) -> str:
        return f"Dask({self.client.scheduler.address!r}, threads={self.threads})"

    def __reduce__(self) -> tuple[Any, ...]:
        raise InputError("A Dask executor holds a connection, which is not pickled. Set executor=None, or use save.")

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
        works = [remote.Work(group, opened, task, settings, len(tall), self.threads, self.memory) for group in some]
        near = [[copy[home] for copy in copies] for home in homes]
        visits = self.map(remote.run_blocks, works, near, *placement.arguments(plan), homes=homes)
        # Tall arrays, if any, are separated from the sums, so that these can be freed once added; this takes tasks.
        lasting = bool(plan.kept) or self._tall.get(task, 1) > 0
        kept = self.map(remote.tall_of, visits, homes=homes) if lasting else []
        total = self._sum(visits, homes)
        del visits
        sums, told = self.values([total])[0]
        metas = told[0][2]
        self._tall[task] = max(len(metas), self._tall.get(task, 0))
        question.set_results([found for _, found, _ in told])
        if metas and not lasting:  # with other settings, the task returned none
            return self.run_pass(parts, opening, task, tall, shared, settings)
        bundle = plan.settle(kept, len(metas) + len(plan.kept), len(metas))
        found = tuple(RowArray(Deferred.made(bundle, k), placement, meta) for k, meta in enumerate(metas))
        return PassResult(found, sums, [one for each, _, _ in told for one in each])  # type: ignore[arg-type]

    def values(self, futures: Sequence[Any]) -> list[Any]:
        """The results of futures; raises `LostError` if they are lost or do not arrive."""
        from distributed import CancelledError, KilledWorker, TimeoutError, wait

        alive, working = time.monotonic(), None
        try:
            while True:
                try:
                    wait(futures, timeout=GLANCE)
                    break
                except TimeoutError:
                    now = self._working()
                    alive, working = (alive if now == working else time.monotonic()), now
                    if time.monotonic() - alive > self.patience:
                        raise
            found: list[Any] = self.client.sync(
                self.client._gather, list(futures), direct=True, callback_timeout=self.patience
            )
            return found
        except (CancelledError, KilledWorker, OSError) as error:
            said = " ".join(str(error).split())[:120]
            raise LostError(
                f"Workers of {self.client.scheduler.address} are lost, or finished no task for {self.patience:g} s "
                f"({type(error).__name__}: {said}). Start workers, and resume from the checkpoint."
            ) from error

    def spread(self, parts: Sequence[Array], homes: Sequence[str]) -> list[Any]:
        """Send arrays of this machine to where their blocks are."""
        return self.map(remote.identity, [(part,) for part in parts], homes=homes)

    def submit(self, function: Callable[..., Any], *arguments: Any, home: str | None = None) -> Any:
        """Call the function on a worker; returns a future."""
        return self.map(function, *([a] for a in arguments), homes=[home])[0]

    def map(self, function: Callable[..., Any], *columns: Sequence[Any], homes: Sequence[str | None]) -> list[Any]:
        """Call the function for each row of arguments, with one message for neighbours that have the same home."""
        import dask

        found: list[Any] = []
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            for start, stop in runs(homes):
                where = {} if homes[start] is None else {"workers": [homes[start]], "allow_other_workers": True}
                rows = [column[start:stop] for column in columns]
                found += self.client.map(function, *rows, pure=False, retries=3, **where)
        return found

    def _sum(self, visits: Sequence[Any], homes: Sequence[str]) -> Any:
        """The sums of a pass, by a tree that depends only on the number of blocks; some branches are one task."""
        if len(visits) <= BRANCH and homes[0] == homes[-1]:
            return self.submit(remote.sums_of, *visits, home=homes[0])
        half = 1 << (len(visits) - 1).bit_length() - 1
        left, right = self._sum(visits[:half], homes[:half]), self._sum(visits[half:], homes[half:])
        return self.submit(remote.add_visits, left, right, home=homes[0])  # the right half has fewer sums to send

    def _copies(self, shared: Array | AxpyArray, workers: list[str]) -> dict[str, Any]:
        """A copy of the array for each worker, computed there if possible."""
        value = value_of(shared)
        found = self._held(value)
        if found is None and isinstance(shared, AxpyArray):
            base, direction = self._held(shared.base), self._held(shared.direction)
            if base is not None and direction is not None:
                both = [w for w in workers if w in base and w in direction]
                found = {w: self.submit(remote.axpy, base[w], direction[w], shared.a, home=w) for w in both}
        found = dict(found or {})
        for w in (w for w in workers if w not in found):
            given = list(found.values())  # each is passed on to two others, so no machine sends to all
            found[w] = self.submit(remote.identity, given[(len(given) - 1) // 2] if given else value, home=w)
        self._known = [(value, found), *(pair for pair in self._known if pair[0] is not value)][:SHARED]
        return found

    def _held(self, array: Array) -> dict[str, Any] | None:
        return next((copies for known, copies in self._known if known is array), None)

    def homes(self, count: int) -> list[str]:
        """The worker of each block: neighbours share one, and all have about the same number of blocks."""
        workers = sorted(self._workers(self.patience))
        return [workers[k * len(workers) // count] for k in range(count)]

    def _working(self) -> set[str]:
        """The tasks of runs that are assigned to workers: while these change, workers make progress."""
        keys = (str(key) for some in self.client.processing().values() for key in some)
        return {key for key in keys if key.startswith(remote.TASKS)}

    def _workers(self, patience: float) -> dict[str, int]:
        """The workers and their numbers of threads; raises `LostError` if there are none for so many seconds."""
        began = time.monotonic()
        found: dict[str, int] = self.client.nthreads()
        while not found:
            if time.monotonic() - began > patience:
                raise LostError(f"{self.client.scheduler.address} has had no workers for {patience:g} s. Start some.")
            time.sleep(0.1)
            found = self.client.nthreads()
        return found

    def _placement(self, parts: Sequence[Block]) -> "OnWorkers":
        cuts = (*(parts[a].start for a, _ in groups(len(parts))), parts[-1].stop)
        if cuts not in self._placements:
            self._placements[cuts] = OnWorkers(self, cuts)
        return self._placements[cuts]


class OnWorkers(RowPlacement):
    """Parts of arrays as futures, each on the worker of its blocks."""

    def __init__(self, executor: Dask, cuts: tuple[int, ...]):
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
        program = remote.PickledProgram(pickle.dumps(plan.program), self.executor.threads)
        count = len(self.homes)
        return [[program] * count, [plan.each_of(k) for k in range(count)], *(a.handles for a in plan.bundles)]

    def run(self, plan: DeferredPlan) -> list[tuple[Any, ...]]:
        homes, executor, kept = self.homes, self.executor, len(plan.kept)
        anywhere = [None] * len(homes)  # Dask knows best where arrays are
        made = executor.map(remote.compute, *self.arguments(plan), homes=anywhere if plan.bundles else homes)
        if not kept:
            return executor.values(made)
        if kept == 1:
            plan.settle(made, 1 + len(plan.program.asked))
        else:  # one may be held for longer than the others, whose memory is then freed
            plan.settle_apart([executor.map(remote.nth, made, [k] * len(made), homes=anywhere) for k in range(kept)])
        some = [executor.submit(remote.requested, kept, *made[a:b], home=homes[a]) for a, b in runs(homes)]
        return [part for told in executor.values(some) for part in told]

    def spread(self, parts: Sequence[Array]) -> list[Any]:
        return self.executor.spread(parts, self.renewed_homes())

    def __str__(self) -> str:
        return "workers of a Dask cluster"


def groups(count: int) -> list[tuple[int, int]]:
    """The ranges of neighbouring blocks that share a task, for this many blocks; they do not depend on workers."""
    most = min(count, GROUPS)
    return [(k * count // most, (k + 1) * count // most) for k in range(most)]


def runs(homes: Sequence[Any]) -> list[tuple[int, int]]:
    """The ranges of neighbours with the same home."""
    starts = [k for k in range(len(homes)) if k == 0 or homes[k] != homes[k - 1]]
    return list(zip(starts, [*starts[1:], len(homes)], strict=True))


def _client(client: Any) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise InputError('Dask is not installed. Run: pip install "bifactor[dask]".') from None
    if isinstance(client, Client):
        return client
    if not isinstance(client, str):
        raise InputError(f"client is {client!r}. Pass a distributed.Client, or the address of a scheduler.")
    try:
        return Client(client, timeout=CONNECT)
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())[:120]
        raise InputError(f"There is no Dask scheduler at {client} ({said}). Start one with: dask scheduler.") from None
