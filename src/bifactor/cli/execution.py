"""Where a fit of a block store runs: in this process, in several processes, or on a Dask cluster."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from bifactor.errors import InputError
from bifactor.executors import Dask, Executor, Streamed
from bifactor.kernels.threading import thread_count

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = ("memory", "dask", "workers")

DEFAULT = "2GB"

LOCAL = "127.0.0.1:0"
"""Any free port, for this machine only."""

COLUMNS = ("row", "col", "value", "weight", "delimiter", "header", "wide", "decimal")
"""Options that say how a file is read."""


def block_options(command: Command) -> Command:
    """Add the options for block stores."""
    added = [
        click.option(
            "--memory", metavar="SIZE", help=f"For a block store: memory for its blocks; by default {DEFAULT}."
        ),
        click.option("--dask", metavar="ADDRESS", help="For a block store: address of the Dask scheduler to fit it."),
        click.option("--workers", type=click.IntRange(min=1), help="For a block store: number of processes to fit it."),
    ]
    for option in reversed(added):
        command = option(command)
    return command


def require_blocks(context: click.Context, stored: bool) -> None:
    """Raise `UsageError` for options that exclude each other, or that do not apply to DATA."""
    given = [f"--{name}" for name in OPTIONS if context.params[name] is not None]
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} exclude each other. Pass one of them.")
    if given and not stored:
        raise click.UsageError(f"{given[0]} is for block stores, which bifactor partition writes. Pass such a folder.")
    given = [name for name in COLUMNS if context.params[name] is not None]
    given += ["text-names"] * context.params["text_names"]
    strange = given if stored else []
    if strange:
        option = "long" if strange[0] == "wide" and not context.params["wide"] else strange[0]
        raise click.UsageError(f"--{option} is for files; a block store knows its columns. Leave it out.")


@contextmanager
def executor_of(options: dict[str, Any]) -> Iterator[Executor]:
    """The executor that the options ask for; its processes end with the context."""
    if options["dask"] is not None:
        yield Dask(options["dask"])
    elif options["workers"] is not None:
        with _processes(options["workers"]) as client:
            yield Dask(client)
    else:
        yield Streamed(options["memory"] or DEFAULT)


@contextmanager
def _processes(count: int) -> Iterator[Any]:
    """A cluster of processes on this machine, not reachable from others."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise InputError('Dask is not installed. Run: pip install "bifactor[dask]".') from None
    each = max(1, thread_count() // count)
    # Without these, Dask warns if port 8787 is in use, and Dask 2024.8 serves pages to other machines.
    pages = {"dashboard_address": LOCAL, "worker_dashboard_address": LOCAL, "scheduler_kwargs": {"dashboard": False}}
    settings = {"n_workers": count, "threads_per_worker": each, "host": "127.0.0.1", **pages}
    with LocalCluster(**settings, silence_logs=50) as cluster, Client(cluster) as client:
        client.run(_ignore_interrupts)
        yield client


def _ignore_interrupts() -> None:
    """Leave Ctrl-C to the main process, which ends the workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
