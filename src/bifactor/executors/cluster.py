"""Blocks on the workers of a Dask cluster."""

import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.arrays.rows import Each, Placement, Rows, spread
from bifactor.errors import InputError, LostError
from bifactor.executors import on_workers
from bifactor.executors.base import Executor, Gathered, Moved, Open, Part, Task, value_of
from bifactor.executors.sizes import bytes_of
from bifactor.validation import is_count, positive

SHARED = 8
"""Arrays that are known to be on all workers."""

GLANCE = 2.0
"""Seconds after which somebody who waits looks whether there is anybody to wait for."""

CONNECT = 20.0
"""Seconds that a scheduler may take to answer."""

LARGE = "1TB"
"""Of a graph, from which on Dask warns: arrays that are sent are meant."""


class Dask(Executor):
    """Blocks are read and worked on by the workers of a Dask cluster, where the factor of their rows stays, too.

    Tasks are plain functions of blocks that can be read again: what a worker takes with it when it dies is made again
    by others, to the same bits. Sums are taken in the order of the blocks, so that the number of workers does not
    change a bit of the result; the number of threads does.

    Parameters
    ----------
    client : distributed.Client or str
        Or the address of a scheduler, as "tcp://127.0.0.1:8786".
    memory : int or str
        Bytes of blocks that a worker keeps; the others it reads in every pass.
    threads : int, optional
        Of each task; by default as many as the smallest worker has.
    patience : float
        Seconds that a pass may take, and that there may be no workers, before `LostError` is raised.
    """

    def __init__(self, client: Any, memory: int | str = "8GB", threads: int | None = None, patience: float = 600.0):
        self.client = _client(client)
        self.memory = bytes_of(memory)
        self.patience = positive(patience, "patience", "It counts seconds.")
        if threads is not None and not is_count(threads, 1):
            raise InputError(f"threads={threads!r} is not an integer ≥ 1.")
        self.threads = threads or min(self._nthreads().values())
        self._placements: dict[tuple[int, ...], _OnWorkers] = {}
        self._known: list[tuple[Array, dict[str, Any]]] = []

    def __repr__(self) -> str:
        return f"Dask({self.client.scheduler.address!r}, threads={self.threads})"

    def like(self, parts: Sequence[Part]) -> Array:
        none: Any = Rows((), self._placement(parts), np.empty(0))
        return none

    def over(
        self,
        parts: Sequence[Part],
        opening: Open,
        task: Task,
        tall: Sequence[Array] = (),
        shared: Sequence[Array | Moved] = (),
        settings: tuple[Any, ...] = (),
    ) -> Gathered:
        placement = self._placement(parts)
        homes = self._homes(len(parts))
        cut = [spread(a, placement) for a in tall]
        copies = [self._copies(a, sorted(set(homes))) for a in shared]
        how = pickle.dumps(opening)
        passed = []
        for k, (part, home) in enumerate(zip(parts, homes, strict=True)):
            work = on_workers.Work(part, how, task, settings, self.threads, self.memory)
            own, near = [a.handles[k] for a in cut], [copy[home] for copy in copies]
            passed.append(self._submit(on_workers.run_block, work, own, near, home=home))
        sums, each = self.values([self._tree(self._map(on_workers.sums_of, passed))])[0]
        found = [
            Rows(tuple(self._map(on_workers.tall_of, passed, [k] * len(passed))), placement, meta)
            for k, meta in enumerate(each[0][1])
        ]
        return Gathered(tuple(found), sums, [one for one, _ in each])  # type: ignore[arg-type]

    def apply(self, function: Callable[..., Any], operands: Sequence[Any], count: int) -> list[Any]:
        """The function of each part of the operands, as futures."""
        columns = ([_at(a, k) for k in range(count)] for a in (self.threads, function, *operands))
        return self._map(on_workers.call, *columns)

    def values(self, futures: Sequence[Any]) -> list[Any]:
        """What futures stand for; `LostError` where it is lost, or does not come."""
        from distributed import CancelledError, KilledWorker, TimeoutError, wait
        from distributed.comm import CommClosedError

        began = seen = time.monotonic()
        try:
            while True:
                try:
                    wait(futures, timeout=GLANCE)
                    break
                except TimeoutError:
                    now = time.monotonic()
                    seen = now if self._nthreads() else seen
                    if max(now - began, now - seen) > self.patience:
                        raise
            found: list[Any] = self.client.sync(
                self.client._gather, list(futures), direct=True, callback_timeout=self.patience
            )
            return found
        except (CancelledError, KilledWorker, CommClosedError, TimeoutError) as error:
            said = " ".join(str(error).split())[:120]
            raise LostError(
                f"Workers of {self.client.scheduler.address} are lost, or did not answer for {self.patience:g} s "
                f"({type(error).__name__}: {said}). Start workers, and resume from the checkpoint."
            ) from error

    def spread(self, parts: Sequence[Array]) -> list[Any]:
        """Arrays of this machine, taken to where their blocks are."""
        homes = self._homes(len(parts))
        return [self._submit(on_workers.same, part, home=home) for part, home in zip(parts, homes, strict=True)]

    def _submit(self, function: Callable[..., Any], *arguments: Any, home: str | None = None) -> Any:
        import dask

        where: dict[str, Any] = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            return self.client.submit(function, *arguments, pure=False, retries=3, **where)

    def _map(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """The function of each row of arguments, sent in one message."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            found: list[Any] = self.client.map(function, *columns, pure=False, retries=3)
        return found

    def _tree(self, futures: list[Any]) -> Any:
        """Their sum, by a tree that depends on their number alone."""
        while len(futures) > 1:
            pairs = [futures[k : k + 2] for k in range(0, len(futures), 2)]
            futures = [pair[0] if len(pair) == 1 else self._submit(on_workers.joined, *pair) for pair in pairs]
        return futures[0]

    def _copies(self, shared: Array | Moved, workers: list[str]) -> dict[str, Any]:
        """A copy of the array for each worker, made there where that is possible."""
        value = value_of(shared)
        found = self._held(value)
        if found is None and isinstance(shared, Moved):
            base, direction = self._held(shared.base), self._held(shared.direction)
            if base is not None and direction is not None:
                both = [w for w in workers if w in base and w in direction]
                found = {w: self._submit(on_workers.moved, base[w], direction[w], shared.a, home=w) for w in both}
        found = found or {}
        missing = [w for w in workers if w not in found]
        if missing:
            root = next(iter(found.values()), None) or self._submit(on_workers.same, value, home=missing[0])
            found = found | {w: self._submit(on_workers.same, root, home=w) for w in missing}
        self._known = [(value, found), *(pair for pair in self._known if pair[0] is not value)][:SHARED]
        return found

    def _held(self, array: Array) -> dict[str, Any] | None:
        return next((copies for known, copies in self._known if known is array), None)

    def _homes(self, count: int) -> list[str]:
        """The worker of each block: neighbours have one, and all about as many."""
        workers = sorted(self._nthreads())
        began = time.monotonic()
        while not workers:
            if time.monotonic() - began > self.patience:
                raise LostError(
                    f"{self.client.scheduler.address} has had no workers for {self.patience:g} s. Start some."
                )
            time.sleep(0.1)
            workers = sorted(self._nthreads())
        return [workers[k * len(workers) // count] for k in range(count)]

    def _nthreads(self) -> dict[str, int]:
        found: dict[str, int] = self.client.nthreads()
        return found

    def _placement(self, parts: Sequence[Part]) -> "_OnWorkers":
        cuts = (*(part.start for part in parts), parts[-1].stop)
        if cuts not in self._placements:
            self._placements[cuts] = _OnWorkers(self, cuts)
        return self._placements[cuts]


class _OnWorkers(Placement):
    """Parts of arrays as futures, each where its block is."""

    def __init__(self, executor: Dask, cuts: tuple[int, ...]):
        self.executor, self.cuts = executor, cuts

    def apply(self, function: Callable[..., Any], operands: Sequence[Any]) -> list[Any]:
        return self.executor.apply(function, operands, len(self.cuts) - 1)

    def collect(self, handles: Sequence[Any]) -> list[Any]:
        return self.executor.values(handles)

    def spread(self, parts: Sequence[Array]) -> list[Any]:
        return self.executor.spread(parts)

    def __str__(self) -> str:
        return "workers of a Dask cluster"


def _at(operand: Any, k: int) -> Any:
    return operand.handles[k] if isinstance(operand, Rows) else operand[k] if isinstance(operand, Each) else operand


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
