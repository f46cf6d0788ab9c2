"""Imputation of tables from file to file: cells that are not filled in stay exactly as they are."""

import csv
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw

from bifactor.applications.base import Pathlike, collect_warnings
from bifactor.applications.watch import SILENT, Watch
from bifactor.data.column_types import KEEP, ColumnHint, ColumnSpec
from bifactor.data.columns import parquet_columns
from bifactor.data.text import require_file
from bifactor.errors import InputError
from bifactor.models.completion.fitting import seed_of
from bifactor.models.imputation.model import EFFORTS, FULL, ROUNDS, FittedTable, metric_of
from bifactor.models.imputation.text import TextTable, names_rows
from bifactor.running.files import new_file, opened, require_free
from bifactor.running.result import Status

PARQUET = (".parquet", ".pq")

SCORE = ("metric", "error", "baseline")
"""What is known of the errors of a column."""


@dataclass(frozen=True, eq=False)
class ImputedTable:
    """A filled-in table.

    Attributes
    ----------
    table : frame or TextTable
        A frame of the library of the one that was given, of pyarrow for parquet; for text, the header and lines.
    fit : FittedTable
        What the cells were filled in from.
    holes, counts : list of int
        The number of holes of each column, and how many of them were filled in.
    notes : list of str
        What a user should know about the table.
    """

    table: Any
    fit: FittedTable
    holes: list[int]
    counts: list[int]
    notes: list[str]

    @property
    def scores(self) -> dict[str, dict[str, Any]]:
        """For each column that varies, the error of hidden cells, and that of a constant as baseline."""
        return {one["name"]: {name: one[name] for name in SCORE} for one in self._columns() if "metric" in one}

    @property
    def card(self) -> dict[str, Any]:
        """What was filled in and left, and how well hidden cells were predicted, column by column."""
        total = sum(self.counts)
        rows = self.fit.known[0] + self.fit.holes[0]
        facts = {"rows": rows, "filled": total, "left": sum(self.holes) - total}
        return {**facts, "columns": self._columns(), "notes": self.notes, "status": self.status.name}

    @property
    def status(self) -> Status:
        """How the fit ended; Ctrl-C keeps the factors so far and leaves out forests."""
        return self.fit.model.status

    def save(self, path: Pathlike, *, force: bool = False, encode: Callable[[str], Any] | None = None) -> None:
        """Write the table to a new file; text as it was read, gzipped if the name ends in .gz, and frames as parquet.

        `encode` is applied to each cell of text.
        """
        target = Path(path)
        with new_file(target, force) as temporary:
            if not isinstance(self.table, TextTable):
                nw.from_native(self.table, eager_only=True).write_parquet(temporary)
                return
            with opened(temporary, target) as file:
                writer = csv.writer(file, delimiter=self.table.delimiter, lineterminator="\n")
                lines = [self.table.header, *self.table.body]
                writer.writerows(lines if encode is None else (map(encode, line) for line in lines))

    def _columns(self) -> list[dict[str, Any]]:
        columns = []
        for form, holes, count, score in zip(self.fit.forms, self.holes, self.counts, self.fit.scores, strict=True):
            facts = {"name": form.name, "kind": form.kind, "filled": count, "left": holes - count}
            if score is not None:
                facts |= {"metric": metric_of(form), "error": score.error, "baseline": score.baseline}
            columns.append(facts)
        return columns


def impute(
    table: Any,
    *,
    columns: Mapping[Any, Any] | None = None,
    effort: str = FULL,
    delimiter: str | None = None,
    random_state: int = 0,
    output: Pathlike | None = None,
    force: bool = False,
    encode: Callable[[str], Any] | None = None,
    watch: Watch = SILENT,
) -> ImputedTable:
    """Fill in the holes of a table, as `bifactor impute` does.

    Parameters
    ----------
    table : path or frame
        A csv or tsv file with a header, a parquet file, or a frame of any library that `TableImputer` takes.
    columns : mapping, optional
        Kinds of columns by name, as for `TableImputer`; "keep" leaves a column out. Others are inferred; columns of row
        names, and those without any value, are kept.
    effort : {"full", "fast"}
        "fast" leaves out normal scores and forests.
    delimiter : str, optional
        For text: one character, or "tab"; detected by default.
    random_state : int
        Seed of the hidden cells, and of the samples of trees.
    output : path, optional
        File to write, as by `ImputedTable.save` with `force` and `encode`.
    watch : Watch
        What follows the work.

    Returns
    -------
    ImputedTable
    """
    said, path = dict(columns or {}), Path(table) if isinstance(table, (str, os.PathLike)) else None
    if effort not in EFFORTS:
        raise InputError(f"effort={effort!r} is unknown. Pass 'full' or 'fast'.")
    seed_of(random_state)
    if output is not None:
        require_free(Path(output), force)
    if path is not None:
        require_file(path)
    is_text = path is not None and not is_parquet(path)
    if output is not None and is_text == is_parquet(Path(output)):
        name = "the frame" if path is None else path
        raise InputError(f"{name} and {output} have different formats. Give both the same extension.")
    notes: list[str] = []
    with collect_warnings(notes):
        if path is not None and is_text:
            filled = _fill_text(path, said, effort, random_state, delimiter, watch, notes)
        else:
            frame, name = (table, "the frame") if path is None else (parquet_columns(path).native(), str(path))
            filled = _fill_frame(frame, name, said, effort, random_state, watch, notes)
    if output is not None:
        filled.save(output, force=force, encode=encode)
    return filled


