"""The Hessian of F in the factors, never formed, and its equations solved."""

import numpy as np

from bifactor.arrays import Array, conj, epsilon, inner
from bifactor.kernels.blas import gram, matmul
from bifactor.linear_map import LinearMap
from bifactor.objective import Objective
from bifactor.offsets import held
from bifactor.path import MEASUREMENTS
from bifactor.preconditioner import preconditioned
from bifactor.state import State

LARGEST_BLOCKS = 50_000_000
"""Numbers that exact blocks may take; beyond, the preconditioner of the first-order solvers serves."""


class Curvature:
    """H + μM at a state: Gauss-Newton or whole Hessian of F, damped by μ times the curvature to expect.

    Parameters
    ----------
    damping : float
        μ.
    full : bool
        Count in how f curves through the product of the factors, (∇f E, ∇fᴴ D).
    psd : bool
        On the pairs (D, D).
    """

    def __init__(self, problem: Objective, state: State, damping: float, full: bool, psd: bool):
        self.problem, self.state, self.damping, self.psd = problem, state, damping, psd
        z = state.extra[MEASUREMENTS]
        self.bend = problem.bend(z)
        self.gradient = problem.pull_back(problem.evaluate(z)[1]) if full else None
        self.damped = [damping * problem.scale * gram(F, F) for F in (state.V, state.U)]
        ridges = (0.0, 0.0) if problem.penalty is None else problem.penalty.curvature
        self.inverses: list[Array] | None = None
        m, n = problem.shape
        rank = state.U.shape[1]
        entries = problem.entrywise(z)
        if entries is not None and not problem.offsets and (m + n) * rank**2 <= LARGEST_BLOCKS:
            self.inverses = self._inverses(entries, ridges)

    def apply(self, D: Array, E: Array) -> tuple[Array, Array]:
        """(H + μM)(D, E)."""
        U, V = self.state.U, self.state.V
        slopes = self.bend(self.problem.tangent(U, V, D, E))
        left, right = self.problem.pull_back(slopes).products(U, V)
        if self.gradient is not None:
            GE, GhD = self.gradient.products(D, E)
            left, right = left + GE, right + GhD
        if self.problem.penalty is not None:
            hU, hV = self.problem.penalty.hessian(U, V, D, E)
            left, right = left + hU, right + hV
        left, right = left + matmul(D, self.damped[0]), right + matmul(E, self.damped[1])
        return held(left, right) if self.problem.offsets else self._paired(left, right)

    def divide(self, A: Array, B: Array) -> tuple[Array, Array]:
        """The pair divided by the block diagonal of H + μM."""
        if self.inverses is None:
            state = State(self.state.U, self.state.V, 0.0, A, B)
            return preconditioned(self.problem, state, 0.0, self.psd)
        left, right = (np.matmul(a[:, None], inverse)[:, 0] for a, inverse in zip((A, B), self.inverses, strict=True))
        return self._paired(left, right)

    def solve(self, tol: float, iterations: int) -> tuple[Array, Array] | None:
        """(D, E) with (H + μM)(D, E) ≈ −∇F by conjugate gradients, down to `tol` in the norm of the preconditioner.

        None where the curvature turns out to be negative in some direction.
        """
        A, B = -self.state.dU, -self.state.dV
        D, E = np.zeros_like(A), np.zeros_like(B)
        P, Q = S, T = self.divide(A, B)
        first = size = inner(A, S) + inner(B, T)
        for _ in range(iterations):
            HP, HQ = self.apply(P, Q)
            bend = inner(P, HP) + inner(Q, HQ)
            if not bend > 0:
                return None
            a = size / bend
            D, E, A, B = D + a * P, E + a * Q, A - a * HP, B - a * HQ
            S, T = self.divide(A, B)
            size, before = inner(A, S) + inner(B, T), size
            if not size > tol**2 * first:
                break
            P, Q = S + (size / before) * P, T + (size / before) * Q
        return D, D if self.psd else E

    def _inverses(self, S: LinearMap, ridges: tuple[float, float]) -> list[Array]:
        """Of Σⱼ wᵢⱼ vⱼᴴvⱼ + μM + ridge for each row i, and likewise for the columns."""
        sides = []
        for product, factor, damped, ridge in zip(
            (S.matmul, S.rmatmul), (self.state.V, self.state.U), self.damped, ridges, strict=True
        ):
            r = factor.shape[1]
            squares = (conj(factor)[:, :, None] * factor[:, None, :]).reshape(-1, r * r)
            blocks = product(squares).reshape(-1, r, r) + damped
            # Rows with too few measurements to fix them are held by a little of the mean.
            floor = max(1e-8, 10 * r * epsilon(factor)) * float(np.trace(blocks.mean(axis=0)).real) / r
            floor = floor if floor > float(np.finfo(factor.dtype).tiny) else 1.0  # a factor of zeros
            sides.append(np.linalg.inv(blocks + (ridge + floor) * np.eye(r, dtype=blocks.dtype)))
        return sides

    def _paired(self, left: Array, right: Array) -> tuple[Array, Array]:
        if not self.psd:
            return left, right
        half = (left + right) / 2
        return half, half
