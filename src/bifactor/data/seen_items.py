"""Pairs of rows and columns with known entries, row by row."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.errors import FileError

if TYPE_CHECKING:
    from bifactor.data.dataset import BlockDataset, Recoding
    from bifactor.data.observations import Observations


@dataclass(frozen=True, eq=False)
class Pairs:
    """The columns of row i are columns[starts[i]:starts[i + 1]], each once, in order."""

    starts: Array
    columns: Array
    weights: Array | None = None
    """Weight of each pair, in single precision; None if all weights are 1, or are not needed."""

    @classmethod
    def of(cls, data: "Observations", weighted: bool = False) -> "Pairs":
        """Pairs of some data, optionally with weights."""
        kept = data.weights if weighted and data.weights is not None else np.ones(data.rows.size, bool)
        # Counting is faster than sorting: a sparse matrix orders them.
        return cls.stored(scipy.sparse.csr_array((kept, (data.rows, data.cols)), shape=data.shape))

    @classmethod
    def stored(cls, matrix: "scipy.sparse.csr_array") -> "Pairs":
        """Pairs of a sparse matrix, whose values are weights."""
        matrix.sum_duplicates()
        weights = None if np.all(matrix.data == 1) else matrix.data.astype(np.float32)
        return cls(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), weights)

    @property
    def size(self) -> int:
        return int(self.columns.size)

    @property
    def counts(self) -> Array:
        """Number of columns of each row."""
        return np.diff(self.starts)

    def fits(self, shape: tuple[int, int]) -> bool:
        """Whether these are valid pairs of a matrix of this shape, which is checked after reading a file."""
        starts, columns = self.starts, self.columns
        integers = starts.dtype.kind == columns.dtype.kind == "i"  # unsigned ones become floats in sums
        if not integers or starts.shape != (shape[0] + 1,) or columns.ndim != 1:
            return False
        if starts[0] != 0 or starts[-1] != columns.size or np.any(starts[1:] < starts[:-1]):
            return False
        weights = np.ones(columns.size) if self.weights is None else self.weights
        if weights.shape != columns.shape or weights.dtype.kind != "f":
            return False
        if not np.all((weights > 0) & (weights < np.inf)):
            return False
        if columns.size == 0:
            return True
        rising = columns[1:] > columns[:-1]
        rising[starts[(starts > 0) & (starts < columns.size)].astype(np.int64) - 1] = True  # separately in each row
        return bool(columns.min() >= 0 and columns.max() < shape[1] and rising.all())

    def known(self, columns: int) -> tuple[Array, Array]:
        """Masks of the rows and of the columns, of the given number, that are in a pair."""
        return np.diff(self.starts) > 0, np.bincount(self.columns, minlength=columns) > 0

    def __getitem__(self, row: int) -> Array:
        return self.columns[self.starts[row] : self.starts[row + 1]]

    def weights_of(self, row: int) -> Array:
        """Weights of a row."""
        part = slice(self.starts[row], self.starts[row + 1])
        return np.ones(self[row].size) if self.weights is None else self.weights[part].astype(np.float64)

    def with_rows(self, data: "Observations", weighted: bool = False) -> "Pairs":
        """The pairs with rows replaced by those of some data, which may have more rows and columns."""
        old = np.repeat(np.arange(self.starts.size - 1), self.counts)
        stay = ~np.isin(old, data.rows)
        rows = np.concatenate([old[stay], data.rows])
        cols = np.concatenate([self.columns[stay], data.cols])
        before = np.ones(self.size) if self.weights is None else self.weights
        after = np.ones(data.rows.size) if data.weights is None else data.weights
        weights = np.concatenate([before[stay], after])
        return Pairs.of(replace(data, rows=rows, cols=cols, weights=weights), weighted)

    def popularity(self, columns: int) -> Array:
        """Number of rows of each column, for this number of columns."""
        return np.bincount(self.columns, minlength=columns)

    def joined(self, other: "Pairs") -> "Pairs":
        """The pairs followed by the rows of others."""
        weights = None
        if self.weights is not None or other.weights is not None:
            both = (np.ones(one.size, np.float32) if one.weights is None else one.weights for one in (self, other))
            weights = np.concatenate(list(both))
        starts = np.concatenate([self.starts, self.starts[-1] + other.starts[1:]])
        return Pairs(starts, np.concatenate([self.columns, other.columns]), weights)

    def counted(self, rows: Array) -> "Pairs":
        """Numbers of columns of some rows, without the columns."""
        return Pairs.of_counts(self.counts[rows])

    @classmethod
    def of_counts(cls, counts: Array) -> "Pairs":
        """Rows with these numbers of columns, without the columns."""
        return cls(np.concatenate([[0], np.cumsum(counts)]), np.empty(0, np.int32))

    def select(self, rows: Array) -> "Pairs":
        """Pairs of some rows, in this order."""
        counts = self.counts[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], counts)
        return Pairs(starts, self.columns[places], None if self.weights is None else self.weights[places])


# Pairs of rows and columns with known entries in the blocks of a store.

WINDOW = 1 << 24
"""Number of pairs kept in memory; at least those of one block."""


@dataclass(frozen=True)
class StoreAddress:
    """Where a store is, and how its values are recoded, so that it can be opened again."""

    folder: Path
    fingerprint: str
    recoding: "Recoding | None" = None

    def open(self) -> "BlockDataset":
        """The store; raises `FileError` if it no longer exists, or has changed."""
        from bifactor.data.store.block_store import BlockStore  # a dataset, which has seen items

        try:
            found = BlockStore.open(self.folder)
        except FileError as error:
            raise FileError(
                f"The fitted data are needed to leave out known columns: {error} Or include known columns in lists."
            ) from None
        if found.fingerprint != self.fingerprint:
            raise FileError(f"{self.folder} does not contain the data of the fit. Restore it, or fit again.")
        return found if self.recoding is None else found.recode(self.recoding)


@dataclass(frozen=True, eq=False)
class BlockPairs:
    """Reads the pairs of rows from their blocks on request. Those in a window of rows are kept until others are
    requested, so that going through all rows in order reads each block once."""

    counts: Array
    """Number of observations of each row."""
    column_counts: Array
    weighted: bool = False
    """Whether pairs have weights, as clicks do."""
    address: StoreAddress | None = None
    """Where the blocks are, if they are files."""
    added: Pairs | None = None
    """Pairs of rows that were added later."""
    places: Array | None = None
    """Index of each row among these; -1 for rows in blocks."""
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: "BlockDataset", weighted: bool) -> "BlockPairs":
        return cls(*data.counts(), weighted, data.address(), _kept={"data": data})

    @property
    def size(self) -> int:
        return int(self.counts.sum())

    @property
    def data(self) -> "BlockDataset":
        """The blocks, opened if they are files."""
        if "data" not in self._kept:
            assert self.address is not None
            self._kept["data"] = self.address.open()
        data: BlockDataset = self._kept["data"]
        return data

    def known(self, columns: int) -> tuple[Array, Array]:
        """Masks of the rows and of the columns that are in a pair."""
        return self.counts > 0, self.column_counts > 0

    def __getitem__(self, row: int) -> Array:
        return self.select(np.array([row]))[0]

    def weights_of(self, row: int) -> Array:
        """Weights of a row."""
        return self.select(np.array([row])).weights_of(0)

    def counted(self, rows: Array) -> Pairs:
        """Numbers of columns of some rows, without the columns; no block is read."""
        return Pairs.of_counts(self.counts[rows])

    def select(self, rows: Array) -> Pairs:
        """Pairs of some rows, in this order."""
        if not rows.size:
            return Pairs.of_counts(np.zeros(0, np.int64))
        own = np.full(rows.size, -1) if self.places is None else self.places[rows]
        if self.added is not None and np.all(own >= 0):
            return self.added.select(own)
        first, there = self._read(rows[own < 0])
        if self.added is None:
            return there.select(rows - first)
        both = there.joined(self.added)
        return both.select(np.where(own < 0, rows - first, len(there.counts) + own))

    def with_rows(self, data: "Observations", weighted: bool = False) -> "BlockPairs":
        """The pairs with rows replaced by those of some data, which may have more rows."""
        m = data.shape[0]
        places = np.full(m, -1)
        if self.places is not None:
            places[: self.places.size] = self.places
        before = self.added if self.added is not None else Pairs(np.zeros(1, np.int64), np.empty(0, np.int32))
        new = np.unique(data.rows)
        places[new] = len(before.counts) + np.arange(new.size)
        part = replace(data, rows=np.searchsorted(new, data.rows), shape=(new.size, data.shape[1]))
        fresh = Pairs.of(part, weighted)
        counts = np.pad(self.counts, (0, m - self.counts.size))
        counts[new] = fresh.counts
        return replace(self, counts=counts, added=before.joined(fresh), places=places, _kept=dict(self._kept))

    def popularity(self, columns: int) -> Array:
        """Number of pairs of each column."""
        return np.pad(self.column_counts, (0, columns - self.column_counts.size))

    def _read(self, rows: Array) -> tuple[int, Pairs]:
        """The start of a range of rows that contains these, and the pairs of the range."""
        first, last = int(rows.min()), int(rows.max()) + 1
        low, high, kept = self._kept.get("window", (0, 0, None))
        if not low <= first < last <= high:
            low, high = self._window(first)
            if last > high:  # far apart: only these rows
                stay = np.zeros(self.data.shape[0], bool)
                stay[rows] = True
                return 0, self._pairs(stay, 0, self.data.shape[0])
            stay = np.zeros(self.data.shape[0], bool)
            stay[low:high] = True
            kept = self._pairs(stay, low, high)
            self._kept["window"] = low, high, kept
        return low, kept

    def _pairs(self, stay: Array, low: int, high: int) -> Pairs:
        data = self.data.lines(stay)
        return Pairs.of(replace(data, rows=data.rows - low, shape=(high - low, data.shape[1])), self.weighted)

    def _window(self, row: int) -> tuple[int, int]:
        """The rows of a block or, if blocks consist of columns, rows from this one on with at most WINDOW pairs."""
        data = self.data
        if not data.flipped:
            part = next(part for part in data.parts if row < part.stop)
            return part.start, part.stop
        totals = np.cumsum(self.counts[row : data.shape[0]])
        return row, min(data.shape[0], row + max(1, int(np.searchsorted(totals, WINDOW, side="right"))))


SeenItems = Pairs | BlockPairs
"""Known pairs of a fit."""


def folder_of(told: dict[str, Any], home: Path) -> Path:
    """Location of the store of a card: the original one or, if both were moved, the same relative path."""
    was = Path(str(told["folder"]))
    beside = Path(os.path.normpath(home / str(told["beside"])))
    return beside if not os.path.isdir(was) and os.path.isdir(beside) else was
