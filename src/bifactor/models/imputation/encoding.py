"""Encoding of the columns of a table as standardised numbers, and decoding.

A table is an array with NaN for missing cells. Columns of numbers contain numbers, all others the indices 0, 1, … of
their levels.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.special import ndtri

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.data.column_types import CATEGORY, NUMBER
from bifactor.errors import InputError

MOST_CLASSES = 30
"""Largest number of classes of a category; rarer levels share the last class in the fit."""

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()

FINEST = 1000
"""Points kept of the distribution of a column; more points make lookups slower."""

LARGEST = np.finfo(np.float64).max / 8
"""Largest absolute value of numbers."""

UNSEEN = 0.5
"""Rows added to the count of each class."""


class Code(ABC):
    """Encoding of one column as `width` columns of mean 0 and variance 1."""

    kind: str
    width = 1

    @abstractmethod
    def encode(self, x: Array) -> Array:
        """Codes of known cells, n × width."""

    def scores(self, x: Array) -> Array:
        """The same, with normal scores instead of numbers."""
        return self.encode(x)


@dataclass(frozen=True, eq=False)
class NumberCode(Code):
    """(x − mean)/spread, or the normal scores Φ⁻¹(rank) of x, standardised."""

    mean: float
    spread: float
    low: float
    high: float
    points: Array
    """Sorted known values, or some of them, and their normal scores."""
    heights: Array
    kind = NUMBER

    @classmethod
    def of(cls, x: Array, bounds: tuple[float, float] | None) -> Self:
        points, counts = np.unique(x, return_counts=True)
        low, high = (float(points[0]), float(points[-1])) if bounds is None else bounds
        heights = ndtri((np.cumsum(counts) - counts / 2) / x.size)
        middle = heights @ counts / x.size
        heights = heights - middle
        unit = np.sqrt(heights**2 @ counts / x.size)
        scale = float(np.abs(x).max())  # so that squares are finite
        if scale > LARGEST:
            raise InputError(f"X contains values as large as {scale:g}, whose differences overflow. Rescale it.")
        part = x / scale
        mean, spread = scale * float(part.mean()), scale * float(part.std())
        if len(points) > FINEST:  # at equally spaced ranks, with both ends
            ranks = np.linspace(0, x.size, FINEST)
            kept = np.unique(np.searchsorted(np.cumsum(counts), ranks).clip(0, len(points) - 1))
            points, heights = points[kept], heights[kept]
        return cls(mean, spread, low, high, points, heights / unit)

    def encode(self, x: Array) -> Array:
        return ((x - self.mean) / self.spread)[:, None]

    def scores(self, x: Array) -> Array:
        return np.interp(x, self.points, self.heights)[:, None]

    def score_of(self, z: Array) -> Array:
        """Convert standardised numbers to normal scores."""
        return np.interp(z * self.spread + self.mean, self.points, self.heights)

    def undo_scores(self, z: Array) -> Array:
        """Convert normal scores to standardised numbers."""
        return (np.interp(z, self.heights, self.points) - self.mean) / self.spread

    def expected(self, z: Array, variance: Array) -> Array:
        """Mean of a standardised number whose normal score is N(z, variance)."""
        spread, found = np.sqrt(variance), np.zeros_like(z)
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            found += weight * np.interp(z + spread * node, self.heights, self.points)
        return (found - self.mean) / self.spread

    def decode(self, z: Array) -> Array:
        return np.clip(z * self.spread + self.mean, self.low, self.high)


@dataclass(frozen=True, eq=False)
class LevelCode(Code):
    """One number for each level: the means of the parts of N(0, 1) that the levels cut; booleans have two."""

    points: Array
    shares: Array
    kind: str

    @classmethod
    def of(cls, x: Array, kind: str, size: int) -> Self:
        counts = np.bincount(x.astype(np.int64), minlength=size) + UNSEEN / size
        shares = counts / counts.sum()
        ends = ndtri(np.cumsum(shares)[:-1])
        density = np.concatenate([[0], np.exp(-(ends**2) / 2), [0]])
        points = (density[:-1] - density[1:]) / shares
        points -= points @ shares
        return cls(points / np.sqrt(points**2 @ shares), shares, kind)

    @property
    def size(self) -> int:
        return len(self.points)

    def encode(self, x: Array) -> Array:
        return self.points[x.astype(np.int64)][:, None]


@dataclass(frozen=True, eq=False)
class ClassCode(Code):
    """K − 1 contrasts of K classes, uncorrelated and with variance 1, so that a category does not count K times."""

    points: Array
    """K × (K − 1): the contrasts of each class."""
    shares: Array
    """Shares of the classes."""
    classes: Array
    """Class of each level: its own, or the last one for all rare levels."""
    within: Array
    """Share of each level in its class."""
    kind = CATEGORY

    @classmethod
    def of(cls, x: Array, size: int) -> Self:
        counts = np.bincount(x.astype(np.int64), minlength=size)
        order = np.argsort(-counts, kind="stable")
        seen = int(np.count_nonzero(counts))
        named = seen if seen <= MOST_CLASSES else MOST_CLASSES - 1
        classes = np.full(size, named, np.int64)
        classes[order[:named]] = np.arange(named)
        if named == size:
            classes = np.arange(size)
            order = classes
        totals = np.bincount(classes, counts, int(classes.max()) + 1)
        padded = counts + UNSEEN / size
        within = padded / np.bincount(classes, padded)[classes]
        weights = totals + UNSEEN
        shares = weights / weights.sum()
        root = np.sqrt(shares)
        basis = np.linalg.qr(np.column_stack([root, np.eye(len(root))[:, :-1]]))[0][:, 1:]
        return cls(basis / root[:, None], shares, classes, within)

    @property
    def width(self) -> int:  # type: ignore[override]
        return self.points.shape[1]

    @property
    def size(self) -> int:
        return len(self.classes)

    def encode(self, x: Array) -> Array:
        return self.points[self.classes[x.astype(np.int64)]]


def code_of(x: Array, kind: str, size: int, bounds: tuple[float, float] | None) -> Code | None:
    """The code of a column from its known cells; None if they have at most one distinct value."""
    if x.size == 0 or np.all(x == x[0]):
        return None
    if kind == NUMBER:
        code = NumberCode.of(x, bounds)
        return code if code.spread > 10 * np.finfo(np.float64).eps * abs(code.mean) else None
    return ClassCode.of(x, size) if kind == CATEGORY else LevelCode.of(x, kind, size)


# Layout of the codes of a table, side by side.


@dataclass(frozen=True)
class Schema:
    """Kinds of the columns of a table."""

    kinds: tuple[str, ...]
    sizes: tuple[int, ...]
    """Numbers of levels; 0 for numbers."""
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Bounds of numbers, if they differ from those of the data."""


@dataclass(frozen=True, eq=False)
class TableEncoding:
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
