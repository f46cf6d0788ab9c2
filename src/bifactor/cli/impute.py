"""`bifactor impute`: fill in the holes of a table."""

from pathlib import Path
from typing import Any

import click

from bifactor.applications import imputation
from bifactor.applications.imputation.workflow import ImputedTable
from bifactor.cli.monitor import TerminalWatch
from bifactor.cli.options import INPUT, force_option, json_option, safe, safe_cells_option, seed_option
from bifactor.cli.output import code_of, print_result
from bifactor.cli.output import notes as noted
from bifactor.data.column_types import KEEP, KINDS, NUMBER, ORDINAL, ColumnSpec
from bifactor.models.imputation.model import EFFORTS, FULL
from bifactor.validation import pluralize

EXAMPLES = """\b
Examples:
  bifactor impute table.csv -o full.csv
  bifactor impute table.parquet -o full.parquet --effort fast
  bifactor impute table.csv --column grade ordinal --column zip category --keep patient -o full.csv
"""

SHOWN = 40
"""Most columns that the printed summary lists."""

BASELINES = {NUMBER: "mean", ORDINAL: "median"}
"""What errors are compared with; for other kinds it is the most frequent level, the mode."""


@click.command(epilog=EXAMPLES)
@click.argument("table", type=INPUT)
@click.option("-o", "--output", type=INPUT, required=True, help="File to write; text is gzipped if it ends in .gz.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Keep a column as it is, and leave it out of the fit.")
@click.option(
    "--column",
    "told",
    multiple=True,
    type=(str, click.Choice(KINDS)),
    metavar="NAME KIND",
    help=f"The kind of a column: {', '.join(KINDS)}. Inferred by default.",
)
@click.option(
    "--effort", type=click.Choice(EFFORTS), default=FULL, show_default=True, help="fast leaves out the forests."
)
@click.option("--delimiter", help="One character, or tab; detected by default.")
@safe_cells_option
@seed_option
@force_option
@json_option
def impute(
    table: Path,
    output: Path,
    keep: tuple[str, ...],
    told: tuple[tuple[str, str], ...],
    effort: str,
    delimiter: str | None,
    safe_cells: bool,
    seed: int,
    force: bool,
) -> None:
    """Fill in the holes of TABLE, a csv or tsv file with a header, or a parquet file.

    Numbers, grades, booleans and categories are recognised by their values. Empty cells, NA, NaN, null and ? are
    filled in; all other cells stay exactly as they are. Columns of row names, or of text that rarely repeats, are kept.
    """
    filled = imputation.impute(
        table,
        columns=dict.fromkeys(keep, KEEP) | dict(told),
        effort=effort,
        delimiter=delimiter,
        random_state=seed,
        output=output,
        force=force,
        encode=safe if safe_cells else None,
        watch=TerminalWatch(),
    )
    print_result({"output": str(output), **filled.card}, _summary(filled, output), code_of(filled.status))


def _summary(filled: ImputedTable, output: Path) -> list[tuple[str, str]]:
    """How many cells of each column were filled in and left, and how well hidden cells were predicted."""
    lines, kept, sheet, card = [], [], filled.fit, filled.card
    for form, holes, count, score in zip(sheet.forms, filled.holes, filled.counts, sheet.scores, strict=True):
        if form.kind == KEEP:
            kept.append(f"{form.name} ({holes:,} empty)" if holes else str(form.name))
        elif holes:
            lines.append((str(form.name), _words(form, holes, count, score)))
    cells = sum(a + b for form, a, b in zip(sheet.forms, sheet.known, sheet.holes, strict=True) if form.kind != KEEP)
    used = [form for form in sheet.forms if form.kind != KEEP]
    first = [("filled in", f"{card['filled']:,} of {pluralize(cells, 'cell')} in {pluralize(len(used), 'column')}")]
    if len(lines) > SHOWN:
        lines = [*lines[:SHOWN], ("…", f"{len(lines) - SHOWN:,} more columns; all are in --json")]
    if kept:
        lines.append(("kept", f"{', '.join(kept[:10])}{' …' if len(kept) > 10 else ''}"))
    if card["left"]:
        lines.append(("left empty", pluralize(card["left"], "cell")))
    return [*first, *lines, *noted(filled.notes), ("written", str(output))]


def _words(form: ColumnSpec, holes: int, count: int, score: Any) -> str:
    done = f"{form.kind}: {count:,} filled in"
    if count < holes:
        done += f", {holes - count:,} left"
    if score is None or score.baseline == 0:
        return done
    error, unit = f"{score.error:.3g}", " days" if form.step else ""
    return f"{done}; hidden cells: error {error}, {BASELINES.get(form.kind, 'mode')} {score.baseline:.3g}{unit}"
