"""What readers give and fits take: which entries of a matrix are known, and what they are."""

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
    """What the row, the column and the value are called there."""
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
    """Empty where only pairs were asked for."""
    shape: tuple[int, int]
    weights: Array | None = None
    row_names: Names | None = None
    """What the rows are called; None where they are called by their numbers."""
    column_names: Names | None = None
    origin: Origin | None = None
    row_features: sparse.csr_array | None = None
    """What else is known of the rows, one line of numbers for each; None where nothing is."""
    column_features: sparse.csr_array | None = None

    @property
    def features(self) -> tuple[sparse.csr_array | None, sparse.csr_array | None]:
        """Those of rows and of columns."""
        return self.row_features, self.column_features

    def replaced(self, values: Array) -> "Observations":
        return replace(self, values=values)

    def part(self, chosen: Array) -> "Observations":
        """Some of them, by a mask or by their places."""
        weights = None if self.weights is None else self.weights[chosen]
        return replace(
            self, rows=self.rows[chosen], cols=self.cols[chosen], values=self.values[chosen], weights=weights
        )

    def held_out(self, fraction: float, seed: int) -> Array:
        """Which of them a hash of row, column and seed holds out; the same ones as `BlockStore.held`."""
        found: Array = kernels.find("hash", np.float64, self.rows.size).hashed(self.rows, self.cols, seed) < fraction
        return found

    def weighed(self) -> "Observations":
        """Without those of weight 0, which count as missing."""
        if self.weights is None:
            return self
        if not np.all(self.weights >= 0) or not np.all(np.isfinite(self.weights)):
            raise InputError("Some weights are negative, NaN or infinite. Pass numbers ≥ 0; 0 leaves an entry out.")
        used = self.weights > 0
        if used.size and not used.any():
            raise InputError("Every weight is zero. Give some entries a weight above 0.")
        return self if used.all() else self.part(used)

    def known(self) -> "Observations":
        """Without lines that have no value, or a weight of 0, and without names that are only in such lines."""
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
    """From the names of each side and the places of entries among them."""
    shape = len(rows[0]), len(cols[0])
    return Observations(rows[1], cols[1], values, shape, weights, rows[0], cols[0], origin)
