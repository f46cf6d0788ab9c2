"""Rows, columns and values as arrays, which may be memory-mapped files: no whole array is copied."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bifactor.arrays import Array, floating
from bifactor.errors import InputError
from bifactor.tables.matrices import LARGEST_SIDE, SPARSEST
from bifactor.tables.observations import Origin
from bifactor.tables.store.sources import Piece, Source, Text, require_real

CHECKED = 1 << 20
"""Numbers per piece that is checked."""


class Triples(Source):
    """Integers from 0, values, and perhaps weights."""

    lines = True

    def __init__(self, arrays: tuple[Any, ...]):
        self.arrays = [np.asanyarray(part) for part in arrays]
        if len(arrays) not in (3, 4) or any(part.ndim != 1 for part in self.arrays):
            raise InputError("The tuple is not three or four vectors. Pass rows, columns, values and perhaps weights.")
        self.total, self.weighted = int(self.arrays[2].size), len(arrays) == 4
        if self.total == 0:
            raise InputError("There are no observations. Pass at least one triple.")
        if any(part.size != self.total for part in self.arrays):
            sizes = ", ".join(str(part.size) for part in self.arrays)
            raise InputError(f"The arrays have {sizes} numbers. Pass equally many of each.")
        for part, what in zip(self.arrays[2:], ("values", "weights"), strict=False):
            require_real(part, what)
        self.origin, self.names = Origin("arrays, numbered from 0"), (None, None)
        self.shape = self._side(self.arrays[0], "rows"), self._side(self.arrays[1], "cols")
        for part in self._parts(CHECKED):
            if not np.all(np.isfinite(floating(self.arrays[2][part], "values"))):
                raise InputError("values contains NaN or infinity. Leave missing entries out of the triples.")
            if self.weighted:
                w = floating(self.arrays[3][part], "weights")
                if not np.all(w >= 0) or not np.all(np.isfinite(w)):
                    raise InputError(
                        "Some weights are negative, NaN or infinite. Pass numbers ≥ 0; 0 leaves an entry out."
                    )

    def pieces(self, text: Text) -> Iterator[Piece]:
        for part in self._parts(self.piece):
            rows, cols, values, *weights = (array[part] for array in self.arrays)
            places = [rows.astype(np.int64, copy=False)], [cols.astype(np.int64, copy=False)]
            w = floating(weights[0], "weights") if weights else None
            yield Piece(*places, floating(values, "values"), w, done=min(part.stop, self.total))

    def _parts(self, size: int) -> Iterator[slice]:
        return (slice(start, start + size) for start in range(0, self.total, size))

    def _side(self, side: Array, what: str) -> int:
        """The length of a side: one more than its largest index."""
        if side.dtype.kind not in "iu":
            raise InputError(f"{what} has dtype {side.dtype}, not integers. Pass integers from 0.")
        least, largest = int(side.min()), int(side.max())
        if least < 0:
            raise InputError(f"{what} holds {least}. Count from 0.")
        if largest >= max(LARGEST_SIDE, SPARSEST * self.total):
            raise InputError(
                f"{what} goes up to {largest}, but there are {self.total} triples. Pass a data frame if ids are not "
                "indices."
            )
        return largest + 1
