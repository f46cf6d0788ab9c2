"""Curvature: the gradient divided by that of f in each factor, and equations with the Hessian of F."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bifactor.arrays import Array, smallest_of
from bifactor.blocks import Blocks, Exact, Shared, add_to_diagonal
from bifactor.factors import Factors, inners
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
    slope, size = inners((g, g), (x, x))
    return slope / max(problem.scale * size, 1e-300)


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


# Linear equations with a positive definite matrix that is given by its products.

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


# The Hessian of F in the factors, which is never formed, and the solution of its equations.


def blocks_memory(problem: Objective, width: int) -> int:
    """Bytes of exact blocks, of their Cholesky factors and of temporary arrays, if f has such blocks."""
    if problem.f.seen is None or sum(problem.shape) * width**2 > LARGEST_BLOCKS:
        return 0
    return 5 * sum(problem.shape) * width * (width + 1) // 4 * int(np.dtype(problem.dtype).itemsize)


class Curvature:
    """H + μM at a point: the Gauss-Newton or full Hessian of F, damped by μ times the expected curvature.

    Parameters
    ----------
    point : Point
        The point, with its measurements.
    damping : float
        The damping μ.
    full : bool
        Whether to include the curvature of f through the product of the factors, (∇f E, ∇fᴴ D).
    lift : float
        A number added to the eigenvalues of the Gram matrices in M, so that vanishing columns are damped, too.
    """

    def __init__(self, problem: Objective, point: Point, damping: float, full: bool, lift: float = 0.0):
        self.problem, self.point, self.lift = problem, point, lift
        self.hessian = problem.f.hessian(point.x, point.z)
        self.gradient = problem.f.gradient(point.x, point.z) if full else None
        weight, (UU, VV) = damping * problem.scale, (add_to_diagonal(B, lift) for B in point.x.grams())
        self.damped = weight * VV, weight * UU  # μM for rows of U and of V
        self.known: dict[int, Blocks] = {}

    def apply(self, d: Factors) -> Factors:
        """(H + μM)d."""
        x = self.point.x
        total = x.gradient(*self.hessian(d))
        if self.gradient is not None:
            total = total + x.gradient(*self.gradient.products(d.left, d.right))
        for penalty in self.problem.penalties:
            total = total + penalty.hessian(x, d)
        damped = d.times(*self.damped)
        return total + x.gradient(damped.left, damped.right)

    def divide(self, g: Factors) -> Factors:
        """g divided by the block diagonal of H + μM."""
        return g.divided(self._block)

    def solve(self, tol: float, iterations: int) -> Factors | None:
        """d with (H + μM)d ≈ −∇F by conjugate gradients, down to `tol` in the norm of the preconditioner.

        None if the curvature turns out to be negative in some direction.
        """
        return conjugate_gradients(
            self.apply, self.divide, -self.point.gradient, Factors.inner, iterations, lambda first: tol**2 * first
        )

    def _block(self, side: int) -> Blocks:
        if side not in self.known:
            self.known[side] = self._blocks(side) + self.problem.blocks_of_terms(self.point.x, side)
        return self.known[side]

    def _blocks(self, side: int) -> Blocks:
        """The blocks of f and μM, exact if f has exact ones."""
        x = self.point.x
        small = sum(self.problem.shape) * x.width**2 <= LARGEST_BLOCKS
        exact = self.problem.f.exact(x, side) if small else None
        if exact is None:
            return self.problem.f.expected(x, side).damped(self.lift)
        return (exact + Shared(((1.0, self.damped[side]),))).lifted(0.0, HELD)
