"""The step of FGD, for X = UUᴴ."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import spectral_norm_squared
from bifactor.errors import InputError
from bifactor.objective import Objective
from bifactor.state import State
from bifactor.steps.theory import TheoryStep, gradient_norm, stacked_norm_squared


@dataclass(frozen=True)
class Semidefinite(TheoryStep):
    """η = 1/(16(L‖X₀‖₂ + ‖∇f(X₀)‖₂)), once; with `every_step`, at Xₜ and with ‖∇f(Xₜ) Q‖₂, Q a basis of Uₜ.

    For the direction ∇f(UUᴴ) U, which is half the true gradient of U ↦ f(UUᴴ).

    Parameters
    ----------
    L, every_step
        See `TheoryStep`.

    References
    ----------
    S. Bhojanapalli, A. Kyrillidis and S. Sanghavi, Dropping convexity for faster semi-definite optimization, COLT 2016.
    """

    def once(self, L: float, problem: Objective, state: State) -> float:
        if state.U is not state.V:
            raise InputError("Semidefinite is the step of FGD, for X = UUᴴ. Give BFGD StronglyConvex or Smooth.")
        return 16 * (L * stacked_norm_squared(state) / 2 + gradient_norm(problem, state))  # ‖[U; U]‖₂² = 2‖X‖₂

    def each(self, L: float, problem: Objective, state: State) -> float:
        Q = np.linalg.qr(state.U)[0]
        GQ, GhQ = problem.gradient(state.U, state.V).products(Q, Q)
        gradient = spectral_norm_squared((GQ + GhQ) / 2, Q[:0]) ** 0.5  # of the Hermitian part, as FGD moves
        return 16 * (L * stacked_norm_squared(state) / 2 + gradient)
