"""Alternating minimisation."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, epsilon, herm, inner
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.metrics import balanced
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective, Problem
from bifactor.problems.state import Nothing, State
from bifactor.solvers.base import Solver
from bifactor.solvers.preconditioner import conjugate_gradients
from bifactor.solvers.requirements import require_free, require_numpy, require_ridge
from bifactor.validation import settle_positive

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


class HalfProblem:
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


@dataclass(frozen=True)
class AltMin(Solver[Nothing]):
    """V ← argmin f(UVᴴ), then U ← argmin f(UVᴴ) with the new V, for least squares f.

    This is AltMinSense and AltMinComplete of the article, with their start, the leading left singular vectors of A*(y).
    With a ridge it is the regularised alternating least squares of recommender systems. For observed entries, each row
    is a separate system of r equations; other measurements are fitted by conjugate gradients on the normal equations,
    in an orthonormal basis of the fixed factor. A row without observations is kept, and a row with too few moves to the
    nearest best fit. The objective never increases.

    The article uses different measurements in every half step, for its proof only; here all are used in each. It stops
    after a number of steps of the order log(‖X‖_F/ε); here `tol` and `max_iter` of `solve` decide.

    Parameters
    ----------
    incoherence : float, optional
        The incoherence μ: entries of the left singular vectors of the start above 2μ√(r/m) are set to zero, as in
        AltMinComplete. By default, the start is not changed.

    References
    ----------
    P. Jain, P. Netrapalli and S. Sanghavi, Low-rank matrix completion using alternating minimization, STOC 2013.
    """

    incoherence: float | None = None

    def __post_init__(self) -> None:
        settle_positive(self, "incoherence", "Leave it out to keep the start unchanged.", optional=True)

    def check(self, problem: Objective, rank: int) -> None:
        require_numpy(self, problem)
        if not problem.f.quadratic:
            loss = type(problem.loss if isinstance(problem, Problem) else problem.f).__name__
            raise InputError(f"AltMin solves least squares, but the loss is {loss}. Use PCG or SoftImpute.")
        require_free(self, problem)
        require_ridge(self, problem, optional=True)

    def peak(self, problem: Objective, rank: int) -> int:
        seen = rows_memory(problem, rank)
        return run_memory(problem, rank, pairs=8, lengths=4 if seen else 6) + seen

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Nothing]:
        if self.incoherence is not None:
            A, B = balanced(x.left, x.right)  # singular vectors, up to their lengths
            m, r = A.shape
            limit = 2 * self.incoherence * (r / m) ** 0.5
            high = np.abs(A) > limit * np.linalg.norm(A, axis=0)
            x = problem.kind.pair(np.where(high, 0, A), B) if high.any() else x
        return State(problem.at(x), Nothing())

    def step(self, problem: Objective, state: State[Nothing]) -> State[Nothing]:
        U, V = _orthonormal(problem, state.U, state.V)
        V = HalfProblem(problem, U, left=False).minimiser(V)
        V, U = _orthonormal(problem, V, U)
        U = HalfProblem(problem, V, left=True).minimiser(U)
        return State(problem.at(problem.kind.pair(U, V)), Nothing())


def _orthonormal(problem: Objective, held: Array, other: Array) -> tuple[Array, Array]:
    """The same X with a fixed factor of condition number 1; with a ridge, which this would change, it is not needed."""
    if problem.penalties:
        return held, other
    Q, R = np.linalg.qr(held)
    return np.ascontiguousarray(Q), other @ herm(R)
