"""`bifactor complete --implicit`: fit a file of clicks, plays or purchases and write a folder."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bifactor.cli import monitor
from bifactor.cli.execution import executor_of
from bifactor.cli.inputs import read_titles
from bifactor.cli.options import columns
from bifactor.cli.output import code_of, interrupt_code, print_result
from bifactor.cli.output import notes as noted
from bifactor.cli.signals import AfterFit, after_fit
from bifactor.cli.summary import block_memory, describe_output, memory_in_words, require_free_memory, sample_memory
from bifactor.data import BlockStore, Dataset, Observations, read
from bifactor.losses import Squared
from bifactor.models import Fit, Model
from bifactor.models.completion.fitting import CompletionSettings, after_search, validate_settings
from bifactor.models.provenance import about_data, about_fit, about_machine, about_trials
from bifactor.models.recommender.evaluation import (
    BYTES_PER_SPLIT_ENTRY,
    MAX_EVALUATED_USERS,
    describe_gain,
    evaluate_fit,
    hold_out_choices,
    metric_label,
)
from bifactor.models.recommender.fitting import fit_clicks
from bifactor.models.recommender.hyperparameters import MAX_TRIAL_ENTRIES, RANKING_DEPTH, TRIAL_RANK, Hyperparameters
from bifactor.models.recommender.weights import CountsToClicks, lines_of
from bifactor.models.storage import require_free
from bifactor.models.top_k import SCORE, SCORES_PER_BLOCK
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective
from bifactor.reports.clicks import report, trial_used
from bifactor.running.files import require_writable
from bifactor.running.memory import entries_memory
from bifactor.running.result import Status
from bifactor.solvers import PCG
from bifactor.validation import pluralize

DEFAULTS = {"rank": 128, "ridge": "auto", "unobserved": "auto", "holdout": 0.1, "max_iter": 100, "tol": 1e-4}
"""The defaults of `Recommender`, and the share of each user's choices that the first fit is judged by."""

SHOWN = ("seed", "row", "col", "value", "weight", "wide", "workers")
"""Other options that the card of a fit shows."""

NUMBERS_ALONE = {
    "loss": "--loss",
    "noise": "--noise",
    "error_bars": "--error-bars",
    "offsets": "--offsets",
    "test": "--test",
}
"""Options that apply to values only, not to clicks."""

PLACES = 10
"""Length of the lists that are judged."""


def require_clicks(context: click.Context, implicit: bool | None) -> None:
    """Raise `UsageError` for options that apply only to values, or only to clicks."""
    if implicit:
        strange = [option for name, option in NUMBERS_ALONE.items() if _given(context, name)]
        if strange:
            advice = " Judge the fit with bifactor evaluate." if strange == ["--test"] else " Leave it out."
            raise click.UsageError(f"{strange[0]} is for values and cannot be used with --implicit.{advice}")
        if context.params["rank"] == 0:
            raise click.UsageError("--rank 0 leaves no components to rank by. Pass an integer ≥ 1.")
        if context.params["unobserved"] == 0:
            raise click.UsageError("With --unobserved 0 the fit is 1 everywhere. Pass a number above 0, such as 0.1.")
        return
    for name in ("unobserved", "names"):
        if _given(context, name):
            raise click.UsageError(
                f"--{name} requires --implicit, for clicks, plays and purchases. Pass both or neither."
            )


def complete_clicks(data: Path, output: Path, context: click.Context) -> None:
    """Read the data, choose the settings, check and fit the model, write the folder and print a summary."""
    options = {**context.params, **_defaults(context)}
    force, checkpoint = options["force"], options["checkpoint"]
    chosen = _settings(options, checkpoint)
    require_free(output, force)
    started, notes = time.perf_counter(), list[str]()
    lines = BlockStore.open(data) if data.is_dir() else _read(data, options)
    read_in = time.perf_counter() - started
    titles = None if options["names"] is None else read_titles(options["names"], lines.column_names)
    choices = lines.recode(CountsToClicks())
    with executor_of(options) as executor, after_fit() as rest:
        chosen = replace(chosen, executor=executor)
        needed = _needed(choices, chosen, options)
        fit, first, check = _fitted(choices, chosen, options, notes, rest)
        card = _card(data, lines, options, (fit, first, check), needed, notes)
        card["timings"] = {"reading": read_in, "all": time.perf_counter() - started}
        page = rest.stage("the report", lambda: report(replace(fit, card=card), card, titles))
        notes += rest.notes
        kept = replace(fit, card=card)
        kept.save(output, force=force, report=page)
        rest.written()
    code = interrupt_code() if rest.ended else code_of(fit.model.result.status)
    print_result({"output": str(output), **card}, _summary(card, output), code)


