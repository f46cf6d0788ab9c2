"""Runs whose arrays are on machines that may fail."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bifactor.arrays import Array, DistributedArray, to_device_of
from bifactor.errors import LostError
from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import State
from bifactor.running.checkpoint import pack_value, unpack_value
from bifactor.running.record import RunRecord

MOST = 10
"""The largest number of consecutive losses, without a new copy in between, from which a run recovers."""

T = TypeVar("T")


class WorkerRecovery:
    """Keeps a copy of a run on this machine every few iterations, and continues from it if workers have lost arrays.

    Steps are functions of their state, so the result is the same, bit for bit, as that of a run that lost nothing.
    After a copy has been taken, the run continues from the copy, so that what workers must keep to recompute lost
    arrays does not grow without bound. If arrays are on this machine, it does nothing.
    """

    def __init__(self, problem: Objective, every: int):
        self.kind, self.like, self.every = problem.kind, problem.f.like, every
        self.needed = isinstance(self.like, DistributedArray)
        self.copy: RunRecord | None = None
        self.losses = 0

    def start(self, begin: Callable[[], RunRecord], rng: np.random.Generator) -> RunRecord:
        """A run from its start, which is tried again with the same random numbers if it is lost."""
        drawn = rng.bit_generator.state
        while True:
            try:
                rng.bit_generator.state = drawn
                run = begin()
                self.keep(run, now=True)
                return run
            except LostError as lost:
                self._count(lost)

    def keep(self, run: RunRecord, now: bool = False) -> None:
        """Take a copy, if one is due."""
        if not self.needed or not (now or run.iteration % self.every == 0):
            return
        state, best = self._moved((run.state, run.best), home=True)
        self.copy, self.losses = replace(run, state=state, best=best, records=list(run.records)), 0
        self._put_back(run)

    def recover(self, run: RunRecord, lost: LostError) -> None:
        """Reset the run to the last copy."""
        while True:
            self._count(lost)
            try:
                self._put_back(run)
                return
            except LostError as again:
                lost = again

    def local(self, run: RunRecord) -> RunRecord:
        """The copy on this machine if it is of the same iteration, otherwise the run itself."""
        return self.copy if self.copy is not None and self.copy.iteration == run.iteration else run

    def retry(self, run: RunRecord, function: Callable[[], T]) -> T:
        """The value of a function of the run, which is called again after each loss."""
        while True:
            try:
                return function()
            except LostError as lost:
                self.recover(run, lost)

    def _put_back(self, run: RunRecord) -> None:
        assert self.copy is not None
        state, best = self._moved((self.copy.state, self.copy.best), home=False)
        run.state, run.best, run.records = state, best, list(self.copy.records)
        run.best_value, run.magnitude = self.copy.best_value, self.copy.magnitude

    def _moved(self, values: tuple[State, Factors], home: bool) -> tuple[State, Factors]:
        """The same values with arrays on this machine, or where those of the problem are."""
        arrays: dict[str, Array] = {}
        known: dict[int, Any] = {}
        trees = [pack_value(value, arrays, known) for value in values]
        if not home:
            arrays = {name: to_device_of(array, self.like) for name, array in arrays.items()}
        state, best = (unpack_value(tree, arrays, self.kind) for tree in trees)
        return state, best

    def _count(self, lost: LostError) -> None:
        self.losses += 1
        if self.losses > MOST:
            raise lost
