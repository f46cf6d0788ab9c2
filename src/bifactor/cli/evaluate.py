"""`bifactor evaluate`: measure how well a fit predicts or ranks the entries in a file."""

from pathlib import Path
from typing import Any

import click
from rich.table import Table

from bifactor.applications import completion, recommender
from bifactor.applications.base import open_fit
from bifactor.cli.inputs import history_option
from bifactor.cli.monitor import TerminalWatch
from bifactor.cli.options import INPUT, column_options, columns, json_option, seed_option
from bifactor.cli.output import Screen, emit_json, print_line, print_result, wants_json
from bifactor.errors import InputError
from bifactor.models.metrics import format_scores
from bifactor.models.recommender.evaluation import describe_gain, metric_label
from bifactor.validation import pluralize

EXAMPLES = """\b
Examples:
  bifactor evaluate fit later.csv
  bifactor evaluate fit later.csv -n 20 --json
  bifactor evaluate fit rest.csv --history new.csv
"""


@click.command(epilog=EXAMPLES)
@click.argument("fit", type=INPUT)
@click.argument("test", type=INPUT)
@history_option
@click.option("-n", "count", type=click.IntRange(min=1), help="Length of the lists that are judged; by default 10.")
@seed_option
@column_options(value=False)
@click.option("--value", metavar="COLUMN", help="The column with the values, or with counts of clicks.")
@json_option
def evaluate(fit: Path, test: Path, history: Path | None, count: int | None, seed: int, **options: Any) -> None:
    """Evaluate FIT, a folder, on the entries in the file TEST, which should not have been in its data.

    For a fit to values, the errors of the predictions are shown. For a fit to clicks, TEST holds choices made since:
    all items that a user had not chosen before are ranked, and the metrics of these lists are shown with intervals,
    beside those of a list of the most popular items. Pass earlier choices of new users as --history.
    """
    model, watch = open_fit(fit), TerminalWatch()
    if not model.of_choices:
        if count is not None:
            raise InputError("-n is for lists, and this is a fit to values. Leave it out, or fit with --implicit.")
        answer = completion.evaluate(model, test, history=history, watch=watch, **columns(options)).scores
        print_result(
            {"fit": str(fit), "test": test.name, **answer}, [("test", test.name), ("errors", format_scores(answer))]
        )
        return
    found = recommender.evaluate(
        model, test, count or 10, history=history, random_state=seed, watch=watch, **columns(options)
    )
    assert found.left_out is not None
    if wants_json():
        emit_json({"fit": str(fit), "test": test.name, **found.scores, "left_out": found.left_out})
        return
    _show(found.scores)
    print_line(_judged(found.scores, found.left_out))
    print_line(describe_gain(found.scores))


def _show(card: dict[str, Any]) -> None:
    table = Table()
    for name in ("", "this fit", "95 % interval", "most popular"):
        table.add_column(name, justify="left" if not name else "right")
    for name, one in card["metrics"].items():
        interval = f"{one['low']:.4f} to {one['high']:.4f}" if "low" in one else ""
        table.add_row(metric_label(name), f"{one['mean']:.4f}", interval, f"{one['popular']:.4f}")
    Screen().print(table)


def _judged(card: dict[str, Any], aside: dict[str, int]) -> str:
    """How many users and choices were judged, how many were left out, and why."""
    told = f"{pluralize(card['users'], 'user')} judged by {pluralize(aside['judged'], 'choice')}"
    told += f" of {aside['choices']:,}. Recall is {card['recall']}, where T are the choices of a user in the file."
    why = {
        "of_unknown_users": f"of {pluralize(aside['unknown_users'], 'user')} not in the fit (pass --history for these)",
        "of_unknown_items": "of items not in the fit",
        "known_before": "already in the fit",
    }
    without = [f"{aside[name]:,} {words}" for name, words in why.items() if aside[name]]
    told += f" Choices left out: {', '.join(without)}." if without else ""
    left = pluralize(aside["users_left_out"], "user")
    return told + (f" No choices of {left} are left to judge." if aside["users_left_out"] else "")
