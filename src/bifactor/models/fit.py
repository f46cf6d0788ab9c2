"""A fitted matrix with names: predict, recommend, add rows, and save to a folder."""

import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal, overload

import numpy as np

from bifactor.arrays import Array, floating
from bifactor.data import Dataset, Names, Observations
from bifactor.data.names import to_python_objects
from bifactor.data.seen_items import SeenItems
from bifactor.errors import InputError
from bifactor.models.metrics import deviance_explained
from bifactor.models.model import Model, Prediction, match_status
from bifactor.models.new_entries import read_new_entries
from bifactor.models.top_k import make_criterion, recommend_names
from bifactor.validation import pluralize, require_finite

UNKNOWN = ("mean", "raise")
"""How to treat names that were not in the fit."""


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A fitted low-rank matrix with the names of its rows and columns.

    `bifactor.load("fit")` reads a folder written by `bifactor complete … -o fit` or `MatrixCompletion.save("fit")`.
    Nothing here needs scikit-learn.

    Attributes
    ----------
    model : Model
        Factors, offsets, intercept and loss.
    rows, cols : Names
        Names of the rows and columns; numbers from 0 if the data had none.
    seen : Pairs or BlockPairs
        The known columns of each row; after a fit to a block store they are read from there when needed.
    classes : array of two, or None
        For labels, the classes that −1 and +1 stand for. Predictions are probabilities of the second.
    of_choices : bool
        Whether the data were choices, such as clicks; predictions are then scores.
    card : dict
        Versions, data, settings and scores, as far as known.
    """

    model: Model
    rows: Names
    cols: Names
    seen: SeenItems
    card: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model, data: Dataset) -> "Fit":
        """A model with the names of the data that it was fitted to."""
        names = zip((data.row_names, data.column_names), data.shape, strict=True)
        rows, cols = (Names.numbered(count) if given is None else given for given, count in names)
        return cls(model, rows, cols, data.seen_items(weighted=model.link.of_choices))

    def __repr__(self) -> str:
        return f"Fit({self.model.describe()}, {pluralize(self.seen.size, 'pair')})"

    def _repr_html_(self) -> str:
        return self.model.html("Fit", [(f"{self.seen.size:,}", "known pairs")])

    @property
    def classes(self) -> Array | None:
        return self.model.link.classes

    @property
    def of_choices(self) -> bool:
        return self.model.link.of_choices

    @property
    def header(self) -> tuple[str, ...]:
        """Headers of the row, column and value columns in the data."""
        data = self.card.get("data")
        columns = data.get("columns") if isinstance(data, dict) else None
        return (
            tuple(map(str, columns)) if isinstance(columns, list) and len(columns) > 1 else ("row", "column", "value")
        )

    def places(self, names: Any, side: str) -> Array:
        """Index of each name among the rows, or the columns, -1 if unknown; for a mask, the indices of True."""
        known, given = self.rows if side == "row" else self.cols, np.atleast_1d(names)
        if given.ndim > 1:
            raise InputError(f"The {side} names have {given.ndim} dimensions. Pass a flat list of names.")
        if given.dtype == bool and known.values.dtype != bool:
            if given.size != len(known):
                raise InputError(f"A mask has {given.size} elements for {len(known)} {side}s. Pass one for each.")
            return np.flatnonzero(given)
        try:
            return known.indices(given)
        except TypeError:
            raise InputError(f"Some {side} names are not hashable, such as dicts. Pass a list of names.") from None

    def pairs(self, rows: Any, cols: Any) -> tuple[Array, Array]:
        """Indices of pairs; a single name is broadcast against the other side."""
        i, j = self.places(rows, "row"), self.places(cols, "column")
        if 1 in (i.size, j.size):
            i, j = np.broadcast_arrays(i, j)
        if i.size != j.size:
            raise InputError(
                f"{pluralize(i.size, 'row')} and {pluralize(j.size, 'column')} do not make pairs. Pass one of each."
            )
        return i, j

    def decision_function(self, rows: Any, cols: Any, unknown: str = "mean") -> Array:
        """z at the pairs (rows[t], cols[t]) of names, before the link of the loss; see `predict`."""
        return self.at(rows, cols, unknown).warned().scores

    def at(self, rows: Any, cols: Any, unknown: str = "mean") -> Prediction:
        """The prediction at pairs of names, of which means, error bars and draws can be asked; see `predict`."""
        cells = self.known_pairs(rows, cols, unknown)
        return Prediction(self.model, cells, single=np.ndim(rows) == np.ndim(cols) == 0)

    def known_pairs(self, rows: Any, cols: Any, unknown: str) -> tuple[Array, Array]:
        """Indices of pairs, -1 for a name that was not in the fit; raises `InputError` if unknown="raise"."""
        if unknown not in UNKNOWN:
            raise InputError(f"unknown={unknown!r} is not possible. Pass 'mean' or 'raise'.")
        i, j = self.pairs(rows, cols)
        for places, names, side in ((i, rows, "row"), (j, cols, "column")):
            if unknown == "raise" and np.any(places < 0):
                name = to_python_objects(np.broadcast_to(np.atleast_1d(names), places.shape)[places < 0])[0]
                raise InputError(f"The fit has no {side} named {name!r}. Check the name, or pass unknown='mean'.")
        return i, j

    @overload
    def predict(self, rows: Any, cols: Any, unknown: str = "mean", return_std: Literal[False] = False) -> Array: ...

    @overload
    def predict(
        self, rows: Any, cols: Any, unknown: str = "mean", *, return_std: Literal[True]
    ) -> tuple[Array, Array]: ...

    def predict(self, rows: Any, cols: Any, unknown: str = "mean", return_std: bool = False) -> Any:
        """Predictions at the pairs (rows[t], cols[t]) of names; for labels, the probability of the upper class.

        Parameters
        ----------
        rows, cols : names, or sequences of them
            A single name is broadcast against the other side; for two single names the result is a scalar.
        unknown : {"mean", "raise"}
            How to treat a name that was not in the fit: as one without entries, with a warning, or raise `InputError`.
        return_std : bool
            Also return the standard deviation of a new measurement. Only with a posterior.
        """
        here = self.at(rows, cols, unknown).warned()
        return (here.mean, here.std) if return_std else here.mean

    def predict_interval(self, rows: Any, cols: Any, level: float = 0.9, unknown: str = "mean") -> tuple[Array, Array]:
        """Lower and upper ends of intervals that contain new measurements at pairs of names with probability `level`.

        The fit must have a posterior. See `predict`, and the page on error bars in the documentation.
        """
        return self.at(rows, cols, unknown).interval(level)

    def known(self, rows: Any, cols: Any) -> Array:
        """Which names of each pair were in the fit: "both", "row", "column" or "neither"."""
        known = match_status(*self.pairs(rows, cols))
        return known[0] if np.ndim(rows) == np.ndim(cols) == 0 else known

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
        """For each row, the n columns with the largest predictions, best first, and these predictions.

        Columns are ranked before predictions are clipped, so those of equal predictions have an order too. Both results
        have at most n columns: as many as any row has left. If other rows have fewer, their predictions are padded with
        NaN, and their names with -1 for integers, NaN for numbers, NaT for dates, otherwise None. In a fit to clicks, a
        row without choices gets the most popular columns, with the share of rows that chose each, and a warning.

        Parameters
        ----------
        rows : sequence of names, optional
            The rows; by default all.
        n : int
            Number of columns.
        filter_seen : bool
            Leave out columns with a known entry in the row.
        items : sequence of names, optional
            Columns to choose from, or a mask of all columns; by default all.
        by : {"mean", "lower", "draw"}
            Rank by predictions; by a lower bound that holds with probability `level`, so that safe choices come first;
            or by one draw of the factors, which gives the others a chance (Thompson sampling). These numbers, without
            noise and clipped like predictions, are returned instead. The last two need a posterior.
        level : float
            Probability for "lower"; below ½ it gives an upper bound, which favours columns worth exploring.
        random_state : int, RandomState, Generator or None
            Seed for "draw".
        """
        index = np.arange(len(self.rows)) if rows is None else self.places(rows, "row")
        if np.any(index < 0):
            name = to_python_objects(np.atleast_1d(rows).ravel()[index < 0])[0]
            raise InputError(f"The fit has no row named {name!r}. Check the name, or fold it in first.")
        ordered = make_criterion(self.model, None if rows is None else index, by, level, random_state)
        known = self.seen.select(index) if filter_seen else self.seen.counted(index)
        return recommend_names(self, ordered, known, n, filter_seen, items)

    def explain(self, row: Any, col: Any, n: int = 10) -> tuple[Array, Array, float]:
        """For clicks: the n chosen columns of a row that contribute most to the score of another.

        Returns
        -------
        names : array
            These columns, the largest contribution first.
        parts : array
            Their contributions.
        rest : float
            The score, as `predict` returns it, minus these contributions: those of the other chosen columns and of
            features of the row, and what the factors of the row would change by if the fit went on.
        """
        from bifactor.models.recommender.explain import contributions

        return contributions(self, row, col, n)

    def fold_in(self, data: Any, *, row: Any = None, col: Any = None, value: Any = None, weight: Any = None) -> "Fit":
        """A fit with the rows of some data, computed from their entries, while all columns stay fixed.

        A row that was in the fit is recomputed from these entries alone. Entries in unknown columns are left out; a new
        row without other entries counts as average. The `row_features` of observations are in the units of the features
        of the fit, if these were a matrix.

        Parameters
        ----------
        data : frame, path, tuple, matrix or Observations
            A frame or a file with one line for each entry; see `bifactor.data.read`. Or (rows, cols, values), with
            the names of rows and columns as in `predict`. Or a matrix, dense or sparse, with a line for each new row
            and the columns of the fit, where NaN and what is not stored is unknown. Lines of a matrix, like rows of
            observations without names, are new; they are numbered from the number of rows on. For a fit to clicks no
            values are needed, as in (rows, cols), and entries of a matrix that are not 0 are choices.
        row, col, value, weight : str or int, optional
            Columns of a frame or file, by name or by number from 1; by default those of the fit.
        """
        data = read_new_entries(self, data, row=row, col=col, value=value, weight=weight)
        if data.values.size != data.rows.size and not self.of_choices:
            raise InputError("The data are pairs without values, so rows cannot be folded in. Pass values.")
        model = self.model
        data, side = model.link.encode(data), model.rows.side
        if data.row_features is not None and side is not None and side.standard is not None:
            data = replace(data, row_features=side.standard.apply(data.row_features, "row_features"))
        cols = np.arange(data.shape[1]) if data.column_names is None else data.column_names.values
        along = self.places(cols, "column")
        here = data.part(along[data.cols] >= 0)
        if here.values.size == 0:
            raise InputError("No entry is in a column of the fit, so rows cannot be folded in. Check the names.")
        rows, places = self.rows.extended(self._new_names(data), "row")
        model.loss.targets.check(here.values, type(model.loss).__name__)
        part = replace(here, cols=along[here.cols], shape=(data.shape[0], len(self.cols)))
        known_of = np.isin(np.arange(part.shape[0]), part.rows) | (part.row_features is not None)
        model = model.with_rows(0, len(rows), part, np.where(known_of, places, -1))
        placed = replace(part, rows=places[part.rows], shape=(len(rows), len(self.cols)))
        seen = self.seen.with_rows(placed, weighted=self.of_choices)
        return replace(self, model=model, rows=rows, seen=seen)

    def _new_names(self, data: Observations) -> Array:
        """Names of the rows of some data or, if there are none, unused numbers."""
        if data.row_names is not None:
            return data.row_names.values
        integers = self.rows.values.dtype.kind in "iu" and len(self.rows) > 0
        first = int(self.rows.values.max()) + 1 if integers else len(self.rows)
        return np.arange(first, first + data.shape[0])

    def score(self, rows: Any, cols: Any, values: Any, weights: Any = None, unknown: str = "mean") -> float:
        """Fraction of deviance explained, D², at some pairs; see `MatrixCompletion.score`."""
        i, j = self.known_pairs(rows, cols, unknown)
        y = floating(values, "values").ravel()
        require_finite(y, "values", "Leave out missing entries.")
        w = None if weights is None else floating(weights, "weights").ravel()
        if y.size == 0 or y.size != i.size or (w is not None and w.size != y.size):
            raise InputError(
                f"There are {pluralize(y.size, 'value')} for {pluralize(i.size, 'pair')}. "
                "Pass a value and weight for each."
            )
        shape = (len(self.rows), len(self.cols))
        here = Observations(i, j, self.model.link.encode_values(y), shape, w).weighed()
        return deviance_explained(self.model, here, self.model.scores(here.rows, here.cols))

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        force: bool = False,
        report: str | None = None,
        error_bars: bool = True,
    ) -> None:
        """Write everything to a new folder, atomically.

        Parameters
        ----------
        folder : path
            The folder to create.
        force : bool
            Replace an existing fit.
        report : str, optional
            An HTML page to add to the folder.
        error_bars : bool
            Keep the covariances of a posterior, (m + n)(r + 1)(r + 2)/2 numbers, which error bars need.
        """
        from bifactor.models.storage import save

        save(self, folder, force, report, error_bars)
