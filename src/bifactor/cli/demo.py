"""`bifactor demo`: complete a picture, ratings and a table with holes, and write a page about them."""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.applications.pictures.baselines import best_blur, nearest
from bifactor.applications.pictures.completion import fill_picture, validate_picture
from bifactor.applications.pictures.files import pillow_or_advice, psnr, random_mask
from bifactor.arrays import Array
from bifactor.cli import demo as demo_jobs
from bifactor.cli import monitor
from bifactor.cli.demo_page import DemoPicture, DemoTable, Ratings, Taste, report
from bifactor.cli.options import Within, json_option
from bifactor.cli.output import print_result
from bifactor.data.column_types import NUMBER, ColumnSpec
from bifactor.estimators import MatrixCompletion
from bifactor.kernels.threading import blas_at_most
from bifactor.models.imputation.model import FittedTable
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
    with monitor.share("completing a photograph") as show:
        picture = demo_jobs.photograph(observed, seed, show)
    with monitor.fit_progress("ratings and recommendations", "fitting"):
        ratings = demo_jobs.ratings(seed)
    with monitor.fit_progress("a table with holes", "filling in"):
        table = demo_jobs.table(seed)
    page = report(picture, ratings, table, time.perf_counter() - started)
    with new_file(output, force=True) as temporary:
        temporary.write_text(page, encoding="utf-8")
    print_result(_answer(picture, ratings, table, output), _lines(picture, ratings, table, output))


def _answer(picture: DemoPicture, ratings: Ratings, table: DemoTable, output: Path) -> dict[str, Any]:
    told = asdict(ratings)
    del told["tastes"]
    return {
        "picture": {"observed": picture.observed, "scores": picture.scores},
        "ratings": told,
        "table": {"rows": table.rows, "hidden": table.hidden, "columns": table.scores, "seconds": table.seconds},
        "output": str(output),
    }


def _lines(picture: DemoPicture, ratings: Ratings, table: DemoTable, output: Path) -> list[tuple[str, str]]:
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


# The jobs that `bifactor demo` shows: a picture, ratings and a table, each compared with simpler methods.

USERS, FILMS, NOISE, LEVEL = 400, 160, 0.6, 0.9
GENRES = ("Comedy", "Drama", "Horror", "Romance", "War", "Western")
SPORTS = ("chess", "rowing", "running", "weights")


def photograph(observed: float, seed: int, progress: Callable[[float], None]) -> DemoPicture:
    """Complete scikit-learn's `china.jpg` from some of its pixels."""
    pillow_or_advice()
    from sklearn.datasets import load_sample_image

    truth = np.asarray(load_sample_image("china.jpg"))
    known = random_mask(truth.shape[:2], observed, seed)
    seen = np.where(known[:, :, None], truth, 0).astype(np.uint8)
    blur, blurring = _timed(lambda: best_blur(seen, known, truth))
    copied, copying = _timed(lambda: nearest(seen, known))
    with blas_at_most(1):
        full, completing = _timed(lambda: fill_picture(*validate_picture(seen, known), progress=progress)[0])
    ways = {"nearest": (copied, copying), "blur": (blur, blurring), "bifactor": (full, completing)}
    scores = {name: {"psnr": _hidden(found, truth, known), "seconds": s} for name, (found, s) in ways.items()}
    shown = {"original": truth, "observed": seen, "best blur": np.clip(np.rint(blur), 0, 255), "bifactor": full}
    return DemoPicture({name: picture.astype(np.uint8) for name, picture in shown.items()}, float(known.mean()), scores)


def ratings(seed: int) -> Ratings:
    """Fit ratings of films by users who prefer some genres; a fifth of the ratings is held out."""
    rng = np.random.default_rng(seed)
    genre = np.arange(FILMS) % len(GENRES)
    taste = rng.standard_normal((USERS, len(GENRES)))
    mean = 3.2 + 0.9 * taste[:, genre] + 0.5 * rng.standard_normal(FILMS)
    i, j = np.nonzero(rng.random(mean.shape) < rng.beta(1.0, 4.0, (USERS, 1)))
    stars = np.clip(np.rint(mean[i, j] + NOISE * rng.standard_normal(i.size)), 1, 5)
    test = rng.random(i.size) < 0.2
    train = i[~test], j[~test], stars[~test]
    model, seconds = _timed(lambda: MatrixCompletion(n_components="auto", random_state=seed).fit(train))
    low, high = model.predict_interval(i[test], j[test], level=LEVEL)
    means = _means(*train)
    guesses = {"mean of all": stars[~test].mean(), "means of films": means[j[test]]}
    guesses["bifactor"] = model.predict(i[test], j[test])
    return Ratings(
        users=USERS,
        films=FILMS,
        known=int(train[0].size),
        rank=int(model.n_components_),
        errors={name: float(np.sqrt(np.mean((guess - stars[test]) ** 2))) for name, guess in guesses.items()},
        level=LEVEL,
        held=float(np.mean((stars[test] >= low) & (stars[test] <= high))),
        seconds=seconds,
        tastes=[_taste(model, train, user) for user in _clear(taste, train[0])],
    )


