"""The objective never increases, wherever columns are added: the law of `check_descent`, which watches every fit."""

import itertools

import numpy as np
import pytest
from tests.conftest import LOSSES, check_descent, targets

import bifactor as bf
from bifactor.operators import Entries, Featured, Gaussian, Partitioned, Recomputed, Scaled, Stacked, pattern
from bifactor.penalties import Ridge
from bifactor.solvers import PCG, AltMin, Newton, Race, RankContinuation, Refitted, RidgeHomotopy, ScaledGD
from bifactor.solvers.growth import add_columns

SHAPE = (60, 40)
SOLVERS = {
    "PCG": PCG(),
    "rank": RankContinuation(stage_iterations=4),
    "one stage": RankContinuation(stages=1, stage_iterations=4),
    "rank of Newton": RankContinuation(Newton(), stage_iterations=2),
    "rank of ScaledGD": RankContinuation(ScaledGD(), stage_iterations=3),
    "homotopy": RidgeHomotopy(stage_iterations=3),
    "race": Race((RankContinuation(stage_iterations=3), RidgeHomotopy(stage_iterations=3)), patience=4),
    "homotopy of rank": RidgeHomotopy(RankContinuation(stage_iterations=3), stage_iterations=5),
}


def scarce(seed=0):
    """A few entries of most rows and of most columns, and many of some."""
    rng = np.random.default_rng(seed)
    shares = [rng.pareto(1.0, k) + 0.1 for k in SHAPE]
    rows, cols = (rng.choice(k, 900, p=p / p.sum()) for k, p in zip(SHAPE, shares, strict=True))
    return np.unique(np.stack([rows, cols]), axis=1)


ROWS, COLS = scarce()
ENTRIES = Entries(ROWS, COLS, SHAPE)
PATTERNS = pattern(ROWS, COLS, SHAPE), pattern(COLS, ROWS, SHAPE[::-1])
OPERATORS = {
    "Entries": lambda: ENTRIES,
    "Featured": lambda: Featured(ENTRIES, *PATTERNS),
    "Featured by numbers": lambda: Featured(ENTRIES, np.random.default_rng(1).random((60, 5)) + 3),
    "Scaled": lambda: Scaled(Featured(ENTRIES, *PATTERNS), 3.0),
    "Recomputed": lambda: Recomputed(Featured(ENTRIES, *PATTERNS)),
    "Stacked": lambda: Stacked(ENTRIES, Gaussian(SHAPE, 30, rng=0)),
    "Featured twice": lambda: Featured(Featured(ENTRIES, *PATTERNS), None, np.ones((100, 1))),
}


def problem_of(operator, loss=None, unit=1.0, penalty=None, cells=False, dtype=np.float64, offsets=True):
    rng = np.random.default_rng(2)
    loss = bf.losses.Squared() if loss is None else loss
    z = 2.0 * np.sum(rng.standard_normal((3, operator.size)), axis=0)
    y = (unit * targets(loss, z, rng)).astype(dtype)
    # A ridge of the same effect in any unit: f has that of y squared, and so has the square of the factors.
    problem = bf.Problem(loss, operator, y, penalty=None if penalty is None else Ridge(unit * penalty), offsets=offsets)
    return problem + bf.all_cells(0.01) if cells else problem


def followed(problem, solver, rank=5, iterations=25):
    """A run whose states the law has looked at."""
    states = []
    result = bf.solve(
        problem, rank, solver, rng=0, max_iter=iterations, tol=0, callback=lambda t, state: states.append(state)
    )
    assert result.n_iter > 0
    for before, after in itertools.pairwise(states):
        check_descent(problem, solver, before, after)
    return result


@pytest.mark.parametrize("penalty", [None, 2.0])
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_solver_that_grows_and_every_operator(solver, name, penalty):
    followed(problem_of(OPERATORS[name](), penalty=penalty), SOLVERS[solver])


@pytest.mark.parametrize("name", ["Entries", "Featured"])
def test_alternating_minimisation_in_stages(name):
    problem = problem_of(OPERATORS[name](), penalty=2.0, offsets=False)
    followed(problem, RankContinuation(AltMin(), stage_iterations=2), iterations=10)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_unit(unit, cells, dtype):
    for solver in ("one stage", "rank", "homotopy"):
        for penalty in (None, 2.0):
            problem = problem_of(
                OPERATORS["Featured"](), unit=unit, penalty=penalty, cells=cells, dtype=dtype, offsets=False
            )
            result = followed(problem, SOLVERS[solver])
            assert result.objective < 0.9 * problem.objective(problem.zero())


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss(name):
    for operator in ("Entries", "Featured"):
        for penalty in (None, 1.0):
            problem = problem_of(OPERATORS[operator](), LOSSES[name], penalty=penalty)
            for solver in ("one stage", "rank", "homotopy"):
                followed(problem, SOLVERS[solver])


@pytest.mark.parametrize("loss", [bf.losses.Huber(), bf.losses.Ordinal([1, 2, 4, 5])])
def test_between_two_fits_of_a_loss(loss):
    problem = problem_of(OPERATORS["Featured"](), loss)
    followed(problem, Refitted(RankContinuation(stages=1, stage_iterations=4), every=8), iterations=40)


@pytest.mark.parametrize("solver", ["PCG", "rank", "one stage", "homotopy"])
def test_sums_and_blocks(solver, tmp_path):
    one, other = problem_of(OPERATORS["Featured"]()), problem_of(OPERATORS["Featured"](), bf.losses.Huber())
    followed(one + other, SOLVERS[solver])
    store = bf.data.partition((ROWS, COLS, one.y), tmp_path / "blocks", dtype=np.float64)
    blocks = bf.Objective(Partitioned(bf.losses.Squared(), store, bf.executors.Streamed(20_000)), Ridge(2.0))
    followed(blocks, SOLVERS[solver], iterations=10)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("name", ["Entries", "Featured", "Featured by numbers"])
@pytest.mark.parametrize("loss", ["Squared", "Logistic"])
def test_new_columns_do_not_raise_the_objective(loss, name, weights):
    problem = problem_of(OPERATORS[name](), LOSSES[loss])
    a, b = ((1 + np.arange(k)) / k if weights else None for k in problem.shape)
    problem = problem.penalized(Ridge(0.3, a, b))
    x = problem.zero(0)
    for _ in range(4):
        wider = add_columns(problem, x, 2)
        assert problem.objective(wider) <= problem.objective(x)
        x = wider
    assert x.width > problem.kind.fixed_columns + 2


def test_first_iterations_with_patterns_as_features_lower_the_objective_as_far_as_without():
    """The features' part of new columns is as long as the measured matrix has it, and moves at a rate of its own."""
    for seed in range(3):
        rows, cols = scarce(seed)
        A, rng = Entries(rows, cols, SHAPE), np.random.default_rng(seed)
        y = 3 + rng.standard_normal(60)[rows] + rng.standard_normal(40)[cols] + rng.standard_normal(rows.size)
        both = [A, Featured(A, pattern(rows, cols, SHAPE), pattern(cols, rows, SHAPE[::-1]))]
        for solver in (PCG(), RankContinuation(stages=1)):
            plain, featured = (
                bf.solve(bf.Problem("squared", B, y, penalty=Ridge(1.0)), 3, solver, rng=0, max_iter=12, tol=0)
                for B in both
            )
            assert featured.objective <= 1.01 * plain.objective
