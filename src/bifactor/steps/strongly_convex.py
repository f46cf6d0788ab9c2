"""The paper's step for smooth and strongly convex f."""

from dataclasses import dataclass

from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.steps.theory import TheoryStep


@dataclass(frozen=True)
class StronglyConvex(TheoryStep):
    """η = 1/(12·max{L, L_g}·‖[U₀; V₀]‖₂²) for all steps; with `every_step`, 1/(8·max{L, L_g}·‖[Uₜ; Vₜ]‖₂²).

    The two are eqs. (new_step_size) and (weta1) of the paper; from a start within Assumption A1 the first implies
    the second. Both are safe and slow: stability alone allows steps 24 times longer.

    Parameters
    ----------
    L, every_step
        See `TheoryStep`.
    """

    def once(self, L: float, problem: Objective, x: Factors) -> float:
        return 12 * L * x.spectral_norm_squared()

    def each(self, L: float, problem: Objective, x: Factors) -> float:
        return 8 * L * x.spectral_norm_squared()
