"""The paper's step for smooth f."""

from dataclasses import dataclass

from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.steps.theory import TheoryStep, gradient_norm


@dataclass(frozen=True)
class Smooth(TheoryStep):
    """η = 1/(20·L·‖[U₀; V₀]‖₂² + 3‖∇f(U₀V₀ᴴ)‖₂); with `every_step`, 15 instead of 20 and (Uₜ, Vₜ) instead of (U₀, V₀).

    These are eqs. (new_step_size_smooth) and (weta) of the paper, for BFGD without a balance term. With `every_step`,
    ‖∇f‖₂ (a few lazy products) is computed in each step.

    Parameters
    ----------
    L, every_step
        See `TheoryStep`.
    """

    def once(self, L: float, problem: Objective, x: Factors) -> float:
        return 20 * L * x.spectral_norm_squared() + 3 * gradient_norm(problem, x)

    def each(self, L: float, problem: Objective, x: Factors) -> float:
        return 15 * L * x.spectral_norm_squared() + 3 * gradient_norm(problem, x)
