"""Blocks on the workers of a Dask cluster."""

from collections.abc import Callable, Sequence
from typing import Any

from bifactor.errors import InputError
from bifactor.executors.remote import CONNECT, TASKS, RemoteExecutor

LARGE = "1TB"
"""The size of a graph above which Dask warns: here arrays are sent on purpose."""


class Dask(RemoteExecutor):
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
        super().__init__(memory, threads, patience)

    @property
    def address(self) -> str:
        return str(self.client.scheduler.address)

    @property
    def losses(self) -> tuple[type[Exception], ...]:  # type: ignore[override]
        from distributed import CancelledError, KilledWorker

        return CancelledError, KilledWorker, OSError

    def workers(self) -> dict[str, int]:
        found: dict[str, int] = self.client.nthreads()
        return found

    def send(self, function: Callable[..., Any], columns: Sequence[Sequence[Any]], home: str | None) -> list[Any]:
        import dask

        where = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGE}):
            found: list[Any] = self.client.map(function, *columns, pure=False, retries=3, **where)
        return found

    def wait(self, futures: Sequence[Any], seconds: float) -> bool:
        from distributed import TimeoutError, wait

        try:
            wait(futures, timeout=seconds)
        except TimeoutError:
            return False
        return True

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        found: list[Any] = self.client.sync(
            self.client._gather, list(futures), direct=True, callback_timeout=self.patience
        )
        return found

    @staticmethod
    def capacity() -> int:
        from distributed import get_worker

        return int(get_worker().state.nthreads)

    def progress(self) -> set[str]:
        """The tasks of runs that are assigned to workers."""
        keys = (str(key) for some in self.client.processing().values() for key in some)
        return {key for key in keys if key.startswith(TASKS)}


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
