"""Masks that resemble the unknown cells of a matrix, so that what is held out is as hard to predict as they are."""

import numpy as np

from bifactor.arrays import Array, generator
from bifactor.data.masks import CellMask, Rectangles, RowTails

LEAST_DENSITY = 0.2
"""Share of known cells below which holes have no shape: most cells of sparse ratings are unknown, wherever they are."""

MAX_CELLS, MAX_LINES = 4_000_000, 400
"""Cells whose ends of rows are looked at, and rows and columns whose rectangles are; of more, some at random."""

TAILS, RECTANGLES = 0.75, 0.65
"""Values of the two statistics from which holes are tails or rectangles. In tables of one shape alone they are 1; with
a further twentieth of the cells unknown at random, mostly above 0.7; in ratings at most 0.55, and at random about 0."""

FEWEST = 10
"""Cells that tails must have beyond those expected at random, and columns, or rows, of a table in all."""

MOST_ROWS = 0.5
"""Largest share of the rows that lose a tail."""

COUNT = 3
"""Number of rectangles."""


def holes_like(
    rows: Array, cols: Array, shape: tuple[int, int], fraction: float, rng: np.random.Generator | int
) -> CellMask | None:
    """A mask of about a fraction of the known cells whose shape is that of the holes; None if these are random cells.

    Parameters
    ----------
    rows, cols : integer arrays
        The known cells of a matrix of this shape; all others are holes.
    fraction : float
        The share of the known cells to hold out, such as 0.1.
    rng : Generator or int
        The seed of the mask is drawn from it, if there is a mask.

    Returns
    -------
    CellMask or None
        `RowTails` if holes are at the ends of rows, as in a panel whose units leave it one after the other;
        `Rectangles` if they are blocks of rows × columns, as where surveys are joined.
    """
    known = _known_cells(rows, cols, shape)
    if known is None:
        return None
    if _share_in_tails(known) >= TAILS:
        return _tails_like(known, shape, fraction, rng)
    if _share_in_rectangles(known) >= RECTANGLES:
        return _rectangles_like(~known, fraction, rng)
    return None


def _known_cells(rows: Array, cols: Array, shape: tuple[int, int]) -> Array | None:
    """Known cells of some rows with entries, up to the last column with entries; None if few cells are known."""
    if min(shape) < FEWEST or not LEAST_DENSITY * shape[0] * shape[1] <= rows.size:
        return None
    used = np.unique(rows)
    used = np.sort(np.random.default_rng(0).permutation(used)[: max(1, MAX_CELLS // shape[1])])
    place = np.full(shape[0], -1)
    place[used] = np.arange(used.size)
    known = np.zeros((used.size, int(cols.max()) + 1), bool)
    inside = place[rows] >= 0
    known[place[rows[inside]], cols[inside]] = True
    enough = LEAST_DENSITY <= known.mean() < 1 and min(known.shape) >= FEWEST
    return known if enough else None


def _share_in_tails(known: Array) -> float:
    """The share of the holes that are at the ends of rows: 1 if all are, and 0 on average if they are at random.

    Of n cells in random order, of which k are known, (n − k)/(k + 1) unknown ones are expected after the last known.
    """
    n, counts = known.shape[1], known.sum(axis=1)
    holes, tails, expected = n - counts, _tails(known), (n - counts) / (counts + 1)
    excess, ended = float(np.sum(tails - expected)), int(np.count_nonzero(tails))
    if excess < FEWEST or tails.sum() < 2 * ended:
        return 0.0
    return excess / float(np.sum(holes - expected))


def _tails(known: Array) -> Array:
    """The number of holes after the last known cell of each row."""
    found: Array = known[:, ::-1].argmax(axis=1)
    return found


def _share_in_rectangles(known: Array) -> float:
    """How far holes are blocks of rows × columns: 1 if they are, and about 0 if only rows, or only columns, differ.

    Of three corners of a rectangle that are holes, so is the fourth with probability P. This is P relative to the
    larger of those of random holes with the same number in each row, or in each column: (P − P₀)/(1 − P₀).
    """
    rng = np.random.default_rng(0)
    some = known[rng.permutation(known.shape[0])[:MAX_LINES]][:, rng.permutation(known.shape[1])[:MAX_LINES]]
    some = some[:, some.any(axis=0)]
    H = (~some[some.any(axis=1)]).astype(np.float64)
    base = max(_closed(np.broadcast_to(H.mean(axis=side, keepdims=True), H.shape)) for side in (0, 1))
    return (_closed(H) - base) / (1 - base) if base < 1 else 0.0


def _closed(P: Array) -> float:
    """The probability that the fourth corner of a rectangle is a hole if three are, from those of all cells."""
    both, squares = P @ P.T, P**2
    four = both**2 - squares @ squares.T
    three = P * (P.sum(axis=1, keepdims=True) - P) * (P.sum(axis=0) - P)
    return float((four.sum() - np.trace(four)) / max(three.sum(), 1e-300))


def _tails_like(
    known: Array, shape: tuple[int, int], fraction: float, rng: np.random.Generator | int
) -> RowTails | None:
    """Tails that begin where those of most rows do, of as many rows as have this fraction of the known cells."""
    n, tails = shape[1], _tails(known)
    begins = known.shape[1] - tails[tails > 0]
    first, last = (min(max(1, int(np.quantile(begins, q))), n - 1) for q in (0.1, 0.9))
    counts = np.concatenate([known.sum(axis=0), np.zeros(n - known.shape[1])])
    after = np.cumsum(counts[::-1])[::-1]  # known cells from each column on
    share = float(after[first : last + 1].mean() / after[0])
    if share == 0:
        return None
    drawn = min(MOST_ROWS, fraction / share)
    return RowTails(drawn * (n - (first + last) / 2) / n, _seed(rng), n, first, last)


def _rectangles_like(holes: Array, fraction: float, rng: np.random.Generator | int) -> Rectangles:
    """Rectangles with as large a share of the columns as a hole has in its row."""
    per_row = holes.sum(axis=1)
    columns = float(np.sum(per_row**2) / np.sum(per_row)) / holes.shape[1]
    area = 1 - (1 - fraction) ** (1 / COUNT)
    return Rectangles(fraction, _seed(rng), COUNT, min(1.0, area / columns))


def _seed(rng: np.random.Generator | int) -> int:
    return int(generator(rng).integers(2**32))
