"""Sums of second moments over observed entries, compiled, on all cores; the same functions as in `moments_reference`.

All three sums are computed in one pass over the entries. They are deterministic for a fixed number of threads.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels import moments_reference
from bifactor.kernels.compile import compiled
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.kernels.memory import zeros
from bifactor.kernels.moments_reference import Span, Tables, collected
from bifactor.kernels.threading import run, threads_for

__all__ = ["collected", "gathered", "moved", "private", "scatter"]


@compiled
def _sums(start, stop, own, other, first, base, y, w, M, m, q, packed, linear, squares):  # type: ignore[no-untyped-def]
    weighted = w.size > 0
    for tile in range(start.size):
        for t in range(start[tile], stop[tile]):
            i, j = own[t] - first, other[t] - base
            value = np.float64(y[t])
            weight = np.float64(w[t]) if weighted else 1.0
            target, source = packed[i], M[j]
            for k in range(source.size):
                target[k] += weight * source[k]
            target, source = linear[i], m[j]
            slope = weight * value
            for k in range(source.size):
                target[k] += slope * source[k]
            squares[i] += slope * value * q[j]


@compiled
def _moved(start, stop, outer, inner, w, P, Q, R, S):  # type: ignore[no-untyped-def]
    weighted, found = w.size > 0, 0.0
    for tile in range(start.size):
        for t in range(start[tile], stop[tile]):
            p, q, r, s = P[outer[t]], Q[inner[t]], R[outer[t]], S[inner[t]]
            change = 0.0
            for k in range(p.size):
                change += np.float64(r[k]) * s[k] - np.float64(p[k]) * q[k]
            found += change * change * (w[t] if weighted else 1.0)
    return found


def gathered(layout: EntryLayout, y: Array, w: Array | None, tables: Tables, span: Span) -> Tables:
    rows = span[1] - span[0]
    found = tuple(zeros((rows, *table.shape[1:]), np.float64) for table in tables)
    ranges = layout.ranges(False, *span, _threads(layout, tables, span))
    given = layout.outer, layout.inner, span[0], 0, y, _weights(y, w), *tables
    run(_sums, [(start, stop, *given, *found) for start, stop, _, _ in ranges])
    return found[0], found[1], found[2]


def scatter(layout: EntryLayout, y: Array, w: Array | None, tables: Tables, span: Span, found: list[Tables]) -> None:
    ranges = layout.ranges(False, *span, min(len(found), _threads(layout, tables, span)))
    given = layout.inner, layout.outer, 0, span[0], y, _weights(y, w), *tables
    run(_sums, [(start, stop, *given, *mine) for (start, stop, _, _), mine in zip(ranges, found, strict=False)])


def private(layout: EntryLayout, width: int, parts: int = 1) -> list[Tables]:
    """One set of zeros for each thread, or fewer if these would cost more than the entries."""
    return moments_reference.private(layout, width, len(layout.spans(threads_for(layout.size * width**2 / 2))))


def moved(layout: EntryLayout, w: Array | None, before: tuple[Array, Array], after: tuple[Array, Array]) -> float:
    weights = np.empty(0, before[0].dtype) if w is None else w
    factors = (*(np.ascontiguousarray(F) for F in (*before, *after)),)
    spans = layout.spans(threads_for(layout.size * before[0].shape[1]))
    return float(sum(run(_moved, [(*span, layout.outer, layout.inner, weights, *factors) for span in spans])))


def _weights(y: Array, w: Array | None) -> Array:
    return np.empty(0, y.dtype) if w is None else w


def _threads(layout: EntryLayout, tables: Tables, span: Span) -> int:
    share = (span[1] - span[0]) / max(layout.n_outer, 1)
    return threads_for(layout.size * share * tables[0].shape[1])
