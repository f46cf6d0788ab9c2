"""What `bifactor complete` says of a fit."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bifactor.applications.recommender.report import held_out_choices, trial_used
from bifactor.applications.recommender.workflow import PLACES
from bifactor.cli.output import notes
from bifactor.models.completion.clipping import describe_range as spoken_range
from bifactor.models.completion.clipping import restored_range
from bifactor.models.metrics import format_scores
from bifactor.models.recommender.evaluation import describe_gain, metric_label
from bifactor.models.recommender.hyperparameters import RANKING_DEPTH
from bifactor.models.storage import REPORT
from bifactor.running.memory import bytes_in_words
from bifactor.validation import pluralize


def memory_in_words(card: Mapping[str, Any]) -> str:
    """The line of the summary; what is estimated is the growth of the process beyond Python with its libraries."""
    workers = card["settings"].get("workers")
    beside = "" if workers is None else f"{pluralize(workers, 'worker')} included, "
    return f"about {bytes_in_words(card['memory'])} besides Python itself, {beside}as estimated before the fit"


def summary(card: dict[str, Any], output: Path) -> list[tuple[str, str]]:
    data, fit, timings = card["data"], card["fit"], card["timings"]
    return [
        ("data", f"{data['file']}, {data['layout']}"),
        ("", f"{pluralize(data['entries'], 'entry')} of {data['rows']:,} × {data['cols']:,}"),
        ("fit", f"rank {fit['rank']}, {_shrinkage(fit)}, {pluralize(fit['iterations'], 'iteration')}"),
        *_noise(fit),
        *_clipped(fit),
        ("status", fit["sentence"]),
        *((name, format_scores(score)) for name, score in card["scores"].items()),
        *notes(card["notes"]),
        ("memory", memory_in_words(card)),
        ("time", f"{timings['all']:.1f} s, of which reading took {timings['reading']:.1f} s"),
        ("written", describe_output(output)),
    ]


def describe_output(output: Path) -> str:
    """The folder of a fit, and its report if there is one."""
    return f"{output} (look at {output / REPORT})" if (output / REPORT).exists() else str(output)


def _shrinkage(fit: dict[str, Any]) -> str:
    return "with error bars" if fit["ridge"] is None else f"ridge {fit['ridge']:.4g}"


def _noise(fit: dict[str, Any]) -> list[tuple[str, str]]:
    """For a fit with error bars: the noise, and how many components are not practically zero."""
    told = fit["noise"]
    if told is None:
        return []
    used = f"{told['living']} of {pluralize(fit['rank'], 'component')} in use"
    return [("noise", f"±{told['std']:.4g}, {told['words']}; {used}")]


def _clipped(fit: dict[str, Any]) -> list[tuple[str, str]]:
    limits = restored_range(fit["clip"])
    return [] if limits is None else [("clipped", f"predictions are {spoken_range(limits)}")]


# Of a fit to clicks.


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


def _check(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How well the first fit ranked the held-out choices, and how well a list of popular items would have."""
    check = card["scores"].get("held out")
    if check is None:
        return []
    users = pluralize(check["users"], "user")
    lines = [("check", f"a first fit without {held_out_choices(card)}, judged on these for {users}")]
    for name in (f"ndcg@{PLACES}", f"recall@{PLACES}"):
        one = check["metrics"][name]
        interval = f"{one['low']:.4f} to {one['high']:.4f}"
        kind = f", {check['recall']}" if name.startswith("recall") else ""
        told = f"{metric_label(name)} {one['mean']:.4f} ({interval}{kind})"
        lines.append(("", f"{told}; most popular items {one['popular']:.4f}"))
    return [*lines, ("", describe_gain(check))]


def click_summary(card: Mapping[str, Any], output: Path) -> list[tuple[str, str]]:
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
        *_check(card),
        *notes(card["notes"]),
        ("memory", memory_in_words(card)),
        ("time", f"{timings['all']:.1f} s, of which reading took {timings['reading']:.1f} s"),
        ("written", describe_output(output)),
    ]
