"""Fast transforms in NumPy: the definition of the compiled kernels."""

import numpy as np

from bifactor.arrays import Array


def walsh_hadamard(x: Array) -> Array:
    """Σₖ (−1)^{popcount(j & k)} xₖ along the last axis, whose length is a power of two; in place."""
    length = x.shape[-1]
    h = 1
    while h < length:
        pairs = x.reshape(-1, length // (2 * h), 2, h)
        total, pairs[:, :, 1] = pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]
        pairs[:, :, 0] = total
        h *= 2
    return x


def place(source: Array, index: Array | None, code: Array | None, table: Array, out: Array) -> Array:
    """out[index[k]] = table[code[k]]·source[k]; without an index, out[k]; without a code, no factor."""
    values = source if code is None else source * table[code]
    out[... if index is None else index] = values
    return out


def take(source: Array, index: Array, factor: Array) -> Array:
    """factor[t]·source[index[t]]."""
    return source[index] * factor


def spread(values: Array, index: Array, factor: Array, out: Array) -> Array:
    """out[index[t]] = conj(factor[t])·values[t], zero elsewhere: the adjoint of `take`."""
    out[...] = 0
    out[index] = values * factor.conj()
    return out


# Pauli expectations in NumPy: the definition of the compiled kernels.
#
# `masks` are the distinct x, `starts` the starts of the strings of each x (and the end), `zs` their z. With d = 2^q and
# P(x, z) = i^{|x & z|} XˣZᶻ, that is P[j ⊕ x, j] = i^{|x & z|} (−1)^{z·j}.


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
