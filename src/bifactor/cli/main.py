"""`bifactor`, the command."""

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import click

from bifactor.cli.output import (
    INTERRUPTED,
    JSON,
    TERMINATED,
    WRITING,
    WRITTEN,
    emit_json,
    escape_controls_in_lines,
    interrupt_code,
)
from bifactor.cli.signals import answer_written, ended_by_signal
from bifactor.errors import BifactorError

EXAMPLES = """\b
Examples:
  bifactor complete ratings.csv -o fit
  bifactor predict fit pairs.csv
  bifactor recommend fit --user 42
  bifactor evaluate fit later.csv
  bifactor partition ratings/*.parquet -o blocks
  bifactor impute table.csv -o full.csv
  bifactor inpaint photo.jpg --mask mask.png -o whole.png
  bifactor tomography counts.csv --qubits 4
  bifactor reproduce all

\b
Run bifactor COMMAND --help for the options of a command.
"""

COMMANDS = {
    "complete": "Fit a matrix to the known entries in a file.",
    "predict": "Predict other entries.",
    "recommend": "Show the columns with the largest predictions for a row.",
    "evaluate": "Evaluate a fit on entries that it has not seen.",
    "partition": "Write data larger than memory to disk, in blocks.",
    "impute": "Fill in the holes of a table.",
    "inpaint": "Fill in the hidden pixels of a picture.",
    "tomography": "Find the quantum state that makes counts most likely.",
    "reproduce": "Run the paper's experiments and write a report.",
    "doctor": "Show versions and cores, and check the installation.",
    "demo": "Complete a photograph, ratings and a table.",
}
"""Commands and their short help, kept here so that --help does not import all of them."""

ELSEWHERE = {"reproduce": "pip install ./reproduce, in a clone of the repository"}
"""Commands that other packages provide, and how to install these."""


class _Interrupted(click.ClickException):
    exit_code = INTERRUPTED


class _Terminated(click.ClickException):
    exit_code = TERMINATED


class _Group(click.Group):
    """Imports a command when it is called, and shows bifactor's own errors in one line.

    Any other exception is a bug and keeps its traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in COMMANDS and name not in ELSEWHERE:
            command: click.Command = getattr(import_module(f"bifactor.cli.{name}"), name)
            return command
        for entry in entry_points(group="bifactor.commands", name=name):
            added: click.Command = entry.load()
            return added
        if name in ELSEWHERE:
            raise click.ClickException(
                f"`bifactor {name}` is a separate package, which is not installed. Install it with: {ELSEWHERE[name]}"
            )
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, *arguments: Any, **options: Any) -> Any:
        with answer_written():
            return super().main(*arguments, **options)

    def invoke(self, ctx: click.Context) -> object:
        with ended_by_signal(ctx):
            try:
                return super().invoke(ctx)
            except click.ClickException as error:
                raise _told(ctx, error) from error
            except BifactorError as error:
                raise _told(ctx, click.ClickException(str(error))) from error
            except KeyboardInterrupt as error:
                kind = _Terminated if interrupt_code() == TERMINATED else _Interrupted
                when = "again while the fit was written" if ctx.meta.get(WRITING) else "before there was a fit"
                told = f"Interrupted {when}. Nothing was written."
                if ctx.meta.get(WRITTEN):
                    told = "Interrupted after the fit was written."
                raise _told(ctx, kind(told)) from error
            except MemoryError as error:
                lacking = "There is not enough memory. Use fewer entries or a smaller rank."
                raise _told(ctx, click.ClickException(lacking)) from error


def _told(context: click.Context, error: click.ClickException) -> click.ClickException:
    """The error with control characters shown, which is also printed as JSON if the output is JSON."""
    vars(error)["message"] = escape_controls_in_lines(error.message)
    if context.meta.get(JSON, False):
        emit_json({"error": error.format_message()})
    return error


@click.group(cls=_Group, epilog=EXAMPLES)
@click.version_option(package_name="bifactor")
def main() -> None:
    """Find low-rank matrices: any smooth convex loss, any linear measurement."""
