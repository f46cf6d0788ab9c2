"""One run as it stands: everything the loop knows, and so everything a checkpoint holds."""

import os
from dataclasses import dataclass, field

import numpy as np

from bifactor import files
from bifactor.arrays import Array, epsilon, namespace, pair_norm, product_norm
from bifactor.errors import FileError
from bifactor.result import History, Result, Status
from bifactor.state import State

DIVERGED = 1e3
"""Growth of the objective, relative to its start, that no descent method recovers from."""


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
        run._record(state, 0.0 if product_norm(state.U, state.V) == 0 else 1.0, 0.0)
        return run

    @property
    def iteration(self) -> int:
        return len(self.objective) - 1

    def advance(self, state: State, scale: float, seconds: float) -> bool:
        """Take in a new state. False, leaving the run as it was, where the new state shows divergence."""
        change = relative_change(self.state, state)
        numbers = (state.value, change, pair_norm(state.dU, state.dV), pair_norm(state.U, state.V))
        rounding = epsilon(state.U) * scale * product_norm(*self.best) ** 2
        limit = DIVERGED * (abs(self.objective[0]) + abs(self.best_value)) + rounding
        if not np.all(np.isfinite(numbers)) or state.value - self.best_value > limit:
            return False
        self._record(state, change, seconds)
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
        state = State(**factors, **{name: metadata[name] for name in ("value", "memory", "stalled")})
        history = (arrays[name].tolist() for name in ("objective", "gradient_norm", "relative_change", "seconds"))
        return cls(state, (arrays["best_U"], arrays["best_V"]), metadata["best_value"], *history)

    def _record(self, state: State, change: float, seconds: float) -> None:
        self.objective.append(state.value)
        self.gradient_norm.append(pair_norm(state.dU, state.dV))
        self.relative_change.append(change)
        self.seconds.append(seconds)


def relative_change(old: State, new: State) -> float:
    """‖X′ − X‖_F/‖X′‖_F from Gram matrices, with X′ − X = [ΔU, U′][V, ΔV]ᴴ so that nothing cancels."""
    xp = namespace(old.U, new.U)
    left = xp.concat([new.U - old.U, new.U], axis=1)
    right = xp.concat([old.V, new.V - old.V], axis=1)
    difference, size = product_norm(left, right), product_norm(new.U, new.V)
    if size == 0:
        return 0.0 if difference == 0 else 1.0
    return difference / size
