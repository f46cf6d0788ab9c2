"""`bifactor predict`: what a fit says of pairs in a file."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.options import (
    INPUT,
    asked,
    column_options,
    emit_json,
    force_option,
    json_option,
    stderr,
    wants_json,
)
from bifactor.cli.output import new_file, opened, require_free
from bifactor.models.fit import Fit, known
from bifactor.tables import Triples, read

BLOCK = 100_000
"""Lines that are written at a time."""

EXAMPLES = """\b
Examples:
  bifactor predict fit pairs.csv
  bifactor predict fit pairs.csv -o predictions.csv
  bifactor predict fit pairs.tsv.gz --row user --col song --json
"""


@click.command(epilog=EXAMPLES)
@click.argument("fit", type=INPUT)
@click.argument("pairs", type=INPUT)
@click.option("-o", "--output", type=INPUT, help="File to write, gzipped if it ends in .gz; by default the screen.")
@column_options(value=False)
@force_option
@json_option
def predict(fit: Path, pairs: Path, output: Path | None, force: bool, **options: Any) -> None:
    """Predict the entries of FIT, a folder, at the pairs (row, column) in the file PAIRS.

    One line is written per pair: the row, the column, the prediction, and what of the pair the fit knows: both, row,
    column or neither. A name that is not known counts with an offset of 0. Other columns of PAIRS are left aside.
    """
    if output is not None:
        require_free(output, force, folder=False)
    model = Fit.load(fit)
    names = model.card["data"]["columns"]
    with watch.reading(pairs.name) as progress:
        triples = read(pairs, asked(options, values=False, hints=(names[0], names[1])), progress)
    i = model.places(triples.rows.names, "row")[triples.i]
    j = model.places(triples.cols.names, "column")[triples.j]
    predicted, flags = model.model.loss.mean(model.scores(i, j)), known(i, j)
    unknown = int(np.count_nonzero(flags != "both"))
    if output is not None:
        with new_file(output) as temporary, opened(temporary, output) as file:
            _write(file, triples, predicted, flags)
    if wants_json():
        answer: dict[str, Any] = {"pairs": int(i.size), "unknown": unknown}
        emit_json(answer | ({"predictions": _records(triples, predicted, flags)} if output is None else _where(output)))
        return
    if output is None:
        _write(sys.stdout, triples, predicted, flags)
    said = f"{i.size:,} pairs predicted" + (f", written to {output}" if output is not None else "")
    stderr().print(said + (f"; {unknown:,} with a name that is not in the fit" if unknown else ""), markup=False)


def _where(output: Path) -> dict[str, Any]:
    return {"output": str(output)}


def _write(file: TextIO, triples: Triples, predicted: Array, flags: Array) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*_header(triples), "prediction", "known"])
    for rows, cols, numbers, words in _blocks(triples, predicted, flags):
        texts = [f"{number:.6g}" for number in numbers]
        writer.writerows(zip(rows, cols, texts, words, strict=True))


def _header(triples: Triples) -> tuple[str, ...]:
    named = not all(name.isdigit() for name in triples.header[:2])
    return triples.header[:2] if named else ("row", "column")


def _blocks(triples: Triples, predicted: Array, flags: Array) -> Iterator[tuple[list[Any], ...]]:
    for first in range(0, predicted.size, BLOCK):
        part = slice(first, first + BLOCK)
        rows, cols = triples.rows.names[triples.i[part]], triples.cols.names[triples.j[part]]
        yield rows.tolist(), cols.tolist(), predicted[part].tolist(), flags[part].tolist()


def _records(triples: Triples, predicted: Array, flags: Array) -> list[dict[str, Any]]:
    keys = ("row", "column", "prediction", "known")
    return [
        dict(zip(keys, record, strict=True))
        for block in _blocks(triples, predicted, flags)
        for record in zip(*block, strict=True)
    ]
