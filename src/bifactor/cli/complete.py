"""`bifactor complete`: a file of known entries becomes a folder with a fit."""

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.clicks import ask_for_clicks, complete_clicks, require_clicks
from bifactor.cli.completed import summary
from bifactor.cli.look import code_of, stderr, tell
from bifactor.cli.options import (
    INPUT,
    POSITIVE,
    Auto,
    Limits,
    Within,
    column_options,
    columns,
    force_option,
    json_option,
    seed_option,
)
from bifactor.errors import InputError
from bifactor.losses.base import SIGNS
from bifactor.losses.named import LOSSES
from bifactor.models import Fit, Model
from bifactor.models.card import about_data, about_fit, about_machine, about_path
from bifactor.models.clipping import stored_range
from bifactor.models.fitting import Settings, fit_model
from bifactor.models.noise_choice import candidates
from bifactor.models.scores import scores, tested
from bifactor.models.settings import NOISES, settings
from bifactor.models.store import require_free
from bifactor.models.tuning import MOST
from bifactor.models.two_classes import signs, two_classes
from bifactor.reports.completion import report
from bifactor.running.files import require_writable
from bifactor.running.memory import entries_memory, in_words, require_memory
from bifactor.running.result import Status
from bifactor.solvers import Solver
from bifactor.tables import Observations, read
from bifactor.words import counted

EXAMPLES = """\b
Examples:
  bifactor complete ratings.csv -o fit
  bifactor complete ratings.tsv.gz --rank 10 --holdout 0.1 -o fit
  bifactor complete log.csv --row user --col song --value plays --loss poisson -o fit
  bifactor complete table.csv --wide --rank auto -o fit
  bifactor complete train.csv --test test.csv --json -o fit
  bifactor complete clicks.csv --implicit -o fit
"""


