"""Fast transforms compiled for single and double precision, on all cores, at the speed of memory.

The Walsh–Hadamard transform of a long vector passes over memory twice: once in runs that fit into the first-level
cache, and once in columns of such runs, copied to a buffer that fits into the second-level cache so that their stride,
a power of two, does no harm. Complex vectors are pairs of reals that share all butterflies but the first.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled
from bifactor.kernels.memory import empty
from bifactor.kernels.threading import run, shares, threads_for

RUN = 4096
"""The number of reals per run of the first phase: 32 kB in double precision."""

COLUMNS = 2048
"""The number of runs that are combined at once in the second phase."""

WIDTH = 256
"""The number of bytes of each run that are taken at once: a few cache lines, so that memory is streamed."""


@compiled
def _butterflies(x, start, length, h):  # type: ignore[no-untyped-def]
    # Two levels at a time: half the loads and stores of one.
    while 4 * h <= length:
        for i in range(start, start + length, 4 * h):
            a, b, c, d = x[i : i + h], x[i + h : i + 2 * h], x[i + 2 * h : i + 3 * h], x[i + 3 * h : i + 4 * h]
            for k in range(h):
                s, t, u, v = a[k] + b[k], a[k] - b[k], c[k] + d[k], c[k] - d[k]
                a[k], b[k], c[k], d[k] = s + u, t + v, s - u, t - v
        h *= 4
    while h < length:
        for i in range(start, start + length, 2 * h):
            a, b = x[i : i + h], x[i + h : i + 2 * h]
            for k in range(h):
                a[k], b[k] = a[k] + b[k], a[k] - b[k]
        h *= 2


@compiled
def _runs(x, first, last, length, h):  # type: ignore[no-untyped-def]
    for r in range(first, last):
        start = r * length
        if h == 1 and length >= 4:
            # Too short for the general loop to be vectorised.
            for i in range(start, start + length, 4):
                s, t, u, v = x[i] + x[i + 1], x[i] - x[i + 1], x[i + 2] + x[i + 3], x[i + 2] - x[i + 3]
                x[i], x[i + 1], x[i + 2], x[i + 3] = s + u, t + v, s - u, t - v
            _butterflies(x, start, length, 4)
        else:
            _butterflies(x, start, length, h)


@compiled
def _columns(x, first, last, count, stride, width):  # type: ignore[no-untyped-def]
    buffer = np.empty(count * width, dtype=x.dtype)
    per_group = stride // width
    for block in range(first, last):
        offset = (block // per_group) * count * stride + (block % per_group) * width
        for r in range(count):
            source, target = x[offset + r * stride :], buffer[r * width :]
            for k in range(width):
                target[k] = source[k]
        _butterflies(buffer, 0, count * width, width)
        for r in range(count):
            source, target = buffer[r * width :], x[offset + r * stride :]
            for k in range(width):
                target[k] = source[k]


@compiled
def _place(first, last, source, index, code, table, out):  # type: ignore[no-untyped-def]
    for k in range(first, last):
        value = table[code[k]] * source[k] if code.size else source[k]
        if index.size:
            out[index[k]] = value
        else:
            out[k] = value


@compiled
def _take(first, last, source, index, factor, out):  # type: ignore[no-untyped-def]
    for t in range(first, last):
        out[t] = factor[t] * source[index[t]]


@compiled
def _spread(first, last, values, index, factor, out):  # type: ignore[no-untyped-def]
    for t in range(first, last):
        out[index[t]] = np.conj(factor[t]) * values[t]


def walsh_hadamard(x: Array) -> Array:
    parts = 2 if np.iscomplexobj(x) else 1
    length = x.shape[-1] * parts
    flat = x.reshape(-1).view(x.real.dtype)
    done = min(length, RUN)
    _split(_runs, flat, flat.size // done, done, parts)
    width = WIDTH // flat.itemsize
    while done < length:
        count = min(length // done, COLUMNS)
        _split(_columns, flat, flat.size // (count * width), count, done, width)
        done *= count
    return x


def place(source: Array, index: Array | None, code: Array | None, table: Array, out: Array) -> Array:
    # Reading in order and writing at random is twice as fast as the reverse: writes do not wait.
    index = np.empty(0, dtype=np.int32) if index is None else index
    code = np.empty(0, dtype=np.uint8) if code is None else code
    run(_place, [(*cut, source, index, code, table, out) for cut in shares(source.size)])
    return out


def take(source: Array, index: Array, factor: Array) -> Array:
    out = empty(index.size, np.result_type(source, factor))
    run(_take, [(*cut, source, index, factor, out) for cut in shares(index.size)])
    return out


def spread(values: Array, index: Array, factor: Array, out: Array) -> Array:
    out[...] = 0
    run(_spread, [(*cut, values, index, factor, out) for cut in shares(index.size)])
    return out


def _split(kernel, x: Array, count: int, *settings: int) -> None:  # type: ignore[no-untyped-def]
    parts = min(count, threads_for(x.size))
    run(kernel, [(x, count * t // parts, count * (t + 1) // parts, *settings) for t in range(parts)])


# Pauli expectations compiled, on all cores; see `transforms_reference` for their definition.
#
# All strings with the same x share one vector of d numbers, whose Walsh–Hadamard transform gives every z at once. A
# signed sum for each z was also tried: it is a fifth faster for a single string, and slower for two or more.


@compiled
def _power_of_i(k):  # type: ignore[no-untyped-def]
    """i^{popcount(k)} as a pair of reals."""
    count = 0
    while k:
        k &= k - 1
        count += 1
    count &= 3
    return (1.0 - count if count in (0, 2) else 0.0), (2.0 - count if count in (1, 3) else 0.0)


@compiled
def _expectations(first, last, masks, starts, zs, U, V, out):  # type: ignore[no-untyped-def]
    d, rank = U.shape
    v = np.empty(d, dtype=U.dtype)
    flat = v.view(out.dtype)
    for i in range(first, last):
        x = masks[i]
        for j in range(d):
            total = U[j, 0] * np.conj(V[j ^ x, 0])
            for a in range(1, rank):
                total += U[j, a] * np.conj(V[j ^ x, a])
            v[j] = total
        _butterflies(flat, 0, 2 * d, 2)
        for t in range(starts[i], starts[i + 1]):
            z = zs[t]
            real, imag = _power_of_i(x & z)
            out[t] = real * v[z].real - imag * v[z].imag


@compiled
def _combine(first, last, masks, starts, zs, w, U, out):  # type: ignore[no-untyped-def]
    d, rank = U.shape
    m = np.empty(d, dtype=U.dtype)
    flat = m.view(w.dtype)
    for i in range(first, last):
        x = masks[i]
        flat[:] = 0
        for t in range(starts[i], starts[i + 1]):
            z = zs[t]
            real, imag = _power_of_i(x & z)
            flat[2 * z] += w[t] * real
            flat[2 * z + 1] += w[t] * imag
        _butterflies(flat, 0, 2 * d, 2)
        for j in range(d):
            for a in range(rank):
                out[j ^ x, a] += m[j] * U[j, a]


def expectations(masks: Array, starts: Array, zs: Array, U: Array, V: Array) -> Array:
    U, V = _contiguous(U, V)
    out = np.empty(zs.size, dtype=U.real.dtype)
    run(_expectations, [(*cut, masks, starts, zs, U, V, out) for cut in _cuts(starts, U)])
    return out


def combine(masks: Array, starts: Array, zs: Array, w: Array, U: Array) -> Array:
    (U,) = _contiguous(U)
    w = np.ascontiguousarray(w, dtype=U.real.dtype)
    cuts = _cuts(starts, U)
    private = np.zeros((len(cuts), *U.shape), dtype=U.dtype)
    run(_combine, [(*cut, masks, starts, zs, w, U, mine) for cut, mine in zip(cuts, private, strict=True)])
    return private.sum(axis=0)


def _contiguous(*factors: Array) -> list[Array]:
    dtype = np.result_type(*factors, np.complex64)
    return [np.ascontiguousarray(F, dtype=dtype) for F in factors]


def _cuts(starts: Array, U: Array) -> list[tuple[int, int]]:
    """The shares of threads in the masks, by work: a product and a transform for each mask."""
    count = starts.size - 1
    parts = min(count, threads_for(8 * count * U.size))
    return [(count * t // parts, count * (t + 1) // parts) for t in range(parts)]