def is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(PARQUET)


def _fill_text(
    path: Path, said: dict[Any, Any], effort: str, seed: int, delimiter: str | None, watch: Watch, notes: list[str]
) -> ImputedTable:
    with watch.reading(path.name) as progress:
        text = TextTable.read(path, delimiter, progress)
    _require_columns(said, text.header, str(path))
    said = dict.fromkeys(text.aside, KEEP) | said
    given = [(name, *text.cells(name)) for name in text.header]
    columns = [cells for _, cells, _ in given]
    forms = [
        ColumnSpec.of(name, cells, ColumnHint.of(name, said[name]) if name in said else None, d)
        for name, cells, d in given
    ]
    if all(form.kind == KEEP for form in forms):
        raise InputError(f"{path} has no column of numbers, grades or categories. Check the delimiter.")
    with watch.fitting("fitting", "filling in") as bar:

        def show(done: int, *_: Any) -> None:
            if bar.stage is not None:
                bar.stage("rounds of fitting", done, 2 * ROUNDS)

        sheet = FittedTable.fit(forms, columns, effort=effort, seed=seed_of(seed), on_round=show)
        told = sheet.fill(columns)
    if unfilled := sheet.unfilled(said):
        warnings.warn(unfilled, UserWarning, stacklevel=2)
    if sheet.model.status is Status.INTERRUPTED:
        warnings.warn(f"The fit was {Status.INTERRUPTED}.", UserWarning, stacklevel=2)
    for name, (holes, values) in zip(text.header, told, strict=True):
        if holes.any():
            text.fill(name, holes, values)
    return ImputedTable(text, sheet, list(sheet.holes), [int(holes.sum()) for holes, _ in told], notes)


def _fill_frame(
    native: Any, name: str, said: dict[Any, Any], effort: str, seed: int, watch: Watch, notes: list[str]
) -> ImputedTable:
    from bifactor.estimators.table_imputer import TableImputer  # which imports scikit-learn

    try:
        frame = nw.from_native(native, eager_only=True)
    except TypeError:
        kind = type(native).__name__
        raise InputError(f"{kind} is neither a file nor a data frame. Pass one, or an array to TableImputer.") from None
    if not frame.columns:
        raise InputError(f"{name} has no columns. Pass a table with some.")
    _require_columns(said, frame.columns, name)
    nulls = dict(zip(frame.columns, _nulls(frame), strict=True))
    first = frame.columns[0]
    aside = [name for name, count in nulls.items() if count == len(frame)]
    aside += [first] if names_rows(str(first)) and not nulls[first] else []
    with watch.fitting("fitting", "filling in"):
        columns = dict.fromkeys(aside, KEEP) | said
        imputer = TableImputer(columns=columns, effort=effort, random_state=seed).fit(native)
        full = imputer.transform(native)
    if hasattr(native, "schema") and hasattr(full, "replace_schema_metadata"):  # of pyarrow
        full = full.replace_schema_metadata(native.schema.metadata)
    left = _nulls(nw.from_native(full, eager_only=True))
    counts = [a - b for a, b in zip(nulls.values(), left, strict=True)]
    return ImputedTable(full, imputer.sheet_, list(nulls.values()), counts, notes)


def _nulls(frame: Any) -> list[int]:
    """The number of null or NaN cells in each column."""
    found = []
    for name in frame.columns:
        series = frame.get_column(name)
        count = int(series.null_count())
        found.append(count + int((series.is_nan() & ~series.is_null()).sum() if series.dtype.is_float() else 0))
    return found


def _require_columns(said: dict[Any, Any], header: list[Any], name: str) -> None:
    for column, kind in said.items():
        if column not in header:
            rest = "to keep" if kind == KEEP else f"to be {kind}"
            listed = ", ".join(map(str, header[:20]))
            raise InputError(f"{name} has no column {column!r} {rest}. Its columns are {listed}.")
