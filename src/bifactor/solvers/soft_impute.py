"""Soft-impute by alternating least squares."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, epsilon, gaussian, herm, thin_svd
from bifactor.factors import Factors
from bifactor.inits import Zero
from bifactor.linear_map import LinearMap, LowRankPlus
from bifactor.problems.memory import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.state import Nothing, Point, State
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_free, require_numpy, require_ridge
from bifactor.svd import spectral_norm


@dataclass(frozen=True)
class SoftImpute(Solver[Nothing]):
    """Ridge regression of the filled matrix X* = X − ∇f(X)/L on one factor, then of a new X* on the other.

    With A = UD, B = VD and λ = ρ/L, half of a step is

        B̃ᴴ = (D² + λ)⁻¹ D Uᴴ X*,   B̃D = Ṽ D̃² Rᴴ (an SVD),   V ← Ṽ,  D ← D̃,  U ← UR

    and the other half is the same with the sides exchanged. It minimises f(X) + ρ‖X‖_* over matrices of the given rank,
    ρ the nuclear weight of the problem's ridge (0 without one). Each half minimises a majorant, so the objective never
    increases.

    For observed entries without weights L is 1, and X* has the observed values and X elsewhere, as in the article.
    Other smooth losses and operators have the same majorant with their own L. X* is never formed.

    The start is that of the article: a random U with orthonormal columns (the same in each run), D = I and V = 0; for
    other factors, D is that of their SVD. If a ridge has two sides, the factors are scaled so that both have the same
    penalty. The last step of the article, an SVD of X*V with its singular values reduced by λ, only sets remainders of
    directions that λ removes to 0, and is left out. The article stops by the square of the relative change of X; here
    `tol` of `solve` decides.

    References
    ----------
    T. Hastie, R. Mazumder, J. Lee and R. Zadeh, Matrix completion and low-rank SVD via fast alternating least squares,
    JMLR 16 (2015), Algorithm 3.1.
    """

    start = Zero()

    def check(self, problem: Objective, rank: int) -> None:
        require_numpy(self, problem)
        require_free(self, problem)
        require_ridge(self, problem, optional=True)
        _ = problem.smoothness  # raises an error for a loss without one

    def peak(self, problem: Objective, rank: int) -> int:
        return run_memory(problem, rank, pairs=8, lengths=6)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Nothing]:
        if not x.left.any():
            U = np.linalg.qr(gaussian(np.random.default_rng(0), x.left.shape, x.dtype))[0] * _ratio(problem)
            x = problem.kind.pair(U, np.zeros_like(x.right))
        return State(problem.evaluate_keeping_z(x), Nothing())

    def step(self, problem: Objective, state: State[Nothing]) -> State[Nothing]:
        rho, ratio = problem.new_columns.rho(problem.kind), _ratio(problem)
        lam = rho / problem.smoothness
        U, D, _ = thin_svd(state.U / ratio)
        X = _filled(problem, state.point.x, state.point.z)
        V, D, R = _regressed(X.H @ U, D, lam)
        X = _filled(problem, problem.kind.pair((U @ R) * D, V * D))
        U, D, R = _regressed(X @ V, D, lam)
        new = problem.evaluate_keeping_z(problem.kind.pair(U * D * ratio, (V @ R) * D / ratio))
        return State(problem.evaluate_keeping_z(0.0 * new.x) if _vanishing(problem, new, rho, D) else new, Nothing())


def _ratio(problem: Objective) -> float:
    """The factor of the left and divisor of the right balanced factor with which both have the same penalty."""
    left, right = problem.new_columns.sides
    return (right / left) ** 0.25 if problem.penalties else 1.0


def _filled(problem: Objective, x: Factors, z: Array | None = None) -> LinearMap:
    """X* = X − ∇f(X)/L, as a lazy matrix."""
    return LowRankPlus(x.left, x.right, -1 / problem.smoothness, problem.f.gradient(x, z))


def _regressed(M: Array, D: Array, lam: float) -> tuple[Array, Array, Array]:
    """(Ṽ, D̃, R) of B̃D = M D²/(D² + λ), where M = X*ᴴU."""
    # Without a ridge, a direction of length 0 need not be treated specially.
    V, square, Rh = thin_svd(M * (D**2 / (D**2 + lam)) if lam > 0 else M)
    return V, np.sqrt(square), herm(Rh)


def _vanishing(problem: Objective, new: Point, rho: float, D: Array) -> bool:
    """Whether X = 0 is optimal and X is only rounding, which would shrink for ever."""
    if not rho > 0 or rho * D.size * float(D[0]) ** 2 > epsilon(D) * abs(new.value):
        return False
    G = problem.f.gradient(new.x, new.z)
    return spectral_norm(G, np.random.default_rng(0)) <= rho
