"""`bifactor recommend`: show the best columns for some or all rows."""

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.table import Table

from bifactor.applications import recommender
from bifactor.applications.base import open_fit, with_history
from bifactor.applications.recommender.lists import POPULARITY, STRANGERS, RecommendationLists, RowList
from bifactor.arrays import Array
from bifactor.cli import monitor
from bifactor.cli.inputs import history_option, read_names
from bifactor.cli.options import INPUT, Within, force_option, json_option, safe, safe_cells_option, seed_option
from bifactor.cli.output import Screen, emit_json, print_line, stderr, wants_json
from bifactor.cli.parquet import PARQUET, pyarrow, require_parquet
from bifactor.data.names import to_python_objects
from bifactor.errors import InputError
from bifactor.models import Fit
from bifactor.models.top_k import RANKING_MODES
from bifactor.running.files import new_file, opened, require_free
from bifactor.validation import pluralize

LINES = 1 << 16
"""Lines of a file per block that is written."""

ENDINGS = (".csv", ".csv.gz", *PARQUET)


def table_blocks(lists: RecommendationLists, done: Callable[[float], None]) -> Iterator[list[list[Any]]]:
    """The lines of a file in blocks; `done` is called with the share of the rows that are done."""
    block: list[list[Any]] = []
    for k, (name, lines, rests) in enumerate(lists):
        for place, line in enumerate(lines, 1):
            told = [name, place, line.column, line.score]
            told += [line.title] if lists.titles is not None else []
            told += [line.why] if lists.reasons is not None else []
            block.append(told + ([rests] if rests is not None else []))
        if len(block) >= LINES:
            yield block
            block = []
            done((k + 1) / lists.rows.size)
    if block:
        yield block


def require_ending(output: Path, safe_cells: bool) -> None:
    """Raise `InputError` for a file of a kind that is not supported."""
    name = output.name.lower()
    if not name.endswith(ENDINGS):
        raise InputError(f"{output} has an unsupported extension. Choose one of {', '.join(ENDINGS)}.")
    if name.endswith(PARQUET):
        require_parquet(output, safe_cells)


def write(
    lists: RecommendationLists, output: Path, force: bool, safe_cells: bool, done: Callable[[float], None]
) -> int:
    """Write a file in blocks of rows and return how many lines it has."""
    count = 0
    with new_file(output, force) as temporary:
        packed = output.name.lower().endswith(PARQUET)
        with _parquet(temporary, lists) if packed else _text(temporary, output, lists, safe_cells) as put:
            for block in table_blocks(lists, done):
                put(block)
                count += len(block)
    return count


@contextmanager
def _text(temporary: Path, output: Path, lists: RecommendationLists, safe_cells: bool) -> Iterator[Any]:
    with opened(temporary, output) as file:
        writer = csv.writer(file, lineterminator="\n")
        cells = (lambda row: [safe(cell) for cell in row]) if safe_cells else list
        writer.writerow(cells(lists.header))
        at = lists.header.index(lists.measure)

        def put(block: list[list[Any]]) -> None:
            writer.writerows(cells([*row[:at], f"{row[at]:.6g}", *row[at + 1 :]]) for row in block)

        yield put


@contextmanager
def _parquet(temporary: Path, lists: RecommendationLists) -> Iterator[Any]:
    pa, parquet = pyarrow()
    whole = [side.values.dtype.kind in "iu" for side in (lists.fit.rows, lists.fit.cols)]
    whole[0] &= bool(np.all(lists.rows >= 0))  # rows that are not in the fit keep the name they were given by
    kinds = {"rank": pa.int32(), lists.measure: pa.float64()}
    kinds |= {name: pa.int64() for name, one in zip(lists.header[::2], whole, strict=False) if one}
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in lists.header])
    with parquet.ParquetWriter(temporary, schema) as writer:

        def put(block: list[list[Any]]) -> None:
            columns = []
            for field, cells in zip(schema, zip(*block, strict=True), strict=True):
                text = field.type == pa.string()
                columns.append(pa.array([str(cell) for cell in cells] if text else cells, field.type))
            writer.write_table(pa.table(columns, schema=schema))

        yield put


