"""Unknown numbers of a Gaussian told from known ones, compiled for float32: small systems for `patches_numba`."""

import numpy as np
from numba.extending import register_jitable

from bifactor.kernels.blocks_numba import factorise


@register_jitable
def _descend(L, n, W, columns):  # type: ignore[no-untyped-def]
    """The solution of LX = W, in the place of W. All columns at a time, so that no sum has to wait for another."""
    at = 0
    for j in range(n):
        mine = W[j]
        for k in range(j):
            factor, above = L[at + k], W[k]
            for c in range(columns):
                mine[c] -= factor * above[c]
        pivot = np.float32(1) / L[at + j]
        for c in range(columns):
            mine[c] *= pivot
        at += j + 1


@register_jitable
def by_known(C, x, without, ridge, o, n_o, u, n_u, errors, L, W, v):  # type: ignore[no-untyped-def]
    """C_oo + ρI, [C_ou, errors] and the variances before: what `told` takes where few pixels are known."""
    at, planes = 0, errors.shape[0]
    for a in range(n_o):
        row, scaled, mine = C[o[a]], without * x[o[a]], W[a]
        for b in range(a + 1):
            L[at + b] = row[o[b]] - scaled * x[o[b]]
        L[at + a] += ridge
        at += a + 1
        for b in range(n_u):
            mine[b] = row[u[b]] - scaled * x[u[b]]
        for c in range(planes):
            mine[n_u + c] = errors[c, a]
    for b in range(n_u):
        v[b] = C[u[b], u[b]] - without * x[u[b]] * x[u[b]]


@register_jitable
def by_unknown(Q, x, without, ridge, o, n_o, u, n_u, errors, L, W, v, Qx):  # type: ignore[no-untyped-def]
    """The same by Q = (C + ρI)⁻¹, where few pixels are unknown: Q_uu, and [I, −Q_uo errors]."""
    d, planes, inside = x.size, errors.shape[0], np.float32(0)
    for q in range(d):
        row, total = Q[q], np.float32(0)
        for h in range(d):
            total += row[h] * x[h]
        Qx[q] = total
        inside += total * x[q]
    more = without / (np.float32(1) - without * inside)  # Sherman and Morrison, for the patch that is left out
    at = 0
    for b in range(n_u):
        row, scaled, mine = Q[u[b]], more * Qx[u[b]], W[b]
        for a in range(b + 1):
            L[at + a] = row[u[a]] + scaled * Qx[u[a]]
        at += b + 1
        mine[:n_u] = 0
        mine[b] = 1
        for c in range(planes):
            error, total = errors[c], np.float32(0)
            for a in range(n_o):
                total += (row[o[a]] + scaled * Qx[o[a]]) * error[a]
            mine[n_u + c] = -total
        v[b] = -ridge


@register_jitable
def told(L, W, n, n_u, sign, means, v):  # type: ignore[no-untyped-def]
    """Means, beyond those of the group, and variances of the unknown pixels."""
    planes = means.shape[0]
    factorise(L, n)
    _descend(L, n, W, n_u + planes)
    means[:, :n_u] = 0
    for a in range(n):
        mine = W[a]
        for b in range(n_u):
            v[b] += sign * mine[b] * mine[b]
        for c in range(planes):
            error, out = mine[n_u + c], means[c]
            for b in range(n_u):
                out[b] += error * mine[b]


@register_jitable
def invert(C, ridge, Q):  # type: ignore[no-untyped-def]
    """(C + ρI)⁻¹ in Q."""
    for q in range(C.shape[0]):
        C[q, q] += ridge
    Q[:] = np.linalg.inv(C)
    for q in range(C.shape[0]):
        C[q, q] -= ridge
