"""Sums of second moments over observed entries, in NumPy and SciPy: the definition of the compiled kernels.

For the entries of a row, with values y and weights w: Σ w·M, Σ w·y·m and Σ w·y²·q, where M, m and q are rows of three
tables of the other side. If the weights are None, they are ones.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels import entries_reference
from bifactor.kernels.entry_layout import EntryLayout

Tables = tuple[Array, Array, Array]
"""M, m and q of each row, in double precision, q as a vector."""

Span = tuple[int, int]
"""A range of rows of the outer side, (start, stop)."""


def gathered(layout: EntryLayout, y: Array, w: Array | None, tables: Tables, span: Span) -> Tables:
    """The sums of some rows of the outer side; the tables are those of the inner one."""
    part, weights = _part(layout, y, w, span)
    q = tables[2][:, None]
    packed, linear, squares = (
        np.asarray(entries_reference.left(part, one, table))
        for one, table in zip(weights, (*tables[:2], q), strict=True)
    )
    return packed, linear, squares[:, 0]


def scatter(layout: EntryLayout, y: Array, w: Array | None, tables: Tables, span: Span, found: list[Tables]) -> None:
    """Add to the sums of the inner side; the tables are those of some rows of the outer one."""
    part, weights = _part(layout, y, w, span)
    for one, table, total in zip(weights, (*tables[:2], tables[2][:, None]), found[0], strict=True):
        total += np.asarray(entries_reference.right(part, one, table)).reshape(total.shape)


def private(layout: EntryLayout, width: int, parts: int = 1) -> list[Tables]:
    """Zeros to scatter to, for factors of this many columns; `collected` adds them up."""
    n, packed = layout.n_inner, width * (width + 1) // 2
    return [(np.zeros((n, packed)), np.zeros((n, width)), np.zeros(n)) for _ in range(parts)]


def collected(found: list[Tables]) -> Tables:
    total = found[0]
    for more in found[1:]:
        for a, b in zip(total, more, strict=True):
            a += b
    return total


def moved(layout: EntryLayout, w: Array | None, before: tuple[Array, Array], after: tuple[Array, Array]) -> float:
    """Σ w·(z′ − z)², from the outer and the inner factors before and after."""
    change = (entries_reference.dot(layout, *(F.astype(np.float64) for F in pair)) for pair in (after, before))
    squares = (next(change) - next(change)) ** 2
    return float(np.sum(squares) if w is None else w.astype(np.float64) @ squares)


def _part(layout: EntryLayout, y: Array, w: Array | None, span: Span) -> tuple[EntryLayout, tuple[Array, Array, Array]]:
    """The entries of some rows, counted from the first, with w, wy and wy²."""
    first, last = span
    outer, inner = layout.outer, layout.inner
    if span != (0, layout.n_outer):
        chosen = (outer >= first) & (outer < last)
        outer, inner, y = outer[chosen] - first, inner[chosen], y[chosen]
        w = None if w is None else w[chosen]
        layout = EntryLayout(outer, inner, last - first, layout.n_inner, np.array([0, outer.size]))
    y = y.astype(np.float64)
    weight = np.ones_like(y) if w is None else w.astype(np.float64)
    return layout, (weight, weight * y, weight * y * y)
