"""Features of rows and columns, in all forms in which users pass them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Names, Observations
from bifactor.data.features import FeatureTable, Standard, is_feature_table
from bifactor.errors import InputError
from bifactor.operators.features import feature_matrix
from bifactor.validation import pluralize


@dataclass(frozen=True, eq=False)
class FeatureReader:
    """Reads features of one side in the same way as in the fit."""

    what: str
    """Name of the parameter, for messages."""
    table: FeatureTable | None
    """Encoding of frames and files; None for matrices."""
    standard: Standard | None
    """Zeros and units of the columns of a matrix; None for frames and files, whose encoding has them."""

    @classmethod
    def of(cls, given: Any, what: str, named: str | None, keyed: bool) -> "FeatureReader":
        """Inferred from the features of a fit; `named` and `keyed` as for `FeatureTable`."""
        if is_feature_table(given):
            return cls(what, FeatureTable.of(given, what, named, keyed), None)
        if keyed:
            fact = f"{what} is a matrix without names, but the data have names"
            raise InputError(f"{fact}. Pass a frame or file with names.")
        return cls(what, None, Standard.of(feature_matrix(given, what)))

    def matrix(self, given: Any, rows: int) -> sparse.csr_array:
        """One line for each row, in order."""
        found, _ = self.read(given)
        if found.shape[0] != rows:
            raise InputError(
                f"{self.what} has {pluralize(found.shape[0], 'line')}, but there are {rows} rows. Pass one for each."
            )
        return found

    def named(self, given: Any, names: Names) -> sparse.csr_array:
        """One line for each name; zeros for names without features."""
        found, keys = self.read(given)
        if keys is None:
            raise InputError(f"{self.what} has no column of names, unlike in the fit. Pass one.")
        return _placed(found, names.indices(keys), len(names))

    def read(self, given: Any) -> tuple[sparse.csr_array, Array | None]:
        if self.table is not None:
            if not is_feature_table(given):
                raise InputError(f"{self.what} is not a table of columns, unlike in the fit. Pass such a table.")
            return self.table.read(given, self.what)
        if is_feature_table(given):
            raise InputError(f"{self.what} is a table of columns, but was a matrix in the fit. Pass a matrix.")
        assert self.standard is not None
        return self.standard.apply(feature_matrix(given, self.what), self.what), None


Readers = tuple[FeatureReader | None, FeatureReader | None]


def with_features(data: Observations, users: Any, items: Any) -> tuple[Observations, Readers]:
    """Observations with features of rows and columns; rows and columns that only features name are appended."""
    data, left = _with_side(data, users, 0)
    data, right = _with_side(data, items, 1)
    return data, (left, right)


def _with_side(data: Observations, given: Any, side: int) -> tuple[Observations, FeatureReader | None]:
    if given is None:
        return data, None
    what, names = ("item_features" if side else "user_features"), (data.column_names if side else data.row_names)
    named = None if data.origin is None else data.origin.header[side]
    reader = FeatureReader.of(given, what, named, keyed=names is not None)
    features, keys = reader.read(given)
    count = data.shape[side]
    if names is not None:
        names, places = names.extended(keys, "column" if side else "row")
        features, count = _placed(features, places, len(names)), len(names)
    if features.shape[0] < count:
        lines, kind = pluralize(features.shape[0], "line"), "columns" if side else "rows"
        raise InputError(f"{what} has {lines}, but X has {count} {kind}. Pass one line for each.")
    shape = (data.shape[0], features.shape[0]) if side else (features.shape[0], data.shape[1])
    if side:
        return replace(data, shape=shape, column_names=names, column_features=features), reader
    return replace(data, shape=shape, row_names=names, row_features=features), reader


def _placed(features: sparse.csr_array, places: Array, rows: int) -> sparse.csr_array:
    """Lines of features at these places of a matrix with `rows` rows; -1 leaves a line out."""
    stay = np.flatnonzero(places >= 0)
    if np.unique(places[stay]).size < stay.size:
        raise InputError("A name has two lines of features. Keep one of them.")
    chosen = sparse.csr_array((np.ones(stay.size), (places[stay], stay)), shape=(rows, features.shape[0]))
    return sparse.csr_array(chosen @ features)
