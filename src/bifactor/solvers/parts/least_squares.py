"""Least squares in one factor while the other is fixed, a linear problem."""

import numpy as np

from bifactor.arrays import Array, epsilon, inner
from bifactor.factors import Factors, Free
from bifactor.problems.objective import Objective
from bifactor.solvers.parts.conjugate_gradients import conjugate_gradients

TOL, ITERATIONS = 1e-10, 300
"""The reduction of the residual by conjugate gradients, and the largest number of iterations."""

FLOOR = 1e-12
"""The share of its trace that is added to the block of a row, which may be singular with few observations."""

LARGEST = 20_000_000
"""The largest number of numbers in the blocks of the rows that are solved at a time."""


def rows_memory(problem: Objective, rank: int) -> int:
    """Bytes of the blocks of some rows, of their Cholesky factors and of temporary arrays."""
    if problem.f.seen is None:
        return 0
    rows = min(max(problem.shape), max(1, LARGEST // rank**2))
    return 2 * rows * rank * (rank + 1) * int(np.dtype(problem.dtype).itemsize)


class Half:
    """E ↦ f(UVᴴ) + (ρ/2)‖E‖² for a quadratic f, where E is one of the factors and the other is fixed.

    Parameters
    ----------
    held : array
        The fixed factor: V if `left`, U otherwise.
    left : bool
        Whether E is U.
    """

    def __init__(self, problem: Objective, held: Array, left: bool):
        self.problem, self.held, self.left, self.side = problem, held, left, 0 if left else 1

    def minimiser(self, E: Array) -> Array:
        """The minimiser, or, if there are several, one near E.

        If each measurement is of one entry, the rows are separate problems of r unknowns. A row without measurements
        is kept.
        """
        x = self.pair(E)
        z = self.problem.f.measure(x)
        missing = -self._gradient(x, z)
        rows = self._by_rows(x, missing)
        return E + (self._by_products(x, z, missing) if rows is None else rows)

    def _by_rows(self, x: Factors, missing: Array) -> Array | None:
        """Each row of `missing` divided by its block, some rows at a time; None if f has no exact blocks."""
        solution, step = np.empty_like(missing), max(1, LARGEST // x.width**2)
        terms = self.problem.blocks_of_terms(x, self.side)
        for start in range(0, len(missing), step):
            part = slice(start, min(start + step, len(missing)))
            blocks = self.problem.f.exact(x, self.side, rows=(part.start, part.stop))
            if blocks is None:
                return None
            solution[part] = (blocks + terms.part(part)).lifted(FLOOR, 0.0).divide(missing[part])
        return solution

    def pair(self, E: Array, held: Array | None = None) -> Factors:
        """E and the fixed factor, or another one in its place."""
        other = self.held if held is None else held
        return Free().pair(E, other) if self.left else Free().pair(other, E)

    def _gradient(self, x: Factors, z: Array | None) -> Array:
        G = self.problem.f.gradient(x, z)
        total = (G if self.left else G.H).matmul(self.held)
        for penalty in self.problem.penalties:
            total = total + self._own(penalty.evaluate(x)[1])
        return total

    def _own(self, x: Factors) -> Array:
        """The unknown side."""
        return x.left if self.left else x.right

    def _by_products(self, x: Factors, z: Array | None, missing: Array) -> Array:
        """Conjugate gradients, preconditioned by the expected curvature."""
        f, still, eps = self.problem.f, 0 * self.held, epsilon(missing)
        hessian = f.hessian(x, z)
        blocks = f.expected(x, self.side) + self.problem.blocks_of_terms(x, self.side)

        def apply(P: Array) -> Array:
            d = self.pair(P, still)
            total = hessian(d)[self.side]
            for penalty in self.problem.penalties:
                total = total + self._own(penalty.hessian(x, d))
            return total

        tol, rounding = max(TOL, 10 * eps), eps**2 * self.problem.scale * x.product_norm() ** 2
        solution = conjugate_gradients(
            apply, blocks.divide, missing, inner, ITERATIONS, lambda first: max(tol**2 * first, rounding)
        )
        return 0 * missing if solution is None else solution
