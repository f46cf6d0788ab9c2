"""Sampled products in NumPy and SciPy: the definition that the compiled kernels are compared with.

With S the sparse matrix that holds `w` at the layout's coordinates:
`dot` = (PQᴴ) at those coordinates, `curve` = (DQᴴ + PEᴴ, DEᴴ) at them, `left` = S Q, `right` = Sᴴ P,
`both` = (S Q, Sᴴ P).
"""

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.kernels.layout import Layout

BLOCK = 1 << 16


def dot(layout: Layout, P: Array, Q: Array) -> Array:
    z = np.empty(layout.size, dtype=np.result_type(P, Q))
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        z[part] = _rowwise(P[layout.outer[part]], Q[layout.inner[part]])
    return z


def curve(layout: Layout, P: Array, Q: Array, D: Array, E: Array) -> tuple[Array, Array]:
    z1, z2 = (np.empty(layout.size, dtype=np.result_type(P, Q, D, E)) for _ in range(2))
    for start in range(0, layout.size, BLOCK):
        part = slice(start, start + BLOCK)
        i, j = layout.outer[part], layout.inner[part]
        d, e = D[i], E[j]
        z1[part] = _rowwise(d, Q[j]) + _rowwise(P[i], e)
        z2[part] = _rowwise(d, e)
    return z1, z2


def left(layout: Layout, w: Array, Q: Array) -> Array:
    return _matrix(layout, w) @ Q


def right(layout: Layout, w: Array, P: Array) -> Array:
    return _matrix(layout, w).conj().T @ P


def both(layout: Layout, w: Array, P: Array, Q: Array) -> tuple[Array, Array]:
    S = _matrix(layout, w)
    return S @ Q, S.conj().T @ P


def _rowwise(P: Array, Q: Array) -> Array:
    return np.einsum("ik,ik->i", P, Q.conj())


def _matrix(layout: Layout, w: Array) -> Array:
    return sparse.coo_array((w, (layout.outer, layout.inner)), shape=(layout.n_outer, layout.n_inner))
