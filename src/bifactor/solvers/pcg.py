"""Preconditioned nonlinear conjugate gradients on the factors: the fast solver."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.balance import balancing
from bifactor.objective import Objective
from bifactor.path import MEASUREMENTS, Path, measured_at
from bifactor.preconditioner import preconditioned
from bifactor.solvers.base import Solver
from bifactor.state import State
from bifactor.steps import CurveSearch
from bifactor.validation import require_flag, settle_nonnegative

RENEW = 25
"""Iterations after which measurements are taken anew (rounding has gathered) and the factors balanced."""

ORTHOGONAL = 0.01
"""A direction that promises less than this fraction of what the preconditioned gradient does is given up for that."""


@dataclass(frozen=True)
class PCG(Solver):
    """Polak-Ribière conjugate gradients in (U, V), preconditioned on the right, with a search along the curve.

        S = ∇F·M⁻¹,  β = max(0, ⟨∇F − ∇F⁻, S⟩/⟨∇F⁻, S⁻⟩),  D = −S + βD⁻,  (U, V) += a·D with the best a

    M is the block diagonal of f's curvature in the factors, see `bifactor.preconditioner`: damped Gram matrices
    VᴴV and UᴴU, weighted by how often each row and column is observed, plus the penalty. An iteration costs one pair of
    products with ∇f and the two directions of the measurements along the curve; z is carried along. Serves every loss,
    operator and penalty, real or complex.

    Parameters
    ----------
    psd : bool
        Find X = UUᴴ.
    damping : float
        The Gram matrices are damped by this multiple of an estimate of the distance to the solution,
        (⟨∇F, S⟩/scale)^½, so that a rank above that of the solution does no harm (Zhang, Fattahi and Zhang, 2021).

    References
    ----------
    T. Tong, C. Ma and Y. Chi, Accelerating ill-conditioned low-rank matrix estimation via scaled gradient descent,
    JMLR 22 (2021). J. Zhang, S. Fattahi and R. Zhang, Preconditioned gradient descent for over-parameterized nonconvex
    matrix factorization, NeurIPS 2021.
    """

    psd: bool = False
    damping: float = 0.01

    def __post_init__(self) -> None:
        require_flag(self.psd, "psd")
        settle_nonnegative(self, "damping", "0 turns it off.")

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        state = measured_at(problem, U, V, self.psd)
        guess = inner(state.dU, state.dU) + inner(state.dV, state.dV)
        guess /= max(problem.scale * (inner(U, U) + inner(V, V)), 1e-300)
        return self._aimed(problem, replace(state, memory=1.0), guess)

    def step(self, problem: Objective, state: State) -> State:
        if state.extra["age"] >= RENEW:
            state = self._renewed(problem, state)
        new = self._moved(problem, state)
        if new.stalled is not None:
            state = self._aimed(problem, state, float(state.extra["decrement"]))  # give up the memory of directions
            new = self._moved(problem, state)
        return new if new.stalled is not None else self._aimed(problem, new, float(state.extra["decrement"]), state)

    def _moved(self, problem: Objective, state: State) -> State:
        return CurveSearch().next(Path(problem, state, state.extra["D"], state.extra["E"], psd=self.psd))

    def _aimed(self, problem: Objective, state: State, decrement: float, old: State | None = None) -> State:
        """The state with the direction of its next step; from -S alone where there is no old one to be conjugate to."""
        damping = self.damping * (decrement / problem.scale) ** 0.5
        SU, SV = preconditioned(problem, state, damping, self.psd)
        d = inner(state.dU, SU) + inner(state.dV, SV)
        D, E = -SU, -SV
        if old is not None and decrement > 0:
            beta = max(0.0, (d - inner(old.dU, SU) - inner(old.dV, SV)) / decrement)
            P, Q = beta * old.extra["D"] + D, beta * old.extra["E"] + E
            if inner(P, state.dU) + inner(Q, state.dV) <= -ORTHOGONAL * d:
                D, E = P, Q
        age = 0 if old is None else int(old.extra["age"]) + 1
        extra = {"D": D, "E": D if self.psd else E, "decrement": np.array(d), "age": np.array(age)}
        return replace(state, extra={MEASUREMENTS: state.extra[MEASUREMENTS], **extra})

    def _renewed(self, problem: Objective, state: State) -> State:
        """The same X and the same direction, with measurements taken anew, by balanced factors."""
        U, V, D, E = state.U, state.V, state.extra["D"], state.extra["E"]
        # A penalty balances by itself, and would change with the factors; offsets have their places.
        fixed = self.psd or problem.offsets or problem.penalty is not None
        change = None if fixed else balancing(U, V)
        if change is not None:
            left, right = change
            U, V, D, E = U @ left, V @ right, D @ left, E @ right
        extra = {**state.extra, "D": D, "E": D if self.psd else E, "age": np.array(0)}
        fresh = measured_at(problem, U, V, self.psd)
        return replace(fresh, memory=state.memory, extra={**extra, **fresh.extra})
