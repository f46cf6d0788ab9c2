"""`bifactor predict`: predict the entries at the pairs in a file."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import monitor
from bifactor.cli.inputs import history_option
from bifactor.cli.options import (
    INPUT,
    column_options,
    columns,
    force_option,
    json_option,
    safe,
    safe_cells_option,
    unknown_option,
)
from bifactor.cli.output import Lines, emit_json, stderr, wants_json
from bifactor.cli.parquet import PARQUET, Frames, parquet_batches, require_parquet
from bifactor.data import Names, Observations, read
from bifactor.data.names import to_python_objects
from bifactor.errors import InputError
from bifactor.models import Fit, load
from bifactor.models.model import Prediction, match_status
from bifactor.running.files import new_file, opened, require_free
from bifactor.validation import pluralize

BATCH = 1_000_000
"""Pairs of a parquet file per piece that is read."""

BLOCK = 100_000
"""Lines per block that is written."""

EXAMPLES = """\b
Examples:
  bifactor predict fit pairs.csv
  bifactor predict fit pairs.csv -o predictions.csv
  bifactor predict fit pairs.tsv.gz --row user --col song --json
  bifactor predict fit pairs.csv --history new.csv
  bifactor predict fit pairs.csv --std
  bifactor predict fit pairs.parquet -o predictions.parquet
"""


@click.command(epilog=EXAMPLES)
@click.argument("fit", type=INPUT)
@click.argument("pairs", type=INPUT)
@click.option(
    "-o",
    "--output",
    type=INPUT,
    help="File to write: .parquet, .csv or .csv.gz; by default stdout.",
)
@history_option
@click.option("--std", is_flag=True, help="Also write the standard deviation of each prediction, including noise.")
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

    One line is written per pair: the row, the column, the prediction, and which names are in the fit: both, row,
    column or neither. A name that is not in the fit counts as average. Other columns of PAIRS are ignored. With --std
    there is also the standard deviation of a new measurement, if the fit has error bars. Parquet is read and written
    in pieces, so PAIRS may be larger than memory.
    """
    if output is not None:
        require_free(output, force)
        require_parquet(output, safe_cells)
    model = load(fit)
    if history is not None:
        model = model.fold_in(history)
    answers = (PredictionTable.of(model, some, unknown, std) for some in _batches(model, pairs, columns(options)))
    if wants_json() and output is None:
        every = list(answers)
        told = {"predictions": [one for answer in every for one in answer.records()]}
        emit_json({"pairs": sum(map(len, every)), "unknown": sum(answer.strange for answer in every), **told})
        return
    count, strange = _written(answers, output, force, safe_cells)
    if wants_json():
        emit_json({"pairs": count, "unknown": strange, "output": str(output)})
        return
    said = f"{pluralize(count, 'pair')} predicted" + (f", written to {output}" if output is not None else "")
    stderr().print(said + (f"; {strange:,} with a name that is not in the fit" if strange else ""))


def _batches(model: Fit, path: Path, asked: dict[str, Any]) -> Iterator[Observations]:
    """The pairs of a file, in pieces if it is parquet."""
    how = {"values": False, "hints": model.header, **asked}
    with monitor.reading_progress(path.name) as progress:
        done = 0
        if path.name.lower().endswith(PARQUET) and path.is_file():
            for batch, done, total in parquet_batches(path, BATCH):
                yield read(batch, **how)
                progress(done, total)
        if done == 0:  # a file of another kind, or without lines
            yield read(path, progress=progress, **how)


def _written(
    answers: "Iterator[PredictionTable]", output: Path | None, force: bool, safe_cells: bool
) -> tuple[int, int]:
    """Write answers; return the number of pairs, and of those with a name that is not in the fit."""
    count = strange = 0
    with _place(output, force, safe_cells) as put:
        for k, answer in enumerate(answers):
            put(answer, k == 0)
            count, strange = count + len(answer), strange + answer.strange
    return count, strange


@contextmanager
def _place(output: Path | None, force: bool, safe_cells: bool) -> Iterator[Any]:
    """A function that writes an answer; its second argument says whether it is the first one."""
    if output is None:
        yield lambda answer, first: answer.write(Lines(), safe_cells, first)
        return
    with new_file(output, force) as temporary:
        if output.name.lower().endswith(PARQUET):
            with Frames(temporary) as frames:
                yield lambda answer, first: frames.put(answer.frame())
        else:
            with opened(temporary, output) as file:
                yield lambda answer, first: answer.write(file, safe_cells, first)


@dataclass(frozen=True, eq=False)
class PredictionTable:
    """Predictions for pairs: names on both sides, the numbers, and which names are in the fit."""

    header: tuple[str, ...]
    rows: tuple[Names, Array, Array]
    """The names of the fit, the index of each pair among them, and its name in the file."""
    cols: tuple[Names, Array, Array]
    told: dict[str, Array]
    """Predictions and, on request, their standard deviations."""
    flags: Array

    @classmethod
    def of(cls, fit: Fit, pairs: Observations, unknown: str, std: bool) -> "PredictionTable":
        assert pairs.row_names is not None
        assert pairs.column_names is not None
        rows, cols = pairs.row_names[pairs.rows], pairs.column_names[pairs.cols]
        i, j = fit.pairs(rows, cols)
        if unknown == "raise":
            _require_known(i, rows, "row")
            _require_known(j, cols, "column")
        header = ("row", "column") if pairs.origin is None else pairs.origin.header[:2]
        called = ("row", "column") if all(name.isdigit() for name in header) else header
        here = Prediction(fit.model, (i, j))
        told = {"prediction": here.mean, **({"std": here.std} if std else {})}
        return cls(called, (fit.rows, i, rows), (fit.cols, j, cols), told, match_status(i, j))

    def __len__(self) -> int:
        return int(self.flags.size)

    @property
    def strange(self) -> int:
        """Pairs with a name that is not in the fit."""
        return int(np.count_nonzero(self.flags != "both"))

    def frame(self) -> dict[str, Any]:
        """Columns for a parquet file; names are integers if all names of the fit are."""
        sides = {}
        for name, (names, places, given) in zip(self.header, (self.rows, self.cols), strict=True):
            called = _called(names, places, given)
            whole = names.values.dtype.kind in "iu" and given.dtype.kind in "iu"
            sides[name] = np.array(called, np.int64) if whole else [str(one) for one in called]
        return {**sides, **self.told, "known": self.flags.tolist()}

    def write(self, file: TextIO | Lines, safe_cells: bool, header: bool = True) -> None:
        writer = csv.writer(file, lineterminator="\n")
        if header:
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
        name = to_python_objects(names[places < 0])[0]
        raise InputError(f"The fit has no {side} named {name!r}. Check the name, or pass --unknown mean.")


def _called(names: Names, places: Array, given: Array) -> list[Any]:
    """Names as in the fit, so that all answers have names of one type; unknown names as they were given."""
    known_ones = to_python_objects(names[places]) if len(names) else [None] * places.size
    own = zip(places.tolist(), known_ones, to_python_objects(given), strict=True)
    return [name if place >= 0 else other for place, name, other in own]
