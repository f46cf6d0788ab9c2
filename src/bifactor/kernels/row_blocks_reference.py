"""Small Hermitian matrices, one for each row of a factor, in NumPy: the definition of the compiled kernels.

It is also used for complex factors, and for losses without a compiled form.

For the matrix M in gradients e·M, with M[k, l] = Σ q·conj(bₖ)·bₗ, the entries with k ≤ l are stored: (0,0), (0,1),
(1,1), (0,2), …, the lower triangle of Mᵀ row by row.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from bifactor.arrays import Array, conj
from bifactor.kernels import entries_reference, losses_reference
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.kernels.losses_reference import LossFunctions

CHUNK = 2_000_000
"""The largest number of numbers in a temporary array."""


@lru_cache(maxsize=64)
def triangle(rank: int) -> tuple[Array, Array]:
    """(k, l) of the stored entries, in their order."""
    second, first = np.tril_indices(rank)
    first.flags.writeable = second.flags.writeable = False  # they are cached
    return first, second


def sums(layout: EntryLayout, q: Array, B: Array, inner: bool, span: tuple[int, int]) -> Array:
    """Σ q·bᴴb over the entries of each row of one side, b the rows of B that belong to the other side."""
    first, second = triangle(B.shape[1])
    found = np.empty((span[1] - span[0], first.size), np.result_type(q, B))
    product = entries_reference.right if inner else entries_reference.left
    for part in chunks(first.size, max(len(B), layout.n_outer)):
        squares = conj(B[:, first[part]]) * B[:, second[part]]
        found[:, part] = product(layout, q, squares)[slice(*span)]
    return found


def curvature_sums(
    layout: EntryLayout,
    loss: LossFunctions,
    y: Array,
    weights: Array,
    P: Array,
    Q: Array,
    B: Array,
    inner: bool,
    span: tuple[int, int],
) -> Array:
    """The sums with q = w·ℓ″(z; y), z = PQᴴ."""
    q = losses_reference.weighted(loss.curvature(entries_reference.dot(layout, P, Q), y), weights)
    return sums(layout, q, B, inner, span)


def cholesky(packed: Array, rank: int) -> Array:
    """The matrices themselves: NumPy's solver computes its own factors."""
    return packed


def solve(packed: Array, rows: Array) -> Array:
    """For each row a of `rows`, the e with e·M = a."""
    found = np.empty_like(rows)
    for part in chunks(len(rows), rows.shape[1] ** 2):
        # e·M = a for a row e is Mᵀeᵀ = aᵀ.
        found[part] = np.linalg.solve(transposed(packed[part], rows.shape[1]), rows[part, :, None])[:, :, 0]
    return found


def inverse(packed: Array, rank: int) -> Array:
    """M⁻¹ of every row."""
    first, second = triangle(rank)
    found = np.empty_like(packed)
    for part in chunks(len(packed), rank**2):
        found[part] = conj(np.linalg.inv(transposed(packed[part], rank))[:, first, second])
    return found


def log_determinants(packed: Array, rank: int) -> Array:
    """log det M of every row."""
    found = np.empty(len(packed))
    for part in chunks(len(packed), rank**2):
        found[part] = np.linalg.slogdet(transposed(packed[part], rank))[1]
    return found


def times(packed: Array, rows: Array) -> Array:
    """a·M for each row a of `rows`."""
    found = np.empty_like(rows)
    for part in chunks(len(rows), rows.shape[1] ** 2):
        found[part] = np.einsum("ikl,il->ik", transposed(packed[part], rows.shape[1]), rows[part])
    return found


def moments(rows: Array, packed: Array, places: Array) -> Array:
    """aᵀa of every real row a, with M added at some places of the triangle; M has as many columns as places."""
    first, second = triangle(rows.shape[1])
    found = rows[:, first] * rows[:, second]
    found[:, places] += packed
    return found


def turned(packed: Array, R: Array) -> Array:
    """RᵀMR of every row."""
    first, second = triangle(len(R))
    found = np.empty_like(packed)
    for part in chunks(len(packed), len(R) ** 2):
        found[part] = (R.T @ transposed(packed[part], len(R)) @ R)[:, first, second]
    return found


def transposed(packed: Array, rank: int) -> Array:
    """Mᵀ of every row."""
    first, second = triangle(rank)
    whole = np.empty((len(packed), rank, rank), packed.dtype)
    whole[:, first, second] = conj(packed)
    whole[:, second, first] = packed
    return whole


def chunks(count: int, each: int) -> Iterator[slice]:
    """Slices of 0 … count whose items, of `each` numbers, fit into a temporary array."""
    step = max(1, CHUNK // max(each, 1))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
