"""Least squares in one factor while the other is held: a linear problem, and solved as one."""

from collections.abc import Callable, Iterator

import numpy as np

from bifactor.arrays import Array, conj, epsilon, inner, real
from bifactor.kernels.blas import gram, matmul
from bifactor.linear_map import LinearMap
from bifactor.objective import Objective
from bifactor.solvers.conjugate_gradients import conjugate_gradients

TOL, ITERATIONS = 1e-10, 300
"""What conjugate gradients reduce the residual by, and the passes that may cost."""

FLOOR = 1e-12
"""The share of its trace that is added to the block of a row: rows with few observations do not fix all of it."""

LARGEST = 150_000_000
"""Bytes that the blocks of all rows may take; beyond, the rows are solved by products only."""

CHUNK = 2_000_000
"""Numbers that a temporary array may take."""


class Half:
    """E ↦ f(UVᴴ) + (ρ/2)‖E‖² for a quadratic f, where E is one of the factors and the other is held.

    Parameters
    ----------
    held : array
        V where `left`, U otherwise.
    left : bool
        Whether E is U.
    """

    def __init__(self, problem: Objective, held: Array, left: bool):
        self.problem, self.held, self.left = problem, held, left
        self.ridge = problem.curvature_of_terms[0 if left else 1]

    def minimiser(self, E: Array) -> Array:
        """argmin, or, where there are many, the one that the search from E comes to first.

        Where each measurement sees one entry the rows are separate problems of r unknowns. A row that nothing is known
        of stays as it is.
        """
        z = self.measure(E)
        missing = -self.pull_back(self.problem.evaluate(z)[1], E)
        entries = self.problem.entrywise(z)
        rows, r = E.shape
        if entries is not None and rows * r * (r + 1) // 2 * E.itemsize <= LARGEST:
            return E + self.divided(entries, missing)
        bend = self.problem.bend(z)
        dot = inner if entries is None else _row_inner
        return E + self._by_products(lambda P: self.pull_back(bend(self.measure(P)), P), missing, E, dot)

    def measure(self, E: Array) -> Array:
        return self.problem.measure(E, self.held) if self.left else self.problem.measure(self.held, E)

    def pull_back(self, slopes: Array, E: Array) -> Array:
        """The gradient in E, from the slopes at its measurements."""
        G = self.problem.pull_back(slopes)
        return (G if self.left else G.H).matmul(self.held) + self.ridge * E

    def divided(self, S: LinearMap, missing: Array) -> Array:
        """Each row of `missing`, divided by Σⱼ sᵢⱼ vⱼᴴvⱼ + ρ."""
        rows, r = missing.shape
        first, second = np.triu_indices(r)
        packed = np.empty((rows, first.size), missing.dtype)
        for part in _parts(first.size, max(S.shape)):
            squares = conj(self.held[:, first[part]]) * self.held[:, second[part]]
            packed[:, part] = (S if self.left else S.H).matmul(squares)
        solution, diagonal = np.empty_like(missing), np.arange(r)
        floor = max(FLOOR, 10 * r * epsilon(missing))
        for part in _parts(rows, r * r):
            blocks = np.empty((packed[part].shape[0], r, r), missing.dtype)
            # e·B = a for a row e is Bᵀeᵀ = aᵀ.
            blocks[:, second, first] = packed[part]
            blocks[:, first, second] = conj(packed[part])
            lift = floor * real(np.trace(blocks, axis1=1, axis2=2)) + self.ridge
            blocks[:, diagonal, diagonal] += np.where(lift > 0, lift, 1)[:, None]
            solution[part] = np.linalg.solve(blocks, missing[part, :, None])[:, :, 0]
        return solution

    def _by_products(
        self, apply: Callable[[Array], Array], missing: Array, E: Array, dot: Callable[[Array, Array], Array]
    ) -> Array:
        """Conjugate gradients, preconditioned by the curvature to expect; with `_row_inner`, in each row by itself."""
        r = E.shape[1]
        M = self.problem.scale * gram(self.held, self.held) + self.ridge * np.eye(r, dtype=E.dtype)
        M += 10 * r * epsilon(E) * float(np.trace(M).real) * np.eye(r, dtype=E.dtype)
        inverse = np.linalg.inv(M)
        tol, rounding = max(TOL, 10 * epsilon(E)), epsilon(E) ** 2 * dot(E, matmul(E, M))
        solution = conjugate_gradients(
            apply,
            lambda A: matmul(A, inverse),
            missing,
            dot,
            ITERATIONS,
            lambda first: np.maximum(tol**2 * first, rounding),
        )
        return 0 * E if solution is None else solution


def _row_inner(A: Array, B: Array) -> Array:
    return np.sum(real(conj(A) * B), axis=1, keepdims=True)


def _parts(count: int, each: int) -> Iterator[slice]:
    """0 … count in slices whose items, of `each` numbers, fit into a temporary array."""
    step = max(1, CHUNK // each)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
