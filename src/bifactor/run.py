"""One run as it stands: everything the loop knows, and so everything a checkpoint holds."""

import os
from dataclasses import dataclass, field

import numpy as np

from bifactor import files
from bifactor.arrays import Array, epsilon, herm, inner, pair_norm, product_norm
from bifactor.errors import FileError
from bifactor.result import History, Result, Status
from bifactor.state import State

DIVERGED = 1e3
"""Growth of the objective, relative to its start, that no descent method recovers from."""

_EXTRA = "extra:"


@dataclass
class Run:
    """The latest state, the best factors, and the history so far."""

    state: State
    best: tuple[Array, Array]
    best_value: float
    objective: list[float] = field(default_factory=list)
    gradient_norm: list[float] = field(default_factory=list)
    relative_change: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @classmethod
    def begin(cls, state: State) -> "Run":
        run = cls(state, (state.U, state.V), state.value)
        change = 0.0 if product_norm(state.U, state.V) == 0 else 1.0
        run._record(state.value, pair_norm(state.dU, state.dV), change, 0.0)
        return run

    @property
    def iteration(self) -> int:
        return len(self.objective) - 1

    def advance(self, state: State, scale: float, seconds: float) -> bool:
        """Take in a new state. False, leaving the run as it was, where the new state shows divergence."""
        change, size = relative_change(self.state, state)
        gradient = pair_norm(state.dU, state.dV)
        rounding = epsilon(state.U) * scale * size**2
        limit = DIVERGED * (abs(self.objective[0]) + abs(self.best_value)) + rounding
        if not np.all(np.isfinite((state.value, gradient, change))) or state.value - self.best_value > limit:
            return False
        self._record(state.value, gradient, change, seconds)
        self.state = state
        if state.value < self.best_value:
            self.best, self.best_value = (state.U, state.V), state.value
        return True

    def result(self, status: Status, solver: str) -> Result:
        history = History(*map(np.asarray, (self.objective, self.gradient_norm, self.relative_change, self.seconds)))
        return Result(*self.best, status, self.iteration, self.best_value, history, solver)

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
            "objective": np.asarray(self.objective),
            "gradient_norm": np.asarray(self.gradient_norm),
            "relative_change": np.asarray(self.relative_change),
            "seconds": np.asarray(self.seconds),
        }
        metadata = {
            "fingerprint": fingerprint,
            "value": state.value,
            "memory": state.memory,
            "stalled": state.stalled,
            "best_value": self.best_value,
        }
        files.write(path, "checkpoint", arrays, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], fingerprint: str) -> "Run":
        """Read a checkpoint of the same problem, rank and solver."""
        arrays, metadata = files.read(path, "checkpoint")
        if metadata["fingerprint"] != fingerprint:
            raise FileError(
                f"{path} is a checkpoint of another problem, rank or solver. "
                "Delete it, or give this run a file of its own."
            )
        factors = {name: arrays[name] for name in ("U", "V", "dU", "dV")}
        extra = {name.removeprefix(_EXTRA): array for name, array in arrays.items() if name.startswith(_EXTRA)}
        state = State(**factors, extra=extra, **{name: metadata[name] for name in ("value", "memory", "stalled")})
        history = (arrays[name].tolist() for name in ("objective", "gradient_norm", "relative_change", "seconds"))
        return cls(state, (arrays["best_U"], arrays["best_V"]), metadata["best_value"], *history)

    def _record(self, value: float, gradient: float, change: float, seconds: float) -> None:
        self.objective.append(value)
        self.gradient_norm.append(gradient)
        self.relative_change.append(change)
        self.seconds.append(seconds)


def relative_change(old: State, new: State) -> tuple[float, float]:
    """‖X′ − X‖_F/‖X′‖_F, and ‖X′‖_F, from r×r Gram matrices.

    X′ − X = ΔU Vᴴ + U′ ΔVᴴ, so that nothing large cancels.
    """
    dU, dV = new.U - old.U, new.V - old.V
    cross = inner(herm(new.U) @ dU, herm(dV) @ old.V)
    squared = product_norm(dU, old.V) ** 2 + product_norm(new.U, dV) ** 2 + 2 * cross
    difference, size = max(squared, 0.0) ** 0.5, product_norm(new.U, new.V)
    if size == 0:
        return (0.0 if difference == 0 else 1.0), size
    return difference / size, size
