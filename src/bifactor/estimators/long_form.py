"""Files and frames with one line per entry: fit, update, predict, transform and score."""

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from bifactor.arrays import Array
from bifactor.data import BlockDataset, Dataset, Names, Observations, read
from bifactor.data.observations import observations_from_names
from bifactor.errors import InputError
from bifactor.estimators.validation import note_columns, require_in_memory, store_or_none
from bifactor.models.completion.fitting import CompletionSettings
from bifactor.models.fit import Fit
from bifactor.models.metrics import deviance_explained
from bifactor.models.model import Model, Prediction, match_status

Column = str | int | None
"""Name of a column, or its number from 1; with None it is found from the data."""


class LongFormMixin(ABC):
    """The methods that end in `_long`.

    Columns that are not named are found from the data, as on the command line. Names of rows and columns can have any
    type; 7 and "7" are the same name. Lines without a value, or with weight 0, are left out; two lines with the same
    names are two measurements.
    """

    model_: Model
    fit_: Fit
    observations_: Dataset

    @abstractmethod
    def _settings(self) -> CompletionSettings:
        """The validated parameters."""

    @abstractmethod
    def _encode(self, data: Observations) -> Observations:
        """More data, with the values of the loss."""

    @abstractmethod
    def _fit_observations(self, settings: CompletionSettings, X: Any, data: Observations) -> Self:
        """Fit to observations."""

    @abstractmethod
    def _fit_store(self, settings: CompletionSettings, store: BlockDataset, sample_weight: Any = None) -> Self:
        """Fit to data in blocks."""

    @abstractmethod
    def _update(self, new: Observations) -> Self:
        """Add observations."""

    @abstractmethod
    def _pairs_of(self, frame: Any, row: Column = None, col: Column = None) -> tuple[Array, Array]:
        """The names in each line of a frame."""

    @abstractmethod
    def _features(self, given: Any, rows: int | Names) -> sparse.csr_array | None:
        """Features of this many new rows, or of the rows with these names."""

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the columns that `transform` returns."""

    def fit_long(
        self,
        source: Any,
        *,
        row: Column = None,
        col: Column = None,
        value: Column = None,
        weight: Column = None,
        text_names: bool = False,
    ) -> Self:
        """Fit to a file or a frame with one line per known entry.

        Parameters
        ----------
        source : frame or path
            A frame of pandas, polars (eager or lazy), pyarrow or any library that narwhals supports; or a file, see
            `bifactor.data.read`; or the folder of a block store, whose columns are known.
        row, col, value : str, optional
            Columns with the names of rows and columns, and the values. By default those with common names, such as
            user, item and rating, or the first three.
        weight : str, optional
            Column with weights.
        text_names : bool
            Keep names as text, even if all of them are numbers, so that rows with other names can be added later.
        """
        settings, store = self._settings(), store_or_none(source, long=True)
        if store is not None:
            return self._fit_store(settings, store)
        data = read(source, row=row, col=col, value=value, weight=weight, wide=False, text_names=text_names)
        note_columns(self, data.shape[1])
        return self._fit_observations(settings, source, data)

    def partial_fit_long(
        self, source: Any, *, row: Column = None, col: Column = None, value: Column = None, weight: Column = None
    ) -> Self:
        """Add lines with new names, or more lines for existing names; see `partial_fit`."""
        if not hasattr(self, "model_"):
            return self.fit_long(source, row=row, col=col, value=value, weight=weight)
        new = self._read_long(source, row, col, value, weight)
        (old_rows, old_cols), (new_rows, new_cols) = _names(require_in_memory(self.observations_)), _names(new)
        rows, i = old_rows.extended(new_rows.values, "row")
        cols, j = old_cols.extended(new_cols.values, "column")
        placed = observations_from_names((rows, i[new.rows]), (cols, j[new.cols]), new.values, new.origin, new.weights)
        return self._update(placed)

    def predict_long(
        self, frame: Any, *, row: Column = None, col: Column = None, unknown: str = "mean", return_std: bool = False
    ) -> Any:
        """The frame with a column `prediction`, and a column `known` that says which names were in the fit.

        That is "both", "row", "column" or "neither". A name that was not in the fit counts as average or, with
        `unknown="raise"`, is an error. With `return_std` there is a column `std`, the standard deviation of a new
        measurement. If a file is passed instead of a frame, a dict of columns is returned.
        """
        self._require_names()
        table = nw.from_native(frame, pass_through=True)
        table = table.collect() if isinstance(table, nw.LazyFrame) else table
        nothing = isinstance(table, nw.DataFrame) and len(table) == 0
        names = (np.empty(0, object),) * 2 if nothing else self._pairs_of(frame, row, col)
        i, j = self.fit_.known_pairs(*names, unknown)
        here = Prediction(self.model_, (i, j))
        doubt = {"std": here.std} if return_std else {}
        added = {**here.columns, **doubt, "known": match_status(i, j).tolist()}
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
        """A frame with one line per row name: the factors of the row, from its entries in `frame` alone.

        The factors of columns are fixed. The rows may be new or those of the fit; entries in unknown columns are left
        out. If a file is passed instead of a frame, a dict of arrays is returned. `features` is a frame or file with
        features of the rows, by name, in the same form as in the fit.
        """
        data = self._encode(self._read_long(frame, row, col, value, weight))
        rows, cols = _names(data)
        along = self.fit_.places(cols.values, "column")
        stay = data.part(along[data.cols] >= 0)
        part = replace(stay, cols=along[stay.cols], shape=(data.shape[0], len(self.fit_.cols)))
        part = replace(part, row_features=self._features(features, rows))
        factors = self.model_.fold_in(part).factors[:, int(self.model_.offsets) :]
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
        """Fraction of deviance explained, D², at the entries of a file or frame, as predicted by the fit."""
        data = self._encode(self._read_long(source, row, col, value, weight))
        rows, cols = _names(data)
        i, j = self.fit_.known_pairs(rows[data.rows], cols[data.cols], unknown)
        return deviance_explained(self.model_, data, self.model_.scores(i, j))

    def _read_long(self, source: Any, row: Any, col: Any, value: Any, weight: Any) -> Observations:
        """Read the columns that are named or, if they exist, those of the fit."""
        self._require_names()
        return read(source, row=row, col=col, value=value, weight=weight, wide=False, hints=self._header)

    @property
    def _header(self) -> tuple[str, ...] | None:
        """Headers of the row, column and value columns in the data of the fit."""
        origin = self.observations_.origin
        return None if origin is None else origin.header

    def _require_names(self: Any) -> None:
        check_is_fitted(self, "model_")
        if self.observations_.row_names is None:
            raise InputError("This estimator was not fitted to names. Use fit_long, or the methods without _long.")


def _names(data: Observations) -> tuple[Names, Names]:
    """Names of the rows and of the columns."""
    assert data.row_names is not None
    assert data.column_names is not None
    return data.row_names, data.column_names
