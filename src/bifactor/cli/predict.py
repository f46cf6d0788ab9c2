"""`bifactor predict`: predict the entries at the pairs in a file."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import click

from bifactor.applications import completion
from bifactor.applications.base import open_fit
from bifactor.applications.completion.predictions import Predictions
from bifactor.cli import monitor
from bifactor.cli.inputs import history_option
from bifactor.cli.monitor import TerminalWatch
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
from bifactor.models import Fit
from bifactor.running.files import new_file, opened, require_free
from bifactor.validation import pluralize

BATCH = 1_000_000
"""Pairs of a parquet file per piece that is read."""

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
    answers = _predictions(open_fit(fit, history), pairs, std, unknown, columns(options))
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


def _predictions(fit: Fit, pairs: Path, std: bool, unknown: str, asked: dict[str, Any]) -> Iterator[Predictions]:
    """Predictions for the pairs in a file, in pieces if it is parquet."""
    for some in _batches(pairs):
        predicted = completion.predict(fit, some, std=std, watch=TerminalWatch(), **asked)
        if unknown == "raise":
            predicted.require_known("pass --unknown mean")
        yield predicted


def _batches(path: Path) -> Iterator[Any]:
    """The pieces of a parquet file; else, or if it has no lines, the path."""
    done = 0
    if path.name.lower().endswith(PARQUET) and path.is_file():
        with monitor.reading_progress(path.name) as progress:
            for batch, done, total in parquet_batches(path, BATCH):
                yield batch
                progress(done, total)
    if done == 0:
        yield path


def _written(answers: Iterator[Predictions], output: Path | None, force: bool, safe_cells: bool) -> tuple[int, int]:
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
        yield lambda answer, first: _write(answer, Lines(), safe_cells, first)
        return
    with new_file(output, force) as temporary:
        if output.name.lower().endswith(PARQUET):
            with Frames(temporary) as frames:
                yield lambda answer, first: frames.put(answer.frame())
        else:
            with opened(temporary, output) as file:
                yield lambda answer, first: _write(answer, file, safe_cells, first)


def _write(predicted: Predictions, file: TextIO | Lines, safe_cells: bool, header: bool) -> None:
    writer = csv.writer(file, lineterminator="\n")
    if header:
        names = map(safe, predicted.header) if safe_cells else predicted.header
        writer.writerow([*names, *predicted.columns, "known"])
    for first, second, *numbers, words in predicted.blocks():
        sides = (map(safe, side) if safe_cells else side for side in (first, second))
        written = ((f"{number:.6g}" for number in column) for column in numbers)
        writer.writerows(zip(*sides, *written, words, strict=True))
