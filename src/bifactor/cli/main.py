"""`bifactor`, the command."""

import click

from bifactor.cli.demo import demo
from bifactor.errors import BifactorError


class _Group(click.Group):
    """Shows bifactor's own errors as one line; anything else is a bug and keeps its traceback."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BifactorError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group)
@click.version_option(package_name="bifactor")
def main() -> None:
    """Find low-rank matrices: any smooth convex loss, any linear measurement."""


main.add_command(demo)
