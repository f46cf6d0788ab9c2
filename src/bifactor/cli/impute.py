"""`bifactor impute`: the holes of a table filled in."""

import csv
import io
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.cells import safe, safe_cells_option
from bifactor.cli.look import notes as noted
from bifactor.cli.look import tell
from bifactor.cli.options import INPUT, Auto, force_option, json_option, seed_option
from bifactor.errors import FileError, InputError
from bifactor.estimators.imputer import LowRankImputer
from bifactor.running.places import new_file, opened, require_free
from bifactor.tables.fields import cells
from bifactor.tables.headers import INDEX, plain
from bifactor.tables.layout import DELIMITERS
from bifactor.tables.numbers import MISSING, number_of
from bifactor.tables.source import Progress, content, head, require_file
from bifactor.words import counted

EXAMPLES = """\b
Examples:
  bifactor impute table.csv -o full.csv
  bifactor impute table.csv --keep patient --keep year --rank 3 -o full.csv
"""


@click.command(epilog=EXAMPLES)
@click.argument("table", type=INPUT)
@click.option("-o", "--output", type=INPUT, required=True, help="File to write, gzipped if it ends in .gz.")
@click.option("--rank", type=Auto(int), default="auto", show_default=True, help="Components; 0 for offsets alone.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Leave a column of numbers as it is, and out of the fit.")
@click.option("--delimiter", help="One character, or tab; sniffed by default.")
@safe_cells_option
@seed_option
@force_option
@json_option
def impute(
    table: Path,
    output: Path,
    rank: Any,
    keep: tuple[str, ...],
    delimiter: str | None,
    safe_cells: bool,
    seed: int,
    force: bool,
) -> None:
    """Fill in the holes of TABLE, a csv or tsv file with a header.

    Empty cells and NA, NaN, null or ? in columns of numbers are filled in; all other cells stay as they are, letter by
    letter, and columns of words are kept.
    """
    require_free(output, force)
    require_file(table)
    separator = _delimiter(table, delimiter)
    with watch.reading(table.name) as progress:
        header, body = _cells(table, separator, progress)
    numeric, numbers = _numeric(header, body, keep, table)
    holes = np.isnan(numbers)
    notes = []
    if holes.any():
        with warnings.catch_warnings(record=True) as caught, watch.fitting("fitting", "filling in"):
            warnings.simplefilter("always")
            full = filled(numbers, rank, seed)
        notes = [str(warning.message) for warning in caught]
        for r, c in np.argwhere(holes).tolist():
            body[r][numeric[c]] = f"{full[r, c]:.6g}"
    with new_file(output, force) as temporary, opened(temporary, output) as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        lines = [header, *body]
        writer.writerows(map(safe, line) for line in lines) if safe_cells else writer.writerows(lines)
    _told(header, numeric, holes, notes, output)


def filled(table: Array, rank: int | str, seed: int) -> Array:
    """A table without NaN."""
    most = rank if rank == "auto" else min(int(rank), *table.shape)
    return LowRankImputer(n_components=most, random_state=seed).fit_transform(table)


def _cells(path: Path, delimiter: str, progress: Progress) -> tuple[list[str], list[list[str]]]:
    text = content(path, progress)
    try:
        reader = csv.reader(io.StringIO(text.decode("utf-8"), newline=""), delimiter=delimiter)
        header: list[str] = []
        body: list[list[str]] = []
        for words in reader:
            if not words:
                continue
            if not header:
                header = words
            elif len(words) != len(header):
                raise FileError(
                    f"Line {reader.line_num} of {path} has {len(words)} fields, but the header has {len(header)}. "
                    "Check that line, and the delimiter."
                )
            else:
                body.append(words)
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path} is not csv in UTF-8 ({error}). Convert it.") from None
    if not body:
        raise FileError(f"{path} has a header and nothing below it. Pass a table with at least one row.")
    return header, body


def _delimiter(path: Path, told: str | None) -> str:
    lines = [line for line in head(path, advice="Pass a csv or tsv file with a header.") if line.strip()]
    if told is not None:
        told = {"tab": "\t", "\\t": "\t"}.get(told, told)
        if len(told) != 1 or told in '"\n\r':
            raise InputError(f"--delimiter {told!r} is not a delimiter. Pass one character, or tab.")
        return told
    single = [mark for mark in DELIMITERS if len(mark) == 1 and mark != " "]
    counts = {mark: len(cells(lines[:1], mark)[0]) for mark in single}
    return max(single, key=lambda mark: counts[mark])


def _numeric(header: list[str], body: list[list[str]], keep: tuple[str, ...], path: Path) -> tuple[list[int], Array]:
    """The columns of numbers that have at least one, and these numbers."""
    for name in keep:
        if name not in header:
            raise InputError(f"{path} has no column {name!r} to keep, but {', '.join(header[:20])}.")
    if all(number_of(name) is not None and name.strip().lower() not in MISSING for name in header):
        raise InputError(f"The first line of {path} holds numbers, and it must hold names. Add a header.")
    chosen, columns = [], []
    for k, name in enumerate(header):
        numbers = [number_of(row[k]) for row in body]
        index = k == 0 and plain(name) in INDEX and not any(number is None or number != number for number in numbers)
        if name in keep or index or any(number is None for number in numbers):
            continue
        if not all(number != number for number in numbers):
            chosen.append(k)
            columns.append(numbers)
    if not chosen:
        raise InputError(f"{path} has no column of numbers. Check the delimiter.")
    return chosen, np.array(columns, np.float64).T


def _told(header: list[str], numeric: list[int], holes: Array, notes: list[str], output: Path) -> None:
    left = [name for k, name in enumerate(header) if k not in numeric]
    answer: dict[str, Any] = {"output": str(output), "rows": int(holes.shape[0]), "filled": int(holes.sum())}
    lines = [
        (
            "filled in",
            f"{int(holes.sum()):,} of {counted(holes.size, 'cell')} in {counted(len(numeric), 'column')} of numbers",
        )
    ]
    if left:
        lines.append(("kept", f"{', '.join(left[:10])}{' …' if len(left) > 10 else ''}"))
    lines += [*noted(notes), ("written", str(output))]
    tell({**answer, "columns": [header[k] for k in numeric], "kept": left, "notes": notes}, lines)
