"""`bifactor complete`: fit a file of known entries and write a folder."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from bifactor.applications import completion, recommender
from bifactor.applications.base import BLOCK_MEMORY
from bifactor.cli.monitor import TerminalWatch, log_option
from bifactor.cli.options import (
    INPUT,
    POSITIVE,
    Auto,
    Limits,
    Within,
    column_options,
    columns,
    force_option,
    json_option,
    seed_option,
)
from bifactor.cli.output import code_of, interrupt_code, print_result
from bifactor.cli.summary import click_summary, summary
from bifactor.executors import Dask, Executor, Streamed
from bifactor.losses.named import LOSSES
from bifactor.models.completion.fitting import NOISE_SETTINGS

CLICKS = {
    "n_components": "rank",
    **{name: name for name in ("ridge", "unobserved", "holdout", "max_iter", "tol")},
}
"""Arguments of the workflow of clicks, and the options that set them."""

VALUES = {
    "n_components": "rank",
    **{name: name for name in ("loss", "ridge", "noise", "offsets", "clip", "holdout", "test", "max_iter", "tol")},
    "error_bars": "error_bars",
}
"""Arguments of the workflow of values, and the options that set them."""

NUMBERS_ALONE = {
    "loss": "--loss",
    "noise": "--noise",
    "error_bars": "--error-bars",
    "offsets": "--offsets",
    "test": "--test",
}
"""Options that apply to values only, not to clicks."""

Command = TypeVar("Command", bound=Callable[..., Any])

WHERE = ("memory", "dask", "workers")
"""Options that say where a block store is fitted."""

COLUMNS = ("row", "col", "value", "weight", "delimiter", "header", "wide", "decimal")
"""Options that say how a file is read."""


EXAMPLES = """\b
Examples:
  bifactor complete ratings.csv -o fit
  bifactor complete ratings.tsv.gz --rank 10 --holdout 0.1 -o fit
  bifactor complete log.csv --row user --col song --value plays --loss poisson -o fit
  bifactor complete table.csv --wide --rank auto -o fit
  bifactor complete train.csv --test test.csv --json -o fit
  bifactor complete clicks.csv --implicit -o fit
  bifactor complete blocks --memory 2GB --log fit.jsonl -o fit
  bifactor complete blocks --dask tcp://scheduler:8786 -o fit
