"""Recommendations for many rows, made in blocks: for the screen, as JSON, and for files."""

import csv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.cli.cells import safe
from bifactor.cli.parquet import PARQUET, pyarrow, require_parquet
from bifactor.errors import InputError
from bifactor.models import Fit
from bifactor.models.explanation import Reasons
from bifactor.models.orders import Order
from bifactor.models.recommending import popular, served
from bifactor.running.files import new_file, opened
from bifactor.tables.names import listed

BLOCK = 4096
"""Rows per block of recommendations."""

LINES = 1 << 16
"""Lines of a file per block that is written."""

CARRIERS = 3
"""Number of columns that are named as the reasons of a recommendation."""

ENDINGS = (".csv", ".csv.gz", *PARQUET)

CHOICES, POPULARITY = "choices", "popularity"
"""What a list is based on."""


class Carrier(NamedTuple):
    """A column that a row has chosen, and its contribution to the score of another."""

    column: Any
    title: str | None
    part: float


class Line(NamedTuple):
    """One recommendation."""

    column: Any
    score: float
    title: str | None
    because: list[Carrier] | None
    """The reasons, strongest first."""

    @property
    def why(self) -> str:
        """The reasons in words."""
        return "; ".join(str(one.title or one.column) for one in self.because or [])


class RowList(NamedTuple):
    """The recommendations for a row, and what they are based on; None unless the fit is to clicks."""

    row: Any
    lines: list[Line]
    based_on: str | None


@dataclass(frozen=True, eq=False)
class Lists:
    """The recommendations of a fit for rows given by index, where -1 is a row that is not in the fit."""

    fit: Fit
    rows: Array
    names: list[Any] | None
    """Names of the rows, where they differ from the fit's."""
    count: int
    include_seen: bool
    allowed: Array | None
    titles: Array | None
    reasons: Reasons | None
    order: Order
    """Of the rows in the fit."""
    by: str

    @property
    def popular(self) -> int:
        """How many rows get the most popular columns."""
        if self.fit.model.clicks is None:
            return 0
        return int(np.count_nonzero((self.rows < 0) | (self.fit.seen.counts[self.rows] == 0)))

    def __iter__(self) -> Iterator[RowList]:
        known = np.concatenate([[0], np.cumsum(self.rows >= 0)])
        for first in range(0, self.rows.size, BLOCK):
            rows = self.rows[first : first + BLOCK]
            names = listed(self.fit.rows[rows]) if self.names is None else self.names[first : first + BLOCK]
            yield from self._block(rows, names, self.order.part(slice(known[first], known[first + rows.size])))

    @cached_property
    def fallback(self) -> tuple[Array, Array]:
        """The most popular columns, and the share of rows that chose each."""
        return popular(self.fit.seen, len(self.fit.cols), self.count, self.allowed)

    def _block(self, rows: Array, names: list[Any], order: Order) -> Iterator[RowList]:
        fit, there = self.fit, rows >= 0
        known = fit.seen.counted(rows[there]) if self.include_seen else fit.seen.taken(rows[there])
        found = served(fit, order, known, self.count, not self.include_seen, self.allowed)
        of_clicks, at = fit.model.clicks is not None, np.cumsum(there) - 1
        for k, (row, name) in enumerate(zip(rows.tolist(), names, strict=True)):
            if row < 0:
                yield RowList(name, self._lines(-1, *self.fallback), POPULARITY)
                continue
            kept = found.columns[at[k]] >= 0
            columns, scores = found.columns[at[k]][kept], found.predicted[at[k]][kept]
            fallback = bool(found.popular[at[k]])
            rests = POPULARITY if fallback else CHOICES if of_clicks else None
            yield RowList(name, self._lines(-1 if fallback else row, columns, scores), rests)

    def _lines(self, row: int, columns: Array, scores: Array) -> list[Line]:
        titles = [None] * columns.size if self.titles is None else self.titles[columns].tolist()
        because: list[Any] = [None] * columns.size
        if self.reasons is not None:
            because = [[] for _ in titles] if row < 0 or columns.size == 0 else self._because(row, columns)
        names = listed(self.fit.cols[columns])
        return [Line(*each) for each in zip(names, scores.tolist(), titles, because, strict=True)]

    def _because(self, row: int, columns: Array) -> list[list[Carrier]]:
        assert self.reasons is not None
        found = []
        for own, parts in zip(*self.reasons.of(row, columns, CARRIERS), strict=True):
            titles = [None] * own.size if self.titles is None else self.titles[own].tolist()
            names = listed(self.fit.cols[own])
            every = [Carrier(*each) for each in zip(names, titles, parts.tolist(), strict=True)]
            found.append([one for one in every if one.part > 0])
        return found

    @property
    def header(self) -> list[str]:
        """The header of a file."""
        of_clicks = self.fit.model.clicks is not None
        more = ["title"] * (self.titles is not None) + ["because"] * (self.reasons is not None)
        added = ["rank", self.measure, *more, *(["based_on"] if of_clicks else [])]
        row, column = self.fit.header[:2]
        if row.isdecimal() or column.isdecimal() or {row, column} & set(added):
            row, column = ("user", "item") if of_clicks else ("row", "column")
        return [row, "rank", column, *added[1:]]

    @property
    def measure(self) -> str:
        """What the numbers are called."""
        return "score" if self.fit.model.clicks is not None else "prediction" if self.by == "mean" else self.by

    def table(self, done: Callable[[float], None]) -> Iterator[list[list[Any]]]:
        """The lines of a file in blocks; `done` is called with the share of the rows that are done."""
        block: list[list[Any]] = []
        for k, (name, lines, rests) in enumerate(self):
            for place, line in enumerate(lines, 1):
                told = [name, place, line.column, line.score]
                told += [line.title] if self.titles is not None else []
                told += [line.why] if self.reasons is not None else []
                block.append(told + ([rests] if rests is not None else []))
            if len(block) >= LINES:
                yield block
                block = []
                done((k + 1) / self.rows.size)
        if block:
            yield block


def require_ending(output: Path, safe_cells: bool) -> None:
    """Raise `InputError` for a file of a kind that is not supported."""
    name = output.name.lower()
    if not name.endswith(ENDINGS):
        raise InputError(f"{output} has an unsupported extension. Choose one of {', '.join(ENDINGS)}.")
    if name.endswith(PARQUET):
        require_parquet(output, safe_cells)


def write(lists: Lists, output: Path, force: bool, safe_cells: bool, done: Callable[[float], None]) -> int:
    """Write a file in blocks of rows and return how many lines it has."""
    count = 0
    with new_file(output, force) as temporary:
        packed = output.name.lower().endswith(PARQUET)
        with _parquet(temporary, lists) if packed else _text(temporary, output, lists, safe_cells) as put:
            for block in lists.table(done):
                put(block)
                count += len(block)
    return count


@contextmanager
def _text(temporary: Path, output: Path, lists: Lists, safe_cells: bool) -> Iterator[Any]:
    with opened(temporary, output) as file:
        writer = csv.writer(file, lineterminator="\n")
        cells = (lambda row: [safe(cell) for cell in row]) if safe_cells else list
        writer.writerow(cells(lists.header))
        at = lists.header.index(lists.measure)

        def put(block: list[list[Any]]) -> None:
            writer.writerows(cells([*row[:at], f"{row[at]:.6g}", *row[at + 1 :]]) for row in block)

        yield put


@contextmanager
def _parquet(temporary: Path, lists: Lists) -> Iterator[Any]:
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
