"""`bifactor`, the command."""

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import click

from bifactor.cli.endings import answer_written, ended_by_signal
from bifactor.cli.look import INTERRUPTED, JSON, TERMINATED, emit_json, interrupted
from bifactor.errors import BifactorError

EXAMPLES = """\b
Examples:
  bifactor complete ratings.csv -o fit       fit a matrix to some of its entries
  bifactor predict fit pairs.csv             predict others
  bifactor recommend fit --user 42           the best columns of a row
  bifactor evaluate fit later.csv            how good predictions and lists are
  bifactor partition ratings/*.parquet -o blocks    data larger than memory
  bifactor impute table.csv -o full.csv      fill in the holes of a table
  bifactor inpaint photo.jpg --mask mask.png -o whole.png    fill in a picture
  bifactor tomography counts.csv --qubits 4  a quantum state from counts
  bifactor reproduce all                     the experiments of the paper
  bifactor doctor                            check the installation
"""

COMMANDS = {
    "complete": "Complete a matrix from the entries in a file.",
    "predict": "Predict entries of a fit.",
    "recommend": "Show the columns of a fit with the largest predictions for a row.",
    "evaluate": "Evaluate a fit on entries that it has not seen.",
    "partition": "Write observations to disk in blocks, for data larger than memory.",
    "impute": "Fill in the holes of a table.",
    "inpaint": "Fill in the hidden pixels of a picture.",
    "tomography": "Find the quantum state that makes counts most likely.",
    "reproduce": "Run the paper's experiments and write a report.",
    "doctor": "Show versions and cores, and check that bifactor works here.",
    "demo": "Complete a photograph, ratings and a table, and show what came out.",
}
"""What each is for. Help must not wait for the import of all of them, so it is said here."""

ELSEWHERE = {"reproduce": "pip install ./reproduce, in a clone of the repository"}
"""Commands of packages of their own, and how to install these."""


class _Interrupted(click.ClickException):
    exit_code = INTERRUPTED


class _Terminated(click.ClickException):
    exit_code = TERMINATED


class _Group(click.Group):
    """Imports a command when it is called; shows bifactor's own errors as one line.

    Anything else that is raised is a bug and keeps its traceback.
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
                f"`bifactor {name}` is a package of its own, which is not installed. Install it with: {ELSEWHERE[name]}"
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
                kind = _Terminated if interrupted() == TERMINATED else _Interrupted
                raise _told(ctx, kind("Interrupted before there was a fit. Nothing was written.")) from error
            except MemoryError as error:
                lacking = "This takes more memory than there is. Use fewer entries or a smaller rank."
                raise _told(ctx, click.ClickException(lacking)) from error


def _told(context: click.Context, error: click.ClickException) -> click.ClickException:
    """The error, told to a machine too where one is listening."""
    if context.meta.get(JSON, False):
        emit_json({"error": error.format_message()})
    return error


@click.group(cls=_Group, epilog=EXAMPLES)
@click.version_option(package_name="bifactor")
def main() -> None:
    """Find low-rank matrices: any smooth convex loss, any linear measurement."""
