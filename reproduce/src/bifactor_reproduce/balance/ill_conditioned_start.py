"""A fully observed matrix and factors near it with a large condition number: the example of §6.2."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.inits import Given
from bifactor.losses import Squared
from bifactor.metrics import balanced, relative_error
from bifactor.operators import Full
from bifactor.penalties.balance import Frobenius
from bifactor.problems.objective import Problem
from bifactor.solvers import BFGD, PCG, Solver
from bifactor.steps import StronglyConvex
from bifactor_reproduce.harness.experiment import Finished, Outcome
from bifactor_reproduce.harness.timed import timed

WITH, STRONGER, WITHOUT = "BFGD with g, kb = 1/4", "BFGD with g, kb = 1/2", "BFGD without g"
BALANCED, OWN = "BFGD without g, balanced start", "PCG"

SOLVERS: dict[str, Solver] = {
    WITH: BFGD(StronglyConvex(), Frobenius(0.5)),
    STRONGER: BFGD(StronglyConvex(), Frobenius(1.0)),
    WITHOUT: BFGD(StronglyConvex(), balance=None),
    BALANCED: BFGD(StronglyConvex(), balance=None),
    OWN: PCG(),
}


@dataclass(frozen=True)
class ToyCell:
    """One method from one start."""

    method: str
    seed: int
    size: int
    rank: int
    condition: float
    noise: float
    iterations: int
    gradient_tol: float


class Toy(NamedTuple):
    problem: Problem
    U: Array
    V: Array
    U_star: Array
    V_star: Array


def toy(cell: ToyCell) -> Toy:
    """f = ‖UVᵀ − X*‖²_F and a start near X* whose factors both have the condition number asked for."""
    draw, start = np.random.default_rng(cell.seed).spawn(2)
    shape = (cell.size, cell.rank)
    U_star, V_star = (np.linalg.qr(draw.standard_normal(shape))[0] for _ in range(2))
    # The loss has a factor ½, which the paper's f has not.
    problem = Problem(Squared(), Full((cell.size, cell.size)), U_star @ V_star.T, weights=2.0)
    P, Q = (_orthonormal(F + cell.noise * start.standard_normal(shape)) for F in (U_star, V_star))
    E = np.geomspace(cell.condition**-0.5, cell.condition**0.5, cell.rank)
    return Toy(problem, P * E, Q / E, U_star, V_star)


def _orthonormal(F: Array) -> Array:
    """The matrix with orthonormal columns next to F."""
    left, _, right = np.linalg.svd(F, full_matrices=False)
    return left @ right


def run_cell(cell: ToyCell) -> Outcome:
    """As `timed` tells it, with the condition number of U beside each error, and both at the start."""
    problem, U, V, U_star, V_star = toy(cell)
    if cell.method == BALANCED:
        U, V = balanced(U, V)
    conditions: list[float] = []

    def error(U: Array, V: Array) -> float:
        conditions.append(float(np.linalg.cond(U)))
        return relative_error(U, V, U_star, V_star)

    first = {"error": error(U, V), "condition": conditions.pop()}
    done = timed(
        problem,
        cell.rank,
        SOLVERS[cell.method],
        Given(U, V),
        max_iter=cell.iterations,
        tol=0,
        gradient_tol=cell.gradient_tol,
        error=error,
    )
    curve = done.outcome["curve"]
    # At the end the error is asked for once more, where the last iteration has been looked at already.
    curve["condition"] = conditions[: len(curve["error"])]
    return {**done.outcome, "first": first}


Runs = Mapping[str, Mapping[int, Outcome]]
"""By method and seed; every method is there, perhaps without seeds."""


def by_method(finished: Sequence[Finished[ToyCell]]) -> Runs:
    runs: dict[str, dict[int, Outcome]] = defaultdict(dict)
    for cell, outcome in finished:
        runs[cell.method][cell.seed] = outcome
    return {method: runs[method] for method in SOLVERS}


def at(outcome: Outcome, name: str, count: int) -> float:
    """The error or condition number at the last iteration up to `count` that was looked at."""
    curve = outcome["curve"]
    return float([value for t, value in zip(curve["iteration"], curve[name], strict=True) if t <= count][-1])
