"""`bifactor impute`: fill in the holes of a table."""

import csv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from bifactor.cli import monitor
from bifactor.cli.options import INPUT, force_option, json_option, safe, safe_cells_option, seed_option
from bifactor.cli.output import code_of, print_result
from bifactor.cli.output import notes as noted
from bifactor.data.column_types import KEEP, KINDS, NUMBER, ORDINAL, ColumnHint, ColumnSpec
from bifactor.data.columns import parquet_columns
from bifactor.data.text import require_file
from bifactor.errors import InputError
from bifactor.estimators.table_imputer import TableImputer
from bifactor.models.completion.fitting import seed_of
from bifactor.models.imputation.model import EFFORTS, FULL, ROUNDS, FittedTable, metric_of
from bifactor.models.imputation.text import TextTable, names_rows
from bifactor.running.files import new_file, opened, require_free
from bifactor.running.result import Status
from bifactor.validation import pluralize

EXAMPLES = """\b
Examples:
  bifactor impute table.csv -o full.csv
  bifactor impute table.parquet -o full.parquet --effort fast
  bifactor impute table.csv --column grade ordinal --column zip category --keep patient -o full.csv
"""

PARQUET = (".parquet", ".pq")

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
    require_free(output, force)
    require_file(table)
    is_parquet = _is_parquet(table)
    if is_parquet != _is_parquet(output):
        raise InputError(f"{table} and {output} have different formats. Give both the same extension.")
    said = dict.fromkeys(keep, KEEP) | dict(told)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if is_parquet:
            filled = _fill_parquet(table, said, effort, seed)
        else:
            filled = _fill_text(table, said, effort, seed, delimiter)
    with new_file(output, force) as temporary:
        filled.write(temporary, output, safe_cells)
    _tell(filled, [str(warning.message) for warning in caught], output)


class Filled(NamedTuple):
    """A filled-in table: the holes of each column, how many of them were filled in, and a function that writes it."""

    sheet: FittedTable
    holes: list[int]
    counts: list[int]
    write: Callable[[Path, Path, bool], None]


def _fill_text(table: Path, said: dict[str, str], effort: str, seed: int, delimiter: str | None) -> Filled:
    with monitor.reading_progress(table.name) as progress:
        text = TextTable.read(table, delimiter, progress)
    _require_columns(said, text.header, table)
    said = dict.fromkeys(text.aside, KEEP) | said
    given = [(name, *text.cells(name)) for name in text.header]
    columns = [cells for _, cells, _ in given]
    forms = [
        ColumnSpec.of(name, cells, ColumnHint.of(name, said[name]) if name in said else None, d)
        for name, cells, d in given
    ]
    if all(form.kind == KEEP for form in forms):
        raise InputError(f"{table} has no column of numbers, grades or categories. Check the delimiter.")
    with monitor.fit_progress("fitting", "filling in") as bar:
        show = lambda k, *_: bar.stage("rounds of fitting", k, 2 * ROUNDS)  # noqa: E731
        sheet = FittedTable.fit(forms, columns, effort=effort, seed=seed_of(seed), on_round=show)
        told = sheet.fill(columns)
    if unfilled := sheet.unfilled(said):
        warnings.warn(unfilled, UserWarning, stacklevel=2)
    if sheet.model.status is Status.INTERRUPTED:
        warnings.warn(f"The fit was {Status.INTERRUPTED}.", UserWarning, stacklevel=2)
    for name, (holes, values) in zip(text.header, told, strict=True):
        if holes.any():
            text.fill(name, holes, values)

    def write(temporary: Path, output: Path, safe_cells: bool) -> None:
        with opened(temporary, output) as file:
            writer = csv.writer(file, delimiter=text.delimiter, lineterminator="\n")
            lines = [text.header, *text.body]
            writer.writerows(map(safe, line) for line in lines) if safe_cells else writer.writerows(lines)

    return Filled(sheet, list(sheet.holes), [int(holes.sum()) for holes, _ in told], write)


