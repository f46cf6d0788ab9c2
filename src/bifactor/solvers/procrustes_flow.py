"""Procrustes Flow: singular value projection to get near, then gradient descent on the factors."""

import math
from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array, norm, spectral_norm_squared
from bifactor.balance import BalanceTerm, Frobenius
from bifactor.errors import InputError
from bifactor.inits import Zero
from bifactor.objective import Objective
from bifactor.path import measured_at, state_at
from bifactor.solvers.base import Solver
from bifactor.solvers.requirements import require_plain
from bifactor.solvers.svp import SVP
from bifactor.solvers.units import typical_curvature
from bifactor.state import State
from bifactor.steps.base import reciprocal
from bifactor.validation import require_flag, settle_positive

MU, MU_PSD = 2 / 187, 36 / 425
"""The longest steps of the theory."""

NEAR, NEAR_PSD = 1 / 10, 3 / 20
"""The share of σ_r(X) that the residual must come down to; the first keeps the radius of convergence where δ ≤ 1/25."""

WORST = 1e6
"""The condition number after whose number of projections the first phase ends, whatever the residual."""

UNIT, COUNT, STEPS = "unit", "count", "steps"


@dataclass(frozen=True)
class ProcrustesFlow(Solver):
    """Gradient descent on f(UVᴴ) + (unit/16)‖UᴴU − VᴴV‖²_F, with one step for all iterations:

        U ← U − μ/(unit·‖U₀‖₂²) ∇_U,   V ← V − μ/(unit·‖V₀‖₂²) ∇_V

    (U₀, V₀) is found by singular value projection with step 1/unit, from X = 0: `SVP` is the first phase, and its
    factors are balanced. From any other start there is no first phase, as in the tables of the BFGD paper with random
    starts. The theory is about f = ½‖A(X) − y‖² with an A that preserves norms of matrices of low rank. Where A does
    not, the step 1/unit of the first phase is too long, and a projection may raise f; the second phase then begins at
    the X before it (not in the article, where that cannot be; with few measurements the projections would diverge).

    For X = UUᴴ the article minimises ¼‖A(UUᴴ) − y‖², that is f/2, and its step is U ← U − μ/(unit·‖U₀‖₂²) ∇f(UUᴴ) U
    (chosen: its text was not at hand, and the true gradient of f(UUᴴ) is twice that).

    Parameters
    ----------
    mu : float, optional
        μ. By default the longest of the theory, 2/187, and 36/425 for X = UUᴴ.
    condition : float, optional
        κ = σ₁/σ_r of the solution. The first phase then takes ⌈3 ln(√r κ) + 5⌉ projections, ⌈ln(√r κ) + 2⌉ for UUᴴ.
        Without it the phase ends as soon as √(2(f − least f)/unit) ≤ σ_r(X)/10, or 3σ_r(X)/20 for UUᴴ, and at the
        latest after the number of projections of κ = 10⁶; that number alone counts where no least f is known.
    unit : float, optional
        The curvature that counts as 1. By default the typical curvature of f, which makes A preserve norms on average
        as the article has it. The paper of BFGD takes 1 where ‖A‖ = 1.
    psd : bool
        Find X = UUᴴ.

    Notes
    -----
    ‖·‖₂ is the spectral norm. The BFGD paper prints ‖·‖_F, which does not give the numbers of its tables; this does.

    References
    ----------
    S. Tu, R. Boczar, M. Simchowitz, M. Soltanolkotabi and B. Recht, Low-rank solutions of linear matrix equations via
    Procrustes Flow, ICML 2016.
    """

    mu: float | None = None
    condition: float | None = None
    unit: float | None = None
    psd: bool = False
    start = Zero()

    def __post_init__(self) -> None:
        settle_positive(self, "mu", "Leave it out for the step of the theory.", optional=True)
        settle_positive(self, "condition", "Leave it out if it is not known.", optional=True)
        settle_positive(self, "unit", "Leave it out for the typical curvature of f.", optional=True)
        require_flag(self.psd, "psd")
        if self.condition is not None and self.condition < 1:
            raise InputError(f"condition={self.condition!r} is below 1. It is σ₁/σ_r, the largest over the least.")

    def check(self, problem: Objective) -> None:
        require_plain(self, problem)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        unit = typical_curvature(problem, self.psd) if self.unit is None else self.unit
        if U.any() and V.any():
            return self._flowing(problem, U, V, unit)
        return _projected(measured_at(problem, U, V, self.psd), unit, 0)

    def step(self, problem: Objective, state: State) -> State:
        unit = float(state.extra[UNIT])
        if state.waiting:
            new = SVP(1 / unit, psd=self.psd).step(problem, state)
            if state.U.any() and not new.value < state.value:
                return self._flowing(problem, state.U, state.V, unit)
            new = _projected(new, unit, int(state.extra[COUNT]) + 1)
            return self._flowing(problem, new.U, new.V, unit) if self._is_near(problem, new) else new
        eta_U, eta_V = state.extra[STEPS].tolist()
        U = state.U - eta_U * state.dU
        V = U if self.psd else state.V - eta_V * state.dV
        return replace(state_at(problem, U, V, self._term(unit), self.psd), extra=state.extra)

    def _flowing(self, problem: Objective, U: Array, V: Array, unit: float) -> State:
        """The second phase, at its start."""
        mu = (MU_PSD if self.psd else MU) if self.mu is None else self.mu
        steps = [mu * reciprocal(unit * spectral_norm_squared(F, F[:0])) for F in (U, V)]
        state = state_at(problem, U, V, self._term(unit), self.psd)
        return replace(state, extra={UNIT: np.array(unit), STEPS: np.array(steps)})

    def _term(self, unit: float) -> BalanceTerm | None:
        return None if self.psd else BalanceTerm(Frobenius(unit / 2), 0.25, unit)

    def _is_near(self, problem: Objective, state: State) -> bool:
        """Whether the first phase may end."""
        spread = math.log(state.U.shape[1] ** 0.5 * (self.condition or WORST))
        if state.extra[COUNT] >= math.ceil(spread + 2 if self.psd else 3 * spread + 5):  # Thm. 3.2 and 3.3
            return True
        if self.condition is not None or problem.least is None:
            return False
        residual = math.sqrt(2 * max(state.value - problem.least, 0.0) / float(state.extra[UNIT]))
        # Balanced factors from an SVD: the last column has length σ_r^½.
        return residual <= (NEAR_PSD if self.psd else NEAR) * norm(state.U[:, -1]) ** 2


def _projected(state: State, unit: float, count: int) -> State:
    """The first phase, after so many projections."""
    return replace(state, waiting=True, extra={**state.extra, UNIT: np.array(unit), COUNT: np.array(count)})
