"""Layout of the codes of a table, side by side."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.models.table.codes import Code, NumberCode, code_of


@dataclass(frozen=True)
class Schema:
    """Kinds of the columns of a table."""

    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    """Numbers of levels; 0 for numbers."""
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Bounds of numbers, if they differ from those of the data."""


@dataclass(frozen=True, eq=False)
class Layout:
    """Codes of all columns of a table, None for columns without information."""

    codes: tuple[Code | None, ...]

    @classmethod
    def of(cls, X: Array, schema: Schema) -> Self:
        columns = enumerate(zip(X.T, schema.kinds, schema.sizes, strict=True))
        known = (code_of(x[~np.isnan(x)], kind, size, schema.bounds.get(j)) for j, (x, kind, size) in columns)
        return cls(tuple(known))

    @cached_property
    def spans(self) -> list[slice]:
        """Encoded columns of each column."""
        ends = np.cumsum(self._widths).tolist()
        return [slice(end - width, end) for end, width in zip(ends, self._widths, strict=True)]

    @cached_property
    def own(self) -> Array:
        """Column of each encoded column."""
        return np.repeat(np.arange(len(self.codes)), self._widths)

    @property
    def _widths(self) -> list[int]:
        return [0 if code is None else code.width for code in self.codes]

    @property
    def width(self) -> int:
        return len(self.own)

    @property
    def places(self) -> list[tuple[int, Code, slice]]:
        """Columns with a code, the code, and its encoded columns."""
        return [(j, c, s) for j, (c, s) in enumerate(zip(self.codes, self.spans, strict=True)) if c is not None]

    @property
    def numbers(self) -> list[tuple[int, NumberCode]]:
        """Encoded columns of numbers, and their codes."""
        return [(s.start, c) for _, c, s in self.places if isinstance(c, NumberCode)]

    def kinds(self) -> list[str]:
        """Kind of each encoded column."""
        return [c.kind for _, c, _ in self.places for _ in range(c.width)]

    def encode(self, X: Array, scores: bool = False) -> Array:
        """The table in standardised columns, with NaN for missing cells."""
        found = np.full((len(X), self.width), np.nan)
        for j, code, span in self.places:
            known = ~np.isnan(X[:, j])
            found[known, span] = (code.scores if scores else code.encode)(X[known, j])
        return found
