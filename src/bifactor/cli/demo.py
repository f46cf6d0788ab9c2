"""`bifactor demo`: complete a picture, ratings and a table with holes, and write a page about them."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bifactor.cli import demo_jobs, watch
from bifactor.cli.look import tell
from bifactor.cli.options import Within, json_option
from bifactor.reports.demo import Picture, Ratings, Table, report
from bifactor.running.files import new_file, require_writable

TOLD = {"nearest": "nearest pixel", "blur": "best blur", "bifactor": "bifactor"}


@click.command()
@click.option(
    "--observed", default=0.3, show_default=True, type=Within(0, 1, min_open=True), help="Share of pixels kept."
)
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of the pixels kept and the data."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="demo.html",
    show_default=True,
    help="Page to write.",
)
@json_option
def demo(observed: float, seed: int, output: Path) -> None:
    """Complete a photograph, ratings and a table, and write a page about them.

    The photograph comes with scikit-learn; the other data are generated.
    """
    if output.suffix.lower() != ".html":
        raise click.BadParameter(f"{output} should end in .html.", param_hint="--output")
    require_writable(output)
    started = time.perf_counter()
    with watch.share("completing a photograph") as show:
        picture = demo_jobs.photograph(observed, seed, show)
    with watch.fitting("ratings and recommendations", "fitting"):
        ratings = demo_jobs.ratings(seed)
    with watch.fitting("a table with holes", "filling in"):
        table = demo_jobs.table(seed)
    page = report(picture, ratings, table, time.perf_counter() - started)
    with new_file(output, force=True) as temporary:
        temporary.write_text(page, encoding="utf-8")
    tell(_answer(picture, ratings, table, output), _lines(picture, ratings, table, output))


def _answer(picture: Picture, ratings: Ratings, table: Table, output: Path) -> dict[str, Any]:
    told = asdict(ratings)
    del told["tastes"]
    return {
        "picture": {"observed": picture.observed, "scores": picture.scores},
        "ratings": told,
        "table": {"rows": table.rows, "hidden": table.hidden, "columns": table.scores, "seconds": table.seconds},
        "output": str(output),
    }


def _lines(picture: Picture, ratings: Ratings, table: Table, output: Path) -> list[tuple[str, str]]:
    height, width = picture.shown["original"].shape[:2]
    lines = [("picture", f"{width}×{height} pixels, {picture.observed:.0%} observed")]
    for name, score in picture.scores.items():
        lines.append((f"  {TOLD[name]}", f"{score['psnr']:.2f} dB at hidden pixels, {score['seconds']:.1f} s"))
    lines.append(
        ("ratings", f"{ratings.known:,} by {ratings.users} users of {ratings.films} films, {ratings.seconds:.1f} s")
    )
    for name, error in ratings.errors.items():
        lines.append((f"  {name}", f"RMSE {error:.3f} on held-out ratings"))
    lines.append(("  error bars", f"{ratings.level:.0%} intervals contain {ratings.held:.0%} of held-out ratings"))
    lines.append(
        ("table", f"{table.hidden} of {table.rows * len(table.columns)} cells filled in, {table.seconds:.1f} s")
    )
    for name, told in table.scores.items():
        unit, simple = ("share wrong", "mode") if told["metric"] == "errors" else ("RMSE", "mean")
        lines.append((f"  {name}", f"{unit} {told['error']:.3g} (with the column's {simple}: {told['baseline']:.3g})"))
    return [*lines, ("written", f"{output}: open it in a browser")]
