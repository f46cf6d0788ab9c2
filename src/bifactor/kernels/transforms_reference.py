"""Fast transforms in NumPy: the definition of the compiled kernels."""

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
