"""Sampled products in NumPy and SciPy: for small problems, and the definition of the compiled kernels.

With S the sparse matrix that holds `w` at the layout's coordinates:
`dot` = (PQᴴ) at those coordinates, `curve` = (DQᴴ + PEᴴ, DEᴴ) at them, `left` = S Q, `right` = Sᴴ P,
`both` = (S Q, Sᴴ P). If most entries are known, PQᴴ and S are formed.
"""

import numpy as np
from scipy import sparse

from bifactor.arrays import Array, conj
from bifactor.kernels.layout import Layout

BLOCK = 1 << 16


def dot(layout: Layout, P: Array, Q: Array) -> Array:
    if layout.places is not None:
        return (P @ conj(Q).T).take(layout.places)
    z = np.empty(layout.size, dtype=np.result_type(P, Q))
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        z[part] = _rowwise(P.take(layout.outer[part], 0), Q.take(layout.inner[part], 0))
    return z


def curve(layout: Layout, P: Array, Q: Array, D: Array, E: Array) -> tuple[Array, Array]:
    if layout.places is not None:
        D, P, Q, E = (F.astype(np.result_type(P, Q, D, E), copy=False) for F in (D, P, Q, E))
        both = np.hstack([D, P]) @ conj(np.hstack([Q, E])).T
        return both.take(layout.places), (D @ conj(E).T).take(layout.places)
    z1, z2 = (np.empty(layout.size, dtype=np.result_type(P, Q, D, E)) for _ in range(2))
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        i, j = layout.outer[part], layout.inner[part]
        d, e = D.take(i, 0), E.take(j, 0)  # `take` is three times as fast as indexing
        z1[part] = _rowwise(d, Q.take(j, 0)) + _rowwise(P.take(i, 0), e)
        z2[part] = _rowwise(d, e)
    return z1, z2


def left(layout: Layout, w: Array, Q: Array) -> Array:
    return _matrix(layout, w) @ Q


def right(layout: Layout, w: Array, P: Array) -> Array:
    return _matrix(layout, conj(w)).T @ P


def both(layout: Layout, w: Array, P: Array, Q: Array) -> tuple[Array, Array]:
    S = _matrix(layout, w)
    return S @ Q, (S if S.dtype.kind != "c" else S.conj()).T @ P


def _rowwise(P: Array, Q: Array) -> Array:
    return np.einsum("ik,ik->i", P, conj(Q))


def _matrix(layout: Layout, w: Array) -> Array:
    shape = layout.n_outer, layout.n_inner
    if layout.places is not None and w.dtype.kind != "c":
        return np.bincount(layout.places, w, shape[0] * shape[1]).astype(w.dtype, copy=False).reshape(shape)
    if layout.starts is not None:
        return sparse.csr_array((w, layout.inner, layout.starts), shape=shape)
    return sparse.coo_array((w, (layout.outer, layout.inner)), shape=shape)
