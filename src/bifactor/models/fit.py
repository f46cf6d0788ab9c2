"""A fitted matrix with names: how to predict and recommend from it, add rows to it, and keep it in a folder."""

import os
import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import numpy as np

from bifactor.arrays import Array, floating
from bifactor.errors import InputError
from bifactor.models.clicks import as_choices
from bifactor.models.model import Model
from bifactor.models.orders import order
from bifactor.models.pairs import Pairs
from bifactor.models.recommending import recommended
from bifactor.models.scoring import explained
from bifactor.models.shown import ShownFit
from bifactor.models.told import known, single_or_all
from bifactor.models.two_classes import signs
from bifactor.tables import Names, Observations
from bifactor.tables.names import listed
from bifactor.validation import require_finite
from bifactor.words import counted

UNKNOWN = ("mean", "raise")
"""What to do about names that were not in the fit."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit(ShownFit):
    """What has been fitted: a matrix of low rank, and the names of its rows and columns.

    `bifactor.load("fit")` reads the folder that `bifactor complete … -o fit`, or `MatrixCompletion.save("fit")`, wrote.
    Nothing here needs scikit-learn.

    Attributes
    ----------
    model : Model
        Factors, offsets and intercept, and the loss they are seen through.
    rows, cols : Names
        Of the rows and the columns; numbers from 0 where the data had none.
    seen : Pairs
        The columns that each row was known in.
    classes : array of two, optional
        Of labels: what −1 and +1 stand for. Predictions are probabilities of the second.
    card : dict
        Versions, data, settings and scores, as far as they are known.
    """

    model: Model
    rows: Names
    cols: Names
    seen: Pairs
    classes: Array | None = None
    card: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, data: Observations, classes: Array | None = None) -> "Fit":
        """A model with the names of the data that it was fitted to."""
        names = zip((data.row_names, data.column_names), data.shape, strict=True)
        rows, cols = (Names.numbered(count) if given is None else given for given, count in names)
        return cls(model, rows, cols, Pairs.of(data, weighted=model.clicks is not None), classes)

    @property
    def header(self) -> tuple[str, ...]:
        """What the row, the column and the value were called where the data came from."""
        data = self.card.get("data")
        columns = data.get("columns") if isinstance(data, dict) else None
        return (
            tuple(map(str, columns)) if isinstance(columns, list) and len(columns) > 1 else ("row", "column", "value")
        )

    def places(self, names: Any, side: str) -> Array:
        """The place of each name among the rows, or the columns, -1 where it is not known; of a mask those of True."""
        known, given = self.rows if side == "row" else self.cols, np.atleast_1d(names)
        if given.ndim > 1:
            raise InputError(f"The {side} names have {given.ndim} dimensions. Pass a list of names.")
        if given.dtype == bool and known.values.dtype != bool:
            if given.size != len(known):
                raise InputError(f"A mask has {given.size} places for {len(known)} {side}s. Pass one for each.")
            return np.flatnonzero(given)
        try:
            return known.indices(given)
        except TypeError:
            raise InputError(f"Some {side} names have no hash, as sets and dicts. Pass a list of names.") from None

    def pairs(self, rows: Any, cols: Any) -> tuple[Array, Array]:
        """The places of pairs; a single name on one side goes with all of the other."""
        i, j = self.places(rows, "row"), self.places(cols, "column")
        if 1 in (i.size, j.size):
            i, j = np.broadcast_arrays(i, j)
        if i.size != j.size:
            raise InputError(
                f"{counted(i.size, 'row')} and {counted(j.size, 'column')} do not make pairs. Pass one of each."
            )
        return i, j

    def scores(self, i: Array, j: Array) -> Array:
        """z at places, before the link of the loss; by what is expected of the other one where one of the two is -1."""
        return self.model.expected_scores(i, j)

    def decision_function(self, rows: Any, cols: Any, unknown: str = "mean") -> Array:
        """z at the pairs (rows[t], cols[t]) of names, before the link of the loss; see `predict`."""
        i, j = self.known_pairs(rows, cols, unknown)
        strange = int(np.count_nonzero((i < 0) | (j < 0)))
        if strange:
            warnings.warn(
                f"In {strange:,} of {counted(i.size, 'pair')} a name was not in the fit; its offset counts as 0. "
                "Pass unknown='raise' to be stopped by such names.",
                UserWarning,
                stacklevel=3,
            )
        return single_or_all(self.scores(i, j), rows, cols)

    def known_pairs(self, rows: Any, cols: Any, unknown: str) -> tuple[Array, Array]:
        """The places of pairs, -1 for a name that was not in the fit unless such names are to be refused."""
        if unknown not in UNKNOWN:
            raise InputError(f"unknown={unknown!r} is neither 'mean' nor 'raise'.")
        i, j = self.pairs(rows, cols)
        for places, names, side in ((i, rows, "row"), (j, cols, "column")):
            if unknown == "raise" and np.any(places < 0):
                name = listed(np.broadcast_to(np.atleast_1d(names), places.shape)[places < 0])[0]
                raise InputError(f"There was no {side} named {name!r} in the fit. Check it, or pass unknown='mean'.")
        return i, j

    @overload
    def predict(self, rows: Any, cols: Any, unknown: str = "mean", return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict(
        self, rows: Any, cols: Any, unknown: str = "mean", *, return_std: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(self, rows: Any, cols: Any, unknown: str = "mean", return_std: bool = False) -> Any:
        """What is to be expected at the pairs (rows[t], cols[t]) of names; of labels, the probability of the upper one.

        Parameters
        ----------
        rows, cols : names, or sequences of them
            A single one on one side goes with all of the other; for two single ones the result is a single number.
        unknown : {"mean", "raise"}
            What to do about a name that was not in the fit: let it count with an offset of 0, with a warning, or
            raise `InputError`.
        return_std : bool
            Also return the standard deviation of a new measurement, where the fit has a posterior.
        """
        told = self.model.predicted(self.decision_function(rows, cols, unknown))
        if not return_std:
            return told
        return told, single_or_all(self.std(*self.pairs(rows, cols)), rows, cols)

    def std(self, i: Array, j: Array) -> Array:
        """The standard deviation of new measurements at places, -1 for a name that was not in the fit."""
        posterior, i, j = self.model.doubt(i, j)
        return posterior.predictive_std(i, j).astype(self.model.U.dtype)

    def predict_interval(self, rows: Any, cols: Any, level: float = 0.9, unknown: str = "mean") -> tuple[Array, Array]:
        """Where new measurements at pairs of names are expected with this probability: lower and upper ends.

        The fit must have a posterior. See `predict`, and the page on error bars in the documentation.
        """
        posterior, i, j = self.model.doubt(*self.known_pairs(rows, cols, unknown))
        ends = (self.model.clipped(end + self.model.intercept) for end in posterior.interval(i, j, level))
        lower, upper = (single_or_all(end.astype(self.model.U.dtype), rows, cols) for end in ends)
        return lower, upper

    def encoded(self, values: Array) -> Array:
        """Values as the loss wants them: classes of labels as −1 and +1."""
        return values if self.classes is None else signs(values, self.classes)

    def known(self, rows: Any, cols: Any) -> Array:
        """Of each pair what was in the fit: "both", "row", "column" or "neither"."""
        return single_or_all(known(*self.pairs(rows, cols)), rows, cols)

    def recommend(
        self,
        rows: Any = None,
        n: int = 10,
        *,
        filter_seen: bool = True,
        items: Any = None,
        by: str = "mean",
        level: float = 0.9,
        random_state: Any = None,
    ) -> tuple[Array, Array]:
        """For each row the n columns with the largest prediction, best first, and these predictions, not clipped.

        Both are of as many columns as the row has that has most of them left, n at most. Where others have fewer, NaN
        fills their predictions, and their names -1 among integers, NaN among numbers, NaT among dates, else None. Of
        clicks, a row without any gets the most popular columns, and the share of rows that chose each; a warning says
        so.

        Parameters
        ----------
        rows : sequence of names, optional
            By default all.
        n : int
        filter_seen : bool
            Leave out columns in which an entry of the row is known.
        items : sequence of names, optional
            Columns to choose from, or a mask of all columns; by default all.
        by : {"mean", "lower", "draw"}
            Rank by predictions; by what they are at least with probability `level`, so that the safe ones come first;
            or by one draw of the factors, which gives the others a chance (Thompson sampling). In the place of
            predictions these numbers are told, of what is below the noise. The last two need a posterior.
        level : float
            For "lower"; below ½ it is a bound from above, which puts first what is worth trying.
        random_state : int, RandomState, Generator or None
            For "draw".
        """
        index = np.arange(len(self.rows)) if rows is None else self.places(rows, "row")
        if np.any(index < 0):
            name = listed(np.atleast_1d(rows).ravel()[index < 0])[0]
            raise InputError(f"There was no row named {name!r} in the fit. Check the name, or fold it in first.")
        ordered = order(self.model, None if rows is None else index, by, level, random_state)
        return recommended(self, ordered, self.seen.taken(index), n, filter_seen, items)

    def explain(self, row: Any, col: Any, n: int = 10) -> tuple[Array, Array]:
        """Of clicks: the n columns that a row has chosen which carry its score of another, and what each adds to it.

        With all columns that were chosen, the parts add up to the score.
        """
        from bifactor.models.explanation import contributions

        return contributions(self, row, col, n)

    def fold_in(self, data: Observations) -> "Fit":
        """With the rows of some data, found from their entries there, while all columns stay as they are.

        A row that was in the fit is recomputed from these entries alone. Entries in columns that are not known are left
        out; a new row of which nothing else is known gets an offset and factors of 0. Rows without names are new ones.
        `bifactor.tables.read` makes observations of files and frames.
        """
        data = data if self.model.clicks is None else as_choices(data)
        if data.values.size != data.rows.size:
            raise InputError("There are pairs without values, from which nothing can be found. Pass entries.")
        cols = np.arange(data.shape[1]) if data.column_names is None else data.column_names.values
        along = self.places(cols, "column")
        here = data.part(along[data.cols] >= 0)
        if here.values.size == 0:
            raise InputError("No entry is in a column of the fit, so nothing can be found from it. Check the names.")
        rows, places = self.rows.extended(self._new_names(data), "row")
        model, values = self.model, self.encoded(here.values)
        model.loss.targets.check(values, type(model.loss).__name__)
        part = replace(here, cols=along[here.cols], values=values, shape=(data.shape[0], len(self.cols)))
        known_of = np.isin(np.arange(part.shape[0]), part.rows) | (part.row_features is not None)
        model = model.with_found(0, len(rows), part, np.where(known_of, places, -1))
        placed = replace(part, rows=places[part.rows], shape=(len(rows), len(self.cols)))
        seen = self.seen.with_rows(placed, weighted=model.clicks is not None)
        return replace(self, model=model, rows=rows, seen=seen)

    def _new_names(self, data: Observations) -> Array:
        """The names of the rows of some data or, where they have none, numbers that no row has."""
        if data.row_names is not None:
            return data.row_names.values
        integers = self.rows.values.dtype.kind in "iu" and len(self.rows) > 0
        first = int(self.rows.values.max()) + 1 if integers else len(self.rows)
        return np.arange(first, first + data.shape[0])

    def score(self, rows: Any, cols: Any, values: Any, weights: Any = None, unknown: str = "mean") -> float:
        """The fraction of deviance explained, D², at some pairs; see `MatrixCompletion.score`."""
        i, j = self.known_pairs(rows, cols, unknown)
        y = floating(values, "values").ravel()
        require_finite(y, "values", "Leave out entries that are not known.")
        w = None if weights is None else floating(weights, "weights").ravel()
        if y.size == 0 or y.size != i.size or (w is not None and w.size != y.size):
            raise InputError(
                f"{counted(i.size, 'pair')} cannot have {counted(y.size, 'value')}. Pass one, and one weight, for each."
            )
        shape = (len(self.rows), len(self.cols))
        here = Observations(i, j, self.encoded(y), shape, w).weighed()
        return explained(self.model, here, self.scores(here.rows, here.cols))

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        report: str | None = None,
        error_bars: bool = True,
    ) -> None:
        """Write everything into a new folder, which appears whole or not at all.

        Parameters
        ----------
        folder : path
        force : bool
            Replace a fit that is in that place.
        report : str, optional
            An HTML page to keep beside it.
        error_bars : bool
            Keep the covariances of a posterior, (m + n)(r + 1)(r + 2)/2 numbers, which error bars are made from.
        """
        from bifactor.models.store import save

        save(self, folder, force, report, error_bars)