EXAMPLES = """\b
Examples:
  bifactor recommend fit --user 42
  bifactor recommend fit --user alice --user bob -n 5 --names titles.csv
  bifactor recommend fit --history new.csv
  bifactor recommend fit --all -n 20 -o lists.parquet
  bifactor recommend fit --user 42 --by lower --level 0.95
"""


@click.command(epilog=EXAMPLES)
@click.argument("fit", type=INPUT)
@click.option("--user", "--row", "users", multiple=True, help="Name of a row; may be repeated.")
@click.option("--users", "listing", type=INPUT, help="File with names of rows, one per line or in its first column.")
@click.option("--all", "everybody", is_flag=True, help="All rows.")
@history_option
@click.option("-n", "count", type=click.IntRange(min=1), default=10, show_default=True, help="How many columns.")
@click.option("--include-seen", is_flag=True, help="Include columns in which the row has an entry.")
@click.option("--items", type=INPUT, help="File of the columns to choose from, one per line; by default all.")
@click.option("--names", type=INPUT, help="File of columns and their titles, to show these.")
@click.option(
    "--by",
    type=click.Choice(RANKING_MODES),
    default="mean",
    show_default=True,
    help="Rank by the prediction, by its lower bound, or by a random draw (Thompson sampling).",
)
@click.option(
    "--level",
    type=Within(0, 1, min_open=True, max_open=True),
    help="With --by lower: the probability of the bound; by default 0.9.",
)
@seed_option
@click.option("--explain/--no-explain", default=None, help="For clicks: show which choices led to each column.")
@click.option(
    "--unknown",
    type=click.Choice(STRANGERS),
    default="raise",
    show_default=True,
    help="What to do with rows that are not in the fit: raise an error or, for clicks, show popular columns.",
)
@click.option("-o", "--output", type=INPUT, help="File to write: .csv, .csv.gz or .parquet; by default stdout.")
@safe_cells_option
@force_option
@json_option
def recommend(fit: Path, output: Path | None, force: bool, safe_cells: bool, **options: Any) -> None:
    """Show the columns of FIT, a folder, with the largest predictions for some rows.

    Pairs that were in the data are left out. For rows that were not in the data, pass a file of their entries,
    --history; if a row of the fit is in this file, only the entries in the file count. A fit to clicks shows the most
    popular columns to rows without choices, and says so. For one row on the screen it also shows the reasons.

    A fit with error bars can rank by these: --by lower prefers columns that are surely good, and --by draw (Thompson
    sampling) also explores uncertain ones. The numbers shown are then the bounds, or the draws.
    """
    if options["level"] is not None and options["by"] != "lower":
        raise click.UsageError(f"--level requires --by lower, not --by {options['by']}. Pass both or neither.")
    if options["everybody"] and (options["users"] or options["listing"]):
        raise click.UsageError("--all excludes --user and --users. Pass one of them.")
    if not (options["users"] or options["listing"] or options["everybody"] or options["history"]):
        raise InputError("There is no row to recommend to. Pass --user, --users FILE, --all or --history FILE.")
    if output is not None:
        require_ending(output, safe_cells)
        require_free(output, force)
    lists = _lists(open_fit(fit), on_screen=output is None and not wants_json(), **options)
    if output is not None:
        with monitor.share("recommending") as done:
            count = write(lists, output, force, safe_cells, done)
        answer = {"output": str(output), "rows": int(lists.rows.size), "lines": count, "popular": lists.popular}
        if wants_json():
            emit_json(answer)
            return
        said = f"{pluralize(count, 'line')} for {pluralize(lists.rows.size, 'row')} written to {output}"
        more = f"; {pluralize(lists.popular, 'row')} without choices got the most popular" if lists.popular else ""
        stderr().print(said + more)
    elif wants_json():
        emit_json({"rows": [_record(one, lists.measure) for one in lists]})
    else:
        for one in lists:
            _show(lists, one)
        sys.stdout.flush()


