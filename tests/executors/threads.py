"""An executor whose workers are threads of this process, and may lose what they hold."""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import Any
from weakref import WeakSet

from bifactor.executors import RemoteExecutor


class Call:
    """A function with its arguments, which is called on a thread, and again where a result is needed that was lost."""

    def __init__(self, pool: ThreadPoolExecutor, home: str, function: Callable[..., Any], arguments: Sequence[Any]):
        self.home, self.function, self.arguments = home, function, arguments
        self.lost = False
        self.future = pool.submit(self.run)

    def run(self) -> Any:
        return self.function(*map(result_of, self.arguments))


def result_of(argument: Any) -> Any:
    """The argument with results in the place of calls."""
    if isinstance(argument, list):
        return [result_of(one) for one in argument]
    if not isinstance(argument, Call):
        return argument
    return argument.run() if argument.lost else argument.future.result()


class Threads(RemoteExecutor):
    """Blocks are processed by threads, each of which is a worker."""

    losses = (CancelledError,)

    def __init__(self, count: int = 2, patience: float = 60.0):
        self._pools = {f"thread {k}": ThreadPoolExecutor(1) for k in range(count)}
        self._calls: WeakSet[Call] = WeakSet()
        self._interrupted = False
        super().__init__(threads=1, patience=patience)

    @property
    def address(self) -> str:
        return "this process"

    def workers(self) -> dict[str, int]:
        return dict.fromkeys(self._pools, 1)

    def send(self, function: Callable[..., Any], columns: Sequence[Sequence[Any]], home: str | None) -> list[Call]:
        home = min(self._pools) if home is None else home
        found = [Call(self._pools[home], home, function, row) for row in zip(*columns, strict=True)]
        self._calls.update(found)
        return found

    def wait(self, futures: Sequence[Call], seconds: float) -> bool:
        return not wait([call.future for call in futures], seconds).not_done

    def gather(self, futures: Sequence[Call]) -> list[Any]:
        if self._interrupted:
            self._interrupted = False
            raise CancelledError("a thread was lost on the way")
        return [result_of(call) for call in futures]

    def progress(self) -> int:
        return sum(call.future.done() for call in self._calls)

    def lose(self, home: str) -> None:
        """Lose the results of a worker, and what is fetched next, as if it had died and another had taken its place."""
        for call in list(self._calls):
            call.lost |= call.home == home
        self._interrupted = True
