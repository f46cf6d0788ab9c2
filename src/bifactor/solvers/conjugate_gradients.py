"""Linear equations with a positive definite matrix that is known by its products."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bifactor.arrays import Array

Vector = Any
"""An array or `Factors`: anything with +, − and multiplication by what `dot` returns."""


def conjugate_gradients(
    apply: Callable[[Vector], Vector],
    divide: Callable[[Vector], Vector],
    b: Vector,
    dot: Callable[[Vector, Vector], Any],
    iterations: int,
    enough: Callable[[Any], Any],
) -> Vector | None:
    """x with apply(x) ≈ b, from x = 0, preconditioned by `divide`; None where the matrix turns out to be indefinite.

    `dot` returns one number, or one for each of many separate systems that are solved side by side; of these, one whose
    matrix is singular stays where it is. `enough` makes of the first ⟨b, M⁻¹b⟩ the size that ends the iteration.
    """
    x, residual = 0.0 * b, b
    direction = s = divide(residual)
    size = dot(residual, s)
    limit = enough(size)
    for _ in range(iterations):
        active = size > limit
        if not np.any(active):
            break
        image = apply(direction)
        bend = dot(direction, image)
        if np.ndim(bend) == 0 and not bend > 0:
            return None
        a = _ratio(size, bend, active)
        x, residual = x + a * direction, residual - a * image
        s = divide(residual)
        size, before = dot(residual, s), size
        direction = s + _ratio(size, before, size > limit) * direction
    return x


def _ratio(a: Any, b: Any, active: Any) -> Array | float:
    """a/b where there is more to do, and 0 elsewhere."""
    share = np.divide(a, b, out=np.zeros_like(np.asarray(a)), where=np.logical_and(active, np.greater(b, 0)))
    return share if share.ndim else float(share)