def _card(
    data: Path,
    lines: Dataset,
    options: Mapping[str, Any],
    found: tuple[Fit, Model, dict[str, Any] | None],
    needed: int,
    notes: list[str],
) -> dict[str, Any]:
    fit, first, check = found
    assert first.clicks is not None
    return {
        "estimator": "Recommender",
        "machine": about_machine(),
        "data": {**about_data(data, lines), "choices": fit.seen.size},
        "settings": {name: options[name] for name in (*DEFAULTS, *SHOWN)},
        "fit": about_fit(fit.model),
        "choice": {
            **asdict(_same(first)),
            "trials": about_trials(first.clicks.search),
        },
        "memory": needed,
        "scores": {} if check is None else {"held out": check},
        "notes": notes,
    }


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _defaults(context: click.Context) -> dict[str, Any]:
    """The defaults of `Recommender` for options that were not given, and for `--rank auto`."""
    unsaid = {name: value for name, value in DEFAULTS.items() if not _given(context, name)}
    return {**unsaid, "rank": DEFAULTS["rank"]} if context.params["rank"] == "auto" else unsaid


def _settings(options: Mapping[str, Any], checkpoint: Path | None) -> CompletionSettings:
    if checkpoint is not None:
        require_writable(checkpoint)
    names = {"n_components": "rank", "random_state": "seed"}
    wanted = ("n_components", "ridge", "max_iter", "tol", "random_state")
    given = {name: options[names.get(name, name)] for name in wanted}
    return replace(
        validate_settings(loss="squared", offsets=False, solver=None, verbose=0, **given), checkpoint=checkpoint
    )


def _read(path: Path, options: Mapping[str, Any]) -> Observations:
    asked = columns(dict(options))
    with monitor.reading_progress(path.name) as progress:
        if asked.pop("wide"):
            return read(path, progress=progress, wide=True, **asked)
        return lines_of(path, progress=progress, **asked)


def _needed(data: Dataset, chosen: CompletionSettings, options: Mapping[str, Any]) -> int:
    """The memory that the fit will take, in bytes. Raise if that is more than there is."""
    (m, n), size = data.shape, data.size
    rank = min(chosen.n_components or 1, m, n)
    scores = SCORE * min(max(SCORES_PER_BLOCK, n), min(m, MAX_EVALUATED_USERS) * n)
    if not data.in_memory:
        problem = Objective(data.bind(Squared(), executor=chosen.executor), Ridge(1.0))
        found = (
            block_memory(problem, rank, PCG(), size, options["workers"])
            + BYTES_PER_SPLIT_ENTRY * size * min(MAX_EVALUATED_USERS, m) // m
        )
        if chosen.ridge is None or options["unobserved"] == "auto":
            some = sample_memory(
                data.shape, size, MAX_TRIAL_ENTRIES, min(rank, TRIAL_RANK)
            ) + 2 * BYTES_PER_SPLIT_ENTRY * min(size, MAX_TRIAL_ENTRIES)
            found = max(found, some)
    else:
        found = (
            entries_memory(data.shape, max(1, size), rank) + 2 * BYTES_PER_SPLIT_ENTRY * size
        )  # of the choice of settings, too
    return require_free_memory(found + scores, data, chosen)


def _fitted(
    data: Dataset, chosen: CompletionSettings, options: Mapping[str, Any], notes: list[str], rest: AfterFit
) -> tuple[Fit, Model, dict[str, Any] | None]:
    """The fit to all choices, the first fit, and how well the first one ranked the held-out choices."""
    holdout, unobserved = options["holdout"], options["unobserved"]
    given = Hyperparameters(None if unobserved == "auto" else float(unobserved), chosen.ridge)
    if (chosen.n_components or 0) > min(data.shape):
        notes.append(f"The rank was cut to {min(data.shape)}, the smaller side of the matrix.")
    parts = hold_out_choices(data, holdout, chosen.seed) if holdout and data.size else None
    if parts is None:
        if holdout:
            notes.append("There are too few choices to hold some out, so the ranking was not checked.")
        model = _run(data, chosen, given, None, notes)
        rest.keep()
        return Fit.of(model, data), model, None
    train, split = parts
    first = _run(train, replace(chosen, checkpoint=None), given, None, notes)
    rest.keep()
    check = rest.stage("the check", lambda: evaluate_fit(Fit.of(first, train), split, PLACES, chosen.seed).card())
    if first.result.status is Status.INTERRUPTED:
        return Fit.of(first, data), first, check
    assert first.clicks is not None
    after = after_search(chosen, first.clicks.search)
    again = rest.stage("the fit to all choices", lambda: _run(data, after, _same(first), first, notes))
    return Fit.of(first if again is None else again, data), first, check


