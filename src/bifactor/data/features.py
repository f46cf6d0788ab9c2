"""Features of rows and columns in frames and files: numbers in any unit, and text, one feature for each category."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data.columns import Columns, FrameColumns, Records, parquet_columns
from bifactor.data.layout import INDEX, USUAL, ReadOptions, detect_dialect, plain
from bifactor.data.text import MISSING, cells, content, head, number_of, require_file, silent
from bifactor.errors import FileError, InputError
from bifactor.validation import pluralize


@dataclass(frozen=True, eq=False)
class Standard:
    """A zero and a unit for each feature; f becomes (f − zero)/unit.

    If more than half of the lines have the same value, that is the zero, and the unit is the root mean square distance
    of the other values from it: flags and categories stay 0 and 1, and sparse features stay sparse. Otherwise these are
    the mean and the standard deviation.
    """

    zero: Array
    unit: Array

    @classmethod
    def of(cls, features: sparse.csr_array) -> "Standard":
        """The standard of features with one line for each row."""
        lines, columns = features.shape[0], sparse.csc_array(features, dtype=np.float64)
        starts, counts = columns.indptr[:-1], np.diff(columns.indptr)
        zero, unit, known = np.zeros(counts.size), np.ones(counts.size), counts > 0
        if known.any():
            unit[known] = _sizes(columns.data, starts[known], counts[known])
        for k in np.flatnonzero(2 * counts >= lines):  # in others, most values are 0
            values = columns.data[starts[k] : starts[k] + counts[k]]
            zero[k], unit[k] = zero_and_unit(np.concatenate([values, np.zeros(lines - values.size)]))
        return cls(zero, unit)

    def apply(self, features: sparse.csr_array, what: str) -> sparse.csr_array:
        """The features, called `what`, in these units and counted from these zeros."""
        if features.shape[1] != self.zero.size:
            found = f"{what} has {pluralize(features.shape[1], 'column')}, but the fit had {self.zero.size}"
            raise InputError(f"{found}. Pass the same columns.")
        moved, found = np.flatnonzero(self.zero), sparse.csr_array(features, dtype=np.float64)
        if moved.size:
            places = np.tile(moved, found.shape[0]), np.arange(0, moved.size * found.shape[0] + 1, moved.size)
            found = found - sparse.csr_array((np.tile(self.zero[moved], found.shape[0]), *places), shape=found.shape)
        found = sparse.csr_array(found, copy=True)
        found.data /= self.unit[found.indices]
        found.eliminate_zeros()
        return found


def zero_and_unit(values: Array) -> tuple[float, float]:
    """The zero and the unit of a feature with these values."""
    if values.size == 0:
        return 0.0, 1.0
    distinct, counts = np.unique(values, return_counts=True)
    most = int(np.argmax(counts))
    if 2 * counts[most] > values.size:
        zero = float(distinct[most])
        rest = values[values != zero] - zero
        return zero, float(_sizes(rest, np.array([0]), np.array([rest.size]))[0]) if rest.size else 1.0
    largest = float(np.max(np.abs(distinct)))
    zero = largest * float(np.mean(values / largest))
    return zero, float(_sizes(values - zero, np.array([0]), np.array([values.size]))[0])


def _sizes(values: Array, starts: Array, counts: Array) -> Array:
    """The root mean square of each run of values, of which some are not 0, without overflow."""
    largest = np.maximum.reduceat(np.abs(values), starts)
    return largest * np.sqrt(np.add.reduceat((values / np.repeat(largest, counts)) ** 2, starts) / counts)


BETWEEN = "|"
"""The separator of several categories in one cell, as in Action|Comedy."""

FEWEST = 2
"""Lines that a category must have: a category of a single line says nothing about others."""


KEYS = (INDEX | USUAL[1]) - {""}
"""Common headers of columns with names."""


@dataclass(frozen=True)
class Feature:
    """A column: a number, counted from a zero in a unit, or one feature for each category."""

    name: str
    zero: float = 0.0
    unit: float = 1.0
    categories: tuple[str, ...] | None = None

    @classmethod
    def of(cls, name: str, column: Array) -> "Feature":
        numbers = _numbers(column)
        if numbers is None:
            counts = Counter(word for words in _words(column) for word in words)
            return cls(name, categories=tuple(word for word, count in counts.items() if count >= FEWEST))
        return cls(name, *zero_and_unit(numbers[~np.isnan(numbers)]))

    @property
    def names(self) -> list[str]:
        return [self.name] if self.categories is None else [f"{self.name}={word}" for word in self.categories]

    def matrix(self, column: Array) -> sparse.csr_array:
        """One line for each cell; zeros where it is missing, or its category is new."""
        if self.categories is None:
            numbers = _numbers(column)
            if numbers is None:
                raise InputError(f"Feature {self.name!r} held numbers in the fit, but now text. Pass numbers.")
            scaled = np.nan_to_num((numbers - self.zero) / self.unit, nan=0.0)
            return sparse.csr_array(scaled[:, None])
        places = {word: k for k, word in enumerate(self.categories)}
        found = [(i, places[word]) for i, words in enumerate(_words(column)) for word in set(words) if word in places]
        i, j = (
            (np.array(side, np.int64) for side in zip(*found, strict=True)) if found else (np.empty(0, np.int64),) * 2
        )
        return sparse.csr_array((np.ones(i.size), (i, j)), shape=(len(column), len(self.categories)))


@dataclass(frozen=True)
class FeatureTable:
    """How the columns of a frame or file become features, as in the fit."""

    features: tuple[Feature, ...]
    key: str | None
    """The column with the names of rows, which is not a feature; None if lines are in the order of rows."""

    @classmethod
    def of(cls, source: Any, what: str, named: str | None, keyed: bool) -> "FeatureTable":
        """Inferred from all lines. If `keyed`, a column holds names: the one called `named`, or else the first."""
        columns = _columns(source, what, named)
        if len(set(columns.header)) < len(columns.header):
            raise InputError(f"{what} has two columns with the same name. Rename one.")
        key = None
        if keyed:
            key = named if named in columns.header else columns.header[0]
        chosen = [name for name in columns.header if name != key]
        if not chosen:
            raise InputError(f"{what} has no column besides the names in {key!r}. Pass features, or leave it out.")
        features = map(Feature.of, chosen, columns.take(chosen))
        kept = tuple(feature for feature in features if feature.names)
        if not kept:
            raise InputError(f"No two lines of {what} share a category. Pass numbers, or text that repeats.")
        return cls(kept, key)

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [name for feature in self.features for name in feature.names]

    def read(self, source: Any, what: str) -> tuple[sparse.csr_array, Array | None]:
        """The features of a frame or file, one line for each of its lines, and the names of the rows."""
        columns = _columns(source, what, self.key)
        missing = [feature.name for feature in self.features if feature.name not in columns.header]
        if missing:
            raise InputError(f"{what} lacks the column {missing[0]!r} of the fit. Pass the same columns.")
        taken = columns.take([feature.name for feature in self.features])
        parts = [feature.matrix(column) for feature, column in zip(self.features, taken, strict=True)]
        names = None
        if self.key is not None and self.key in columns.header:
            names = columns.take([self.key])[0]
            if names.dtype.kind == "f" and np.all(names % 1 == 0):
                names = names.astype(np.int64)
        return sparse.csr_array(sparse.hstack(parts)), names


def is_feature_table(given: Any) -> bool:
    """Whether features are given as a frame or a file, not as a matrix."""
    if isinstance(given, (str, os.PathLike)):
        return True
    return not sparse.issparse(given) and hasattr(given, "columns")


class Text(Columns):
    """A delimited text file."""

    def __init__(self, path: Path, named: str | None):
        self.where = str(path)
        lines = head(path)
        blank, body = detect_dialect(lines, ReadOptions(values=False), path, named)
        if blank.header is None and plain(body[0][0]) in KEYS:  # a header above columns of text only
            blank, _ = detect_dialect(lines, ReadOptions(values=False, header=True), path)
        text = content(path).decode("utf-8", "surrogateescape")
        table = cells([line for line in text.splitlines() if line.strip()], blank.delimiter)
        table = table if blank.header is None else table[1:]
        for number, row in enumerate(table):
            if len(row) != blank.width:
                found = f"Record {number + 1} of {path} has {pluralize(len(row), 'field')}"
                raise FileError(f"{found}, but others have {blank.width}. Correct it.")
        self.header = tuple(blank.name(k) for k in range(blank.width))
        self._table, self._point = table, blank.point

    def sample(self) -> list[list[str]]:
        return self._table

    def take(self, names: Sequence[str]) -> list[Array]:
        return [self._column(self.header.index(name)) for name in names]

    def _column(self, place: int) -> Array:
        words = [row[place].strip() for row in self._table]
        numbers = [number_of(word, self._point) for word in words]
        if None not in numbers:
            return np.array(numbers, np.float64)
        column = np.empty(len(words), object)
        column[:] = [None if word.lower() in MISSING else word for word in words]
        return column


def _columns(source: Any, what: str, named: str | None) -> Columns:
    if not isinstance(source, (str, os.PathLike)):
        return FrameColumns(source, what)
    path = Path(source)
    require_file(path)
    name = path.name.lower().removesuffix(".gz")
    if name.endswith((".parquet", ".pq")):
        return parquet_columns(path)
    return Records(path, silent) if name.endswith((".jsonl", ".ndjson")) else Text(path, named)


def _numbers(column: Array) -> Array | None:
    """A column as floating-point numbers, with NaN for missing values and dates in days; None if it holds text."""
    if column.dtype.kind in "mM":
        days = column.astype("M8[D]" if column.dtype.kind == "M" else "m8[D]")
        return np.where(np.isnat(days), np.nan, days.astype(np.int64).astype(np.float64))
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        if np.any(np.isinf(numbers)):
            raise InputError("A feature holds infinite values. Leave them empty.")
        return numbers
    if all(cell is None for cell in column.tolist()):
        return np.full(len(column), np.nan)
    return None


def _words(column: Array) -> list[list[str]]:
    """The categories of each cell."""
    listed = ([] if cell is None or cell != cell else str(cell).split(BETWEEN) for cell in column.tolist())
    return [[word.strip() for word in words if word.strip()] for words in listed]
