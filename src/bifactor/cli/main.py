"""`bifactor`, the command."""

import click

from bifactor.cli.complete import complete
from bifactor.cli.demo import demo
from bifactor.cli.doctor import doctor
from bifactor.cli.impute import impute
from bifactor.cli.inpaint import inpaint
from bifactor.cli.options import INTERRUPTED, JSON, emit_json
from bifactor.cli.predict import predict
from bifactor.cli.recommend import recommend
from bifactor.cli.reproduce import reproduce
from bifactor.cli.tomography import tomography
from bifactor.errors import BifactorError

EXAMPLES = """\b
Examples:
  bifactor complete ratings.csv -o fit       fit a matrix to some of its entries
  bifactor predict fit pairs.csv             predict others
  bifactor recommend fit --user 42           the best columns of a row
  bifactor impute table.csv -o full.csv      fill in the holes of a table
  bifactor inpaint photo.jpg --mask mask.png -o whole.png    fill in a picture
  bifactor tomography counts.csv --qubits 4  a quantum state from counts
  bifactor reproduce all                     the experiments of the paper
  bifactor doctor                            check the installation
"""


class _Interrupted(click.ClickException):
    exit_code = INTERRUPTED


class _Group(click.Group):
    """Shows bifactor's own errors as one line; anything else is a bug and keeps its traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.ClickException as error:
            raise _told(ctx, error) from error
        except BifactorError as error:
            raise _told(ctx, click.ClickException(str(error))) from error
        except KeyboardInterrupt as error:
            raise _told(ctx, _Interrupted("Interrupted before there was a fit. Nothing was written.")) from error
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


for command in (complete, predict, recommend, impute, inpaint, tomography, reproduce, doctor, demo):
    main.add_command(command)
