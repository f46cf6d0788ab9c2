"""A loss and its derivatives at all cells of some rows, compiled; the same function as in `cells_reference`.

All values of a row, stored or not, are written to an array, so that one loop without branches handles all its cells,
with SIMD.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, own, version
from bifactor.kernels.sheet import Sheet

Pointwise = Callable[..., Any]

TILE = 1024
"""The number of cells whose losses are stored before they are summed; see `losses_numba.BLOCK`."""


@cache
def _derivatives(pointwise: Pointwise, weighted: bool, bent: bool) -> Any:
    """`weighted` says whether cells have their own weights, and `bent` whether the curvature is needed."""
    stamp = version(pointwise) if own(pointwise) else 0

    def cells_pass(Z, C, first, indptr, cols, y, own, rest, rows, parameter, totals):  # type: ignore[no-untyped-def]
        n = Z.shape[1]
        ys, ws, values = np.full(n, rest), np.empty(n if weighted else 0, Z.dtype), np.empty(TILE, Z.dtype)
        for i in range(Z.shape[0]):
            start, stop = indptr[first + i], indptr[first + i + 1]
            weight = rows[first + i]
            for t in range(start, stop):
                ys[cols[t]] = y[t]
            if weighted:
                ws[:] = weight
                for t in range(start, stop):
                    ws[cols[t]] = own[t]
            total = 0.0 * stamp
            for low in range(0, n, TILE):
                zs, known = Z[i, low : low + TILE], ys[low : low + TILE]
                given, bends = ws[low : low + TILE], C[i if bent else 0, low : low + TILE]
                for t in range(zs.size):
                    v, d, c = pointwise(zs[t], known[t], parameter)
                    w = given[t] if weighted else weight
                    values[t] = w * v
                    zs[t] = w * d
                    if bent:
                        bends[t] = w * c
                for t in range(zs.size):
                    total += values[t]
            totals[i] = total
            for t in range(start, stop):
                ys[cols[t]] = rest

    return compiled(cells_pass, cache=own(pointwise))


def derivatives(pointwise: Pointwise, parameter: Any, sheet: Sheet, first: int, Z: Array, C: Array) -> Array:
    """Σ w·ℓ(z; y) of each row; w·ℓ′(z; y) is written to Z, and w·ℓ″(z; y) to C, unless it has no rows."""
    totals, bent = np.empty(len(Z)), len(C) > 0
    numbers = sheet.dtype.type(sheet.rest), sheet.row_weights, Z.dtype.type(parameter)
    kernel = _derivatives(pointwise, sheet.own.size > 0, bent)
    kernel(Z, C if bent else Z, first, sheet.indptr, sheet.cols, sheet.y, sheet.own, *numbers, totals)
    return totals
