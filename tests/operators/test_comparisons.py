"""Comparisons of two entries of a row: Bradley and Terry's model, BPR, and the laws of every solver."""

import numpy as np
import pytest
from tests.solvers.test_solvers import ALL, ONE_FACTOR, REAL, TWO_FACTORS

import bifactor as bf
from bifactor.errors import InputError
from bifactor.operators.base import power_norm_squared
from bifactor.testing import check_gradient, check_solver


def some_comparisons(m=15, n=15, p=220, seed=0):
    rng = np.random.default_rng(seed)
    rows, left = rng.integers(m, size=p), rng.integers(n, size=p)
    return bf.operators.Comparisons(rows, left, (left + 1 + rng.integers(n - 1, size=p)) % n, (m, n))


@pytest.mark.parametrize("index", [np.int8, np.uint16, np.int64, list])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_a_measurement_is_the_difference_of_two_entries(index, shape):
    rng = np.random.default_rng(0)
    rows, left = rng.integers(4, size=30), rng.integers(4, size=30)
    right = (left + 1 + rng.integers(3, size=30)) % 4
    U, V = rng.standard_normal((shape[0], 2)), rng.standard_normal((shape[1], 2))
    given = [list(one) if index is list else one.astype(index) for one in (rows, left, right)]
    operator = bf.operators.Comparisons(*given, shape)
    X = U @ V.T
    np.testing.assert_allclose(operator.forward(U, V), X[rows, left] - X[rows, right], rtol=1e-12, atol=1e-14)
    for kept, one in zip((operator.rows, operator.left, operator.right), (rows, left, right), strict=True):
        np.testing.assert_array_equal(kept, one)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("solver", ALL)
def test_laws_of_every_solver(solver, symmetric):
    operator, rng = some_comparisons(), np.random.default_rng(1)
    U = rng.standard_normal((15, 2))
    y = operator.forward(U, U if symmetric else rng.standard_normal((15, 2))) + 0.1 * rng.standard_normal(operator.size)
    penalty = bf.penalties.Ridge(1.0) if isinstance(solver, bf.solvers.NuclearNorm) else None
    rank = 15 if isinstance(solver, bf.solvers.SPG) and solver.bound is not None else 2
    problem = bf.Problem("squared", operator, y, penalty=penalty, symmetric=symmetric)
    if type(solver).__name__ in (TWO_FACTORS if symmetric else ONE_FACTOR) + REAL:  # Variational looks at entries
        with pytest.raises(InputError, match=type(solver).__name__):
            bf.solve(problem, rank, solver)
    else:
        check_solver(solver, problem, rank)


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_gradient_of_preferences(symmetric):
    operator = some_comparisons()
    check_gradient(bf.Problem("logistic", operator, np.ones(operator.size), symmetric=symmetric))
    weights = np.random.default_rng(2).random(operator.size)
    check_gradient(bf.Problem("probit", operator, np.ones(operator.size), weights, offsets=True))


def test_a_number_added_to_a_row_changes_nothing():
    operator, rng = some_comparisons(9, 7, 50), np.random.default_rng(0)
    U, V = rng.standard_normal((9, 3)), rng.standard_normal((7, 3))
    moved = np.hstack([U, rng.standard_normal((9, 1))]), np.hstack([V, np.ones((7, 1))])
    np.testing.assert_allclose(operator.forward(*moved), operator.forward(U, V), atol=1e-13)


def test_the_curvature_to_expect_knows_how_often_rows_and_columns_are_compared():
    operator, rng = some_comparisons(9, 7, 200), np.random.default_rng(0)
    problem = bf.Problem("squared", operator, np.ones(operator.size))
    x = problem.kind.pair(rng.standard_normal((9, 2)), rng.standard_normal((7, 2)))
    compared = np.r_[operator.left, operator.right]
    for side, counts in ((0, 2 * np.bincount(operator.rows)), (1, np.bincount(compared))):
        ((own, _),) = problem.f.expected(x, side).pairs
        np.testing.assert_allclose(own, counts)


def test_the_curvature_to_expect_of_rows_that_compare_all_pairs():
    """Exact, but that both columns of a comparison are drawn with replacement: one of n pairs is of equal ones."""
    n, rng = 5, np.random.default_rng(0)
    rows, left, right = (index.ravel() for index in np.indices((3, n, n)))
    operator = bf.operators.Comparisons(*(index[left < right] for index in (rows, left, right)), (3, n))
    problem = bf.Problem("squared", operator, np.ones(operator.size))
    x = problem.kind.pair(rng.standard_normal((3, 2)), 10 + rng.standard_normal((n, 2)))
    ((own, spread),) = problem.f.expected(x, 0).pairs
    differences = (x.right[operator.left] - x.right[operator.right])[operator.rows == 0]
    np.testing.assert_allclose(own[0] * spread, differences.T @ differences * (n - 1) / n, rtol=1e-10)


