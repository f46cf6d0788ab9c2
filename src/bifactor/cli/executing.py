"""Where a fit of a block store runs: on this machine, on processes of it, or on a Dask cluster."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from bifactor.errors import InputError
from bifactor.executors import Dask, Executor, Streamed
from bifactor.kernels.threads import thread_count

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = ("memory", "dask", "workers")

DEFAULT = "2GB"

COLUMNS = ("row", "col", "value", "weight", "delimiter", "header", "wide", "decimal")
"""Options that say how a file is read."""


def block_options(command: Command) -> Command:
    """The options that go with a block store."""
    added = [
        click.option(
            "--memory", metavar="SIZE", help=f"Of a block store: bytes of blocks in memory, by default {DEFAULT}."
        ),
        click.option("--dask", metavar="ADDRESS", help="Of a block store: the Dask scheduler whose workers fit it."),
        click.option("--workers", type=click.IntRange(min=1), help="Of a block store: fit it by so many processes."),
    ]
    for option in reversed(added):
        command = option(command)
    return command


def require_blocks(context: click.Context, stored: bool) -> None:
    """Raise `UsageError` for options that do not go together, or not with what DATA is."""
    given = [f"--{name}" for name in OPTIONS if context.params[name] is not None]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} do not go together. Pass one of them.")
    if given and not stored:
        raise click.UsageError(f"{given[0]} is for a block store, which bifactor partition makes. Pass its folder.")
    strange = [name for name in COLUMNS if context.params[name] is not None] if stored else []
    if strange:
        option = "long" if strange[0] == "wide" and not context.params["wide"] else strange[0]
        raise click.UsageError(f"--{option} is for files, and a block store knows its columns. Leave it out.")


@contextmanager
def executor_of(options: dict[str, Any]) -> Iterator[Executor]:
    """What these options ask for; processes end with it."""
    if options["dask"] is not None:
        yield Dask(options["dask"])
    elif options["workers"] is not None:
        with _processes(options["workers"]) as client:
            yield Dask(client)
    else:
        yield Streamed(options["memory"] or DEFAULT)


@contextmanager
def _processes(count: int) -> Iterator[Any]:
    """A cluster of processes on this machine, which others cannot reach."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError('Dask is not installed. Run: pip install "bifactor[dask]".') from None
    each = max(1, thread_count() // count)
    settings = {"n_workers": count, "threads_per_worker": each, "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(**settings, silence_logs=50) as cluster, Client(cluster) as client:
        client.run(_ignore_interrupts)
        yield client


def _ignore_interrupts() -> None:
    """Ctrl-C is for the process that they work for, which ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
