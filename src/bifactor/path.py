"""A curve of factors that leaves a state, with the function that is minimised along it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.line import Line
from bifactor.objective import Objective
from bifactor.offsets import held
from bifactor.penalties import Term
from bifactor.state import State

MEASUREMENTS = "z"
"""Where a state keeps its measurements, for a curve search to start from."""


def state_at(
    problem: Objective,
    U: Array,
    V: Array,
    term: Term | None = None,
    psd: bool = False,
    memory: float = 0.0,
    known: tuple[float, Array, Array] | None = None,
) -> State:
    """Factors, and there the value and the gradient of f + penalty + term.

    `known` is (f, its slopes, z) where these are there already; the state then keeps z.
    """
    if known is None:
        value, dU, dV = problem.value_and_products(U, V)
    else:
        value = known[0]
        dU, dV = problem.pull_back(known[1]).products(U, V)
    for part in (problem.penalty, term):
        if part is not None:
            h, left, right = part.evaluate(U, V)
            value, dU, dV = value + h, dU + left, dV + right
    if problem.offsets:
        dU, dV = held(dU, dV)
    if psd:
        dU = dV = (dU + dV) / 2  # ∇f(UUᴴ) U, with the Hermitian part of ∇f
    return State(U, V, value, dU, dV, memory, extra={} if known is None else {MEASUREMENTS: known[2]})


def measured_at(problem: Objective, U: Array, V: Array, psd: bool = False) -> State:
    """The state at a pair of factors, with its measurements."""
    z = problem.measure(U, V)
    return state_at(problem, U, V, psd=psd, known=(*problem.evaluate(z), z))


@dataclass(frozen=True)
class Path:
    """a ↦ (U + aD, V + aE), from a state whose gradient is that of f + penalty + term.

    With `psd`, E is D and the curve stays among X = UUᴴ.
    """

    problem: Objective
    state: State
    D: Array
    E: Array
    term: Term | None = None
    psd: bool = False
    exact: bool = False
    """Whether `line` must hold for steps of any length."""

    @cached_property
    def slope(self) -> float:
        """The derivative of the function at a = 0; below 0 where the path descends."""
        return inner(self.state.dU, self.D) + inner(self.state.dV, self.E)

    def to(self, a: float, memory: float = 0.0) -> State:
        """The state at a, by one pass over the measurements."""
        return state_at(self.problem, *self._factors(a), self.term, self.psd, memory)

    def along(self, a: float, memory: float = 0.0) -> State:
        """The state at a, from the measurements on the curve."""
        return state_at(self.problem, *self._factors(a), self.term, self.psd, memory, self.line.to(a))

    @cached_property
    def line(self) -> Line:
        """f along the path."""
        U, V, z = self.state.U, self.state.V, self.state.extra.get(MEASUREMENTS)
        z = self.problem.measure(U, V) if z is None else z
        return self.problem.along(z, *self.problem.curve(U, V, self.D, self.E, None if self.exact else z))

    @cached_property
    def polynomial(self) -> Array:
        """The penalty and the term along the path: five numbers c with Σₖ cₖ aᵏ their sum."""
        terms = [part for part in (self.problem.penalty, self.term) if part is not None]
        return sum((part.curve(self.state.U, self.state.V, self.D, self.E) for part in terms), np.zeros(5))

    def _factors(self, a: float) -> tuple[Array, Array]:
        U = self.state.U + a * self.D
        return U, U if self.psd else self.state.V + a * self.E
