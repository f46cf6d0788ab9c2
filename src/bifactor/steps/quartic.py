"""Where a quartic is least on the positive half-line."""

import numpy as np

from bifactor.arrays import Array

NEGLIGIBLE = 1e-30
"""A coefficient this small beside the largest moves no root that matters."""


def minimiser(c: Array) -> float | None:
    """argmin over a > 0 of Σₖ cₖ aᵏ for c₁ < 0; None where it falls without end, or rounding leaves no minimum.

    All real roots of the derivative are examined and the best positive one is taken. The variable is measured in the
    length at which the derivative first leaves c₁, so coefficients may span any range.
    """
    slope = np.array([c[1], 2 * c[2], 3 * c[3], 4 * c[4]], dtype=np.float64)
    if not (np.all(np.isfinite(slope)) and slope[0] < 0 and np.any(slope[1:] != 0)):
        return None
    ratios = np.abs(slope[1:] / slope[0])
    with np.errstate(divide="ignore", over="ignore"):
        unit = float(np.min(ratios ** (-1 / np.arange(1, 4))))
    if not (0 < unit < np.inf):
        return None
    slope = slope / -slope[0] * unit ** np.arange(4)
    slope[np.abs(slope) < NEGLIGIBLE] = 0.0
    roots = np.roots(np.trim_zeros(slope[::-1], "f"))
    real = roots.real[(np.abs(roots.imag) <= 1e-6 * np.abs(roots)) & (roots.real > 0)]
    if real.size == 0:
        return None
    real = _polished(slope, real)
    rise = real * np.polyval((slope / np.arange(1, 5))[::-1], real)  # φ − c₀, up to a factor
    best = int(np.argmin(rise))
    return unit * float(real[best]) if rise[best] < 0 else None


def _polished(slope: Array, roots: Array) -> Array:
    """Two steps of Newton's method from each root, kept where they go less than a hundredth of the way."""
    bend = slope[1:] * np.arange(1, 4)
    for _ in range(2):
        down = np.polyval(bend[::-1], roots)
        step = np.polyval(slope[::-1], roots) / np.where(down == 0, np.inf, down)
        roots = np.where(np.abs(step) < 0.01 * roots, roots - step, roots)
    return roots
