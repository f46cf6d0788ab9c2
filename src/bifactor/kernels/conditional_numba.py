"""Conditional means of a Gaussian given some of its components, compiled for float32, for `patches_numba`.

A system and its right-hand sides are stored side by side in the rows of A, [M | B | e]. After elimination below the
diagonal, BᵀM⁻¹B and BᵀM⁻¹e can be read from the rows. Rows are long, which suits SIMD: a Cholesky factorisation by dot
products of half a patch takes twice the time.
"""

import numpy as np
from numba.extending import register_jitable


@register_jitable
def by_known(C, x, without, ridge, excess, o, n_o, u, n_u, errors, A, v):  # type: ignore[no-untyped-def]
    """[C_oo + ρI | C_ou | errors] and the prior variances, for `told`, if few pixels are known.

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
def told(A, n, n_u, sign, inverse, means, v):  # type: ignore[no-untyped-def]
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
