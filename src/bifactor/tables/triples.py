"""What every reader gives: names of rows and columns, and an entry for each pair that is known."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.tables.labels import Labels
from bifactor.tables.observations import Observations


@dataclass(frozen=True)
class Triples:
    """Known entries by the names of their rows and columns."""

    rows: Labels
    cols: Labels
    i: Array
    j: Array
    values: Array
    """Empty where only pairs were asked for."""
    layout: str
    """How the file was read, in one sentence."""
    header: tuple[str, ...] = ("row", "column", "value")
    """What the row, the column and the value are called."""
    missing: int = 0
    """Lines, or cells, without a value."""
    width: int | None = None
    """Of a wide table: how many columns hold values."""

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.rows.names.size), int(self.cols.names.size)

    def observations(self) -> Observations:
        return Observations(self.i, self.j, self.values, self.shape)

    def known(self) -> "Triples":
        """Without the lines that have no value, and without names that are only in such lines."""
        gone = np.isnan(self.values)
        if not gone.any():
            return self
        rows, i = _used(self.rows, self.i[~gone])
        cols, j = _used(self.cols, self.j[~gone])
        missing = self.missing + int(np.count_nonzero(gone))
        return replace(self, rows=rows, cols=cols, i=i, j=j, values=self.values[~gone], missing=missing)


def _used(labels: Labels, places: Array) -> tuple[Labels, Array]:
    present = np.zeros(labels.names.size, bool)
    present[places] = True
    new = np.cumsum(present, dtype=np.int32) - 1
    return Labels(labels.names[present]), new[places]
