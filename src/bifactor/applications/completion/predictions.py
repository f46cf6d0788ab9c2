"""Predictions at pairs of names, in a table with the names and what is known of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.applications.base import names_columns, open_fit, open_source
from bifactor.applications.watch import SILENT, Watch
from bifactor.arrays import Array
from bifactor.data import Names, Observations
from bifactor.data.names import to_python_objects
from bifactor.errors import InputError
from bifactor.models import Fit
from bifactor.models.fit import UNKNOWN
from bifactor.models.model import Prediction, match_status

BLOCK = 100_000
"""Pairs per block of names."""

Side = tuple[Names, Array, Array]
"""The names of a fit, the index of each pair among them, and its name as it was given."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions at pairs of names.

    Attributes
    ----------
    fit : Fit
        The fit, with the rows of a history if there was one.
    header : tuple of two str
        What rows and columns are called.
    columns : dict of arrays
        The "prediction" of each pair and, on request, its "std".
    known : array of str
        Which names of each pair are in the fit: "both", "row", "column" or "neither".
    """

    fit: Fit
    header: tuple[str, ...]
    rows: Side
    cols: Side
    columns: dict[str, Array]
    known: Array

    def __len__(self) -> int:
        return int(self.known.size)

    @property
    def values(self) -> Array:
        """The predictions."""
        return self.columns["prediction"]

    @property
    def std(self) -> Array | None:
        """Their standard deviations, including noise, if asked for."""
        return self.columns.get("std")

    @property
    def strange(self) -> int:
        """The number of pairs with a name that is not in the fit."""
        return int(np.count_nonzero(self.known != "both"))

    def require_known(self, advice: str) -> None:
        """Raise `InputError` if a name is not in the fit."""
        for side, (_, places, given) in zip(("row", "column"), (self.rows, self.cols), strict=True):
            if np.any(places < 0):
                name = to_python_objects(given[places < 0])[0]
                raise InputError(f"The fit has no {side} named {name!r}. Check the name, or {advice}.")

    def frame(self) -> dict[str, Any]:
        """Columns for a data frame; names are integers if all names of the fit are."""
        sides = {}
        for name, side in zip(self.header, (self.rows, self.cols), strict=True):
            called = _names_as_in_fit(*side)
            whole = side[0].values.dtype.kind in "iu" and side[2].dtype.kind in "iu"
            sides[name] = np.array(called, np.int64) if whole else [str(one) for one in called]
        return {**sides, **self.columns, "known": self.known.tolist()}

    def records(self) -> list[dict[str, Any]]:
        """One dict for each pair."""
        keys = ("row", "column", *self.columns, "known")
        return [dict(zip(keys, record, strict=True)) for block in self.blocks() for record in zip(*block, strict=True)]

    def blocks(self) -> Iterator[tuple[list[Any], ...]]:
        """Rows, columns, numbers and what is known, as lists, for some pairs at a time."""
        for first in range(0, self.known.size, BLOCK):
            part = slice(first, first + BLOCK)
            names = (_names_as_in_fit(side[0], side[1][part], side[2][part]) for side in (self.rows, self.cols))
            yield *names, *(column[part].tolist() for column in self.columns.values()), self.known[part].tolist()


def predict(
    fit: Any,
    pairs: Any,
    *,
    history: Any = None,
    std: bool = False,
    unknown: str = "mean",
    watch: Watch = SILENT,
    **columns: Any,
) -> Predictions:
    """Predict the entries of a fit at pairs of names, as `bifactor predict` does.

    Parameters
    ----------
    fit : Fit, path, CompletedMatrix or estimator
        The fit, or its folder.
    pairs : path, frame or Dataset
        Pairs of a row and a column; other columns are ignored.
    history : path, frame, tuple, matrix or Dataset, optional
        Entries of new rows, which are added to the fit first.
    std : bool
        Also return the standard deviation of a new measurement, for fits with error bars.
    unknown : {"mean", "raise"}
        How to treat names that are not in the fit: as average ones, or raise `InputError`.
    watch, **columns
        As for `complete`.

    Returns
    -------
    Predictions
    """
    if unknown not in UNKNOWN:
        raise InputError(f"unknown={unknown!r} is not possible. Pass 'mean' or 'raise'.")
    found = open_fit(fit, history)
    how = {"values": False, "hints": found.header} if names_columns(pairs) else {}
    source = open_source(pairs, watch, **how, **columns)
    predicted = _predictions_at(found, source.observations, std)
    if unknown == "raise":
        predicted.require_known("pass unknown='mean'")
    return predicted


def _predictions_at(fit: Fit, pairs: Observations, std: bool) -> Predictions:
    sides = zip((pairs.row_names, pairs.column_names), (pairs.rows, pairs.cols), strict=True)
    rows, cols = (places if names is None else names[places] for names, places in sides)
    i, j = fit.pairs(rows, cols)
    header = ("row", "column") if pairs.origin is None else pairs.origin.header[:2]
    called = ("row", "column") if all(name.isdigit() for name in header) else header
    here = Prediction(fit.model, (i, j))
    told = {"prediction": here.mean, **({"std": here.std} if std else {})}
    return Predictions(fit, called, (fit.rows, i, rows), (fit.cols, j, cols), told, match_status(i, j))


def _names_as_in_fit(names: Names, places: Array, given: Array) -> list[Any]:
    """Names as in the fit, so that all answers have names of one type; unknown names as they were given."""
    known_ones = to_python_objects(names[places]) if len(names) else [None] * places.size
    own = zip(places.tolist(), known_ones, to_python_objects(given), strict=True)
    return [name if place >= 0 else other for place, name, other in own]
