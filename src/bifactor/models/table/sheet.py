"""Columns of any kind, and the model that fills them in, common to frames, arrays and text files."""

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.models.table.answers import Score
from bifactor.models.table.layout import Schema
from bifactor.models.table.model import TableModel
from bifactor.tables.forms import DAY, INTEGERS, KEEP, NUMBER, ORDINAL, STEPS, Form
from bifactor.validation import is_at_least_zero

SHOWN = 10
"""Most columns that a note lists."""

WHOLE = np.iinfo(np.int64)


def metric_of(form: Form) -> str:
    """Metric of the errors of a column: the share of wrong classes, unless it has numbers or grades."""
    return {NUMBER: "rmse in days" if form.step else "rmse", ORDINAL: "mae"}.get(form.kind, "errors")


@dataclass(frozen=True, eq=False)
class Sheet:
    """A fitted table, column by column."""

    forms: tuple[Form, ...]
    model: TableModel
    known: tuple[int, ...]
    """Numbers of known cells of each column, and of missing cells."""
    holes: tuple[int, ...]

    @classmethod
    def fit(cls, forms: Sequence[Form], columns: Sequence[Array], bounds: Any = None, **options: Any) -> Self:
        """Fit to the cells of each column; `options` are those of `TableModel.fit`."""
        forms = tuple(forms)
        used = [form for form in forms if form.kind != KEEP]
        schema = Schema(
            tuple(form.kind for form in used), tuple(len(form.levels) for form in used), _bounds(used, bounds)
        )
        X = _codes(forms, columns)
        if not used:
            raise InputError(
                "All columns of X are kept, as is done for words that hardly repeat. Pass their kinds in columns=."
            )
        if np.isnan(X).all():
            raise InputError("No entry of X is known. Pass at least one known entry.")
        model = TableModel.fit(X, schema, **options)
        counts = [int(np.count_nonzero(~_missing(cells))) for cells in columns]
        return cls(forms, model, tuple(counts), tuple(len(c) - k for c, k in zip(columns, counts, strict=True)))

    def fill(self, columns: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Masks of the cells of each column that are filled in, and their values; none in columns that were empty."""
        return self._back(columns, self.model.fill(_codes(self.forms, columns)))

    def draws(self, columns: Sequence[Array], count: int, seed: int) -> Iterator[list[tuple[Array, Array]]]:
        """The same, drawn at random."""
        for X in self.model.draws(_codes(self.forms, columns), count, seed):
            yield self._back(columns, X)

    def probabilities(self, columns: Sequence[Array], place: int) -> Array:
        """Probabilities of the levels of a column, from the rest of each row."""
        among = sum(form.kind != KEEP for form in self.forms[:place])
        return self.model.probabilities(_codes(self.forms, columns), among)

    @property
    def scores(self) -> list[Score | None]:
        """Score of each column, in days for times; None for columns that are kept, constant or empty."""
        places = iter(range(len(self.forms)))
        found = [None if form.kind == KEEP else self.model.scores.get(next(places)) for form in self.forms]
        return [_in_days(score) if form.step else score for form, score in zip(self.forms, found, strict=True)]

    def unfilled(self, told: Container[Any]) -> str:
        """A note about kept columns with missing cells, unless it was `told` to keep them; empty if there are none."""
        pairs = zip(self.forms, self.holes, strict=True)
        found = {form.name: holes for form, holes in pairs if form.kind == KEEP and holes and form.name not in told}
        if not found:
            return ""
        names = ", ".join(f"{name} ({holes:,})" for name, holes in list(found.items())[:SHOWN])
        more = ", …" if len(found) > SHOWN else ""
        what = f"Missing cells of text that rarely repeats stay empty: {names}{more}."
        return f"{what} Declare such a column as a category to fill them, or as kept."

    def _back(self, columns: Sequence[Array], X: Array) -> list[tuple[Array, Array]]:
        found, codes = [], iter(X.T)
        for form, cells in zip(self.forms, columns, strict=True):
            holes = np.zeros(len(cells), bool)
            if form.kind == KEEP:
                found.append((holes, np.empty(0)))
                continue
            told = next(codes)
            holes = _missing(cells) & ~np.isnan(told)
            found.append((holes, form.values(told[holes])))
        return found


def _codes(forms: Sequence[Form], columns: Sequence[Array]) -> Array:
    pairs = zip(forms, columns, strict=True)
    codes = [form.codes(cells) for form, cells in pairs if form.kind != KEEP]
    return np.column_stack(codes) if codes else np.empty((0, 0))


def _missing(cells: Array) -> Array:
    if cells.dtype == object:
        return np.array([cell is None for cell in cells.tolist()], bool)
    return np.isnan(cells)


def _bounds(forms: Sequence[Form], given: dict[Any, Any] | None) -> dict[int, tuple[float, float]]:
    """Bounds by the index of columns."""
    found = {}
    places = {form.name: k for k, form in enumerate(forms)}
    for name, ends in (given or {}).items():
        if name not in places or forms[places[name]].kind != NUMBER:
            raise InputError(f"bounds names {name!r}, which is not a column of numbers. Leave it out.")
        time = forms[places[name]].step > 0
        try:
            low, high = (_moment(end) if time else float(end) for end in ends)
        except (TypeError, ValueError):
            low, high = np.nan, np.nan
        if not low < high:
            raise InputError(
                f"bounds of {name!r} are {ends!r}. Pass two increasing {'times' if time else 'numbers'}, such as "
                f"{'(datetime(2020, 1, 1), datetime(2021, 1, 1))' if time else '(0, 120)'}."
            )
        unit = forms[places[name]].step or int(isinstance(forms[places[name]].like, INTEGERS))
        if unit:  # values are rounded
            low, high = unit * np.ceil(low / unit), unit * np.floor(high / unit)
        if low > high or (unit and (low > WHOLE.max or high < WHOLE.min)):
            what = f"whole {STEPS[int(unit)]}" if time else "integers"
            raise InputError(f"Column {name!r} holds {what}, none of which is within its bounds {ends!r}. Widen them.")
        found[places[name]] = low, high
    return found


def _moment(end: Any) -> float:
    """A duration, or a time since 1970, in microseconds."""
    if isinstance(end, float):
        return end  # infinite
    length = isinstance(end, (timedelta, np.timedelta64))
    told = np.timedelta64(end, "us") if length else np.datetime64(end, "us")
    return float(told.astype(np.int64)) if not np.isnat(told) else np.nan


def _in_days(score: Score | None) -> Score | None:
    return None if score is None else Score(score.error / DAY, score.baseline / DAY, score.cells)


def require_tolerance(tol: Any) -> float:
    """The tolerance; raises `InputError` unless it is a number ≥ 0."""
    if not is_at_least_zero(tol):
        raise InputError(f"tol={tol!r} is not a number ≥ 0. Use 0 to continue until max_iter.")
    return float(tol)
