"""The best row of a factor for its known entries, in NumPy: for losses without a compiled form."""

import numpy as np

from bifactor.arrays import Array, conj, real
from bifactor.kernels import entries_reference, row_blocks_reference
from bifactor.kernels.entry_layout import EntryLayout
from bifactor.kernels.losses_reference import LossFunctions

STEPS, HALVINGS = 100, 40
"""The largest numbers of Newton steps, and of halvings of a step."""

SHORTEST = 0.5**HALVINGS

DECREASE = 1e-4
"""The share of the predicted decrease that a step must achieve."""

ROUNDING = 1e-15
"""The share of the value of a row by which a step may increase it."""

NEGLIGIBLE_DECREASE, VISIBLE = 1e-20, 1e-6
"""The predicted decrease at which a row is done, relative to its value, or to VISIBLE times the first value: relative
slopes are then 1e-10."""

FLOOR = 1e-12
"""The share of its trace that is added to the block of a row, which may be singular with few observations."""


def fit(
    loss: LossFunctions,
    y: Array,
    weights: Array,
    ends: Array,
    other: Array,
    U: Array,
    V: Array,
    first: int,
    ridge: Array,
    forms: Array,
    shares: Array,
) -> Array:
    """argmin over the columns of U from `first` on of Σ w·ℓ(z; y) + ½Σ ρᵢₖ|uᵢₖ|² + ½Σ sᵢₖ uᵢFₖuᵢᴴ, z = U Vᴴ at entries.

    Entries are sorted by rows: those of row i end at `ends[i]`; `other` holds their columns. `ridge` has a ρ for each
    row and unknown column, `forms` has the Hermitian F of all columns, and `shares` has their s for each row.
    """
    dtype, double = U.dtype, np.result_type(U.dtype, np.float64)
    U, V, y = (np.array(a, double) for a in (U, V, y))
    w = weights if weights.size else np.ones(y.shape)
    busy = start = np.arange(len(ends))
    row, whole = np.repeat(busy, np.diff(ends, prepend=0)), np.hstack([np.zeros((len(ends), first)), ridge])

    def values(rows: Array, mask: Array, i: Array) -> tuple[Array, Array, Array]:
        """z at the entries of some rows, the objective of each, and its slopes without the entries."""
        z = np.einsum("tk,tk->t", rows[i], conj(V[other[mask]]))
        losses = np.bincount(i, w[mask] * loss.value(z, y[mask]), minlength=len(rows))
        slopes = np.einsum("iq,qkh,ik->ih", shares[busy], forms, rows) + whole[busy] * rows
        return z, losses + 0.5 * np.sum(real(conj(slopes) * rows), axis=1), slopes[:, first:]

    for step in range(STEPS):
        place = np.full(len(ends), -1)
        place[busy] = np.arange(busy.size)
        mask = place[row] >= 0
        i, rows = place[row[mask]], U[busy]
        z, here, slopes = values(rows, mask, i)
        layout = EntryLayout(i, other[mask], busy.size, len(V), np.array([0, i.size]))
        slopes += entries_reference.left(layout, w[mask] * loss.gradient(z, y[mask]), V[:, first:])
        more = np.einsum("iq,qkh->ikh", shares[busy], forms[:, first:, first:])
        steps = _steps(layout, w[mask] * loss.curvature(z, y[mask]), V[:, first:], slopes, ridge[busy], more)
        promised = np.sum(real(conj(slopes) * steps), axis=1)
        start = np.abs(here) + promised if step == 0 else start
        goes = promised > NEGLIGIBLE_DECREASE * np.maximum(VISIBLE * start[busy], np.abs(here))
        a, lower = np.where(goes, 1.0, 0.0), ~goes
        for _ in range(HALVINGS):
            trial = np.array(rows)
            trial[:, first:] -= a[:, None] * steps
            reached = values(trial, mask, i)[1]
            lower |= reached <= here - DECREASE * a * promised + ROUNDING * np.abs(here)
            if lower.all():
                break
            a = np.where(lower, a, a / 2)
        U[busy[goes & lower]] = trial[goes & lower]
        busy = busy[goes & lower]
        if busy.size == 0:
            break
    return U.astype(dtype)


def _steps(layout: EntryLayout, q: Array, B: Array, slopes: Array, ridge: Array, more: Array) -> Array:
    """The slopes divided by the blocks of curvature."""
    k, h = row_blocks_reference.triangle(B.shape[1])
    packed, diagonal = row_blocks_reference.sums(layout, q, B, False, (0, layout.n_outer)) + more[:, k, h], k == h
    lift = FLOOR * real(packed[:, diagonal]).sum(axis=1)[:, None] + ridge
    packed[:, diagonal] += np.where(lift > 0, lift, 1)
    return row_blocks_reference.solve(packed, slopes.astype(packed.dtype))
