"""`bifactor predict`: what a fit says of pairs in a file."""

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.cells import safe, safe_cells_option
from bifactor.cli.look import emit_json, stderr, wants_json
from bifactor.cli.newcomers import entries_for, history_option
from bifactor.cli.options import INPUT, column_options, columns, force_option, json_option, unknown_option
from bifactor.errors import InputError
from bifactor.models import Fit, load
from bifactor.models.told import known
from bifactor.running.places import new_file, opened, require_free
from bifactor.tables import Names, Observations, read
from bifactor.tables.names import listed
from bifactor.words import counted

BLOCK = 100_000
"""Lines that are written at a time."""

EXAMPLES = """\b
Examples:
  bifactor predict fit pairs.csv
  bifactor predict fit pairs.csv -o predictions.csv
  bifactor predict fit pairs.tsv.gz --row user --col song --json
  bifactor predict fit pairs.csv --history new.csv
  bifactor predict fit pairs.csv --std
"""


@click.command(epilog=EXAMPLES)
@click.argument("fit", type=INPUT)
@click.argument("pairs", type=INPUT)
@click.option("-o", "--output", type=INPUT, help="File to write, gzipped if it ends in .gz; by default the screen.")
@history_option
@click.option("--std", is_flag=True, help="Write the standard deviation of each prediction, noise included, too.")
@unknown_option
@safe_cells_option
@column_options(value=False)
@force_option
@json_option
def predict(
    fit: Path,
    pairs: Path,
    output: Path | None,
    history: Path | None,
    std: bool,
    unknown: str,
    safe_cells: bool,
    force: bool,
    **options: Any,
) -> None:
    """Predict the entries of FIT, a folder, at the pairs (row, column) in the file PAIRS.

    One line is written per pair: the row, the column, the prediction, and what of the pair the fit knows: both, row,
    column or neither. A name that is not known counts with an offset of 0. Other columns of PAIRS are ignored. With
    --std there is also the standard deviation of a new measurement, where the fit has error bars.
    """
    if output is not None:
        require_free(output, force)
    model = load(fit)
    if history is not None:
        model = model.fold_in(entries_for(model, history))
    with watch.reading(pairs.name) as progress:
        asked = read(pairs, progress=progress, values=False, hints=model.header, **columns(options))
    answer = Answer.of(model, asked, unknown, std)
    strange = int(np.count_nonzero(answer.flags != "both"))
    if output is not None:
        with new_file(output, force) as temporary, opened(temporary, output) as file:
            answer.write(file, safe_cells)
    if wants_json():
        told = {"predictions": answer.records()} if output is None else {"output": str(output)}
        emit_json({"pairs": answer.flags.size, "unknown": strange, **told})
        return
    if output is None:
        answer.write(sys.stdout, safe_cells)
    said = f"{counted(answer.flags.size, 'pair')} predicted" + (f", written to {output}" if output is not None else "")
    stderr().print(said + (f"; {strange:,} with a name that is not in the fit" if strange else ""), markup=False)


@dataclass(frozen=True, eq=False)
class Answer:
    """What a fit says of pairs: names on both sides, predictions, and what is known of each pair."""

    header: tuple[str, ...]
    rows: tuple[Names, Array, Array]
    """The names of the fit, the place of each pair among them, and what the file calls it."""
    cols: tuple[Names, Array, Array]
    told: dict[str, Array]
    """Predictions and, on request, their standard deviations."""
    flags: Array

    @classmethod
    def of(cls, fit: Fit, pairs: Observations, unknown: str, std: bool) -> "Answer":
        assert pairs.row_names is not None
        assert pairs.column_names is not None
        rows, cols = pairs.row_names[pairs.rows], pairs.column_names[pairs.cols]
        i, j = fit.pairs(rows, cols)
        if unknown == "raise":
            _require_known(i, rows, "row")
            _require_known(j, cols, "column")
        header = ("row", "column") if pairs.origin is None else pairs.origin.header[:2]
        called = ("row", "column") if all(name.isdigit() for name in header) else header
        told = {"prediction": fit.model.predicted(fit.scores(i, j))}
        if std:
            told["std"] = fit.std(i, j)
        return cls(called, (fit.rows, i, rows), (fit.cols, j, cols), told, known(i, j))

    def write(self, file: TextIO, safe_cells: bool) -> None:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(map(safe, self.header) if safe_cells else self.header), *self.told, "known"])
        for first, second, *numbers, words in self.blocks():
            sides = (map(safe, side) if safe_cells else side for side in (first, second))
            written = ((f"{number:.6g}" for number in column) for column in numbers)
            writer.writerows(zip(*sides, *written, words, strict=True))

    def records(self) -> list[dict[str, Any]]:
        keys = ("row", "column", *self.told, "known")
        return [dict(zip(keys, record, strict=True)) for block in self.blocks() for record in zip(*block, strict=True)]

    def blocks(self) -> Iterator[tuple[list[Any], ...]]:
        for first in range(0, self.flags.size, BLOCK):
            part = slice(first, first + BLOCK)
            names = (_called(side[0], side[1][part], side[2][part]) for side in (self.rows, self.cols))
            yield *names, *(column[part].tolist() for column in self.told.values()), self.flags[part].tolist()


def _require_known(places: Array, names: Array, side: str) -> None:
    if np.any(places < 0):
        name = listed(names[places < 0])[0]
        raise InputError(f"There was no {side} named {name!r} in the fit. Check it, or pass --unknown mean.")


def _called(names: Names, places: Array, given: Array) -> list[Any]:
    """Names as the fit has them, so that they are of one type in all answers; unknown ones as they were given."""
    known_ones = listed(names[places]) if len(names) else [None] * places.size
    own = zip(places.tolist(), known_ones, listed(given), strict=True)
    return [name if place >= 0 else other for place, name, other in own]
