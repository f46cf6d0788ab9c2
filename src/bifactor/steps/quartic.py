"""Where a quartic is least on the positive half-line."""

import numpy as np

from bifactor.arrays import Array

NEGLIGIBLE = 1e-30
"""A coefficient this small beside the largest moves no root that matters."""

ROUNDING = 1e-15
"""Of two wells alike, the far one may be deeper by rounding only; the near one then has less of it."""

ALIKE = 1e-10
"""Coefficients within this range of each other need one unit only."""


def minimiser(c: Array) -> float | None:
    """argmin over a > 0 of Σₖ cₖ aᵏ for c₁ < 0; None where it falls without end, or rounding leaves no minimum.

    All real roots of the derivative are examined and the best positive one is taken. The variable is measured in
    lengths at which two terms of the derivative are alike, near one of which each root lies, so coefficients may span
    any range.
    """
    slope = np.array([c[1], 2 * c[2], 3 * c[3], 4 * c[4]], dtype=np.float64)
    if not (np.all(np.isfinite(slope)) and slope[0] < 0 and np.any(slope[1:] != 0)):
        return None
    best, least = None, 0.0
    with np.errstate(all="ignore"):
        for unit in _units(slope):
            a = _roots(slope * unit ** np.arange(4)) * unit
            parts = (slope / np.arange(1, 5))[::-1]
            rise = a * np.polyval(parts, a) + ROUNDING * a * np.polyval(np.abs(parts), a)  # φ − c₀, at worst
            if a.size and np.nanmin(rise) < least:
                k = int(np.nanargmin(rise))
                best, least = float(a[k]), float(rise[k])
    return best


def _units(slope: Array) -> Array:
    k = np.flatnonzero(slope)
    logs = np.log(np.abs(slope[k]))
    first = np.exp(np.min((logs[0] - logs[1:]) / k[1:]))  # where the derivative leaves c₁
    scaled = np.abs(slope[k]) * first**k
    if np.min(scaled) >= ALIKE * np.max(scaled) and 0 < first < np.inf:
        return np.array([first])
    pairs = [(i, j) for i in range(len(k)) for j in range(i + 1, len(k))]
    units = np.exp([(logs[i] - logs[j]) / (k[j] - k[i]) for i, j in pairs])
    return units[(units > 0) & np.isfinite(units)]


def _roots(slope: Array) -> Array:
    """Positive real roots of the derivative, its coefficients not too far from 1."""
    slope = slope / np.max(np.abs(slope))
    if not np.all(np.isfinite(slope)):
        return np.empty(0)
    roots = np.roots(np.trim_zeros(np.where(np.abs(slope) < NEGLIGIBLE, 0.0, slope)[::-1], "f"))
    return _polished(slope, roots.real[(np.abs(roots.imag) <= 1e-6 * np.abs(roots)) & (roots.real > 0)])


def _polished(slope: Array, roots: Array) -> Array:
    """Two steps of Newton's method from each root, kept where they go less than a hundredth of the way."""
    bend = slope[1:] * np.arange(1, 4)
    for _ in range(2):
        down = np.polyval(bend[::-1], roots)
        step = np.polyval(slope[::-1], roots) / np.where(down == 0, np.inf, down)
        roots = np.where(np.abs(step) < 0.01 * roots, roots - step, roots)
    return roots
