"""Where a fit of a block store runs: in this process, in several processes, or on a Dask cluster."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from bifactor.applications.base import BLOCK_MEMORY
from bifactor.executors import Dask, Executor, Streamed

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = ("memory", "dask", "workers")

COLUMNS = ("row", "col", "value", "weight", "delimiter", "header", "wide", "decimal")
"""Options that say how a file is read."""


def block_options(command: Command) -> Command:
    """Add the options for block stores."""
    added = [
        click.option(
            "--memory", metavar="SIZE", help=f"For a block store: memory for its blocks; by default {BLOCK_MEMORY}."
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


def where_to_run(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a workflow that say where passes over blocks run."""
    executor: Executor | None = None
    if options["dask"] is not None:
        executor = Dask(options["dask"])
    elif options["memory"] is not None:
        executor = Streamed(options["memory"])
    return {"executor": executor, "workers": options["workers"]}
