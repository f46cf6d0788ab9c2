"""The step of FGD, for X = UUᴴ."""

from dataclasses import dataclass

import numpy as np

from bifactor.factors import Factors, require_symmetric
from bifactor.problems.objective import Objective
from bifactor.steps.theory import TheoryStep, gradient_norm


@dataclass(frozen=True)
class Semidefinite(TheoryStep):
    """η = 1/(16(L‖X₀‖₂ + ‖∇f(X₀)‖₂)) for all steps; with `every_step`, at Xₜ and with ‖∇f(Xₜ) Q‖₂, Q a basis of Uₜ.

    It is for the direction ∇f(UUᴴ) U, which is half the true gradient of U ↦ f(UUᴴ).

    Parameters
    ----------
    L, every_step
        See `TheoryStep`.

    References
    ----------
    S. Bhojanapalli, A. Kyrillidis and S. Sanghavi, Dropping convexity for faster semi-definite optimization, COLT 2016.
    """

    def check(self, problem: Objective) -> None:
        require_symmetric(self, problem.kind)
        super().check(problem)

    def once(self, L: float, problem: Objective, x: Factors) -> float:
        return 16 * (L * x.spectral_norm_squared() / 2 + gradient_norm(problem, x))  # ‖[U; U]‖₂² = 2‖X‖₂

    def each(self, L: float, problem: Objective, x: Factors) -> float:
        Q = np.linalg.qr(x.left)[0]
        # Of the Hermitian part, along which FGD moves.
        along = x.gradient(*problem.f.gradient(x).products(Q, Q))
        return 16 * (L * x.spectral_norm_squared() / 2 + along.spectral_norm_squared() ** 0.5 / 2**0.5)
