"""The Hessian of F in the factors, which is never formed, and the solution of its equations."""

import numpy as np

from bifactor.blocks import Blocks, Shared, raised
from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point
from bifactor.solvers.parts.conjugate_gradients import conjugate_gradients
from bifactor.solvers.parts.preconditioner import HELD, LARGEST_BLOCKS


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
        weight, (UU, VV) = damping * problem.scale, (raised(B, lift) for B in point.x.grams())
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
