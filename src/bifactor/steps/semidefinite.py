"""The step of FGD, for X = UUᴴ."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import spectral_norm_squared
from bifactor.errors import InputError
from bifactor.problem import Objective
from bifactor.state import State
from bifactor.steps.base import (
    Move,
    StepSize,
    check_smoothness,
    gradient_norm,
    reciprocal,
    smoothness,
    stacked_norm_squared,
)


@dataclass(frozen=True)
class Semidefinite(StepSize):
    """η = 1/(16(L‖X₀‖₂ + ‖∇f(X₀)‖₂)), once; with `every_step`, at Xₜ and with ‖∇f(Xₜ) Q Qᴴ‖₂, Q a basis of Uₜ.

    For the direction ∇f(UUᴴ) U, which is half the true gradient of U ↦ f(UUᴴ).

    References
    ----------
    S. Bhojanapalli, A. Kyrillidis and S. Sanghavi, Dropping convexity for faster semi-definite optimization, COLT 2016.
    """

    L: float | None = None
    every_step: bool = False

    def __post_init__(self) -> None:
        check_smoothness(self.L)

    def init(self, problem: Objective, state: State, L_g: float) -> float:
        if state.U is not state.V:
            raise InputError("Semidefinite is the step of FGD, for X = UUᴴ. Give BFGD StronglyConvex or Smooth.")
        L_max = max(smoothness(self.L, problem), L_g)
        if self.every_step:
            return L_max
        # In the PSD case ‖[U; U]‖₂² = 2‖X‖₂.
        return reciprocal(16 * (L_max * stacked_norm_squared(state) / 2 + gradient_norm(problem, state)))

    def next(self, problem: Objective, state: State, move: Move) -> State:
        if not self.every_step:
            return move(state.memory, state.memory)
        Q = np.linalg.qr(state.U)[0]
        GQ, GhQ = problem.gradient(state.U, state.V).products(Q, Q)
        gradient = spectral_norm_squared((GQ + GhQ) / 2, Q[:0]) ** 0.5  # of the Hermitian part, as FGD moves
        eta = reciprocal(16 * (state.memory * stacked_norm_squared(state) / 2 + gradient))
        return move(eta, state.memory)
