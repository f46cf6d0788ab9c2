"""`bifactor complete`: fit a file of known entries and write a folder."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bifactor.applications.completion.report import report
from bifactor.cli import monitor
from bifactor.cli.clicks import ask_for_clicks, complete_clicks, require_clicks
from bifactor.cli.execution import block_options, executor_of, require_blocks
from bifactor.cli.fitting import encode_entries, fit_and_score, require_fit_memory
from bifactor.cli.monitor import log_option
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
from bifactor.cli.output import code_of, interrupt_code, print_result
from bifactor.cli.signals import after_fit
from bifactor.cli.summary import summary
from bifactor.data import BlockStore, Dataset, Observations, read
from bifactor.errors import InputError
from bifactor.losses.base import SIGNS
from bifactor.losses.named import LOSSES
from bifactor.models.completion.clipping import stored_range
from bifactor.models.completion.fitting import NOISE_SETTINGS, CompletionSettings, validate_settings
from bifactor.models.metrics import score_file
from bifactor.models.provenance import about_data, about_fit, about_machine, about_path
from bifactor.models.storage import require_free
from bifactor.running.files import require_writable

EXAMPLES = """\b
Examples:
  bifactor complete ratings.csv -o fit
  bifactor complete ratings.tsv.gz --rank 10 --holdout 0.1 -o fit
  bifactor complete log.csv --row user --col song --value plays --loss poisson -o fit
  bifactor complete table.csv --wide --rank auto -o fit
  bifactor complete train.csv --test test.csv --json -o fit
  bifactor complete clicks.csv --implicit -o fit
  bifactor complete blocks --memory 2GB --log fit.jsonl -o fit
  bifactor complete blocks --dask tcp://scheduler:8786 -o fit
