"""Files and frames with one line per entry: fit, predict, transform, score and take in more."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.inputs import note_columns
from bifactor.estimators.stores import given_store, held
from bifactor.models.fit import Fit
from bifactor.models.fitting import Settings
from bifactor.models.model import Model
from bifactor.models.scoring import explained
from bifactor.models.told import known
from bifactor.tables import BlockStore, Names, Observations, read
from bifactor.tables.observations import named

Column = str | int | None
"""A column by its name, or its number from 1; None leaves it to a look at the data."""


class LongForm(ABC):
    """The methods that end in `_long`.

    Their columns are found by a look at the data, as the shell does, unless they are named. Names of rows and columns
    are of any kind; 7 and "7" are one name. Lines without a value, or with a weight of 0, are left out; two lines of
    the same names are two measurements.
    """

    model_: Model
    fit_: Fit
    observations_: Observations | BlockStore

    @abstractmethod
    def _settings(self) -> Settings:
        """The parameters, checked."""

    @abstractmethod
    def _encoded(self, data: Observations, reset: bool) -> Observations:
        """The values as the loss wants them."""

    @abstractmethod
    def _fitted(self, settings: Settings, X: Any, data: Observations) -> Self:
        """Fit to observations."""

    @abstractmethod
    def _fitted_store(self, settings: Settings, store: BlockStore, sample_weight: Any = None) -> Self:
        """Fit to data in blocks."""

    @abstractmethod
    def _updated(self, new: Observations) -> Self:
        """Take in more observations."""

    @abstractmethod
    def _pairs_of(self, frame: Any, row: Column = None, col: Column = None) -> tuple[Array, Array]:
        """The names in each line of a frame."""

    @abstractmethod
    def _told(self, z: Array) -> dict[str, Array]:
        """What is predicted, as columns of a frame."""

    @abstractmethod
    def _features(self, given: Any, rows: int | Names) -> sparse.csr_array | None:
        """A user's features of so many new rows, or of those with these names."""

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of what `transform` gives."""

    def fit_long(
        self, source: Any, *, row: Column = None, col: Column = None, value: Column = None, weight: Column = None
    ) -> Self:
        """Fit to a file or a frame with one line per known entry.

        Parameters
        ----------
        source : frame or path
            Of pandas, polars (lazy too), pyarrow or any library that narwhals knows; or a file, see
            `bifactor.tables.read`; or the folder of a block store, whose columns are known.
        row, col, value : str, optional
            The columns with the names of rows and columns, and the values. By default those with usual names, such as
            user, item and rating, or the first three.
        weight : str, optional
            The column with weights.
        """
        settings, store = self._settings(), given_store(source, long=True)
        if store is not None:
            return self._fitted_store(settings, store)
        data = read(source, row=row, col=col, value=value, weight=weight, wide=False)
        note_columns(self, data.shape[1])
        return self._fitted(settings, source, data)

    def partial_fit_long(
        self, source: Any, *, row: Column = None, col: Column = None, value: Column = None, weight: Column = None
    ) -> Self:
        """Take in lines with new names, or more lines for names that are there; see `partial_fit`."""
        if not hasattr(self, "model_"):
            return self.fit_long(source, row=row, col=col, value=value, weight=weight)
        new = self._read_long(source, row, col, value, weight)
        (old_rows, old_cols), (new_rows, new_cols) = _names(held(self.observations_)), _names(new)
        rows, i = old_rows.extended(new_rows.values, "row")
        cols, j = old_cols.extended(new_cols.values, "column")
        placed = named((rows, i[new.rows]), (cols, j[new.cols]), new.values, new.origin, new.weights)
        return self._updated(placed)

    def predict_long(
        self, frame: Any, *, row: Column = None, col: Column = None, unknown: str = "mean", return_std: bool = False
    ) -> Any:
        """The frame with a column `prediction`, and a column `known` of what was in the fit.

        That is "both", "row", "column" or "neither". A name that was not in the fit counts with an offset of 0 or,
        with `unknown="raise"`, is refused. With `return_std` there is a column `std`, the standard deviation of a new
        measurement. Where a file is passed instead of a frame, a dict of columns is returned.
        """
        self._require_names()
        table = nw.from_native(frame, pass_through=True)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
        nothing = isinstance(table, nw.DataFrame) and len(table) == 0
        names = (np.empty(0, object),) * 2 if nothing else self._pairs_of(frame, row, col)
        i, j = self.fit_.known_pairs(*names, unknown)
        doubt = {"std": self.fit_.std(i, j)} if return_std else {}
        added = {**self._told(self.fit_.scores(i, j)), **doubt, "known": known(i, j).tolist()}
        if not isinstance(table, nw.DataFrame):
            first, second = (self._header or ("row", "column"))[:2]
            return {first: names[0], second: names[1], **added}
        backend = nw.get_native_namespace(table)
        return table.with_columns(
            *(nw.new_series(name, values, backend=backend) for name, values in added.items())
        ).to_native()

    def transform_long(
        self,
        frame: Any,
        *,
        row: Column = None,
        col: Column = None,
        value: Column = None,
        weight: Column = None,
        features: Any = None,
    ) -> Any:
        """A frame with one line per name of a row: its factors, found from its entries in `frame` alone.

        The columns' factors are held. The rows may be new, or those of the fit; entries in columns that are not known
        are left out. Where a file is passed instead of a frame, a dict of arrays is returned. `features` is a frame or
        file of what else is known of them, as the fit had it, by their names.
        """
        data = self._encoded(self._read_long(frame, row, col, value, weight), reset=False)
        rows, cols = _names(data)
        along = self.fit_.places(cols.values, "column")
        stay = data.part(along[data.cols] >= 0)
        part = replace(stay, cols=along[stay.cols], shape=(data.shape[0], len(self.fit_.cols)))
        part = replace(part, row_features=self._features(features, rows))
        factors = self.model_.rows(part)[:, int(self.model_.offsets) :]
        first = "row" if data.origin is None else data.origin.header[0]
        columns = {first: rows.values, **dict(zip(self.get_feature_names_out(), factors.T, strict=True))}
        try:
            backend = nw.get_native_namespace(nw.from_native(frame))
        except TypeError:
            return columns
        listed = {name: values.tolist() if values.dtype == object else values for name, values in columns.items()}
        return nw.from_dict(listed, backend=backend).to_native()

    def score_long(
        self,
        source: Any,
        *,
        row: Column = None,
        col: Column = None,
        value: Column = None,
        weight: Column = None,
        unknown: str = "mean",
    ) -> float:
        """The fraction of deviance explained, D², at the entries of a file or frame, as the fit predicts them."""
        data = self._encoded(self._read_long(source, row, col, value, weight), reset=False)
        rows, cols = _names(data)
        i, j = self.fit_.known_pairs(rows[data.rows], cols[data.cols], unknown)
        return explained(self.model_, data, self.fit_.scores(i, j))

    def _read_long(self, source: Any, row: Any, col: Any, value: Any, weight: Any) -> Observations:
        """In the columns that are named or, where there are such, in those of the fit."""
        self._require_names()
        return read(source, row=row, col=col, value=value, weight=weight, wide=False, hints=self._header)

    @property
    def _header(self) -> tuple[str, ...] | None:
        """What the row, the column and the value were called in the data of the fit."""
        origin = self.observations_.origin
        return None if origin is None else origin.header

    def _require_names(self: Any) -> None:
        check_is_fitted(self, "model_")
        if self.observations_.row_names is None:
            raise InputError("This estimator was not fitted to names. Use fit_long for that, or methods without _long.")


def _names(data: Observations) -> tuple[Names, Names]:
    """Of the rows and of the columns."""
    assert data.row_names is not None
    assert data.column_names is not None
    return data.row_names, data.column_names
