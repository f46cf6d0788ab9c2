"""Signs of film ratings, some hidden: what one cell of the experiment on MovieLens computes."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Observations, read
from bifactor.errors import InputError
from bifactor.inits import Init, Spectral, Zero
from bifactor.losses import Logistic, Squared
from bifactor.metrics import balanced
from bifactor.operators import Entries
from bifactor.penalties import Ridge
from bifactor.problems.objective import Problem
from bifactor.solvers import BFGD, PCG, SPG, NuclearNorm, Solver
from bifactor.steps import Smooth
from bifactor_reproduce.harness.experiment import Outcome
from bifactor_reproduce.harness.timed import timed

CONVEX, RAW, PRINTED, OWN = "SPG", "nuclear norm", "BFGD", "PCG"

FEWEST, LEVELS, HIGHEST = 100, 11, 10.0
"""Ratings that a table needs, and the different ones that it may have, from 0 up."""

FAINT = 1e-4
"""Singular values below this part of the first do not count in a rank."""


@dataclass(frozen=True)
class RatingsCell:
    """One method on one split."""

    method: str
    rank: int
    """r; of the convex methods the most columns that X may have."""
    level: float
    """Of SPG the radius over √(mn); of a penalty ρ over the size of the noise. BFGD has neither."""
    split: int
    hidden: float
    """The part of the ratings that is left for the test."""
    max_iter: int
    tol: float
    """On the relative change of X; for SPG on that of its whole projected step."""
    data: str
    """A hash of the file of ratings."""


def ratings(path: Path) -> Observations:
    """The table of users, films and ratings; `InputError` where the last are none."""
    table = read(path).known()
    values = table.values
    levels = np.unique(values)
    if not (2 <= levels.size <= LEVELS and levels[0] >= 0 and levels[-1] <= HIGHEST):
        raise InputError(
            f"The values in {path} are {levels.size} different ones from {levels[0]:g} to {levels[-1]:g}, not ratings. "
            "Pass a table of users, films and ratings such as 1 to 5."
        )
    if values.size < FEWEST:
        raise InputError(f"{path} has {values.size} ratings, too few to hide some. Pass a table with {FEWEST} or more.")
    return table


def parted(count: int, seed: int, hidden: float) -> tuple[Array, Array]:
    """The places of ratings to learn from, and those that are hidden."""
    order = np.random.default_rng(seed).permutation(count)
    left = round(hidden * count)
    return order[left:], order[:left]


def run_cell(cell: RatingsCell, path: Path) -> Outcome:
    """Learn from some ratings, and count how many signs of the others come out right."""
    table = ratings(path)
    mean = float(table.values.mean())
    known, hidden = parted(table.values.size, cell.split, cell.hidden)
    truth = table.values[hidden]
    test = Entries(table.rows[hidden], table.cols[hidden], table.shape)
    cut = mean if cell.method == RAW else 0.0

    def right(U: Array, V: Array) -> Array:
        return (test.forward(U, V) > cut) == (truth > mean)  # an X of 0, as for films that nobody rated, is below

    solver, init, tol = _method(cell, table.shape)
    run = timed(
        _problem(cell, table, known, mean),
        min(cell.rank, *table.shape),
        solver,
        init,
        max_iter=cell.max_iter,
        tol=tol,
        error=lambda U, V: 100 * float(np.mean(~right(U, V))),
    )
    levels, counts = np.unique(table.values, return_counts=True)
    told = right(run.result.U, run.result.V)
    return {
        **run.outcome,
        "overall": _percent(told),
        "accuracy": [_percent(told[truth == level]) for level in levels],
        "levels": levels.tolist(),
        "counts": counts.tolist(),
        "rank": _rank(run.result.U, run.result.V),
    }


def noise(known: int, shape: tuple[int, int], deviation: float) -> float:
    """About the largest singular value of independent noise at `known` places of a matrix, which ρ should keep out."""
    return deviation * float(np.sqrt(known / shape[0]) + np.sqrt(known / shape[1]))


def _problem(cell: RatingsCell, table: Observations, known: Array, mean: float) -> Problem:
    operator, values = Entries(table.rows[known], table.cols[known], table.shape), table.values[known]
    if cell.method == RAW:
        penalty = Ridge(cell.level * noise(known.size, table.shape, float(values.std())))
        return Problem(Squared(), operator, values, penalty=penalty)
    # The slopes of the logistic loss at X = 0 are ±1/2.
    ridge = Ridge(cell.level * noise(known.size, table.shape, 0.5)) if cell.method == OWN else None
    return Problem(Logistic(), operator, np.where(values > mean, 1.0, -1.0), penalty=ridge)


def _method(cell: RatingsCell, shape: tuple[int, int]) -> tuple[Solver, Init, float]:
    """The solver, where it starts, and the relative change of X at which `solve` stops; SPG has its own test."""
    radius = cell.level * float(np.sqrt(shape[0] * shape[1]))
    methods: dict[str, Callable[[], tuple[Solver, Init, float]]] = {
        CONVEX: lambda: (SPG(radius, tol=cell.tol), Zero(), 0.0),
        RAW: lambda: (NuclearNorm(), Zero(), cell.tol),
        PRINTED: lambda: (BFGD(Smooth(), balance=None), Spectral(fit=False), cell.tol),
        OWN: lambda: (PCG(), Spectral(fit=False), cell.tol),
    }
    return methods[cell.method]()


def _percent(told: Array) -> float | None:
    return 100 * float(np.mean(told)) if told.size else None


def _rank(U: Array, V: Array) -> int:
    sizes = np.square(balanced(U, V)[0]).sum(axis=0)
    return int(np.count_nonzero(sizes > FAINT * sizes.max()))