def _same(model: Model) -> Hyperparameters:
    """The settings that were chosen for a model."""
    assert model.clicks is not None
    items = model.clicks.items
    share, ridge = (0.0, 0.0) if items is None else (items.share, items.ridge)
    return Hyperparameters(model.clicks.unobserved, model.ridge, share, ridge)


def _run(
    data: Dataset, chosen: CompletionSettings, given: Hyperparameters, start: Model | None, notes: list[str]
) -> Model:
    what = "fitting all choices" if start is not None else "fitting"
    with warnings.catch_warnings(record=True) as caught, monitor.fit_progress(what, "starting", data.size) as show:
        warnings.simplefilter("always")
        watched = replace(chosen, callback=show.iterations(chosen.max_iter), stage=show.stage)
        model = fit_clicks(data, watched, start, given)
        show.ended(model.result.status)
    notes += [str(warning.message) for warning in caught]
    assert model.clicks is not None
    if model.clicks.search is not None and model.clicks.search.interrupted:
        notes.append("Ctrl-C ended the search for the weights early; the best so far were used.")
    if model.result.status is Status.INTERRUPTED:
        notes.append("Interrupted: this is the best fit so far.")
    return model


def _weights(choice: Mapping[str, Any]) -> str:
    told = f"{choice['unobserved']:.3g} for items not chosen, 1 for chosen ones; ridge {choice['ridge']:.3g}"
    if choice["item_share"]:
        told += f"; {choice['item_share']:.0%} of scores are item-to-item, ridge {choice['item_ridge']:.3g}"
    trials = choice["trials"]
    if not trials:
        return told
    used = trial_used(choice)
    score = "" if used is None else f", with NDCG@{RANKING_DEPTH} {used['ndcg']:.4f} for held-out users"
    return f"{told}: chosen by {pluralize(len(trials), 'trial')}{score}"


def _check(scores: Mapping[str, Any], holdout: float) -> list[tuple[str, str]]:
    """How well the first fit ranked the held-out choices, and how well a list of popular items would have."""
    if "held out" not in scores:
        return []
    card = scores["held out"]
    users = pluralize(card["users"], "user")
    lines = [("check", f"a first fit without about {holdout:.0%} of the choices, judged on these for {users}")]
    for name in (f"ndcg@{PLACES}", f"recall@{PLACES}"):
        one = card["metrics"][name]
        interval = f"{one['low']:.4f} to {one['high']:.4f}"
        kind = f", {card['recall']}" if name.startswith("recall") else ""
        told = f"{metric_label(name)} {one['mean']:.4f} ({interval}{kind})"
        lines.append(("", f"{told}; most popular items {one['popular']:.4f}"))
    return [*lines, ("", describe_gain(card))]


def _summary(card: Mapping[str, Any], output: Path) -> list[tuple[str, str]]:
    data, fit, timings = card["data"], card["fit"], card["timings"]
    users, items = pluralize(data["rows"], "user"), pluralize(data["cols"], "item")
    lines = f" in {pluralize(data['entries'], 'line')}" if data["entries"] != data["choices"] else ""
    each = "; each line counts as one" if card["settings"]["value"] is None and not card["settings"]["wide"] else ""
    beside = f" and {fit['item_rank']:,} of item-to-item scores" if fit["item_rank"] else ""
    return [
        ("data", f"{data['file']}, {data['layout']}"),
        ("", f"{pluralize(data['choices'], 'choice')} by {users} of {items}{lines}{each}"),
        ("fit", f"{pluralize(fit['rank'], 'component')}{beside}, {pluralize(fit['iterations'], 'iteration')}"),
        ("weights", _weights(card["choice"])),
        ("status", fit["sentence"]),
        *_check(card["scores"], card["settings"]["holdout"]),
        *noted(card["notes"]),
        ("memory", memory_in_words(card)),
        ("time", f"{timings['all']:.1f} s, of which reading took {timings['reading']:.1f} s"),
        ("written", describe_output(output)),
    ]


def ask_for_clicks(entries: Dataset, path: Path, implicit: bool | None) -> str | None:
    """A message for data that look like clicks but were passed without --implicit; None for other data."""
    about = entries.summary()
    if implicit is not None or not about.constant or about.least != 1:
        return None
    return (
        f"All {pluralize(entries.size, 'value')} in {path} are 1, as in data of clicks, plays or purchases. Pass "
        "--implicit to fit them as such, or --no-implicit to fit them as numbers."
    )
