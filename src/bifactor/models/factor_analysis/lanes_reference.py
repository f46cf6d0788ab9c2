"""Small symmetric matrices side by side, in NumPy: the definition of the compiled kernels.

Matrices that belong to n rows are stored as a T × n array: each line holds one entry of all of them, in the order of
the lower triangle row by row, (0,0), (1,0), (1,1), (2,0), …, so T = r(r + 1)/2. Their sums over observed cells are then
matrix products on either side, and operations can be applied to many matrices at a time.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.row_blocks_reference import chunks, triangle

CACHED = 1 << 16
"""The number of numbers that are inverted at a time, in the cache. Up to r = 12 it takes half the time of LAPACK."""


def invert(packed: Array, rank: int) -> Array:
    """Replace each positive definite matrix by its inverse; return the log det of each before."""
    first, second = triangle(rank)
    step, found = max(1, CACHED // max(rank**2, 1)), np.zeros(packed.shape[1])
    for start in range(0, packed.shape[1], step):
        part = slice(start, start + step)
        A = np.empty((rank, rank, packed[:, part].shape[1]))
        A[first, second] = A[second, first] = packed[:, part]
        for k in range(rank):  # after all sweeps, A is minus the inverse
            pivots = A[k].copy()
            pivot = A[k, k].copy()
            found[part] += np.log(pivot)
            pivots[k] = -1
            A[k] = A[:, k] = 0
            A -= (pivots / pivot)[:, None] * pivots
        packed[:, part] = -A[first, second]
    return found


def times(packed: Array, vectors: Array) -> Array:
    """Each matrix times its vector; the vectors are r × n."""
    found = np.empty_like(vectors)
    for part in chunks(packed.shape[1], len(vectors) ** 2):
        found[:, part] = np.einsum("ikl,li->ki", matrices(packed[:, part], len(vectors)), vectors[:, part])
    return found


def add_squares(packed: Array, vectors: Array) -> None:
    """Add the outer product of a vector with itself to each matrix."""
    first, second = triangle(len(vectors))
    for part in chunks(packed.shape[1], len(packed)):
        packed[:, part] += vectors[first, part] * vectors[second, part]


def matrices(packed: Array, rank: int) -> Array:
    """All entries of each matrix, n × r × r."""
    first, second = triangle(rank)
    whole = np.empty((packed.shape[1], rank, rank), packed.dtype)
    whole[:, first, second] = whole[:, second, first] = packed.T
    return whole


def packed_of(whole: Array) -> Array:
    """The lower triangles of matrices n × r × r."""
    first, second = triangle(whole.shape[1])
    return np.ascontiguousarray(whole[:, second, first].T)