def table(seed: int) -> DemoTable:
    """Fill in a table of people with five columns, numbers and words; a quarter of the cells is hidden."""
    rng = np.random.default_rng(seed)
    build, age = rng.standard_normal(400), rng.uniform(18, 75, 400)
    columns = {
        "age": np.rint(age),
        "height": np.rint(172 + 8 * build + 4 * rng.standard_normal(400)),
        "weight": np.rint(72 + 11 * build + 0.1 * (age - 45) + 4 * rng.standard_normal(400)),
        "pulse": np.rint(60 + 0.3 * (age - 45) - 4 * build + 4 * rng.standard_normal(400)),
        "sport": np.array(SPORTS, object)[np.digitize(build + 0.5 * rng.standard_normal(400), [-1, 0, 1])],
    }
    hidden = {name: rng.random(400) < 0.25 for name in columns}
    seen = [_masked(cells, hidden[name]) for name, cells in columns.items()]
    forms = [ColumnSpec.of(name, cells, None) for name, cells in zip(columns, seen, strict=True)]

    def fill() -> list[Array]:
        told = FittedTable.fit(forms, seen, seed=seed).fill(seen)
        return [_with(cells, *fill) for cells, fill in zip(seen, told, strict=True)]

    full, seconds = _timed(fill)
    scores = {
        form.name: _score(form.kind, columns[form.name], cells, hidden[form.name])
        for form, cells in zip(forms, full, strict=True)
    }
    rows = np.flatnonzero(sum(hidden.values()) >= 2)[:6]
    lines = [[(cells[row], bool(hidden[name][row])) for name, cells in zip(columns, full, strict=True)] for row in rows]
    return DemoTable(tuple(columns), lines, len(age), int(sum(map(np.sum, hidden.values()))), scores, seconds)


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    started = time.perf_counter()
    found = function()
    return found, time.perf_counter() - started


def _hidden(found: Array, truth: Array, known: Array) -> float:
    return psnr(found[~known] / 255, truth[~known] / 255) if not known.all() else 300.0


def _means(rows: Array, cols: Array, stars: Array) -> Array:
    """The mean of each film, shrunk to the overall mean by five additional ratings."""
    count = np.bincount(cols, minlength=FILMS)
    return (np.bincount(cols, stars, minlength=FILMS) + 5 * stars.mean()) / (count + 5)


def _clear(taste: Array, rows: Array) -> list[int]:
    """Two users with at least 12 ratings whose tastes differ most between genres."""
    clear = np.where(np.bincount(rows, minlength=USERS) >= 12, np.ptp(taste, axis=1), -np.inf)
    return [int(user) for user in np.argsort(-clear)[:2]]


def _taste(model: MatrixCompletion, train: tuple[Array, Array, Array], user: int) -> Taste:
    own = train[0] == user
    best = np.argsort(-train[2][own], kind="stable")[:4]
    known = [(_film(film), float(stars)) for film, stars in zip(train[1][own][best], train[2][own][best], strict=True)]
    films, _ = model.recommend([user], n=5)
    value, std = model.predict(np.full(5, user), films[0], return_std=True)
    told = [(_film(film), float(a), float(b)) for film, a, b in zip(films[0], value, std, strict=True)]
    return Taste(user + 1, known, told)


def _film(number: int) -> str:
    return f"{GENRES[number % len(GENRES)]} no. {number // len(GENRES) + 1}"


def _masked(cells: Array, hidden: Array) -> Array:
    seen = cells.copy()
    seen[hidden] = None if cells.dtype == object else np.nan
    return seen


def _with(cells: Array, holes: Array, values: Array) -> Array:
    full = cells.copy()
    full[holes] = values
    return full


def _score(kind: str, truth: Array, full: Array, hidden: Array) -> dict[str, Any]:
    """The error at hidden cells, and that of the mean or of the most frequent word."""
    if kind == NUMBER:
        mean = truth[~hidden].mean()
        errors = [float(np.sqrt(np.mean((guess - truth[hidden]) ** 2))) for guess in (full[hidden], mean)]
        return {"metric": "rmse", "error": errors[0], "baseline": errors[1]}
    words, counts = np.unique(truth[~hidden].astype(str), return_counts=True)
    wrong = [float(np.mean(guess != truth[hidden])) for guess in (full[hidden], words[counts.argmax()])]
    return {"metric": "errors", "error": wrong[0], "baseline": wrong[1]}