"""


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


@click.command(epilog=EXAMPLES)
@click.argument("data", type=INPUT)
@click.option("-o", "--output", type=INPUT, required=True, help="Folder to write.")
@click.option("--implicit/--no-implicit", default=None, help="DATA holds choices: clicks, plays or purchases.")
@click.option(
    "--rank", type=Auto(int), default="auto", show_default=True, help="Number of components; 0 for offsets alone."
)
@click.option("--loss", type=click.Choice(list(LOSSES)), default="squared", show_default=True, help="Loss function.")
@click.option(
    "--ridge", type=Auto(float), help="Ridge; 0 for none. By default, fits with squared loss have error bars instead."
)
@click.option(
    "--noise",
    type=click.Choice(NOISE_SETTINGS),
    default="auto",
    show_default=True,
    help="Noise model of fits with error bars.",
)
@click.option("--error-bars/--no-error-bars", default=True, show_default=True, help="Keep error bars in the folder.")
@click.option(
    "--offsets/--no-offsets", default=True, show_default=True, help="Fit an intercept and offsets of rows and columns."
)
@click.option("--clip", type=Limits(), default="auto", show_default=True, help="Keep predictions in this range.")
@click.option(
    "--unobserved", type=Auto(float), default="auto", help="With --implicit: weight of items that were not chosen."
)
@click.option("--names", type=INPUT, help="With --implicit: file of items and titles, for the report.")
@click.option(
    "--holdout",
    type=Within(0, 0.9),
    default=0.0,
    help="Share of entries to score a first fit on; by default 0, or 0.1 with --implicit.",
)
@click.option("--test", type=INPUT, help="File of entries to score the fit on.")
@click.option("--checkpoint", type=INPUT, help="File to save the run to, and to resume it from.")
@block_options
@log_option
@click.option(
    "--max-iter", type=click.IntRange(min=1), default=1000, show_default=True, help="Most iterations of a fit."
)
@click.option(
    "--tol", type=POSITIVE, default=1e-5, show_default=True, help="Stop when the fit changes by less than this."
)
@seed_option
@column_options(value=True)
@force_option
@json_option
def complete(data: Path, output: Path, implicit: bool | None, **options: Any) -> None:
    """Complete the matrix whose known entries are in DATA.

    DATA is a file: csv, tsv or other text with one entry per line (row, column, value) or one row per line with holes;
    JSON lines, LIBMF triples or MatrixMarket; any of these gzipped; parquet; or npz. Rows and columns may have any
    names. DATA may also be the folder of a block store, which bifactor partition writes for data larger than memory.
    Its blocks are fitted on this machine within --memory, by --workers processes, or by a --dask cluster.

    The output folder holds the factors, the names, a card in JSON and a report, report.html. Read it in Python with
    bifactor.load. Ctrl-C or SIGTERM ends the fit early and writes the best fit so far;
    after the fit, it leaves out the scores or the report.

    With --implicit, DATA has one line per choice (user, item), with counts in the column --value if there are any.
    Pairs that were not chosen count as 0 with a small weight. The defaults are then 128 components, at most 100
    iterations and a tolerance of 1e-4.
    """
    context = click.get_current_context()
    require_clicks(context, implicit)
    require_blocks(context, data.is_dir())
    if options["rank"] == 0 and not options["offsets"]:
        raise click.UsageError("--rank 0 with --no-offsets leaves nothing to fit. Leave out one of the two.")
    place = {name: options[name] for name in ("checkpoint", "force")} | {"output": output, "watch": TerminalWatch()}
    how = {"random_state": options["seed"], **where_to_run(options), **place, **columns(options)}
    if implicit:
        completed = recommender.complete(data, **_given(context, CLICKS), titles=options["names"], **how)
        lines = click_summary(completed.card, output)
    else:
        given = {name: options[option] for name, option in VALUES.items()}
        completed = completion.complete(data, implicit=implicit, **given, **how)
        lines = summary(completed.card, output)
    code = interrupt_code() if completed.interrupted else code_of(completed.fit.model.result.status)
    print_result({"output": str(output), **completed.card}, lines, code)


def require_clicks(context: click.Context, implicit: bool | None) -> None:
    """Raise `UsageError` for options that apply only to values, or only to clicks."""
    if implicit:
        strange = [option for name, option in NUMBERS_ALONE.items() if _is_given(context, name)]
        if strange:
            advice = " Judge the fit with bifactor evaluate." if strange == ["--test"] else " Leave it out."
            raise click.UsageError(f"{strange[0]} is for values and cannot be used with --implicit.{advice}")
        if context.params["rank"] == 0:
            raise click.UsageError("--rank 0 leaves no components to rank by. Pass an integer ≥ 1.")
        if context.params["unobserved"] == 0:
            raise click.UsageError("With --unobserved 0 the fit is 1 everywhere. Pass a number above 0, such as 0.1.")
        return
    for name in ("unobserved", "names"):
        if _is_given(context, name):
            raise click.UsageError(
                f"--{name} requires --implicit, for clicks, plays and purchases. Pass both or neither."
            )


def require_blocks(context: click.Context, stored: bool) -> None:
    """Raise `UsageError` for options that exclude each other, or that do not apply to DATA."""
    given = [f"--{name}" for name in WHERE if context.params[name] is not None]
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


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _given(context: click.Context, names: Mapping[str, str]) -> dict[str, Any]:
    """The arguments that were given; for others, and for --rank auto, the workflow has defaults of its own."""
    given = {name: context.params[option] for name, option in names.items() if _is_given(context, option)}
    return {name: value for name, value in given.items() if (name, value) != ("n_components", "auto")}
