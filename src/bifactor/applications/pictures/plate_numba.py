"""Halving, doubling and thin-plate smoothing of pictures, compiled, on all cores; see `plate_reference`.

A tile with its halo fits into the second-level cache, so memory is read once for all its steps. No sum crosses a tile
or a row of cells, so results do not depend on the number of threads.
"""

import numpy as np
from numba.extending import register_jitable

from bifactor.applications.pictures.plate_reference import ENOUGH, HALO, ITERATIONS, ROUNDING, TILE, boxes
from bifactor.arrays import Array
from bifactor.kernels.compile import compiled
from bifactor.kernels.threading import run, shares

SIDE = TILE + 2 * HALO + 4
"""The side in pixels of a tile with its halo and two more pixels at either end, the reach of the plate's stencil."""


@compiled
def _halve(first, last, planes, known, means, any_known):  # type: ignore[no-untyped-def]
    m, n = known.shape
    for i in range(first, last):
        for j in range(means.shape[2]):
            count = 0
            for a in range(2 * i, min(2 * i + 2, m)):
                for b in range(2 * j, min(2 * j + 2, n)):
                    count += known[a, b]
            any_known[i, j] = count > 0
            for c in range(planes.shape[0]):
                total = 0.0
                for a in range(2 * i, min(2 * i + 2, m)):
                    for b in range(2 * j, min(2 * j + 2, n)):
                        total += planes[c, a, b] if known[a, b] else 0.0
                means[c, i, j] = total / max(count, 1)