def _lists(
    model: Fit,
    *,
    users: tuple[str, ...],
    listing: Path | None,
    everybody: bool,
    history: Path | None,
    items: Path | None,
    names: Path | None,
    explain: bool | None,
    unknown: str,
    count: int,
    include_seen: bool,
    by: str,
    level: float | None,
    seed: int,
    on_screen: bool,
) -> RecommendationLists:
    """The rows that the options name, and the settings of their lists."""
    of_clicks = model.of_choices
    if by != "mean":
        _require_error_bars(model, by)
    if not of_clicks and (explain or unknown == "popular"):
        option = "--explain" if explain else "--unknown popular"
        raise InputError(f"{option} is for clicks, and this is a fit to values. Leave it out, or fit with --implicit.")
    asked: Any = np.array(users, object)
    if listing is not None:
        asked = np.concatenate([asked, read_names(listing, model.rows, model.header[0])])
    if history is not None:
        model, newcomers = with_history(model, history)
        asked = asked if asked.size or everybody else newcomers
    count_of_rows = len(model.rows) if everybody else asked.size
    if unknown == "raise" and not everybody:
        _require_known(model, asked)
    why = (on_screen and count_of_rows == 1) if explain is None else explain
    return recommender.recommend(
        model,
        None if everybody else asked,
        count,
        filter_seen=not include_seen,
        items=None if items is None else read_names(items, model.cols, model.header[1]),
        titles=names,
        by=by,
        level=0.9 if level is None else level,
        random_state=seed,
        explain=bool(why) and of_clicks,
        unknown=unknown,
    )


def _require_error_bars(model: Fit, by: str) -> None:
    posterior = model.model.posterior
    if posterior is not None and posterior.rows.covariance is not None:
        return
    why = "a fit with a ridge has none. Fit without --ridge"
    if model.of_choices:
        why = "a fit to clicks has none. Leave it out"
    elif posterior is not None:
        why = "this folder was written without them. Fit without --no-error-bars"
    raise InputError(f"--by {by} needs error bars, but {why}.")


def _require_known(model: Fit, asked: Array) -> None:
    strange = model.places(asked, "row") < 0
    if strange.any():
        name, others = to_python_objects(asked[strange])[0], int(strange.sum()) - 1
        more = f", and lacks {pluralize(others, 'other')} that you asked for" if others else ""
        advice = ", or --unknown popular" if model.of_choices else ""
        raise InputError(
            f"The fit has no row named {name!r}{more}. Check the name, or pass its entries with --history{advice}."
        )


def _record(one: RowList, measure: str) -> dict[str, Any]:
    lines = []
    for line in one.lines:
        told: dict[str, Any] = {"column": line.column, measure: line.score}
        if line.title is not None:
            told["title"] = line.title
        if line.because is not None:
            told["because"] = [_without_none(carrier._asdict()) for carrier in line.because]
            if one.based_on != POPULARITY:
                told["rest"] = line.score - sum(carrier.part for carrier in line.because)
        lines.append(told)
    return {"row": one.row, "recommended": lines, **({} if one.based_on is None else {"based_on": one.based_on})}


def _without_none(told: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in told.items() if value is not None}


def _show(lists: RecommendationLists, one: RowList) -> None:
    if not one.lines:
        rest = "every column of --items" if lists.allowed is not None else "every column"
        print_line(f"{one.row} has an entry in {rest}, so none is left. Pass --include-seen to include these.")
        return
    called, _, column, *_ = lists.header
    title = f"for {called} {one.row}"
    if one.based_on == POPULARITY:
        title += ", who has no known choices: the most popular, and the share of all rows that chose each"
    print_line(title)
    table = Table()
    table.add_column(column)
    if lists.titles is not None:
        table.add_column("title")
    table.add_column(lists.measure, justify="right")
    because = lists.reasons is not None and one.based_on != POPULARITY
    if because:
        table.add_column("because of")
    for line in one.lines:
        told = [str(line.column), *([line.title or ""] if lists.titles is not None else []), f"{line.score:.4g}"]
        table.add_row(*told, *([line.why] if because else []))
    Screen().print(table)
