"""Alternating minimisation."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, herm
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.metrics import balanced
from bifactor.problems.footprint import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.problem import Problem
from bifactor.problems.state import Nothing, State
from bifactor.solvers.base import Solver
from bifactor.solvers.parts.least_squares import Half, rows_memory
from bifactor.solvers.parts.requirements import require_free, require_numpy, require_ridge
from bifactor.validation import settle_positive


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
        V = Half(problem, U, left=False).minimiser(V)
        V, U = _orthonormal(problem, V, U)
        U = Half(problem, V, left=True).minimiser(U)
        return State(problem.at(problem.kind.pair(U, V)), Nothing())


def _orthonormal(problem: Objective, held: Array, other: Array) -> tuple[Array, Array]:
    """The same X with a fixed factor of condition number 1; with a ridge, which this would change, it is not needed."""
    if problem.penalties:
        return held, other
    Q, R = np.linalg.qr(held)
    return np.ascontiguousarray(Q), other @ herm(R)
