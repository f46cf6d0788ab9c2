"""Laws of penalties."""

from typing import Any

import numpy as np

from bifactor.blocks import Shared
from bifactor.factors import Free
from bifactor.penalties import Penalty
from bifactor.testing.laws import close, true


def check_penalty(
    penalty: Penalty, shape: tuple[int, int], rank: int = 2, dtype: Any = np.float64, seed: int = 0
) -> None:
    """Check gradient and Hessian against differences, the polynomial along a curve, the blocks, and the domain."""
    rng, name, eps = np.random.default_rng(seed), type(penalty).__name__, float(np.finfo(dtype).eps)
    penalty.check(shape)
    x, d = (Free().random(rng, shape, rank, dtype) for _ in range(2))
    x = penalty.project(x)
    true(f"{name}: project does not change points of the domain", penalty.project(x) is x)
    h = min(eps ** (1 / 3), 0.4 * penalty.reach(x, d), 0.4 * penalty.reach(x, -d))
    true(f"{name}: steps from points it projects to are possible", h > 0)
    (value, gradient), (ahead, up), (behind, down) = (penalty.evaluate(x.plus(s, d)) for s in (0.0, h, -h))
    size, tol = gradient.norm() * d.norm() + abs(value) + 1, 1e2 * eps ** (2 / 3)
    slope, image = (ahead - behind) / (2 * h), penalty.hessian(x, d) - (0.5 / h) * (up - down)
    close(f"{name}: gradient is the derivative of value", gradient.inner(d), slope, tol, size)
    close(f"{name}: hessian is the derivative of gradient", image.norm(), 0.0, tol, size)
    close(f"{name}: value is that of evaluate", penalty.value(x), value, tol, size)
    alone, onto = penalty.added(x, 1.0 * d)
    close(f"{name}: added has the value", alone, value, tol, size)
    close(f"{name}: added is the sum of gradients", (onto - (gradient + d)).norm(), 0.0, tol, size)
    c = penalty.polynomial(x, d)
    if c is not None:
        for a in (0.0, h, -h):
            along, there = float(np.polyval(c[::-1], a)), penalty.value(x.plus(a, d))
            close(f"{name}: polynomial is the value along a curve", along, there, tol, size)
    for side, rows in enumerate((x.left, x.right)):
        blocks = Shared(ridge=1.0) + penalty.blocks(x, side)
        true(f"{name}: blocks are for the rows of side {side}", blocks.divide(rows).shape == rows.shape)