def _fill_parquet(table: Path, said: dict[str, str], effort: str, seed: int) -> Filled:
    frame = parquet_columns(table).native()
    _require_columns(said, frame.column_names, table)
    nulls = dict(zip(frame.column_names, _nulls(frame), strict=True))
    first = frame.column_names[0]
    aside = [name for name, count in nulls.items() if count == frame.num_rows]
    aside += [first] if names_rows(first) and not nulls[first] else []
    with monitor.fit_progress("fitting", "filling in"):
        columns = dict.fromkeys(aside, KEEP) | said
        imputer = TableImputer(columns=columns, effort=effort, random_state=seed).fit(frame)
        full = imputer.transform(frame).replace_schema_metadata(frame.schema.metadata)

    def write(temporary: Path, output: Path, safe_cells: bool) -> None:
        from pyarrow import parquet

        parquet.write_table(full, temporary)

    counts = [a - b for a, b in zip(nulls.values(), _nulls(full), strict=True)]
    return Filled(imputer.sheet_, list(nulls.values()), counts, write)


def _nulls(frame: Any) -> list[int]:
    """The number of null or NaN cells in each column."""
    from pyarrow import compute

    return [compute.sum(compute.is_null(column, nan_is_null=True)).as_py() for column in frame.columns]


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(PARQUET)


def _require_columns(said: dict[str, str], header: list[str], path: Path) -> None:
    for name, kind in said.items():
        if name not in header:
            rest = "to keep" if kind == KEEP else f"to be {kind}"
            raise InputError(f"{path} has no column {name!r} {rest}. Its columns are {', '.join(header[:20])}.")


def _tell(filled: Filled, notes: list[str], output: Path) -> None:
    """Print how many cells of each column were filled in and left, and how well hidden cells were predicted."""
    columns, lines, kept, sheet = [], [], [], filled.sheet
    for form, holes, count, score in zip(sheet.forms, filled.holes, filled.counts, sheet.scores, strict=True):
        facts = {"name": form.name, "kind": form.kind, "filled": count, "left": holes - count}
        if score is not None:
            facts |= {"metric": metric_of(form), "error": score.error, "baseline": score.baseline}
        columns.append(facts)
        if form.kind == KEEP:
            kept.append(f"{form.name} ({holes:,} empty)" if holes else str(form.name))
        elif holes:
            lines.append((str(form.name), _words(form, holes, count, score)))
    total = sum(filled.counts)
    left = sum(filled.holes) - total
    cells = sum(a + b for form, a, b in zip(sheet.forms, sheet.known, sheet.holes, strict=True) if form.kind != KEEP)
    used = [form for form in sheet.forms if form.kind != KEEP]
    first = [("filled in", f"{total:,} of {pluralize(cells, 'cell')} in {pluralize(len(used), 'column')}")]
    if len(lines) > SHOWN:
        lines = [*lines[:SHOWN], ("…", f"{len(lines) - SHOWN:,} more columns; all are in --json")]
    if kept:
        lines.append(("kept", f"{', '.join(kept[:10])}{' …' if len(kept) > 10 else ''}"))
    if left:
        lines.append(("left empty", pluralize(left, "cell")))
    lines += [*noted(notes), ("written", str(output))]
    rows = sheet.known[0] + sheet.holes[0]
    answer = {"output": str(output), "rows": rows, "filled": total, "left": left, "columns": columns, "notes": notes}
    answer |= {"status": sheet.model.status.name}
    print_result(answer, [*first, *lines], code_of(sheet.model.status))


def _words(form: ColumnSpec, holes: int, count: int, score: Any) -> str:
    done = f"{form.kind}: {count:,} filled in"
    if count < holes:
        done += f", {holes - count:,} left"
    if score is None or score.baseline == 0:
        return done
    error, unit = f"{score.error:.3g}", " days" if form.step else ""
    return f"{done}; hidden cells: error {error}, {BASELINES.get(form.kind, 'mode')} {score.baseline:.3g}{unit}"
