"""Small symmetric matrices side by side, compiled. The functions are those of `lanes_reference`.

Eight matrices at a time are copied into the cache and inverted by sweeps: r steps, each a rank-one update of all of
them without branches. They are symmetric and positive definite, so no pivoting is needed. Measured at r = 30: six times
faster than Cholesky factors of one matrix after another, eight times faster than LAPACK.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled

LANES = 8
"""The number of matrices at a time. At r = 30 they just fit into the first-level cache."""

LOGARITHMS = 8
"""The number of pivots that are multiplied before their logarithm is taken."""


@intrinsic
def _subtract(context, A, at, shares, i, pivots, count):  # type: ignore[no-untyped-def]
    """A[at + j] −= shares[i]·pivots[j] for j < count, with one number per lane in each row.

    It uses vector instructions explicitly: loops over lanes are not vectorised, because arrays might overlap.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = ir.VectorType(ir.DoubleType(), LANES)
        arrays = (context.make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2, 4))
        lines, factors, others = (builder.bitcast(array.data, lanes.as_pointer()) for array in arrays)
        factor = builder.load(builder.gep(factors, [args[3]]), align=8)
        with cgutils.for_range(builder, args[5]) as loop:
            place = builder.gep(lines, [builder.add(args[1], loop.index)])
            other = builder.load(builder.gep(others, [loop.index]), align=8)
            product = builder.fmul(factor, other, flags=("contract",))
            builder.store(builder.fsub(builder.load(place, align=8), product, flags=("contract",)), place, align=8)
        return context.get_dummy_value()

    return types.void(A, at, shares, i, pivots, count), codegen


@register_jitable
def _take(A, k, rank, pivots, shares):  # type: ignore[no-untyped-def]
    """Move row k of the matrices to `pivots`, with −1 at place k; `shares` are these divided by the pivot."""
    at = k * (k + 1) // 2
    for lane in range(LANES):
        shares[k, lane] = 1 / A[at + k, lane]
    for j in range(rank):
        t = at + j if j < k else j * (j + 1) // 2 + k
        for lane in range(LANES):
            pivots[j, lane] = A[t, lane]
            A[t, lane] = 0
        if j != k:
            for lane in range(LANES):
                shares[j, lane] = pivots[j, lane] * shares[k, lane]
    for lane in range(LANES):
        pivots[k, lane] = -1
        shares[k, lane] = -shares[k, lane]


@register_jitable
def _sweep(A, rank, pivots, shares, product, logs):  # type: ignore[no-untyped-def]
    """Replace matrices by minus their inverses, and compute log determinants."""
    product[:] = 1
    logs[:] = 0
    for k in range(rank):
        for lane in range(LANES):
            product[lane] *= A[k * (k + 1) // 2 + k, lane]
        if k % LOGARITHMS == LOGARITHMS - 1 or k == rank - 1:
            for lane in range(LANES):
                logs[lane] += np.log(product[lane])
                product[lane] = 1
        _take(A, k, rank, pivots, shares)
        at = 0
        for i in range(rank):
            _subtract(A, at, shares, i, pivots, i + 1)
            at += i + 1


@compiled
def _invert(packed, rank, found):  # type: ignore[no-untyped-def]
    A, pivots, shares = np.zeros((packed.shape[0], LANES)), np.empty((rank, LANES)), np.empty((rank, LANES))
    product, logs = np.empty(LANES), np.empty(LANES)
    for start in range(0, packed.shape[1], LANES):
        width = min(LANES, packed.shape[1] - start)
        if width < LANES:
            A[:] = 0
            for k in range(rank):
                A[k * (k + 1) // 2 + k] = 1
        for t in range(packed.shape[0]):
            for lane in range(width):
                A[t, lane] = packed[t, start + lane]
        _sweep(A, rank, pivots, shares, product, logs)
        for t in range(packed.shape[0]):
            for lane in range(width):
                packed[t, start + lane] = -A[t, lane]
        for lane in range(width):
            found[start + lane] = logs[lane]


@compiled
def _times(packed, vectors, out):  # type: ignore[no-untyped-def]
    at = 0
    for k in range(vectors.shape[0]):
        for h in range(k + 1):
            line, a, b, mine, yours = packed[at + h], vectors[k], vectors[h], out[k], out[h]
            for i in range(line.size):
                mine[i] += line[i] * b[i]
            if h < k:
                for i in range(line.size):
                    yours[i] += line[i] * a[i]
        at += k + 1


@compiled
def _add_squares(packed, vectors):  # type: ignore[no-untyped-def]
    at = 0
    for k in range(vectors.shape[0]):
        for h in range(k + 1):
            line, a, b = packed[at + h], vectors[k], vectors[h]
            for i in range(line.size):
                line[i] += a[i] * b[i]
        at += k + 1


def invert(packed: Array, rank: int) -> Array:
    """Replace each positive definite matrix by its inverse; return the log det of each before."""
    logs = np.zeros(packed.shape[1])
    _invert(packed, rank, logs)
    return logs


def times(packed: Array, vectors: Array) -> Array:
    """Each matrix times its vector; the vectors are r × n."""
    found = np.zeros_like(vectors)
    _times(packed, vectors, found)
    return found


def add_squares(packed: Array, vectors: Array) -> None:
    """Add the outer product of a vector with itself to each matrix."""
    _add_squares(packed, vectors)
