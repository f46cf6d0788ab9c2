"""The state of a run: everything that the loop knows, and so everything that a checkpoint saves."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array, epsilon, gather, herm, inner
from bifactor.factors import Factors
from bifactor.kernels.blas import products, rows_of, some_rows
from bifactor.metrics import difference_norm
from bifactor.problems.objective import Objective
from bifactor.problems.state import State
from bifactor.running.result import History, Result, Status

DIVERGED = 1e3
"""Growth of the objective, relative to its start, that no descent method recovers from."""

CANCELLED = 1e-6
"""The ratio of ‖X′ − X‖² to its parts below which Gram matrices cannot distinguish it from rounding."""


class Record(NamedTuple):
    """The numbers that are kept for each iteration."""

    objective: float
    gradient_norm: float
    relative_change: float
    seconds: float


@dataclass
class RunRecord:
    """The latest state, the best factors, and the history so far."""

    state: State
    best: Factors
    best_value: float
    records: list[Record]
    magnitude: float = 0.0
    """The size of f at X, scale·‖X‖²: its rounding is this times the square of the precision."""

    @classmethod
    def begin(cls, state: State, seconds: float) -> "RunRecord":
        point = state.point
        change = 0.0 if point.x.width == 0 or point.x.product_norm() == 0 else 1.0
        return cls(state, point.x, point.value, [Record(point.value, point.gradient.norm(), change, seconds)])

    @property
    def iteration(self) -> int:
        return len(self.records) - 1

    def advance(self, state: State, scale: float, seconds: float) -> bool:
        """Accept a new state. If it shows divergence, return False and leave the run unchanged."""
        point = state.point
        change, size, slope = relative_change(self.state.point.x, point.x, point.gradient)
        record = Record(point.value, slope, change, seconds)
        magnitude = scale * size**2
        rounding = epsilon(point.x.left) * magnitude
        limit = DIVERGED * (abs(self.records[0].objective) + abs(self.best_value)) + rounding
        # A solver with further stages may begin one of them at a high objective.
        grew = not state.phase.staged and point.value - self.best_value > limit
        if not np.all(np.isfinite(record)) or grew:
            return False
        self.records.append(record)
        changed = self.state.phase.provisional or state.phase.fitting
        self.state, self.magnitude = state, magnitude
        if changed or point.value < self.best_value:
            self.best, self.best_value = point.x, point.value
        return True

    def result(self, status: Status, solver: str, problem: Objective, rank: int) -> Result:
        """The best factors, padded to this rank, with their objective computed again."""
        x = self.best.padded(rank + problem.kind.fixed_columns).fresh
        value, (U, V) = problem.objective(x), (gather(side) for side in (x.left, x.right))
        return Result(U, V, status, self.iteration, value, History(*self.columns()), solver, problem=problem)

    def end(self) -> None:
        """Release directions and gradients, which are as large as the answer."""
        del self.state

    def columns(self) -> Array:
        return np.array(self.records, dtype=np.float64).T


def relative_change(old: Factors, new: Factors, gradient: Factors) -> tuple[float, float, float]:
    """‖X′ − X‖_F/‖X′‖_F and ‖X′‖_F, from r×r Gram matrices, and ‖∇F‖; all sums come in one round.

    X′ − X = ΔU Vᴴ + U′ ΔVᴴ, so that nothing large cancels.
    """
    width = max(old.width, new.width)
    old, new = old.padded(width), new.padded(width)
    (UU, UdU, dUdU), (VV, dVV, dVdV), slope = _sums(old, new, gradient)
    # For Hermitian Gram matrices ⟨A, B⟩ is the trace of AB.
    parts = inner(dUdU, VV) + inner(UU, dVdV)
    squared = parts + 2 * inner(UdU, dVV)
    size = max(inner(UU, VV + dVV + herm(dVV) + dVdV), 0.0) ** 0.5
    if squared < CANCELLED * parts:  # another factorisation of nearly the same X
        difference = difference_norm(old.left, old.right, new.left, new.right)
        return (difference / size if size > 0 else 0.0), size, slope
    difference = max(squared, 0.0) ** 0.5
    if size == 0:
        return (0.0 if difference == 0 else 1.0), size, slope
    return difference / size, size, slope


Triple = tuple[Array, Array, Array]


def _sums(old: Factors, new: Factors, gradient: Factors) -> tuple[Triple, Triple, float]:
    """(U′ᴴU′, U′ᴴΔU, ΔUᴴΔU), (VᴴV, ΔVᴴV, ΔVᴴΔV) and ‖∇F‖."""
    moved = new.moved
    if moved is not None and moved.start is old.wide_grams:  # a step along a curve, whose Gram matrices are known
        a, ((UD, VE), (DD, EE)) = moved.step, (moved.cross, moved.own)
        left, right = (new.wide_grams[0], a * (UD + a * DD), a * a * DD), (moved.start[1], a * herm(VE), a * a * EE)
        return left, right, gradient.norm()
    (UU, UdU, dUdU), slope_U = _moments(new.left, old.left, 1.0, gradient.left)
    (VV, VdV, dVdV), slope_V = _moments(old.right, new.right, -1.0, gradient.right)
    return (UU, UdU, dUdU), (VV, herm(VdV), dVdV), float(np.hypot(slope_U, slope_V))


def _moments(F: Array, other: Array, sign: float, slope: Array) -> tuple[Triple, float]:
    """FᴴF, FᴴΔ and ΔᴴΔ for Δ = ±(F − other), a few rows at a time, and ‖∇‖ for the slope ∇ in F."""
    parts: list[list[Array]] = []
    squares: list[float] = []
    for rows in some_rows(F):
        own, d = rows_of(F, rows), sign * (rows_of(F, rows) - rows_of(other, rows))
        found, grams = products([] if parts else [(slope, slope)], [(own, own), (own, d), (d, d)])
        squares += found
        parts.append(grams)
    own, cross, last = (sum(each[1:], each[0]) for each in zip(*parts, strict=True))
    return (own, cross, last), squares[0] ** 0.5
