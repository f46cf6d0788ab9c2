"""Known entries of a matrix, as readers return them and fits take them."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.tables.names import Names


@dataclass(frozen=True)
class Origin:
    """Where observations come from."""

    layout: str
    """How the data were read, in one sentence."""
    header: tuple[str, ...] = ("row", "column", "value")
    """The names of the row, the column and the value in the source."""
    missing: int = 0
    """Lines, or cells, without a value."""
    wide: bool = False
    """Whether there was one line per row."""


@dataclass(frozen=True, eq=False)
class Observations:
    """Known entries of a matrix: values[t] is the entry (rows[t], cols[t])."""

    rows: Array
    cols: Array
    values: Array
    """Empty if only pairs were asked for."""
    shape: tuple[int, int]
    weights: Array | None = None
    row_names: Names | None = None
    """Names of the rows; None if these are their indices."""
    column_names: Names | None = None
    origin: Origin | None = None
    row_features: sparse.csr_array | None = None
    """Features of the rows, one line of numbers for each; None if there are none."""
    column_features: sparse.csr_array | None = None

    @property
    def features(self) -> tuple[sparse.csr_array | None, sparse.csr_array | None]:
        """The features of rows and of columns."""
        return self.row_features, self.column_features

    def replaced(self, values: Array) -> "Observations":
        return replace(self, values=values)

    def part(self, chosen: Array) -> "Observations":
        """Some of the entries, by a mask or by their indices."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(
            self, rows=self.rows[chosen], cols=self.cols[chosen], values=self.values[chosen], weights=weights
        )

    def held_out(self, fraction: float, seed: int) -> Array:
        """A mask of the entries that a hash of row, column and seed holds out, the same as in `BlockStore.held`."""
        found: Array = kernels.find("hash", np.float64, self.rows.size).hashed(self.rows, self.cols, seed) < fraction
        return found

    def with_text_names(self) -> "Observations":
        """These entries with text for the names of rows and columns."""
        rows, cols = (None if names is None else names.as_text() for names in (self.row_names, self.column_names))
        return replace(self, row_names=rows, column_names=cols)

    def weighed(self) -> "Observations":
        """The entries without those of weight 0, which count as missing."""
        if self.weights is None:
            return self
        if not np.all(self.weights >= 0) or not np.all(np.isfinite(self.weights)):
            raise InputError("Some weights are negative, NaN or infinite. Pass numbers ≥ 0; 0 leaves an entry out.")
        used = self.weights > 0
        if used.size and not used.any():
            raise InputError("Every weight is zero. Give some entries a weight above 0.")
        return self if used.all() else self.part(used)

    def known(self) -> "Observations":
        """The entries with a value and a weight above 0, and only the names that occur in these."""
        gone = np.isnan(self.values)
        if self.weights is not None:
            gone |= self.weights == 0
        if not gone.any():
            return self
        stay = self.part(~gone)
        assert self.row_names is not None
        assert self.column_names is not None
        row_names, rows = self.row_names.used(stay.rows)
        column_names, cols = self.column_names.used(stay.cols)
        origin = self.origin
        if origin is not None:
            origin = replace(origin, missing=origin.missing + int(np.count_nonzero(gone)))
        return replace(
            stay,
            rows=rows,
            cols=cols,
            shape=(len(row_names), len(column_names)),
            row_names=row_names,
            column_names=column_names,
            origin=origin,
        )


def named(
    rows: tuple[Names, Array],
    cols: tuple[Names, Array],
    values: Array,
    origin: Origin | None,
    weights: Array | None = None,
) -> Observations:
    """Observations from the names of each side and the indices of entries among them."""
    shape = len(rows[0]), len(cols[0])
    return Observations(rows[1], cols[1], values, shape, weights, rows[0], cols[0], origin)
