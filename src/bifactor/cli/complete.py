"""`bifactor complete`: a file of known entries becomes a folder with a fit."""

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bifactor.arrays import Array
from bifactor.cli import card as about
from bifactor.cli import watch
from bifactor.cli.options import (
    INPUT,
    INTERRUPTED,
    asked,
    column_options,
    emit_json,
    force_option,
    json_option,
    seed_option,
    wants_json,
)
from bifactor.cli.output import REPORT, new_folder, require_free
from bifactor.errors import InputError
from bifactor.losses.base import SIGNS
from bifactor.losses.named import LOSSES
from bifactor.models.fit import Fit, seen_pairs
from bifactor.models.model import Model, Settings, fit_model
from bifactor.models.scores import scores, spoken
from bifactor.models.settings import settings
from bifactor.reports.completion import report
from bifactor.running.files import require_writable
from bifactor.running.result import Status
from bifactor.tables import Asked, Triples, read
from bifactor.tables.observations import Observations

EXAMPLES = """\b
Examples:
  bifactor complete ratings.csv -o fit
  bifactor complete ratings.tsv.gz --rank 10 --holdout 0.1 -o fit
  bifactor complete log.csv --row user --col song --value plays --loss poisson -o fit
  bifactor complete table.csv --wide --rank auto -o fit
  bifactor complete train.csv --test test.csv --json -o fit
"""


class _Auto(click.ParamType):
    """A number, or the word auto."""

    def __init__(self, kind: type[int] | type[float]):
        self.kind, self.name = kind, f"{'integer' if kind is int else 'number'}|auto"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> Any:
        if value == "auto":
            return value
        try:
            return self.kind(value)
        except ValueError:
            self.fail(f"{value!r} is not {'an integer' if self.kind is int else 'a number'}, nor auto.", param, context)


