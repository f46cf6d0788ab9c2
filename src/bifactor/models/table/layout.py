"""Where the codes of a table lie, side by side."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from bifactor.arrays import Array
from bifactor.caching import cached_property
from bifactor.models.table.codes import Code, NumberCode, code_of


@dataclass(frozen=True)
class Schema:
    """What the columns of a table are."""

    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    """How many levels; 0 for numbers."""
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Of numbers, where they are not those of the data."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The codes of all columns of a table, None for those that have nothing to tell."""

    codes: tuple[Code | None, ...]

    @classmethod
    def of(cls, X: Array, schema: Schema) -> Self:
        columns = enumerate(zip(X.T, schema.kinds, schema.sizes, strict=True))
        known = (code_of(x[~np.isnan(x)], kind, size, schema.bounds.get(j)) for j, (x, kind, size) in columns)
        return cls(tuple(known))

    @cached_property
    def spans(self) -> list[slice]:
        """The places of each column."""
        ends = np.cumsum(self._widths).tolist()
        return [slice(end - width, end) for end, width in zip(ends, self._widths, strict=True)]

    @cached_property
    def own(self) -> Array:
        """The column of each place."""
        return np.repeat(np.arange(len(self.codes)), self._widths)

    @property
    def _widths(self) -> list[int]:
        return [0 if code is None else code.width for code in self.codes]

    @property
    def width(self) -> int:
        return len(self.own)

    @property
    def places(self) -> list[tuple[int, Code, slice]]:
        """Columns that have a code, with it and its place."""
        return [(j, c, s) for j, (c, s) in enumerate(zip(self.codes, self.spans, strict=True)) if c is not None]

    @property
    def numbers(self) -> list[tuple[int, NumberCode]]:
        """Places of columns of numbers."""
        return [(s.start, c) for _, c, s in self.places if isinstance(c, NumberCode)]

    def kinds(self) -> list[str]:
        """The kind of each place."""
        return [c.kind for _, c, _ in self.places for _ in range(c.width)]

    def encode(self, X: Array, scores: bool = False) -> Array:
        """A table in standardised columns, NaN where nothing is known."""
        found = np.full((len(X), self.width), np.nan)
        for j, code, span in self.places:
            known = ~np.isnan(X[:, j])
            found[known, span] = (code.scores if scores else code.encode)(X[known, j])
        return found
