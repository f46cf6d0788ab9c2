"""The gradient divided by the curvature of f in each factor.

Dividing each row of the gradient by its block of curvature makes the iteration independent of the condition number of X
(Tong, Ma and Chi, 2021), and of the factorisation: (UR, VR⁻ᴴ) gives the same X.
"""

import numpy as np

from bifactor.arrays import Array, smallest_of
from bifactor.blocks import Blocks, Exact, Shared
from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point

LIFT = 0.01
"""The multiple of the estimated distance to the solution by which Gram matrices are damped."""

LARGEST_BLOCKS = 50_000_000
"""The largest number of numbers in exact blocks; above, expected blocks are used."""

HELD = 1e-8
"""The share of the mean block that is added to blocks, for rows with too few measurements to determine them."""

SMOOTH = 0.003
"""The share of the curvature of f above which a ridge alone keeps vanishing columns from being blown up."""


def distance(problem: Objective, decrement: float) -> float:
    """(⟨∇F, S⟩/scale)^½, an estimate of the distance of X to the solution; S is the preconditioned gradient."""
    return float(max(decrement, 0.0) / problem.scale) ** 0.5


def first_decrement(problem: Objective, point: Point) -> float:
    """⟨∇F, S⟩ with blocks of the mean size, before any gradient has been preconditioned."""
    g, x = point.gradient, point.x
    return g.inner(g) / max(problem.scale * x.inner(x), 1e-300)


def preconditioned(
    problem: Objective, x: Factors, g: Factors, damping: float, exact: tuple[Array, Array] | None = None
) -> Factors:
    """A gradient at x, each row divided by its expected block of curvature, or by an `exact` one.

    `damping` is added to the eigenvalues of VᴴV and UᴴU. Without it, a vanishing column would be blown up until the
    whole step has to be shortened. If entries are observed and nothing else bounds the blocks, it is added to their
    mean, which is many times as much. With a substantial ridge this took up to 1.7 times as many iterations; with a
    very small one, less damping led to worse minima in some cases and to better ones in others.
    """

    def blocks(side: int) -> Blocks:
        terms = problem.blocks_of_terms(x, side)
        ridge = smallest_of(terms.ridge)
        own = problem.f.expected(x, side, alone=ridge == 0)
        if 0 < ridge < SMOOTH * own.typical:
            own = problem.f.expected(x, side)
        if exact is None:
            return own.damped(damping) + terms
        lift = Shared(tuple((a, damping * np.eye(x.width)) for a, _ in own.pairs))
        return (Exact(exact[side], x.width) + lift + terms).lifted(0.0, HELD)

    return g.divided(blocks)


def exact_blocks(problem: Objective, x: Factors) -> tuple[Array, Array] | None:
    """The curvature of f in each row of U and V if each measurement is of one entry and there are not too many rows."""
    if problem.f.seen is None or sum(problem.shape) * x.width**2 > LARGEST_BLOCKS:
        return None
    left, right = (problem.f.exact(x, side) for side in (0, 1))
    return None if left is None or right is None else (left.packed, right.packed)