@click.command(epilog=EXAMPLES)
@click.argument("data", type=INPUT)
@click.option("-o", "--output", type=INPUT, required=True, help="Folder to write.")
@click.option("--rank", type=_Auto(int), default="auto", show_default=True, help="Components of the fit.")
@click.option("--loss", type=click.Choice(list(LOSSES)), default="squared", show_default=True, help="Kind of values.")
@click.option("--alpha", type=_Auto(float), default="auto", show_default=True, help="Ridge; 0 for none.")
@click.option("--offsets/--no-offsets", default=True, show_default=True, help="Of rows and columns, and an intercept.")
@click.option("--holdout", type=click.FloatRange(0, 0.9), default=0.0, help="Share of entries to score a first fit on.")
@click.option("--test", type=INPUT, help="File of entries to score the fit on.")
@click.option("--checkpoint", type=INPUT, help="File to keep the run in, and to go on from.")
@click.option("--max-iter", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--tol", type=float, default=1e-5, show_default=True, help="Change of the fit at which it is done.")
@seed_option
@column_options(value=True)
@force_option
@json_option
def complete(
    data: Path,
    output: Path,
    holdout: float,
    test: Path | None,
    checkpoint: Path | None,
    force: bool,
    **options: Any,
) -> None:
    """Complete the matrix of which DATA holds some entries.

    DATA is csv or tsv or other text with one entry per line (row, column, value), or one row per line with holes;
    LIBMF triples or MatrixMarket; each of these also gzipped; parquet; or npz. Rows and columns are named as you like.

    The folder then holds the factors, the names, a card in JSON and a report to look at: report.html. Ctrl-C ends the
    fit, and what is best so far is written.
    """
    chosen = _settings(options, checkpoint)
    require_free(output, force, folder=True)
    started = time.perf_counter()
    triples, notes = _read(data, asked(options), chosen)
    # What is said of the columns goes for both files.
    same = asked({**options, "wide": False if triples.width is None else options["wide"]})
    tests = None if test is None else _read(test, same, chosen)[0]
    read_in = time.perf_counter() - started
    pairs = seen_pairs(triples.observations())
    repeated = int(triples.values.size - pairs.values.size)
    if repeated:
        notes.append(f"{repeated:,} entries repeat a pair; each was kept as a measurement of its own.")
    fit, first, held_out, marks = _fitted(triples, pairs, chosen, holdout, notes)
    if tests is not None:
        places = fit.places(tests.rows.names, "row")[tests.i], fit.places(tests.cols.names, "column")[tests.j]
        marks["test"], predicted = scores(fit, *places, tests.values)
        held_out = (tests.values, predicted) if held_out is None else held_out
    card = {
        "machine": about.about_machine(),
        "data": {**about.about_data(data, triples), "repeated": repeated},
        "settings": {**_shown(options), "holdout": holdout},
        "fit": about.about_fit(fit.model),
        "path": about.about_path(first),
        "scores": marks,
        "notes": notes,
        "timings": {"reading": read_in, "all": time.perf_counter() - started},
    }
    _written(replace(fit, card=card), output, held_out)
    _told(card, output)


def _settings(options: dict[str, Any], checkpoint: Path | None) -> Settings:
    if checkpoint is not None:
        require_writable(checkpoint)
    names = {"n_components": "rank", "random_state": "seed"}
    wanted = ("loss", "n_components", "alpha", "offsets", "max_iter", "tol", "random_state")
    checked = settings(**{name: options[names.get(name, name)] for name in wanted}, solver=None, verbose=0)
    return replace(checked, checkpoint=checkpoint)


def _read(path: Path, columns: Asked, chosen: Settings) -> tuple[Triples, list[str]]:
    """The entries as the loss wants them, and what there is to say about them."""
    with watch.reading(path.name) as progress:
        triples = read(path, columns, progress)
    notes = []
    if chosen.loss.targets is SIGNS and np.all((triples.values == 0) | (triples.values == 1)):
        triples = replace(triples, values=2 * triples.values - 1)
        notes.append("Values 0 and 1 were taken as −1 and +1; predictions are probabilities of 1.")
    try:
        chosen.loss.targets.check(triples.values, type(chosen.loss).__name__)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if triples.missing and triples.width is None:
        notes.append(f"{triples.missing:,} lines without a value were left out.")
    return triples, notes


def _fitted(
    triples: Triples, pairs: Observations, chosen: Settings, holdout: float, notes: list[str]
) -> tuple[Fit, Model, tuple[Array, Array] | None, dict[str, Any]]:
    """The fit to all entries; the one that the ridge was chosen for; what was held out from it, and scores on that."""
    data, marks, held_out = triples.observations(), {}, None
    if chosen.n_components is not None and chosen.n_components > min(data.shape):
        notes.append(f"The rank was cut to {min(data.shape)}, the smaller side of the matrix.")
    hidden = np.random.default_rng(chosen.seed).random(data.values.size) < holdout
    if holdout and (hidden.all() or not hidden.any()):
        raise InputError(f"{data.values.size} entries are too few for --holdout {holdout:g}. Leave it out.")
    train = data.part(~hidden) if holdout else data
    model = first = _run(train, replace(chosen, checkpoint=None) if holdout else chosen, None, notes)
    fit = Fit(model, triples.rows, triples.cols, pairs)
    if holdout:
        part = data.part(hidden)
        marks["held out"], predicted = scores(fit, part.rows, part.cols, part.values)
        held_out = part.values, predicted
        if first.result.status is not Status.INTERRUPTED:
            rank = int(first.U.shape[1]) - first.fixed_columns
            model = _run(data, replace(chosen, n_components=rank, alpha=first.ridge), first, notes)
    if model.result.status is Status.INTERRUPTED:
        rest = " to the entries that were not held out" if holdout and model is first else ""
        notes.append(f"Interrupted: this is the best fit{rest} so far.")
    return replace(fit, model=model), first, held_out, marks


def _run(data: Observations, chosen: Settings, start: Model | None, notes: list[str]) -> Model:
    automatic = chosen.alpha is None or chosen.n_components is None
    what = "fitting all entries" if start is not None else "fitting"
    before = "choosing the ridge" if chosen.alpha is None else "choosing the rank" if automatic else "starting"
    with warnings.catch_warnings(record=True) as caught, watch.fitting(what, before) as show:
        warnings.simplefilter("always")
        model = fit_model(data, replace(chosen, callback=show), start)
    notes += [str(warning.message) for warning in caught]
    if model.path is not None and model.path.interrupted:
        notes.append("Ctrl-C ended the choice of the ridge early; the best so far was taken.")
    return model


def _shown(options: dict[str, Any]) -> dict[str, Any]:
    names = ("rank", "loss", "alpha", "offsets", "max_iter", "tol", "seed", "row", "col", "value", "wide")
    return {name: options[name] for name in names}


def _written(fit: Fit, output: Path, held_out: tuple[Array, Array] | None) -> None:
    with new_folder(output) as folder:
        fit.save(folder)
        (folder / REPORT).write_text(report(fit.card, held_out), encoding="utf-8")


def _told(card: dict[str, Any], output: Path) -> None:
    """The answer, and an exit code that tells whether it was cut short."""
    data, fit = card["data"], card["fit"]
    if wants_json():
        emit_json({"output": str(output), **card})
    else:
        table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
        table.add_row("data", f"{data['file']}, {data['layout']}")
        table.add_row("", f"{data['entries']:,} entries of {data['rows']:,} × {data['cols']:,}")
        table.add_row("fit", f"rank {fit['rank']}, ridge {fit['alpha']:.4g}, {fit['iterations']} iterations")
        table.add_row("status", fit["sentence"])
        for name, score in card["scores"].items():
            table.add_row(name, spoken(score))
        for note in card["notes"]:
            table.add_row("note", note)
        timings = card["timings"]
        table.add_row("time", f"{timings['all']:.1f} s, of which reading took {timings['reading']:.1f} s")
        table.add_row("written", f"{output} (look at {output / REPORT})")
        Console(highlight=False, markup=False).print(table)
    if fit["status"] == Status.INTERRUPTED.name:
        click.get_current_context().exit(INTERRUPTED)
