"""Offsets of rows and columns, fitted with the rest."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import InputError
from bifactor.testing import check_solver

SOLVERS = [
    bf.solvers.PCG(),
    bf.solvers.Newton(),
    bf.solvers.Newton(full=False),
    bf.solvers.ScaledGD(),
    bf.solvers.BFGD(bf.steps.Backtracking()),
    bf.solvers.RankContinuation(),
    bf.solvers.RankContinuation(stages=1),
    bf.solvers.RidgeHomotopy(),
    bf.solvers.Race(),
]


def table(noise=0.0, rank=2, shape=(40, 30), observed=0.7, seed=0, **settings):
    rng = np.random.default_rng(seed)
    m, n = shape
    X = 3 * rng.standard_normal((m, 1)) + 2 * rng.standard_normal(n)
    X += rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    rows, cols = np.nonzero(rng.random(shape) < observed)
    y = X[rows, cols] + noise * rng.standard_normal(rows.size)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, shape), y, offsets=True, **settings)
    return problem, X


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("ridge", [None, bf.penalties.Ridge(0.5)])
def test_laws(solver, ridge):
    check_solver(solver, table(0.1, penalty=ridge)[0], rank=2)


@pytest.mark.parametrize("solver", [None, *SOLVERS[:2], *SOLVERS[5:8]], ids=repr)
def test_the_fixed_columns_stay_and_X_is_found(solver):
    problem, X = table()
    result = bf.solve(problem, 2, solver, rng=0, tol=1e-10)
    assert result.U.shape == (40, 4)
    np.testing.assert_array_equal(result.U[:, 0], 1)
    np.testing.assert_array_equal(result.V[:, 1], 1)
    np.testing.assert_allclose(result.matrix(), X, atol=1e-5)


def test_it_is_the_minimum_of_the_penalised_problem():
    problem, _ = table(0.3, penalty=bf.penalties.Ridge(2.0))
    fits = [bf.solve(problem, 2, solver, rng=0, tol=1e-12) for solver in (None, bf.solvers.Newton())]
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-9)
    # b = 0 and c = 0 with two columns more is another way to write the same X: it cannot be cheaper for the ridge.
    fit = fits[1]
    assert np.linalg.norm(fit.U[:, 1]) > 0
    assert np.linalg.norm(fit.V[:, 0]) > 0


def test_rank_auto_counts_the_rest_only():
    problem, _ = table(0.1, rank=3, shape=(120, 100), observed=0.5)
    result = bf.solve(problem, "auto", rng=0)
    assert result.rank_search.chosen == {"rank": 3}
    assert result.U.shape[1] == 5


def test_a_start_may_hold_the_offsets_or_not():
    problem, X = table()
    first = bf.solve(problem, 2, rng=0, tol=1e-9)
    again = bf.solve(problem, 2, init=bf.inits.Given(first.U, first.V), rng=0)
    assert again.n_iter <= 10
    np.testing.assert_allclose(again.matrix(), X, atol=1e-5)
    rng = np.random.default_rng(0)
    start = bf.inits.Given(rng.standard_normal((40, 2)), rng.standard_normal((30, 2)))
    assert bf.solve(problem, 2, init=start, rng=0).U.shape == (40, 4)
    with pytest.raises(InputError, match="Pass one of shape"):
        bf.solve(problem, 2, init=bf.inits.Given(np.ones((40, 3)), np.ones((30, 3))))


def test_refusals():
    problem, _ = table(shape=(20, 20))
    with pytest.raises(InputError, match="offsets"):
        bf.solve(problem, 2, bf.solvers.SVP())
    with pytest.raises(InputError, match="Offsets and fixed columns"):
        bf.Problem(problem.loss, problem.operator, problem.y, offsets=True, symmetric=True)
    with pytest.raises(InputError, match="offsets"):
        bf.Problem(problem.loss, problem.operator, problem.y, offsets=1)


def test_a_checkpoint_without_offsets_is_refused(tmp_path):
    problem, _ = table()
    bf.solve(problem, 2, rng=0, max_iter=3, checkpoint=tmp_path / "run")
    plain = bf.Problem(problem.loss, problem.operator, problem.y)
    with pytest.raises(bf.errors.FileError, match="another problem"):
        bf.solve(plain, 2, rng=0, max_iter=3, checkpoint=tmp_path / "run")
