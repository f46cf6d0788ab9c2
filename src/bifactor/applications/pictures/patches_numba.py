"""Groups of similar patches, compiled for float32, on all cores; the same function as in `patches_reference`."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numba.extending import register_jitable

from bifactor.applications.pictures.patches_reference import Band, PartialPicture, PatchModel
from bifactor.arrays import Array
from bifactor.kernels.compile import compiled
from bifactor.kernels.threading import run, thread_count


@register_jitable
def by_known(C, x, without, ridge, excess, o, n_o, u, n_u, errors, A, v):  # type: ignore[no-untyped-def]
    """[C_oo + ρI | C_ou | errors] and the prior variances, for `conditional_moments`, if few pixels are known.

    An `excess` is not signal and is subtracted from the variances of known pixels; u then has all pixels, in order.
    """
    planes = errors.shape[0]
    for b in range(n_u):
        v[b] = C[u[b], u[b]] - without * x[u[b]] * x[u[b]]
    for a in range(n_o):
        row, scaled, mine = C[o[a]], without * x[o[a]], A[a]
        for b in range(a, n_o):
            mine[b] = row[o[b]] - scaled * x[o[b]]
        mine[a] += ridge - excess
        right = mine[n_o:]
        for b in range(n_u):
            right[b] = row[u[b]] - scaled * x[u[b]]
        for c in range(planes):
            right[n_u + c] = errors[c, a]
        if excess > 0:
            right[o[a]] -= excess
            v[o[a]] -= excess


@register_jitable
def by_unknown(Q, x, without, ridge, o, n_o, u, n_u, errors, A, v, Qx):  # type: ignore[no-untyped-def]
    """The same from Q = (C + ρI)⁻¹, if few pixels are unknown: [Q_uu | I | −Q_uo errors]."""
    d, planes, inside = x.size, errors.shape[0], np.float32(0)
    for q in range(d):
        row, total = Q[q], np.float32(0)
        for h in range(d):
            total += row[h] * x[h]
        Qx[q] = total
        inside += total * x[q]
    more = without / (np.float32(1) - without * inside)  # Sherman–Morrison, for the patch that is left out
    for b in range(n_u):
        row, scaled, mine = Q[u[b]], more * Qx[u[b]], A[b]
        for a in range(b, n_u):
            mine[a] = row[u[a]] + scaled * Qx[u[a]]
        mine[n_u : 2 * n_u] = 0
        mine[n_u + b] = 1
        for c in range(planes):
            error, total = errors[c], np.float32(0)
            for a in range(n_o):
                total += (row[o[a]] + scaled * Qx[o[a]]) * error[a]
            mine[2 * n_u + c] = -total
        v[b] = -ridge


@register_jitable
def _eliminate(A, n, columns, inverse):  # type: ignore[no-untyped-def]
    """Subtract multiples of the rows above from each row, four at a time: it is loaded and stored less often."""
    for j in range(n):
        mine = A[j, j:columns]
        k = 0
        while k + 4 <= j:
            p, q, r, s = A[k, j:columns], A[k + 1, j:columns], A[k + 2, j:columns], A[k + 3, j:columns]
            a, b, c, d = p[0] * inverse[k], q[0] * inverse[k + 1], r[0] * inverse[k + 2], s[0] * inverse[k + 3]
            for t in range(columns - j):
                mine[t] -= a * p[t] + b * q[t] + c * r[t] + d * s[t]
            k += 4
        while k < j:
            p = A[k, j:columns]
            a = p[0] * inverse[k]
            for t in range(columns - j):
                mine[t] -= a * p[t]
            k += 1
        inverse[j] = np.float32(1) / mine[0] if mine[0] > 0 else np.float32(0)


@register_jitable
def conditional_moments(A, n, n_u, sign, inverse, means, v):  # type: ignore[no-untyped-def]
    """Means, minus those of the group, and variances of the unknown pixels."""
    planes = means.shape[0]
    _eliminate(A, n, n + n_u + planes, inverse)
    means[:, :n_u] = 0
    for a in range(n):
        mine, scale = A[a, n:], inverse[a]
        for b in range(n_u):
            v[b] += sign * scale * mine[b] * mine[b]
        for c in range(planes):
            error, out = scale * mine[n_u + c], means[c]
            for b in range(n_u):
                out[b] += error * mine[b]


@register_jitable
def invert(C, ridge, A, inverse, Q, Y):  # type: ignore[no-untyped-def]
    """(C + ρI)⁻¹ in Q: elimination next to I gives LDLᵀ, and L⁻¹ in the right half."""
    d = C.shape[0]
    for q in range(d):
        A[q, :d] = C[q]
        A[q, q] += ridge
        A[q, d : 2 * d] = 0
        A[q, d + q] = 1
    _eliminate(A, d, 2 * d, inverse)
    for q in range(d):
        scale, row, mine = np.sqrt(inverse[q]), A[q, d:], Y[q]
        for h in range(d):
            mine[h] = scale * row[h]
    np.dot(Y.T, Y, Q)


TALL = 48
"""The number of rows of pixels whose reference patches are one piece of work. Pieces depend on the picture, never on
threads, and their sums are added in order, so that the result is the same with any number of threads."""

MANY = 4
"""The number of pieces for each thread at a time, so that none waits long for another."""

FEW = 2
"""The number of known pixels per unknown one from which using the inverse of the whole covariance is faster."""


@register_jitable
def _distances(guide, r, c, p, window, far, corners):  # type: ignore[no-untyped-def]
    """Compute the distances to all surrounding patches, row by row and pixel by pixel; return their number."""
    H, W = guide.shape
    left, right = max(0, c - window), min(W - p, c + window) + 1
    count = 0
    for i in range(max(0, r - window), min(H - p, r + window) + 1):
        totals = far[count : count + right - left]
        totals[:] = 0
        for a in range(p):
            patch, row = guide[r + a, c : c + p], guide[i + a, left:]
            for b in range(p):
                here, others = patch[b], row[b:]
                for t in range(totals.size):
                    apart = others[t] - here
                    totals[t] += apart * apart
        for j in range(left, right):
            corners[count] = i * W + j
            count += 1
    return count


@register_jitable
def _sift(far, corners, at, size, d, corner):  # type: ignore[no-untyped-def]
    """Put a patch into a heap whose root, the farthest one, was removed."""
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and far[below + 1] > far[below]:
            below += 1
        if far[below] <= d:
            break
        far[at], corners[at] = far[below], corners[below]
        at = below
    far[at], corners[at] = d, corner


@register_jitable
def _nearest(far, corners, count, size):  # type: ignore[no-untyped-def]
    """Move the `size` nearest patches to the front, sorted; return their number."""
    size = min(size, count)
    for at in range(size // 2 - 1, -1, -1):
        _sift(far, corners, at, size, far[at], corners[at])
    for t in range(size, count):
        if far[t] < far[0]:
            _sift(far, corners, 0, size, far[t], corners[t])
    for last in range(size - 1, 0, -1):
        d, corner = far[last], corners[last]
        far[last], corners[last] = far[0], corners[0]
        _sift(far, corners, 0, last, d, corner)
    return size


@register_jitable
def _moments(guide, corners, k, p, floor, strength, correlation, X, mean, C):  # type: ignore[no-untyped-def]
    """Compute centred patches in X, and C; return the variance of the group."""
    W, d = guide.shape[1], p * p
    mean[:] = 0
    for t in range(k):
        i, j = corners[t] // W, corners[t] % W
        for a in range(p):
            for b in range(p):
                X[t, a * p + b] = guide[i + a, j + b]
        for q in range(d):
            mean[q] += X[t, q]
    for q in range(d):
        mean[q] /= k
    size = np.float32(0)
    for t in range(k):
        for q in range(d):
            X[t, q] -= mean[q]
            size += X[t, q] * X[t, q]
    size = size / (k * d) + floor
    np.dot(X[:k].T, X[:k], C)
    share, prior = np.float32(1) / (k + strength), strength * size
    for q in range(d):
        for h in range(d):
            C[q, h] = (C[q, h] + prior * correlation[q, h]) * share
    return size


@register_jitable
def _sort(known, i, j, p, all_told, o, u):  # type: ignore[no-untyped-def]
    """List the pixels of a patch that are known, and those to estimate; return the number of each."""
    n_o = n_u = 0
    for a in range(p):
        for b in range(p):
            if known[i + a, j + b]:
                o[n_o] = a * p + b
                n_o += 1
            if all_told or not known[i + a, j + b]:
                u[n_u] = a * p + b
                n_u += 1
    return n_o, n_u


@register_jitable
def _total(planes, corners, k, p, total):  # type: ignore[no-untyped-def]
    """The sum of the patches of a group."""
    width = planes.shape[2]
    total[:] = 0
    for t in range(k):
        i, j = corners[t] // width, corners[t] % width
        for c in range(planes.shape[0]):
            for a in range(p):
                for b in range(p):
                    total[c, a * p + b] += planes[c, i + a, j + b]


@register_jitable
def _errors(planes, data, i, j, p, total, others, o, n_o, errors):  # type: ignore[no-untyped-def]
    """Known pixels of a patch, minus the mean of the other patches."""
    for c in range(planes.shape[0]):
        for a in range(n_o):
            r, s = i + o[a] // p, j + o[a] % p
            errors[c, a] = data[c, r, s] - (total[c, o[a]] - planes[c, r, s]) * others


@register_jitable
def _add(planes, i, j, p, top, floor, total, others, u, n_u, told, v, values, weights, doubts):  # type: ignore[no-untyped-def]
    """Add the estimates of the pixels of a patch."""
    for b in range(n_u):
        q = u[b]
        r, s, doubt = i + q // p, j + q % p, max(v[b], np.float32(0))
        weight = np.float32(1) / (doubt + floor)
        for c in range(planes.shape[0]):
            mean_of_others = (total[c, q] - planes[c, r, s]) * others
            values[c, r - top, s] += weight * (mean_of_others + told[c, b])
        weights[r - top, s] += weight
        doubts[r - top, s] += weight * doubt


@register_jitable
def _matrices(d, similar, colours):  # type: ignore[no-untyped-def]
    squares, rows = np.empty((3, d, d), np.float32), np.empty((3, colours, d), np.float32)
    X, A = np.empty((similar, d), np.float32), np.empty((d, 2 * d + colours), np.float32)
    return X, squares[0], squares[1], squares[2], A, rows[0], rows[1], rows[2]


@register_jitable
def _vectors(d, around):  # type: ignore[no-untyped-def]
    lines, places = np.empty((4, d), np.float32), np.empty((2, d), np.int64)
    far, corners = np.empty(around, np.float32), np.empty(around, np.int64)
    return far, corners, lines[0], lines[1], lines[2], lines[3], places[0], places[1]


@cache
def _groups(p: int) -> Any:
    """The kernel for patches of a size that is known to the compiler."""
    d = p * p

    def groups(picture, chosen, top, height, sizes, numbers, R):  # type: ignore[no-untyped-def]
        guide, planes, data, known = picture
        window, similar, solved, all_told = sizes
        noise, floor, nugget, strength, excess = numbers
        colours, width, one = planes.shape[0], planes.shape[2], np.float32(1)
        values, weights = np.zeros((colours, height, width), np.float32), np.zeros((height, width), np.float32)
        doubts = np.zeros((height, width), np.float32)
        X, C, Q, Y, A, total, means, errors = _matrices(d, similar, colours)
        far, corners, mean, v, Qx, inverse, o, u = _vectors(d, (2 * window + 1) ** 2)
        for g in range(chosen.shape[0]):
            count = _distances(guide, chosen[g, 0], chosen[g, 1], p, window, far, corners)
            k = _nearest(far, corners, count, similar)
            size = _moments(guide, corners, k, p, floor, strength, R, X, mean, C)
            _total(planes, corners, k, p, total)
            ridge, inverted, others = noise + nugget * size, False, one / max(k - 1, 1)
            without = np.float32(k) / ((k - one) * (k + strength)) if k > 1 else np.float32(0)
            for t in range(min(solved, k)):
                i, j = corners[t] // width, corners[t] % width
                n_o, n_u = _sort(known, i, j, p, all_told, o, u)
                if n_u == 0:
                    continue
                _errors(planes, data, i, j, p, total, others, o, n_o, errors)
                if all_told or FEW * n_u > n_o:
                    by_known(C, X[t], without, ridge, excess, o, n_o, u, n_u, errors, A, v)
                    conditional_moments(A, n_o, n_u, -one, inverse, means, v)
                else:
                    if not inverted:
                        invert(C, ridge, A, inverse, Q, Y)
                        inverted = True
                    by_unknown(Q, X[t], without, ridge, o, n_o, u, n_u, errors, A, v, Qx)
                    conditional_moments(A, n_u, n_u, one, inverse, means, v)
                _add(planes, i, j, p, top, floor, total, others, u, n_u, means, v, values, weights, doubts)
        return values, weights, doubts

    # Two functions of the same name that return arrays conflict if both come from numba's cache and were compiled by
    # different processes: "'descr' is NULL".
    groups.__qualname__ = f"groups_{p}"
    return compiled(groups)


def aggregate(
    picture: PartialPicture, references: Array, model: PatchModel, progress: Callable[[float], None] | None = None
) -> Iterator[Band]:
    """Estimates of pixels by groups, in bands of rows from top to bottom."""
    calls = list(_calls(picture, references, model))
    threads, last = thread_count(), None
    together = MANY * threads
    for first in range(0, len(calls), together):
        some = calls[first : first + together]
        shares = [(model.patch, some[k::threads]) for k in range(min(threads, len(some)))]
        bands = [band for share in run(_bands, shares) for band in share]
        for band in sorted(bands, key=lambda band: band.top):
            if last is not None:
                yield _finished(last, band)
            last = band
        if progress is not None:
            progress(min(1.0, (first + together) / len(calls)))
    if last is not None:
        yield last


def _bands(patch: int, calls: list[tuple[Any, ...]]) -> list[Band]:
    """The bands of one thread."""
    return [Band(call[2], *_groups(patch)(*call)) for call in calls]


def _calls(picture: PartialPicture, references: Array, model: PatchModel) -> Iterator[tuple[Any, ...]]:
    """The groups of each band that has some. A band overlaps only with the next one."""
    numbers = (model.variance, model.floor, model.nugget, model.strength, model.excess)
    sizes, height = (model.window, model.similar, model.solved, model.all_told), picture.guide.shape[0]
    settings = sizes, tuple(np.float32(x) for x in numbers), model.correlation
    tall = max(TALL, 2 * model.window + model.patch)
    order = references[np.argsort(references[:, 0], kind="stable")]
    cuts = np.searchsorted(order[:, 0], np.arange(0, height + tall, tall))
    for first, last in pairwise(cuts.tolist()):
        if first < last:
            some = order[first:last]
            top = max(0, int(some[0, 0]) - model.window)
            bottom = min(height, int(some[-1, 0]) + model.window + model.patch)
            yield (tuple(picture), some, top, bottom - top, *settings)


def _finished(band: Band, below: Band) -> Band:
    """The rows above the next band; estimates of the other rows are added to that band."""
    rows = min(below.top - band.top, len(band.weights))
    shared = len(band.weights) - rows
    for sums, more in zip(below[1:], band[1:], strict=True):
        sums[..., :shared, :] += more[..., rows:, :]
    return Band(band.top, *(part[..., :rows, :] for part in band[1:]))
