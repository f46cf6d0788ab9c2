"""A race of solvers on small budgets."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.objective import Objective
from bifactor.solvers.base import Solver
from bifactor.solvers.rank_continuation import RankContinuation
from bifactor.solvers.ridge_homotopy import RidgeHomotopy
from bifactor.state import State
from bifactor.validation import is_count, require_instance

SUCCESS = 1e-12
"""An objective this small beside that of X = 0 says that the data are explained: no other solver is tried."""

AT_REST = 1e-5
"""A solver whose iteration lowers the objective by no more than this fraction has come as far as it will."""

_OWN, _PARKED, _EXTRA = "race:", "parked:", "extra:"
_FACTORS = ("U", "V", "dU", "dV")


@dataclass(frozen=True)
class Race(Solver):
    """Tries solvers in turn, each from the start, and goes on with the one that comes lowest.

    A solver is stopped when it has come to rest, or `patience` iterations after its own stages are over, unless it is
    still coming down fast. One that explains the data ends the race at once: with more measurements than degrees of
    freedom a matrix of low rank that fits them all is the right one, up to coincidence.

    Parameters
    ----------
    solvers : tuple of Solver
        All for X = UVᴴ, or all for X = UUᴴ.
    patience : int
    """

    solvers: tuple[Solver, ...] = (RankContinuation(), RidgeHomotopy())
    patience: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "solvers", tuple(self.solvers))
        for solver in self.solvers:
            require_instance(solver, Solver, "solvers")
        if len({solver.psd for solver in self.solvers}) != 1:
            raise InputError("A race needs solvers that all find UVᴴ, or all UUᴴ, and one at least.")
        if not is_count(self.patience, 1):
            raise InputError(f"patience={self.patience!r} is not an integer ≥ 1.")
        object.__setattr__(self, "psd", self.solvers[0].psd)

    def check(self, problem: Objective) -> None:
        for solver in self.solvers:
            solver.check(problem)

    def start_columns(self, problem: Objective, rank: int) -> int:
        return max(solver.start_columns(problem, rank) for solver in self.solvers)

    def init(self, problem: Objective, U: Array, V: Array) -> State:
        zero = problem.value(*(np.zeros((k, 1), U.dtype) for k in problem.shape))
        own = {
            "U0": U,
            "V0": V,
            "zero": np.array(zero),
            "lane": np.array(0),
            "age": np.array(0),
            "mark": np.array(zero),
        }
        return _marked(self.solvers[0].init(problem, U, V), own, None)

    def step(self, problem: Objective, state: State) -> State:
        own, inner, parked = _own(state), _inner(state), _unpacked(state)
        lane = int(own["lane"])
        new = self.solvers[lane].step(problem, inner)
        if "zero" not in own:  # the race is over
            return _marked(new, own, None)
        own |= self._aged(own, new, problem.least)
        at_rest = inner.value - new.value <= AT_REST * abs(new.value) or new.stalled is not None or new.settled
        least = problem.least
        if least is not None and new.value - least <= SUCCESS * (float(own["zero"]) - least):
            return _marked(new, {"lane": own["lane"]}, None)
        if new.waiting or (own["age"] < self.patience and not at_rest):
            return _marked(new, own, parked)
        best = (lane, new) if parked is None or new.value < parked[1].value else parked
        if lane + 1 == len(self.solvers):
            return _marked(best[1], {"lane": np.array(best[0])}, None)
        fresh = self.solvers[lane + 1].init(problem, own["U0"], own["U0"] if self.psd else own["V0"])
        return _marked(fresh, {**own, "lane": np.array(lane + 1), "age": np.array(0)}, best)

    def _aged(self, own: Mapping[str, Array], new: State, least: float | None) -> dict[str, Array]:
        """How long the solver has run since its stages, and its objective when half its time was over.

        One that has since come down tenfold is given the second half again: it is on its way.
        """
        age, half = 0 if new.waiting else int(own["age"]) + 1, self.patience // 2
        converging = least is not None and new.value - least <= 0.1 * (float(own["mark"]) - least)
        if age == half or (age == self.patience and converging):
            return {"age": np.array(half), "mark": np.array(new.value)}
        return {"age": np.array(age)}


def _marked(inner: State, own: Mapping[str, Array], parked: tuple[int, State] | None) -> State:
    """The state of the race: that of the solver now running, its own notes, and the best of those that have run."""
    racing = "zero" in own
    notes = {_OWN + name: array for name, array in {**own, "waiting": np.array(inner.waiting)}.items()}
    if parked is not None:
        lane, best = parked
        held = {"lane": np.array(lane), "value": np.array(best.value), "memory": np.array(best.memory)}
        held |= {name: getattr(best, name) for name in _FACTORS}
        notes |= {_PARKED + name: array for name, array in held.items()}
        notes |= {_PARKED + _EXTRA + name: array for name, array in best.extra.items()}
    stalled, settled = (None, False) if racing else (inner.stalled, inner.settled)
    waiting = racing or inner.waiting
    return replace(inner, waiting=waiting, stalled=stalled, settled=settled, extra={**inner.extra, **notes})


def _own(state: State) -> dict[str, Array]:
    return _under(state.extra, _OWN)


def _inner(state: State) -> State:
    extra = {name: a for name, a in state.extra.items() if not name.startswith((_OWN, _PARKED))}
    return replace(state, waiting=bool(state.extra[_OWN + "waiting"]), extra=extra)


def _unpacked(state: State) -> tuple[int, State] | None:
    held = _under(state.extra, _PARKED)
    if not held:
        return None
    factors = {name: held[name] for name in _FACTORS}
    if state.V is state.U:
        factors |= {"V": factors["U"], "dV": factors["dU"]}
    value, memory = float(held["value"]), float(held["memory"])
    return int(held["lane"]), State(**factors, value=value, memory=memory, extra=_under(held, _EXTRA))


def _under(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
