"""Weights of rows as combinations of two of them."""

from typing import Any

import numpy as np

from bifactor.arrays import Array, mean_of, namespace

Weight = Array | float
"""One number for each row, or one for all rows."""


def two_weights(weights: list[Weight], sizes: list[float]) -> tuple[Array, Weight, list[float], list[float]]:
    """(p, q, α, β) with aₖ ≈ αₖp + βₖq and αₖ, βₖ ≥ 0, where p is one of the weights a and q another one, or 1.

    The two are chosen to minimise the squared residuals, each times the size of the matrix that it belongs to. If all
    weights are such combinations, there are no residuals. At least one of the weights is a vector.
    """
    means = [mean_of(a) for a in weights]
    bases: list[Any] = [1.0]
    places = []
    for a, mean in zip(weights, means, strict=True):
        places.append(0 if isinstance(a, float) or mean == 0 else len(bases))
        bases += [a / mean] if places[-1] else []
    G = np.array([[mean_of(a * b) for a in bases] for b in bases])
    counts = np.bincount(places, (np.array(means) * sizes) ** 2, minlength=len(bases))
    pairs = [(p, q) for q in range(len(bases)) for p in range(q + 1, len(bases))]
    fits = [[_shares_of_two(G, p, q, k) for k in range(len(bases))] for p, q in pairs]
    left = [float(sum(count * share[2] for count, share in zip(counts, fit, strict=True))) for fit in fits]
    # The first of those that are equally good up to rounding.
    best = next(i for i, cost in enumerate(left) if cost <= min(left) + 1e-12 * float(np.sum(counts)))
    (p, q), fit = pairs[best], fits[best]
    first, second = ([mean * fit[k][side] for mean, k in zip(means, places, strict=True)] for side in (0, 1))
    nothing = bases[p] + bases[q] <= 0  # such rows count as average
    return namespace(nothing).where(nothing, 1.0, bases[p]), bases[q], first, second


def _shares_of_two(G: Array, p: int, q: int, k: int) -> tuple[float, float, float]:
    """(α, β, ‖aₖ − αp − βq‖²) at the minimum over α, β ≥ 0, from the inner products of all weights."""
    if k in (p, q):
        return float(k == p), float(k == q), 0.0
    tried = [(G[p, k] / G[p, p], 0.0), (0.0, G[q, k] / G[q, q])]
    det = G[p, p] * G[q, q] - G[p, q] ** 2
    if det > 1e-12 * G[p, p] * G[q, q]:
        alpha, beta = G[q, q] * G[p, k] - G[p, q] * G[q, k], G[p, p] * G[q, k] - G[p, q] * G[p, k]
        tried += [(alpha / det, beta / det)] if min(alpha, beta) >= 0 else []
    sides = np.array([G[p, k], G[q, k]])
    square = np.array([[G[p, p], G[p, q]], [G[p, q], G[q, q]]])
    left = [float(G[k, k] - 2 * sides @ c + c @ square @ c) for c in map(np.array, tried)]
    best = int(np.argmin(left))
    return *tried[best], max(left[best], 0.0)
