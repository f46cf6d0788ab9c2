"""The Hessian of F in the factors, never formed, and its equations solved."""

import numpy as np

from bifactor.arrays import Array, conj, epsilon
from bifactor.factors import Factors
from bifactor.objective import Objective
from bifactor.preconditioner import preconditioned
from bifactor.solvers.conjugate_gradients import conjugate_gradients
from bifactor.state import Point

LARGEST_BLOCKS = 50_000_000
"""Numbers that exact blocks may take; beyond, the preconditioner of the first-order solvers serves."""


class Curvature:
    """H + μM at a point: Gauss-Newton or whole Hessian of F, damped by μ times the curvature to expect.

    Parameters
    ----------
    point : Point
        With its measurements.
    damping : float
        μ.
    full : bool
        Count in how f curves through the product of the factors, (∇f E, ∇fᴴ D).
    """

    def __init__(self, problem: Objective, point: Point, damping: float, full: bool):
        self.problem, self.point, self.damping = problem, point, damping
        self.bend = problem.bend(point.z)
        self.gradient = problem.pull_back(problem.evaluate(point.z)[1]) if full else None
        UU, VV = point.x.grams()
        self.damped = damping * problem.scale * VV, damping * problem.scale * UU  # μM for rows of U and of V
        self.entries = problem.entrywise(point.z)
        if sum(problem.shape) * point.x.width**2 > LARGEST_BLOCKS:
            self.entries = None
        self.inverses: dict[int, Array] = {}

    def apply(self, d: Factors) -> Factors:
        """(H + μM)d."""
        x = self.point.x
        slopes = self.bend(self.problem.tangent(x.left, x.right, d.left, d.right))
        total = x.gradient(*self.problem.pull_back(slopes).products(x.left, x.right))
        if self.gradient is not None:
            total = total + x.gradient(*self.gradient.products(d.left, d.right))
        if self.problem.penalty is not None:
            total = total + self.problem.penalty.hessian(x, d)
        damped = d.times(*self.damped)
        return total + x.gradient(damped.left, damped.right)

    def divide(self, g: Factors) -> Factors:
        """g divided by the block diagonal of H + μM."""
        if self.entries is None:
            return preconditioned(self.problem, self.point.x, g, 0.0)
        return g.divided(self.point.x, self._row_by_row)

    def solve(self, tol: float, iterations: int) -> Factors | None:
        """d with (H + μM)d ≈ −∇F by conjugate gradients, down to `tol` in the norm of the preconditioner.

        None where the curvature turns out to be negative in some direction.
        """
        return conjugate_gradients(
            self.apply, self.divide, -self.point.gradient, Factors.inner, iterations, lambda first: tol**2 * first
        )

    def _row_by_row(self, side: int, rows: Array, other: Array) -> Array:
        if side not in self.inverses:
            self.inverses[side] = self._inverse(side, other)
        return np.matmul(rows[:, None], self.inverses[side])[:, 0]

    def _inverse(self, side: int, other: Array) -> Array:
        """Of Σⱼ wᵢⱼ vⱼᴴvⱼ + μM + ridge for each row i."""
        assert self.entries is not None
        r = other.shape[1]
        squares = (conj(other)[:, :, None] * other[:, None, :]).reshape(-1, r * r)
        products = (self.entries.matmul, self.entries.rmatmul)[side](squares)
        blocks = products.reshape(-1, r, r) + self.damping * self.problem.scale * (conj(other.T) @ other)
        # Rows with too few measurements to fix them are held by a little of the mean.
        floor = max(1e-8, 10 * r * epsilon(other)) * float(np.trace(blocks.mean(axis=0)).real) / r
        floor = floor if floor > float(np.finfo(other.dtype).tiny) else 1.0  # a factor of zeros
        lift = self.problem.curvature_of_terms[side] + floor
        return np.linalg.inv(blocks + lift * np.eye(r, dtype=blocks.dtype))