def halve(planes: Array, known: Array) -> tuple[Array, Array]:
    shape = tuple((side + 1) // 2 for side in known.shape)
    means, any_known = np.empty((len(planes), *shape), planes.dtype), np.empty(shape, bool)
    work = shape[1] * (4 + 4 * len(planes))
    run(_halve, [(*cut, planes, known, means, any_known) for cut in shares(shape[0], work)])
    return means, any_known


@compiled
def _double(first, last, coarse, taps, known, out):  # type: ignore[no-untyped-def]
    rows, columns = coarse.shape[1], coarse.shape[2]
    row = np.empty(columns + 4)  # two more cells on either side
    for i in range(first, last):
        if known[i].all():
            continue
        k, away = i // 2, 1 if i % 2 else -1
        before, here = max(0, min(k - away, rows - 1)), min(k, rows - 1)
        after, beyond = max(0, min(k + away, rows - 1)), max(0, min(k + 2 * away, rows - 1))
        for c in range(coarse.shape[0]):
            p, q, r, s = coarse[c, before], coarse[c, here], coarse[c, after], coarse[c, beyond]
            for j in range(columns):
                row[j + 2] = taps[0] * p[j] + taps[1] * q[j] + taps[2] * r[j] + taps[3] * s[j]
            row[0] = row[1] = row[2]
            row[columns + 2] = row[columns + 3] = row[columns + 1]
            for j in range(known.shape[1]):
                if not known[i, j]:
                    at, side = j // 2 + 2, 1 if j % 2 else -1
                    value = taps[0] * row[at - side] + taps[1] * row[at]
                    out[c, i, j] = value + taps[2] * row[at + side] + taps[3] * row[at + 2 * side]


def double(coarse: Array, taps: Array, known: Array, out: Array) -> None:
    work = 4 * known.shape[1] * len(coarse)
    run(_double, [(*cut, coarse, taps, known, out) for cut in shares(known.shape[0], work)])


@register_jitable
def _mirror(place, size):  # type: ignore[no-untyped-def]
    place %= 2 * size
    return min(place, 2 * size - 1 - place)


@register_jitable
def _load(plane, known, box, x, free):  # type: ignore[no-untyped-def]
    """Load the box and two pixels around it, minus a constant and scaled to at most 1; return the scale."""
    top, left, rows, width = box[0], box[2], box[1] - box[0], box[3] - box[2] + 4
    centre = plane[top, left]
    peak = centre - centre
    for i in range(rows + 4):
        source = plane[_mirror(top - 2 + i, plane.shape[0])]
        for j in range(width):
            x[i * width + j] = source[_mirror(left - 2 + j, plane.shape[1])] - centre
            peak = max(peak, abs(x[i * width + j]))
    if peak > 0:
        x /= peak
    free[:] = 0
    for i in range(rows):
        for j in range(width - 4):
            free[(i + 2) * width + j + 2] = not known[top + i, left + j]
    return peak


@register_jitable
def _gradient(x, y, free, tension, width, out):  # type: ignore[no-untyped-def]
    """Compute out = (Δ² − tension·Δ)x at free pixels, and y = −Δx; return ⟨x, out⟩."""
    total, four = x.dtype.type(0), x.dtype.type(4)  # with Python numbers, everything would be in double precision
    above, before, here, after, below, target = _neighbours(x, y, width, 1)
    for k in range(target.size):
        target[k] = four * here[k] - above[k] - below[k] - before[k] - after[k]
    at, mask = x[2 * width :], free[2 * width :]
    above, before, here, after, below, target = _neighbours(y, out, width, 2)
    for k in range(target.size):
        value = (four + tension) * here[k] - above[k] - below[k] - before[k] - after[k]
        value *= mask[k]
        target[k] = value
        total += value * at[k]
    return total


@register_jitable
def _neighbours(x, out, width, rows):  # type: ignore[no-untyped-def]
    """Views of the pixels above, before, at, after and below a run of pixels, and of the output.

    Indices into views begin at 0. For `x[k - 1]` the compiler does not know that k − 1 ≥ 0, and does not use SIMD.
    """
    first, last = rows * width, x.size - rows * width
    return (
        x[first - width : last - width],
        x[first - 1 : last - 1],
        x[first:last],
        x[first + 1 : last + 1],
        x[first + width : last + width],
        out[first:last],
    )


@register_jitable
def _move(step, direction, bent, moved, residual):  # type: ignore[no-untyped-def]
    """Take one step along the direction; return the squared norm of the residual after it."""
    total = step - step
    for k in range(direction.size):
        moved[k] += step * direction[k]
        left = residual[k] - step * bent[k]
        residual[k] = left
        total += left * left
    return total


@register_jitable
def _reflect(x, box, shape, width):  # type: ignore[no-untyped-def]
    """Put the mirror image of a box, which is zero outside, beyond the border of the picture."""
    for k in range(4):
        column = _mirror(box[2] - 2 + k if k < 2 else box[3] + k - 2, shape[1])
        if box[2] <= column < box[3]:
            target, source = k if k < 2 else width + k - 4, column - box[2] + 2
            for i in range(2 * width, x.size - 2 * width, width):
                x[i + target] = x[i + source]
    for k in range(4):
        row = _mirror(box[0] - 2 + k if k < 2 else box[1] + k - 2, shape[0])
        if box[0] <= row < box[1]:
            target, source = k * width if k < 2 else x.size + (k - 4) * width, (row - box[0] + 2) * width
            for j in range(width):
                x[target + j] = x[source + j]


@register_jitable
def _bend_box(plane, known, box, tension, work):  # type: ignore[no-untyped-def]
    # Rows follow each other, with two zero pixels around them: one long loop instead of loops over short rows.
    width, real = box[3] - box[2] + 4, plane.dtype.type
    size = (box[1] - box[0] + 4) * width
    direction, y, bent = work[0, :size], work[1, :size], work[2, :size]
    residual, moved, free = work[3, :size], work[4, :size], work[5, :size]
    peak = _load(plane, known, box, direction, free)
    bent[:] = residual[:] = moved[:] = 0
    _gradient(direction, y, free, tension, width, bent)
    direction[:] = 0
    square = _move(real(1), direction, bent, moved, residual)
    least = real(ENOUGH**2) * square + real((ROUNDING * np.finfo(plane.dtype).eps) ** 2) * free.sum()
    share = real(0)
    for _ in range(ITERATIONS):
        if square <= least:
            break
        for k in range(size):
            direction[k] = residual[k] + share * direction[k]
        _reflect(direction, box, plane.shape, width)
        step = square / _gradient(direction, y, free, tension, width, bent)
        last, square = square, _move(step, direction, bent, moved, residual)
        share = square / last
    for i in range(box[0], box[1]):
        for j in range(box[2], box[3]):
            if not known[i, j]:
                plane[i, j] += peak * moved[(i - box[0] + 2) * width + j - box[2] + 2]


@compiled
def _bend(first, last, lot, planes, known, tension):  # type: ignore[no-untyped-def]
    work = np.empty((6, SIDE**2), planes.dtype)
    for k in range(first, last):
        for c in range(planes.shape[0]):
            _bend_box(planes[c], known, lot[k], tension[0], work)


def bend(planes: Array, known: Array, tension: float) -> None:
    for lot in boxes(known):
        cuts = shares(len(lot), TILE**2 * len(planes) * ITERATIONS)
        run(_bend, [(*cut, lot, planes, known, np.array([tension], planes.dtype)) for cut in cuts])
