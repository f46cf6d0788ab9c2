"""Runs whose arrays live on machines that may die."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bifactor.arrays import Array, beside
from bifactor.arrays.rows import Rows
from bifactor.errors import LostError
from bifactor.factors import Factors
from bifactor.problems.objective import Objective
from bifactor.problems.state import State
from bifactor.running.checkpoint import packed, unpacked
from bifactor.running.run import Run

MOST = 10
"""Losses in a row, without an iteration that could be kept in between, after which a run is given up."""

T = TypeVar("T")


class Secured:
    """Keeps a copy of a run here every few iterations, and goes on from it where others have lost theirs.

    Steps are functions of their state, so the run ends with the very bits of one that lost nothing. After a copy has
    been taken the run goes on from the copy, so that what workers must remember to make lost arrays again does not grow
    without end. Where arrays are on this machine it does nothing.
    """

    def __init__(self, problem: Objective, every: int):
        self.kind, self.like, self.every = problem.kind, problem.f.like, every
        self.needed = isinstance(self.like, Rows)
        self.copy: Run | None = None
        self.losses = 0

    def begun(self, begin: Callable[[], Run], rng: np.random.Generator) -> Run:
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

    def keep(self, run: Run, now: bool = False) -> None:
        """Take a copy, where it is time for one."""
        if not self.needed or not (now or run.iteration % self.every == 0):
            return
        state, best = self._moved((run.state, run.best), home=True)
        self.copy, self.losses = replace(run, state=state, best=best, records=list(run.records)), 0
        self._put_back(run)

    def recover(self, run: Run, lost: LostError) -> None:
        """The run as it was when the last copy was taken; it goes on from there."""
        while True:
            self._count(lost)
            try:
                self._put_back(run)
                return
            except LostError as again:
                lost = again

    def at_home(self, run: Run) -> Run:
        """The run with its arrays on this machine, where there is such a copy of it."""
        return self.copy if self.copy is not None and self.copy.iteration == run.iteration else run

    def persist(self, run: Run, function: Callable[[], T]) -> T:
        """What is told of a run that has ended, in as many attempts as it takes."""
        while True:
            try:
                return function()
            except LostError as lost:
                self.recover(run, lost)

    def _put_back(self, run: Run) -> None:
        assert self.copy is not None
        state, best = self._moved((self.copy.state, self.copy.best), home=False)
        run.state, run.best, run.records = state, best, list(self.copy.records)
        run.best_value, run.magnitude = self.copy.best_value, self.copy.magnitude

    def _moved(self, values: tuple[State, Factors], home: bool) -> tuple[State, Factors]:
        """The same values with arrays on this machine, or where the problem has them."""
        arrays: dict[str, Array] = {}
        known: dict[int, Any] = {}
        trees = [packed(value, arrays, known) for value in values]
        if not home:
            arrays = {name: beside(array, self.like) for name, array in arrays.items()}
        state, best = (unpacked(tree, arrays, self.kind) for tree in trees)
        return state, best

    def _count(self, lost: LostError) -> None:
        self.losses += 1
        if self.losses > MOST:
            raise lost
