"""Sets of cells that are held out: at random, whole rows or columns, ends of rows, and rectangles."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bifactor import kernels
from bifactor.arrays import HOST_ARRAY, Array
from bifactor.data.hash_reference import SCALE, bound
from bifactor.errors import InputError
from bifactor.validation import is_count


class CellMask(Protocol):
    """A set of cells, from their indices alone, so that every block can ask. Its repr identifies it."""

    def __call__(self, rows: Array, cols: Array, /) -> Array:
        """Whether each of these cells is in the set."""


@dataclass(frozen=True)
class RandomCells:
    """Cells at random: a hash of row, column and seed is below a fraction, in memory and in blocks alike."""

    fraction: float
    seed: int

    def __post_init__(self) -> None:
        _require_share(self.fraction, self.seed)

    def __call__(self, rows: Array, cols: Array, /) -> Array:
        return _below(_hashed(rows, cols, self.seed), self.fraction)


@dataclass(frozen=True)
class RandomLines:
    """All cells of some rows, or columns for side 1, at random."""

    fraction: float
    seed: int
    side: int = 0

    def __post_init__(self) -> None:
        _require_share(self.fraction, self.seed)
        if self.side not in (0, 1):
            raise InputError(f"side={self.side!r} is neither 0 nor 1. Pass 0 for rows, or 1 for columns.")

    def __call__(self, rows: Array, cols: Array, /) -> Array:
        return _below(_of_lines((rows, cols)[self.side], self.side, self.seed), self.fraction)


@dataclass(frozen=True)
class RowTails:
    """The last cells of some rows, at random: of row i, those of column cᵢ and all later ones.

    cᵢ is one of `first`, …, `last`, each with the same probability. The share of the rows is such that the expected
    share of all cells is `fraction`.
    """

    fraction: float
    seed: int
    columns: int
    """The number of columns of the matrix."""
    first: int | None = None
    """By default the middle, columns // 2."""
    last: int | None = None
    """By default the last column."""

    def __post_init__(self) -> None:
        _require_share(self.fraction, self.seed)
        if not is_count(self.columns, 2):
            raise InputError(f"columns={self.columns!r} is not an integer ≥ 2. Pass the number of columns.")
        first, last = self.starts
        if not (is_count(first, 1) and is_count(last, 1) and first <= last < self.columns):
            raise InputError(
                f"first={first!r} and last={last!r} are not columns in this order, after the first of {self.columns}. "
                "Pass the earliest and the latest column at which a tail begins."
            )
        if self.share > 1:
            raise InputError(
                f"fraction={self.fraction} is more than all tails from columns {first} to {last} of {self.columns} "
                f"have. Pass at most {np.floor(1000 * self.fraction / self.share) / 1000}, or an earlier column."
            )

    @property
    def starts(self) -> tuple[int, int]:
        """The earliest and the latest column at which a tail begins."""
        return (
            self.columns // 2 if self.first is None else self.first,
            self.columns - 1 if self.last is None else self.last,
        )

    @property
    def share(self) -> float:
        """The expected share of the rows."""
        return self.fraction * self.columns / (self.columns - sum(self.starts) / 2)

    def __call__(self, rows: Array, cols: Array, /) -> Array:
        first, last = self.starts
        begins = first + np.floor(_of_lines(rows, 1, self.seed) * (last - first + 1))
        inside: Array = _below(_of_lines(rows, 0, self.seed), self.share) & (cols >= begins)
        return inside


@dataclass(frozen=True)
class Rectangles:
    """`count` rectangles, each of a random group of rows times a random group of columns, which may overlap.

    The expected share of all cells in at least one of them is `fraction`: 1 − (1 − p·q)ᶜᵒᵘⁿᵗ, if each has a share p of
    the rows and q of the columns.
    """

    fraction: float
    seed: int
    count: int = 1
    rows: float | None = None
    """The share of the rows, p; by default that of the columns."""

    def __post_init__(self) -> None:
        _require_share(self.fraction, self.seed)
        if not is_count(self.count, 1):
            raise InputError(f"count={self.count!r} is not an integer ≥ 1. Pass the number of rectangles.")
        if self.rows is not None and not (isinstance(self.rows, float) and self._area <= self.rows <= 1):
            raise InputError(
                f"rows={self.rows!r} is not a share of the rows from {self._area:.3g}, with all columns, to 1.0. "
                "Pass such a number."
            )

    @property
    def _area(self) -> float:
        """The expected share of the cells of one rectangle."""
        return float(1 - (1 - self.fraction) ** (1 / self.count))

    @property
    def shares(self) -> tuple[float, float]:
        """The expected shares of the rows and of the columns of one rectangle."""
        p = self._area**0.5 if self.rows is None else self.rows
        return p, self._area / p

    def __call__(self, rows: Array, cols: Array, /) -> Array:
        p, q = self.shares
        inside = np.zeros(np.shape(rows), bool)
        for k in range(self.count):
            inside |= _below(_of_lines(rows, 2 * k, self.seed), p) & _below(_of_lines(cols, 2 * k + 1, self.seed), q)
        return inside


def _hashed(rows: Array, cols: Array, seed: int) -> Array:
    numbers: Array = kernels.get("data.hash", HOST_ARRAY, rows.size).hashed(rows, cols, seed)
    return numbers


def _of_lines(line: Array, stream: int, seed: int) -> Array:
    """A number in [0, 1) for each line; those of different streams are independent."""
    return _hashed(line, np.full_like(line, stream), seed)


def _below(numbers: Array, share: float) -> Array:
    below: Array = numbers < float(bound(share)) * SCALE
    return below


def _require_share(fraction: Any, seed: Any) -> None:
    if not isinstance(fraction, float) or not 0 < fraction < 1:
        raise InputError(f"fraction={fraction!r} is not between 0 and 1. Pass the share to hold out, such as 0.1.")
    if not is_count(seed, 0):
        raise InputError(f"seed={seed!r} is not an integer ≥ 0. Pass one, such as 0.")
