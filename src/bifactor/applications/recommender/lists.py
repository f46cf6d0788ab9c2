"""The best columns for some rows of a fit, with titles and reasons, in blocks of rows."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bifactor._compat import cached_property
from bifactor.applications.base import open_fit, with_history
from bifactor.arrays import Array
from bifactor.data import Names, read
from bifactor.data.names import to_python_objects
from bifactor.errors import InputError
from bifactor.models import Fit
from bifactor.models.recommender.explain import Reasons
from bifactor.models.top_k import RankingCriterion, allowed_columns, make_criterion, popular_columns, top_columns
from bifactor.validation import is_count, pluralize

BLOCK = 4096
"""Rows per block of recommendations."""

CARRIERS = 3
"""Number of columns that are named as the reasons of a recommendation."""

CHOICES, POPULARITY = "choices", "popularity"
"""What a list is based on."""

STRANGERS = ("raise", "popular")
"""What to do with rows that are not in the fit."""


class Contribution(NamedTuple):
    """A column that a row has chosen, and its contribution to the score of another."""

    column: Any
    title: str | None
    part: float


class Recommendation(NamedTuple):
    """One recommendation."""

    column: Any
    score: float
    title: str | None
    because: list[Contribution] | None
    """The reasons, strongest first."""

    @property
    def why(self) -> str:
        """The reasons in words."""
        return "; ".join(str(one.title or one.column) for one in self.because or [])


class RowList(NamedTuple):
    """The recommendations for a row, and what they are based on; None unless the fit is to clicks."""

    row: Any
    lines: list[Recommendation]
    based_on: str | None


@dataclass(frozen=True, eq=False)
class RecommendationLists:
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
    order: RankingCriterion
    """Of the rows in the fit."""
    by: str

    @property
    def popular(self) -> int:
        """How many rows get the most popular columns."""
        if not self.fit.of_choices:
            return 0
        return int(np.count_nonzero((self.rows < 0) | (self.fit.seen.counts[self.rows] == 0)))

    def __iter__(self) -> Iterator[RowList]:
        known = np.concatenate([[0], np.cumsum(self.rows >= 0)])
        for first in range(0, self.rows.size, BLOCK):
            rows = self.rows[first : first + BLOCK]
            names = to_python_objects(self.fit.rows[rows]) if self.names is None else self.names[first : first + BLOCK]
            yield from self._block(rows, names, self.order.part(slice(known[first], known[first + rows.size])))

    @cached_property
    def fallback(self) -> tuple[Array, Array]:
        """The most popular columns, and the share of rows that chose each."""
        return popular_columns(self.fit.seen, len(self.fit.cols), self.count, self.allowed)

    def _block(self, rows: Array, names: list[Any], order: RankingCriterion) -> Iterator[RowList]:
        fit, there = self.fit, rows >= 0
        known = fit.seen.counted(rows[there]) if self.include_seen else fit.seen.select(rows[there])
        found = top_columns(fit, order, known, self.count, not self.include_seen, self.allowed)
        of_clicks, at = fit.of_choices, np.cumsum(there) - 1
        for k, (row, name) in enumerate(zip(rows.tolist(), names, strict=True)):
            if row < 0:
                yield RowList(name, self._lines(-1, *self.fallback), POPULARITY)
                continue
            kept = found.columns[at[k]] >= 0
            columns, scores = found.columns[at[k]][kept], found.predicted[at[k]][kept]
            fallback = bool(found.popular[at[k]])
            rests = POPULARITY if fallback else CHOICES if of_clicks else None
            yield RowList(name, self._lines(-1 if fallback else row, columns, scores), rests)

    def _lines(self, row: int, columns: Array, scores: Array) -> list[Recommendation]:
        titles = [None] * columns.size if self.titles is None else self.titles[columns].tolist()
        because: list[Any] = [None] * columns.size
        if self.reasons is not None:
            because = [[] for _ in titles] if row < 0 or columns.size == 0 else self._because(row, columns)
        names = to_python_objects(self.fit.cols[columns])
        return [Recommendation(*each) for each in zip(names, scores.tolist(), titles, because, strict=True)]

    def _because(self, row: int, columns: Array) -> list[list[Contribution]]:
        assert self.reasons is not None
        found = []
        for own, parts in zip(*self.reasons.of(row, columns, CARRIERS), strict=True):
            titles = [None] * own.size if self.titles is None else self.titles[own].tolist()
            names = to_python_objects(self.fit.cols[own])
            every = [Contribution(*each) for each in zip(names, titles, parts.tolist(), strict=True)]
            found.append([one for one in every if one.part > 0])
        return found

    @property
    def header(self) -> list[str]:
        """The header of a file."""
        of_clicks = self.fit.of_choices
        more = ["title"] * (self.titles is not None) + ["because"] * (self.reasons is not None)
        added = ["rank", self.measure, *more, *(["based_on"] if of_clicks else [])]
        row, column = self.fit.header[:2]
        if row.isdecimal() or column.isdecimal() or {row, column} & set(added):
            row, column = ("user", "item") if of_clicks else ("row", "column")
        return [row, "rank", column, *added[1:]]

    @property
    def measure(self) -> str:
        """What the numbers are called."""
        return "score" if self.fit.of_choices else "prediction" if self.by == "mean" else self.by


def recommend(
    fit: Any,
    rows: Any = None,
    n: int = 10,
    *,
    history: Any = None,
    filter_seen: bool = True,
    items: Any = None,
    titles: Any = None,
    by: str = "mean",
    level: float = 0.9,
    random_state: Any = 0,
    explain: bool = False,
    unknown: str = "raise",
) -> RecommendationLists:
    """Recommend columns to some rows, as `bifactor recommend` does; lists are computed as they are iterated.

    Parameters
    ----------
    fit : Fit, path, CompletedMatrix or estimator
        The fit, to clicks or to values, or its folder.
    rows : sequence of names, optional
        The rows; by default those of the history or, without one, all.
    n, filter_seen, items, by, level, random_state
        As for `Fit.recommend`.
    history : path, frame, tuple, matrix or Dataset, optional
        Entries of new rows, which are added to the fit first. If a row of the fit is there, only these count.
    titles : path or mapping, optional
        Titles of columns: a file of columns and their titles, or a mapping from names.
    explain : bool
        For clicks: name the choices that contribute most to each recommendation.
    unknown : {"raise", "popular"}
        How to treat rows that are not in the fit: raise `InputError` or, for clicks, recommend popular columns.

    Returns
    -------
    RecommendationLists
    """
    found = open_fit(fit)
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one column.")
    if unknown not in STRANGERS:
        raise InputError(f"unknown={unknown!r} is not possible. Pass 'raise' or 'popular'.")
    if unknown == "popular" and not found.of_choices:
        raise InputError("unknown='popular' is for clicks, and this is a fit to values. Leave it out.")
    if history is not None:
        found, newcomers = with_history(found, history)
        rows = newcomers if rows is None else rows
    places = np.arange(len(found.rows)) if rows is None else found.places(rows, "row")
    named = rows is not None and places.size == np.size(rows)  # otherwise a mask of all rows
    names = None if not named else _row_names(found, np.atleast_1d(rows), places, unknown)
    known = None if rows is None else places[places >= 0]
    return RecommendationLists(
        fit=found,
        rows=places,
        names=names,
        count=int(n),
        include_seen=not filter_seen,
        allowed=allowed_columns(found, items),
        titles=None if titles is None else title_array(titles, found.cols),
        reasons=Reasons(found) if explain else None,
        order=make_criterion(found.model, known, by, level, random_state),
        by=by,
    )


def _row_names(fit: Fit, asked: Any, places: Array, unknown: str) -> list[Any]:
    """Names as in the fit; unknown names raise an error, or stay as they were given."""
    strange, given = places < 0, to_python_objects(asked)
    if strange.any() and unknown == "raise":
        name = given[int(np.argmax(strange))]
        raise InputError(f"The fit has no row named {name!r}. Check the name, or pass its entries as history.")
    known = to_python_objects(fit.rows[places]) if len(fit.rows) else given
    return [other if lost else own for lost, own, other in zip(strange.tolist(), known, given, strict=True)]


def title_array(titles: Any, cols: Names | None) -> Array:
    """The title of each column, "" where there is none: from a mapping, or from the second column of a file."""
    assert cols is not None
    if isinstance(titles, Mapping):
        names, told = list(titles), list(titles.values())
        places = cols.indices(np.array(names, object))
    elif isinstance(titles, (str, os.PathLike)):
        pairs = read(titles, row="1", col="2", values=False, wide=False)
        assert pairs.row_names is not None
        assert pairs.column_names is not None
        names, told = list(pairs.row_names), pairs.column_names[pairs.cols].tolist()
        places = cols.indices(pairs.row_names.values)[pairs.rows]
    else:
        raise InputError(f"titles={titles!r} is neither a file nor a mapping. Pass one from names to titles.")
    here = places >= 0
    if not here.any():
        where = "titles" if isinstance(titles, Mapping) else f"the first column of {titles}"
        raise InputError(
            f"None of the {pluralize(len(names), 'name')} in {where} is an item of the fit. Pass a file of items and "
            "their titles."
        )
    found = np.full(len(cols), "", object)
    # For an item that occurs twice, the first title is used.
    found[places[here][::-1]] = [str(title) for title, there in zip(told, here, strict=True) if there][::-1]
    return found