"""


@click.command(epilog=EXAMPLES)
@click.argument("data", type=INPUT)
@click.option("-o", "--output", type=INPUT, required=True, help="Folder to write.")
@click.option("--implicit/--no-implicit", default=None, help="DATA holds choices: clicks, plays or purchases.")
@click.option(
    "--rank", type=Auto(int), default="auto", show_default=True, help="Number of components; 0 for offsets alone."
)
@click.option("--loss", type=click.Choice(list(LOSSES)), default="squared", show_default=True, help="Loss function.")
@click.option(
    "--ridge", type=Auto(float), help="Ridge; 0 for none. By default, fits with squared loss have error bars instead."
)
@click.option(
    "--noise",
    type=click.Choice(NOISE_SETTINGS),
    default="auto",
    show_default=True,
    help="Noise model of fits with error bars.",
)
@click.option("--error-bars/--no-error-bars", default=True, show_default=True, help="Keep error bars in the folder.")
@click.option(
    "--offsets/--no-offsets", default=True, show_default=True, help="Fit an intercept and offsets of rows and columns."
)
@click.option("--clip", type=Limits(), default="auto", show_default=True, help="Keep predictions in this range.")
@click.option(
    "--unobserved", type=Auto(float), default="auto", help="With --implicit: weight of items that were not chosen."
)
@click.option("--names", type=INPUT, help="With --implicit: file of items and titles, for the report.")
@click.option(
    "--holdout",
    type=Within(0, 0.9),
    default=0.0,
    help="Share of entries to score a first fit on; by default 0, or 0.1 with --implicit.",
)
@click.option("--test", type=INPUT, help="File of entries to score the fit on.")
@click.option("--checkpoint", type=INPUT, help="File to save the run to, and to resume it from.")
@block_options
@log_option
@click.option(
    "--max-iter", type=click.IntRange(min=1), default=1000, show_default=True, help="Most iterations of a fit."
)
@click.option(
    "--tol", type=POSITIVE, default=1e-5, show_default=True, help="Stop when the fit changes by less than this."
)
@seed_option
@column_options(value=True)
@force_option
@json_option
def complete(data: Path, output: Path, implicit: bool | None, **options: Any) -> None:
    """Complete the matrix whose known entries are in DATA.

    DATA is a file: csv, tsv or other text with one entry per line (row, column, value) or one row per line with holes;
    JSON lines, LIBMF triples or MatrixMarket; any of these gzipped; parquet; or npz. Rows and columns may have any
    names. DATA may also be the folder of a block store, which bifactor partition writes for data larger than memory.
    Its blocks are fitted on this machine within --memory, by --workers processes, or by a --dask cluster.

    The output folder holds the factors, the names, a card in JSON and a report, report.html. Read it in Python with
    bifactor.load. Ctrl-C or SIGTERM ends the fit early and writes the best fit so far;
    after the fit, it leaves out the scores or the report.

    With --implicit, DATA has one line per choice (user, item), with counts in the column --value if there are any.
    Pairs that were not chosen count as 0 with a small weight. The defaults are then 128 components, at most 100
    iterations and a tolerance of 1e-4.
    """
    context = click.get_current_context()
    require_clicks(context, implicit)
    require_blocks(context, data.is_dir())
    if implicit:
        complete_clicks(data, output, context)
        return
    complete_values(data, output, context.params)


def complete_values(data: Path, output: Path, options: dict[str, Any]) -> None:
    """Read the data, check and fit the model, write the folder and print a summary."""
    chosen = _settings(options)
    require_free(output, options["force"])
    started = time.perf_counter()
    entries = BlockStore.open(data) if data.is_dir() else _read(data, columns(options))
    asks = ask_for_clicks(entries, data, options["implicit"] if chosen.loss.targets is not SIGNS else False)
    if asks is not None:
        raise InputError(asks)
    # The options for columns apply to both files.
    same = {**columns(options), "wide": options["wide"] if _wide(entries) else False}
    tests = None if options["test"] is None else _read(options["test"], same)
    read_in = time.perf_counter() - started
    found, classes, notes = encode_entries(entries, chosen, data)
    with executor_of(options) as executor, after_fit() as rest:
        chosen = replace(chosen, executor=executor)
        memory = require_fit_memory(found, chosen, options["workers"])
        fit, first, held_out, marks = fit_and_score(found, classes, chosen, options["holdout"], notes, rest)
        scored = None
        if tests is not None:
            scored = rest.stage("the score at --test", lambda: score_file(fit, tests, options["test"]))
        if scored is not None:
            marks["test"], predicted, values = scored
            held_out = (values, predicted) if held_out is None else held_out
        card = {
            "machine": about_machine(),
            "data": {**about_data(data, entries), "repeated": found.size - fit.seen.size},
            "settings": _shown(options),
            "fit": about_fit(fit.model),
            "path": about_path(first),
            "memory": memory,
            "scores": marks,
            "notes": notes,
            "timings": {"reading": read_in, "all": time.perf_counter() - started},
        }
        page = rest.stage("the report", lambda: report(card, held_out))
        notes += rest.notes
        kept = replace(fit, card=card)
        kept.save(output, force=options["force"], report=page, error_bars=options["error_bars"])
        rest.written()
    code = interrupt_code() if rest.ended else code_of(fit.model.result.status)
    print_result({"output": str(output), **card}, summary(card, output), code)


def _settings(options: dict[str, Any]) -> CompletionSettings:
    checkpoint = options["checkpoint"]
    if options["rank"] == 0 and not options["offsets"]:
        raise click.UsageError("--rank 0 with --no-offsets leaves nothing to fit. Leave out one of the two.")
    if checkpoint is not None:
        require_writable(checkpoint)
    names = {"n_components": "rank", "random_state": "seed"}
    wanted = ("loss", "n_components", "ridge", "noise", "offsets", "clip", "max_iter", "tol", "random_state")
    checked = validate_settings(**{name: options[names.get(name, name)] for name in wanted}, solver=None, verbose=0)
    return replace(checked, checkpoint=checkpoint)


def _read(path: Path, asked: dict[str, Any]) -> Observations:
    with monitor.reading_progress(path.name) as progress:
        return read(path, progress=progress, **asked)


def _wide(entries: Dataset) -> bool:
    return entries.origin is not None and entries.origin.wide


def _shown(options: dict[str, Any]) -> dict[str, Any]:
    names = "rank loss ridge noise offsets clip holdout max_iter tol seed row col value weight wide"
    clip = options["clip"]
    return {name: options[name] for name in names.split()} | (
        {"clip": stored_range(clip)} if isinstance(clip, tuple) else {}
    )
