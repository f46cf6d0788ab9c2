"""Pauli expectations in NumPy: the definition of the compiled kernels.

`masks` are the distinct x, `starts` the starts of the strings of each x (and the end), `zs` their z. With d = 2^q and
P(x, z) = i^{|x & z|} XˣZᶻ, that is P[j ⊕ x, j] = i^{|x & z|} (−1)^{z·j}.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.transforms_reference import walsh_hadamard


def expectations(masks: Array, starts: Array, zs: Array, U: Array, V: Array) -> Array:
    """Re tr(P UVᴴ) for each string."""
    labels = np.arange(U.shape[0])
    out = np.empty(zs.size, dtype=U.real.dtype)
    for x, start, stop in zip(masks, starts[:-1], starts[1:], strict=True):
        v = walsh_hadamard(np.sum(U * V[labels ^ x].conj(), axis=1))
        part = zs[start:stop]
        out[start:stop] = (1j ** (np.bitwise_count(x & part) % 4) * v[part]).real
    return out


def combine(masks: Array, starts: Array, zs: Array, w: Array, U: Array) -> Array:
    """(Σ w P) U."""
    labels = np.arange(U.shape[0])
    U = U.astype(np.result_type(U, np.complex64))
    out = np.zeros_like(U)
    for x, start, stop in zip(masks, starts[:-1], starts[1:], strict=True):
        part = zs[start:stop]
        m = np.zeros(U.shape[0], dtype=U.dtype)
        np.add.at(m, part, w[start:stop] * 1j ** (np.bitwise_count(x & part) % 4))
        out[labels ^ x] += walsh_hadamard(m)[:, None] * U
    return out
