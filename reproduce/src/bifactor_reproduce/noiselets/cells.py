"""What the experiments on affine rank minimisation share: the problem, the algorithms, and one cell of either."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

import numpy as np

from bifactor.arrays import Array, gaussian, product_norm
from bifactor.inits import Init, Random, Spectral
from bifactor.losses import Squared
from bifactor.metrics import nuclear_norm, relative_error, triplets
from bifactor.operators import Full, Noiselet
from bifactor.penalties.balance import Frobenius
from bifactor.problems.objective import Problem
from bifactor.solvers import BFGD, PCG, SVP, GuaranteedMC, ProcrustesFlow, Solver, SparseApproxSDP
from bifactor.steps import StronglyConvex
from bifactor_reproduce.harness.calibrated import Calibrated
from bifactor_reproduce.harness.experiment import Finished, Outcome
from bifactor_reproduce.harness.timed import timed

PRINTED, CALIBRATED = "BFGD, printed step", "BFGD, calibrated step"

COMPLETION = "GuaranteedMC, as completion"
"""The code of its authors completes matrices; this is what that does with A*(y) for a matrix, all of it observed."""

KNOWN, UNKNOWN = "Procrustes Flow, κ known", "Procrustes Flow, κ unknown"

RANDOM, SPECTRAL, OWN = "random", "spectral", "own"

STARTS: dict[str, Init | None] = {RANDOM: Random(), SPECTRAL: Spectral(), OWN: None}
"""Of norm 1; s·P_r(−∇f(0)) with the best s; each algorithm's own."""

START = 10_000
"""Added to the seed of a problem for that of its random start, which must not know the problem."""

QUARTER = Frobenius(0.5)
"""With λ = ¼ the paper's balance term, (1/16)‖UᵀU − VᵀV‖²_F."""


@dataclass(frozen=True)
class SensingCell:
    """One algorithm on one problem: p = ratio·max(m, n)·rank noiselets of a random matrix of that rank and norm 1."""

    shape: tuple[int, int]
    rank: int
    ratio: float
    method: str
    start: str
    seed: int
    max_iter: int
    tol: float
    budget: float


@dataclass(frozen=True)
class Instance:
    """A problem and the factors of its solution."""

    problem: Problem
    U: Array
    V: Array


@dataclass(frozen=True)
class Summary:
    """Medians over the seeds of a cell."""

    error: float
    seconds: float
    per_iteration: float
    iterations: float
    stopped: str
    """How the runs ended; each way once."""

    @property
    def converged(self) -> bool:
        return self.stopped == "converged"


Summaries = dict[SensingCell, Summary]


def summaries(finished: Sequence[Finished[SensingCell]]) -> Summaries:
    """By cells with seed 0 in place of all their seeds."""
    groups: dict[SensingCell, list[Outcome]] = {}
    for cell, outcome in finished:
        groups.setdefault(replace(cell, seed=0), []).append(outcome)
    return {cell: _summary(outcomes) for cell, outcomes in groups.items()}


def _summary(outcomes: Sequence[Outcome]) -> Summary:
    names = ("error", "seconds", "seconds_per_iteration", "iterations")
    error, seconds, per_iteration, iterations = (median(outcome[name] for outcome in outcomes) for name in names)
    ways = sorted({outcome["stopped"] for outcome in outcomes})
    return Summary(error, seconds, per_iteration, iterations, " or ".join(ways))


def draw(cell: SensingCell) -> Instance:
    """The problem of a cell; the same for all algorithms and starts."""
    m, n = cell.shape
    rng = np.random.default_rng(cell.seed)
    U, V = gaussian(rng, (m, cell.rank), np.float64), gaussian(rng, (n, cell.rank), np.float64)
    U /= product_norm(U, V)
    size = round(cell.ratio * max(m, n) * cell.rank)
    operator = Noiselet(cell.shape, size, rng)
    return Instance(Problem(Squared(), operator, operator.forward(U, V)), U, V)


def run_cell(cell: SensingCell) -> Outcome:
    """The error ‖X − X*‖_F/‖X*‖_F on the way and at the end, and what it cost."""
    instance = draw(cell)
    done = timed(
        _completion(instance) if cell.method == COMPLETION else instance.problem,
        cell.rank,
        METHODS[cell.method](instance),
        STARTS[cell.start],
        max_iter=cell.max_iter,
        tol=cell.tol,
        error=partial(_error, instance),
        budget=cell.budget,
        seed=cell.seed + START,
    )
    return done.outcome


def _error(instance: Instance, U: Array, V: Array) -> float:
    return relative_error(U, V, instance.U, instance.V)


def _completion(instance: Instance) -> Problem:
    """The completion of A*(y)."""
    problem = instance.problem
    matrix = problem.operator.adjoint(problem.y) @ np.eye(problem.shape[1])
    return Problem(Squared(), Full(problem.shape), matrix)


def _condition(instance: Instance) -> float:
    sizes = triplets(instance.U, instance.V)[1]
    return float(sizes[0] / sizes[-1])


METHODS: dict[str, Callable[[Instance], Solver]] = {
    "SVP": lambda instance: SVP(1 / 3),
    "Procrustes Flow": lambda instance: ProcrustesFlow(unit=1),
    # The first phase of its authors preserves norms on average, so its unit is ρ and not 1.
    KNOWN: lambda instance: ProcrustesFlow(condition=_condition(instance)),
    UNKNOWN: lambda instance: ProcrustesFlow(),
    "SparseApproxSDP": lambda instance: SparseApproxSDP(nuclear_norm(instance.U, instance.V), curvature=1),
    "GuaranteedMC": lambda instance: GuaranteedMC(),
    COMPLETION: lambda instance: GuaranteedMC(),
    PRINTED: lambda instance: BFGD(StronglyConvex(), QUARTER),
    CALIBRATED: lambda instance: BFGD(Calibrated(), QUARTER),
    "PCG": lambda instance: PCG(),
}
