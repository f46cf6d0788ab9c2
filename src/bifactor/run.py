"""One run as it stands: everything the loop knows, and so everything a checkpoint holds."""

import os
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bifactor import files
from bifactor.arrays import Array, epsilon, herm, inner, pair_norm, product_norm
from bifactor.errors import FileError
from bifactor.kernels.blas import gram
from bifactor.metrics import relative_error
from bifactor.objective import Objective
from bifactor.result import History, Result, Status
from bifactor.state import State

DIVERGED = 1e3
"""Growth of the objective, relative to its start, that no descent method recovers from."""

CANCELLED = 1e-6
"""The share of ‖X′ − X‖² in its parts below which Gram matrices cannot tell it from rounding."""

_EXTRA = "extra:"


class Record(NamedTuple):
    """What is kept of each iteration."""

    objective: float
    gradient_norm: float
    relative_change: float
    seconds: float


@dataclass
class Run:
    """The latest state, the best factors, and the history so far."""

    state: State
    best: tuple[Array, Array]
    best_value: float
    records: list[Record]
    magnitude: float = 0.0
    """What f amounts to at X, scale·‖X‖²: its rounding is that times the square of the precision."""

    @classmethod
    def begin(cls, state: State, seconds: float) -> "Run":
        change = 0.0 if product_norm(state.U, state.V) == 0 else 1.0
        first = Record(state.value, pair_norm(state.dU, state.dV), change, seconds)
        return cls(state, (state.U, state.V), state.value, [first])

    @property
    def iteration(self) -> int:
        return len(self.records) - 1

    def advance(self, state: State, scale: float, seconds: float) -> bool:
        """Take in a new state. False, leaving the run as it was, where the new state shows divergence."""
        change, size = relative_change(self.state, state)
        record = Record(state.value, pair_norm(state.dU, state.dV), change, seconds)
        magnitude = scale * size**2
        rounding = epsilon(state.U) * magnitude
        limit = DIVERGED * (abs(self.records[0].objective) + abs(self.best_value)) + rounding
        # A solver with stages to come may begin one of them high up.
        grew = not state.waiting and state.value - self.best_value > limit
        if not np.all(np.isfinite(record)) or grew:
            return False
        self.records.append(record)
        self.state, self.magnitude = state, magnitude
        if state.value < self.best_value:
            self.best, self.best_value = (state.U, state.V), state.value
        return True

    def result(self, status: Status, solver: str, problem: Objective) -> Result:
        history = History(*self._columns())
        return Result(*self.best, status, self.iteration, self.best_value, history, solver, problem=problem)

    def _columns(self) -> Array:
        return np.array(self.records, dtype=np.float64).T

    def save(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        """Write a checkpoint, atomically."""
        state = self.state
        arrays = {
            **{_EXTRA + name: array for name, array in state.extra.items()},
            "U": state.U,
            "V": state.V,
            "dU": state.dU,
            "dV": state.dV,
            "best_U": self.best[0],
            "best_V": self.best[1],
            "records": self._columns(),
        }
        metadata = {
            "fingerprint": fingerprint,
            "value": state.value,
            "memory": state.memory,
            "stalled": state.stalled,
            "waiting": state.waiting,
            "settled": state.settled,
            "one_factor": state.V is state.U,
            "best_value": self.best_value,
            "magnitude": self.magnitude,
        }
        files.write(path, "checkpoint", arrays, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], fingerprint: str) -> "Run":
        """Read a checkpoint of the same problem, rank and solver."""
        arrays, metadata = files.read(path, "checkpoint")
        if metadata.get("fingerprint") != fingerprint:
            raise FileError(
                f"{path} is a checkpoint of another problem, rank, solver, init or seed. "
                "Delete it, or give this run a file of its own."
            )
        try:
            factors = {name: arrays[name] for name in ("U", "V", "dU", "dV")}
            extra = {name.removeprefix(_EXTRA): array for name, array in arrays.items() if name.startswith(_EXTRA)}
            numbers = {name: metadata[name] for name in ("value", "memory", "stalled", "waiting", "settled")}
            state = State(**factors, extra=extra, **numbers)
            best = arrays["best_U"], arrays["best_V"]
            if metadata["one_factor"]:
                state, best = replace(state, V=state.U, dV=state.dU), (best[0], best[0])
            records = [Record(*map(float, row)) for row in arrays["records"].T]
            return cls(state, best, metadata["best_value"], records, metadata["magnitude"])
        except KeyError as error:
            raise FileError(f"{path} lacks {error}. It was written by another version of bifactor.") from None


def relative_change(old: State, new: State) -> tuple[float, float]:
    """‖X′ − X‖_F/‖X′‖_F, and ‖X′‖_F, from r×r Gram matrices.

    X′ − X = ΔU Vᴴ + U′ ΔVᴴ, so that nothing large cancels.
    """
    dU, dV = new.U - old.U, new.V - old.V
    UU, UdU, dUdU = gram(new.U, new.U), gram(new.U, dU), gram(dU, dU)
    VV, dVV, dVdV = gram(old.V, old.V), gram(dV, old.V), gram(dV, dV)
    # For Hermitian Gram matrices ⟨A, B⟩ is the trace of AB.
    parts = inner(dUdU, VV) + inner(UU, dVdV)
    squared = parts + 2 * inner(UdU, dVV)
    size = max(inner(UU, VV + dVV + herm(dVV) + dVdV), 0.0) ** 0.5
    if squared < CANCELLED * parts:  # another factorisation of nearly the same X
        return (relative_error(old.U, old.V, new.U, new.V) if size > 0 else 0.0), size
    difference = max(squared, 0.0) ** 0.5
    if size == 0:
        return (0.0 if difference == 0 else 1.0), size
    return difference / size, size
