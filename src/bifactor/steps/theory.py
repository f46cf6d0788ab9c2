"""The paper's step rules: constants that follow from L and the norms of the factors, at the start or at every step."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from bifactor.factors import Factors, require_symmetric
from bifactor.problems.curve import FactorCurve
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, Value
from bifactor.steps.base import Length, Step, StepSize, reciprocal
from bifactor.svd import spectral_norm
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Curved(Value, key="curvature_bound"):
    """max{L, L_g}, and the corresponding step at the start."""

    L: float
    eta: float


@dataclass(frozen=True)
class TheoryStep(StepSize[Curved]):
    """η = 1/`once` with the norms at the start, or 1/`each` with those at every step.

    Parameters
    ----------
    L : float, optional
        A constant to use instead of the global L of the problem, for instance a restricted one: completion normalised
        by the observed fraction has L = 1/ρ over all matrices but about 1 over incoherent low-rank ones.
    every_step : bool
        Whether to recompute the norms at each step.
    """

    L: float | None = None
    every_step: bool = False

    def __post_init__(self) -> None:
        settle_positive(self, "L", "Leave it out to use that of the problem.", optional=True)

    @abstractmethod
    def once(self, L: float, problem: Objective, x: Factors) -> float:
        """1/η at the start; L is already max{L, L_g}."""

    @abstractmethod
    def each(self, L: float, problem: Objective, x: Factors) -> float:
        """1/η at the present factors."""

    def check(self, problem: Objective) -> None:
        if self.L is None:
            _ = problem.smoothness  # raises an error if there is none

    def init(self, problem: Objective, point: Point, L_g: float) -> Curved:
        L = max(problem.smoothness if self.L is None else self.L, L_g)
        return Curved(L, reciprocal(self.once(L, problem, point.x) + problem.curvature_of_terms(point.x)))

    def next(self, path: FactorCurve, memory: Curved) -> Step:
        eta, problem = memory.eta, path.problem
        if self.every_step:
            x = path.point.x
            eta = reciprocal(self.each(memory.L, problem, x) + problem.curvature_of_terms(x))
        return Step(path.to(eta), memory)


def gradient_norm(problem: Objective, x: Factors) -> float:
    """‖∇f(UVᴴ)‖₂, from the same random start each time, so that runs are reproducible."""
    return spectral_norm(problem.f.gradient(x), np.random.default_rng(0))


# A constant step size.


@dataclass(frozen=True)
class Constant(StepSize[Length]):
    """The same η at every step. Local stability needs η < 2/(L·‖[U; V]‖₂²)."""

    eta: float

    def __post_init__(self) -> None:
        settle_positive(self, "eta", "Try steps.Backtracking() if unsure.")

    def init(self, problem: Objective, point: Point, L_g: float) -> Length:
        return Length(self.eta)

    def next(self, path: FactorCurve, memory: Length) -> Step:
        return Step(path.to(memory.eta), memory)


# The paper's step for smooth f.


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


# The paper's step for smooth and strongly convex f.


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


# The step of FGD, for X = UUᴴ.


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