@click.command(epilog=EXAMPLES)
@click.argument("data", type=INPUT)
@click.option("-o", "--output", type=INPUT, required=True, help="Folder to write.")
@click.option("--implicit/--no-implicit", default=None, help="DATA holds what was chosen: clicks, plays or purchases.")
@click.option("--rank", type=Auto(int), default="auto", show_default=True, help="Components; 0 for offsets alone.")
@click.option("--loss", type=click.Choice(list(LOSSES)), default="squared", show_default=True, help="Kind of values.")
@click.option(
    "--alpha", type=Auto(float), help="Ridge; 0 for none. Without it, squared errors have error bars instead."
)
@click.option(
    "--noise", type=click.Choice(NOISES), default="auto", show_default=True, help="Noise model of fits with error bars."
)
@click.option("--error-bars/--no-error-bars", default=True, show_default=True, help="Keep error bars in the folder.")
@click.option("--offsets/--no-offsets", default=True, show_default=True, help="Of rows and columns, and an intercept.")
@click.option("--clip", type=Limits(), default="auto", show_default=True, help="Keep predictions in this range.")
@click.option(
    "--unobserved", type=Auto(float), default="auto", help="With --implicit: weight of what was not chosen, beside 1."
)
@click.option("--names", type=INPUT, help="With --implicit: file of items and titles, for the report.")
@click.option(
    "--holdout",
    type=Within(0, 0.9),
    default=0.0,
    help="Share of entries to score a first fit on; by default 0, and 0.1 of each user's with --implicit.",
)
@click.option("--test", type=INPUT, help="File of entries to score the fit on.")
@click.option("--checkpoint", type=INPUT, help="File to keep the run in, and to go on from.")
@click.option("--max-iter", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--tol", type=POSITIVE, default=1e-5, show_default=True, help="Change of the fit at which it is done.")
@seed_option
@column_options(value=True)
@force_option
@json_option
def complete(
    data: Path,
    output: Path,
    error_bars: bool,
    holdout: float,
    test: Path | None,
    checkpoint: Path | None,
    force: bool,
    implicit: bool | None,
    **options: Any,
) -> None:
    """Complete the matrix whose known entries are in DATA.

    DATA is csv or tsv or other text with one entry per line (row, column, value), or one row per line with holes;
    JSON lines, LIBMF triples or MatrixMarket; each of these also gzipped; parquet; or npz. Rows and columns are named
    as you like.

    The folder then holds the factors, the names, a card in JSON and a report to look at: report.html. In Python it is
    read by bifactor.load. Ctrl-C or SIGTERM ends the fit, and the best fit so far is written.

    With --implicit DATA has a line for each choice (user, item), with counts in the column --value if there are any,
    and all that was not chosen counts a little, as 0. By default there are then 128 components, 100 iterations at most
    and a tolerance of 1e-4.
    """
    context = click.get_current_context()
    require_clicks(context, implicit)
    if implicit:
        complete_clicks(data, output, context)
        return
    chosen = _settings(options, checkpoint)
    require_free(output, force)
    started = time.perf_counter()
    entries = _read(data, columns(options))
    asks = ask_for_clicks(entries, data, implicit if chosen.loss.targets is not SIGNS else False)
    if asks is not None:
        raise InputError(asks)
    # What is said of the columns goes for both files.
    same = {**columns(options), "wide": options["wide"] if _wide(entries) else False}
    tests = None if test is None else _read(test, same)
    read_in = time.perf_counter() - started
    entries, classes, notes = _encoded(entries, chosen, data)
    needed = _needed(entries, chosen)
    fit, first, held_out, marks = _fitted(entries, classes, chosen, holdout, notes)
    if tests is not None:
        marks["test"], predicted, values = tested(fit, tests, test)
        held_out = (values, predicted) if held_out is None else held_out
    card = {
        "machine": about_machine(),
        "data": {**about_data(data, entries), "repeated": int(entries.values.size) - fit.seen.size},
        "settings": {**_shown(options), "holdout": holdout},
        "fit": about_fit(fit.model),
        "path": about_path(first),
        "memory": needed,
        "scores": marks,
        "notes": notes,
        "timings": {"reading": read_in, "all": time.perf_counter() - started},
    }
    replace(fit, card=card).save(output, force=force, report=report(card, held_out), error_bars=error_bars)
    tell({"output": str(output), **card}, summary(card, output), code_of(fit.model.result.status))


def _settings(options: dict[str, Any], checkpoint: Path | None) -> Settings:
    if options["rank"] == 0 and not options["offsets"]:
        raise click.UsageError("--rank 0 with --no-offsets leaves nothing to fit. Leave out one of the two.")
    if checkpoint is not None:
        require_writable(checkpoint)
    names = {"n_components": "rank", "random_state": "seed"}
    wanted = ("loss", "n_components", "alpha", "noise", "offsets", "clip", "max_iter", "tol", "random_state")
    checked = settings(**{name: options[names.get(name, name)] for name in wanted}, solver=None, verbose=0)
    return replace(checked, checkpoint=checkpoint)


def _read(path: Path, asked: dict[str, Any]) -> Observations:
    with watch.reading(path.name) as progress:
        return read(path, progress=progress, **asked)


def _wide(entries: Observations) -> bool:
    return entries.origin is not None and entries.origin.wide


def _encoded(entries: Observations, chosen: Settings, path: Path) -> tuple[Observations, Array | None, list[str]]:
    """The entries as the loss wants them, the classes of labels, and what there is to say about them."""
    notes, classes, loss, first = [], None, chosen.loss, entries.values[0]
    if np.all(entries.values == first):
        notes.append(f"All values are {first:g}, so rows and columns cannot be told apart.")
    try:
        if loss.targets is SIGNS:
            classes = two_classes(entries.values)
            entries = entries.replaced(signs(entries.values, classes))
            lower, upper = (f"{value:g}" for value in classes)
            notes.append(f"Values {lower} and {upper} are two classes; predictions are probabilities of {upper}.")
        loss.targets.check(entries.values, type(loss).__name__)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if entries.origin is not None and entries.origin.missing and not entries.origin.wide:
        notes.append(f"Left out: {counted(entries.origin.missing, 'line')} without a value.")
    return entries, classes, notes


def _needed(entries: Observations, chosen: Settings) -> int:
    """The memory that the fit will take, in bytes; one for which there is not enough is refused."""
    tried: list[tuple[int, Solver | None]] = [(MOST if chosen.n_components is None else chosen.n_components, None)]
    if chosen.posterior:
        tried = [
            (one.rank, one.solver)
            for one in candidates(chosen.noise, chosen.n_components, entries.shape, chosen.implicit is not False)
        ]
    size, dtype = int(entries.values.size), entries.values.dtype
    needed = max(entries_memory(entries.shape, size, rank, dtype, solver) for rank, solver in tried)
    require_memory(needed)
    console = stderr()
    if console.is_terminal:
        console.print(f"The fit takes about {in_words(needed)} of memory.", markup=False)
    return needed


def _fitted(
    data: Observations, classes: Array | None, chosen: Settings, holdout: float, notes: list[str]
) -> tuple[Fit, Model, tuple[Array, Array] | None, dict[str, Any]]:
    """The fit to all entries; the one that the ridge was chosen for; what was held out from it, and scores on that."""
    marks: dict[str, Any] = {}
    if chosen.n_components is not None and chosen.n_components > min(data.shape):
        notes.append(f"The rank was cut to {min(data.shape)}, the smaller side of the matrix.")
    hidden = np.random.default_rng(chosen.seed).random(data.values.size) < holdout
    if holdout and (hidden.all() or not hidden.any()):
        raise InputError(f"There is too little to hold out: {counted(data.values.size, 'entry')}. Leave out --holdout.")
    train, held_out = data.part(~hidden) if holdout else data, None
    model = first = _run(train, replace(chosen, checkpoint=None) if holdout else chosen, None, notes)
    fit = Fit.of(model, data, classes)
    if fit.seen.size < data.values.size:
        repeated = data.values.size - fit.seen.size
        notes.append(f"Entries that repeat a pair: {repeated:,}; each was kept as a measurement of its own.")
    if holdout:
        part = data.part(hidden)
        marks["held out"], predicted = scores(fit, part.rows, part.cols, part.values)
        held_out = part.values, predicted
        if first.result.status is not Status.INTERRUPTED and first.U.shape[1]:  # else X = 0, whatever was held out
            model = replace(_run(data, _same(chosen, first), first, notes), choice=first.choice)
    if model.rank == 0:
        rest = "an intercept and offsets of rows and columns" if model.offsets else "0 everywhere"
        notes.append(f"The fit has no components, which is rank 0: it is {rest}.")
    if model.result.status is Status.INTERRUPTED:
        rest = " to the entries that were not held out" if holdout and model is first else ""
        notes.append(f"Interrupted: this is the best fit{rest} so far.")
    return replace(fit, model=model), first, held_out, marks


def _same(chosen: Settings, first: Model) -> Settings:
    """With what an earlier fit has chosen."""
    solver = chosen.solver if first.choice is None else first.choice.chosen.solver
    return replace(chosen, n_components=first.rank, alpha=first.ridge, solver=solver)


def _run(data: Observations, chosen: Settings, start: Model | None, notes: list[str]) -> Model:
    automatic = chosen.alpha is None or chosen.n_components is None
    what = "fitting all entries" if start is not None else "fitting"
    before = "choosing the ridge" if chosen.alpha is None else "choosing the rank" if automatic else "starting"
    before = "choosing the noise" if chosen.posterior else before
    with warnings.catch_warnings(record=True) as caught, watch.fitting(what, before) as show:
        warnings.simplefilter("always")
        watched = replace(chosen, callback=show.iterations(chosen.max_iter), stage=show.stage)
        if start is None:
            watched = replace(watched, expect=show.expect)
        model = fit_model(data, watched, start)
    notes += [str(warning.message) for warning in caught]
    if model.path is not None and model.path.interrupted:
        notes.append("Ctrl-C ended the choice of the ridge early; the best so far was taken.")
    if model.choice is not None and model.choice.interrupted:
        notes.append("Ctrl-C ended the choice of the noise early; the best so far was taken.")
    return model


def _shown(options: dict[str, Any]) -> dict[str, Any]:
    names = "rank loss alpha noise offsets clip max_iter tol seed row col value weight wide"
    clip = options["clip"]
    return {name: options[name] for name in names.split()} | (
        {"clip": stored_range(clip)} if isinstance(clip, tuple) else {}
    )