def test_the_norm_of_many_comparisons():
    """Of a star, n edges from one vertex, it is n + 1; of many, by Lanczos iterations, as by power iterations."""
    star = bf.operators.Comparisons(np.zeros(400, int), np.zeros(400, int), np.arange(1, 401), (1, 401))
    assert star.norm_squared() == pytest.approx(401, rel=1e-3)
    assert star.norm_squared(np.full(400, 0.5)) == pytest.approx(200.5, rel=1e-3)
    apart = bf.operators.Comparisons([0, 1 << 16], [0, 0], [1, 1], (1 << 17, 1 << 16))  # 2³² entries apart
    assert apart.norm_squared() == pytest.approx(2)
    many = some_comparisons(30, 40, 3000)
    assert many.norm_squared() == pytest.approx(power_norm_squared(many, steps=500), rel=5e-3)


def bradley_terry(wins, steps=20_000):
    """Log-strengths by Hunter's MM algorithm; wins[i, j] is how often i has beaten j. Their mean is 0."""
    games, strength = wins + wins.T, np.ones(len(wins))
    for _ in range(steps):
        strength = wins.sum(axis=1) / np.sum(games / (strength[:, None] + strength), axis=1)
        strength /= np.exp(np.mean(np.log(strength)))
    return np.log(strength)


@pytest.mark.parametrize("by", ["weights", "repeats"])
def test_one_row_is_the_model_of_bradley_and_terry(by):
    rng, n = np.random.default_rng(0), 8
    strength = rng.standard_normal(n)
    wins = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            wins[i, j] = rng.binomial(20, 1 / (1 + np.exp(strength[j] - strength[i])))
            wins[j, i] = 20 - wins[i, j]
    i, j = np.nonzero(wins)
    if by == "weights":
        operator, weights = bf.operators.Comparisons(np.zeros(i.size, int), i, j, (1, n)), wins[i, j]
        problem = bf.Problem("logistic", operator, np.ones(i.size), weights)
    else:  # the smaller number first, −1 where it loses
        i, j = (np.repeat(side, wins[i, j].astype(int)) for side in (i, j))
        operator = bf.operators.Comparisons(np.zeros(i.size, int), np.minimum(i, j), np.maximum(i, j), (1, n))
        problem = bf.Problem("logistic", operator, np.where(i < j, 1, -1))
    result = bf.solve(problem, 1, rng=0, tol=1e-12)
    assert result.status.converged
    found = result.matrix()[0]
    np.testing.assert_allclose(found - found.mean(), bradley_terry(wins), atol=1e-5)


def test_preferences_that_were_not_shown_are_found():
    """BPR: as good as the truth itself, up to what can be learnt from 40 comparisons of each row."""
    rng, shape = np.random.default_rng(0), (200, 40)
    U, V = rng.standard_normal((200, 2)), 2 * rng.standard_normal((40, 2))
    rows, left = rng.integers(200, size=10_000), rng.integers(40, size=10_000)
    right = (left + 1 + rng.integers(39, size=10_000)) % 40
    z = bf.operators.Comparisons(rows, left, right, shape).forward(U, V)
    y = np.where(rng.random(z.size) < 1 / (1 + np.exp(-z)), 1, -1)
    shown, hidden = slice(8000), slice(8000, None)
    operators = [bf.operators.Comparisons(rows[part], left[part], right[part], shape) for part in (shown, hidden)]
    problem = bf.Problem("logistic", operators[0], y[shown], penalty=bf.penalties.Ridge(0.5))
    result = bf.solve(problem, 2, rng=0)
    guessed = operators[1].forward(result.U, result.V)
    right_ones, best = (np.mean(np.sign(one) == y[hidden]) for one in (guessed, z[hidden]))
    assert right_ones > best - 0.03
    assert bf.solve(problem, "auto", rng=0).rank == 2


BAD = {
    "rows has 1 indices, left has 2 and right has 2": lambda C: C([0], [0, 1], [1, 0], (2, 2)),
    "got no indices": lambda C: C([], [], [], (2, 2)),
    "Comparison 1 compares column 1 with itself": lambda C: C([0, 0], [0, 1], [1, 1], (1, 2)),
    "right runs from 2 to 2": lambda C: C([0], [0], [2], (2, 2)),
    "left runs from -1": lambda C: C([0], [-1], [0], (2, 2)),
    "rows is float64": lambda C: C([0.0], [0], [1], (2, 2)),
    "not the shape of a matrix": lambda C: C([0], [0], [1], (2,)),
}


@pytest.mark.parametrize("message", BAD)
def test_mistakes_get_one_clear_error(message):
    with pytest.raises(InputError, match=message):
        BAD[message](bf.operators.Comparisons)
