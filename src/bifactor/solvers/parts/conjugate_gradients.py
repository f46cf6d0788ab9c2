"""Linear equations with a positive definite matrix that is given by its products."""

from collections.abc import Callable
from typing import Any

Vector = Any
"""An array or `Factors`: any type with +, − and multiplication by numbers."""


def conjugate_gradients(
    apply: Callable[[Vector], Vector],
    divide: Callable[[Vector], Vector],
    b: Vector,
    dot: Callable[[Vector, Vector], float],
    iterations: int,
    enough: Callable[[float], float],
) -> Vector | None:
    """x with apply(x) ≈ b, from x = 0, preconditioned by `divide`; None if the matrix turns out to be indefinite.

    `enough` maps the first ⟨b, M⁻¹b⟩ to the size at which the iteration ends.
    """
    x, residual = 0.0 * b, b
    direction = s = divide(residual)
    size = dot(residual, s)
    limit = enough(size)
    for _ in range(iterations):
        if not size > limit:
            break
        image = apply(direction)
        bend = dot(direction, image)
        if not bend > 0:
            return None
        x, residual = x + (size / bend) * direction, residual - (size / bend) * image
        s = divide(residual)
        size, before = dot(residual, s), size
        if size > limit:
            direction = s + (size / before) * direction
    return x
