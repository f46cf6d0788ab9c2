"""Parameters of losses that are fitted on the way."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import bifactor as bf
from bifactor.errors import InputError
from bifactor.losses import Huber, Logistic, Probit, Shifted, Squared
from bifactor.solvers import PCG, Newton, Race, RankContinuation, Refitted, RidgeHomotopy


def corrupted(rng, shape=(60, 50), rank=2, noise=0.05, outliers=0.1):
    """Entries with normal noise, of which some are far off."""
    U, V = (rng.standard_normal((k, rank)) for k in shape)
    rows, cols = np.nonzero(rng.random(shape) < 0.6)
    y = np.einsum("tk,tk->t", U[rows], V[cols]) + noise * rng.standard_normal(rows.size)
    y = np.where(rng.random(rows.size) < outliers, y + 20 * rng.standard_normal(rows.size), y)
    return U @ V.T, bf.operators.Entries(rows, cols, shape), y


@pytest.mark.parametrize("start", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("wrap", [lambda A: A, bf.operators.Recomputed, lambda A: bf.operators.Stacked(A)])
def test_delta_follows_the_noise_wherever_it_starts(start, wrap):
    X, A, y = corrupted(np.random.default_rng(0))
    result = bf.solve(bf.Problem(Huber(start), wrap(A), y), 2, Refitted(), rng=0)
    assert result.status.converged
    assert result.problem.loss.delta == pytest.approx(1.345 * 0.05, rel=0.15)
    assert np.linalg.norm(result.matrix() - X) < 0.03 * np.linalg.norm(X)
    assert result.problem.f.explicit == (wrap(A).bind(bf.losses.DataFit.of(Huber(), y)).explicit)


def test_the_answer_is_the_best_for_the_last_parameters():
    _, A, y = corrupted(np.random.default_rng(1))
    problem = bf.Problem(Huber(1.0), A, y)
    result = bf.solve(problem, 2, Refitted(), rng=0, tol=1e-9)
    assert problem.loss.delta == 1.0
    assert result.objective == pytest.approx(result.problem.objective(result.problem.kind.pair(result.U, result.V)))
    plain = bf.solve(result.problem, 2, PCG(), bf.inits.Given(result.U, result.V), tol=1e-9)
    assert result.objective == pytest.approx(plain.objective, rel=1e-9)
    assert result.certificate.gradient_norm < 1e-4 * result.history.gradient_norm[0]


def test_it_is_resumed_bit_for_bit(tmp_path):
    _, A, y = corrupted(np.random.default_rng(2))
    problem = bf.Problem([Huber(1.0), Huber(0.5)], A, y, group=np.arange(y.size) % 2)
    whole = bf.solve(problem, 2, Refitted(every=3), rng=0, max_iter=30, tol=0)
    for iterations in (2, 8, 30):
        resumed = bf.solve(
            problem, 2, Refitted(every=3), rng=0, max_iter=iterations, tol=0, checkpoint=tmp_path / "run"
        )
    np.testing.assert_array_equal(resumed.U, whole.U)
    assert resumed.problem.loss == whole.problem.loss
    assert whole.problem.loss.losses[0] != whole.problem.loss.losses[1]


def test_delta_is_the_mad_of_the_residuals():
    rng = np.random.default_rng(3)
    z, y = rng.standard_normal(2001), np.zeros(2001)
    spread = np.median(np.abs(z - np.median(z)))
    assert Huber(7.0).refit(z, y, None).delta == pytest.approx(1.345 * 1.4826 * spread)
    weights = np.where(np.abs(z) < 1, 2.0, 0.0)
    kept = z[np.abs(z) < 1]
    wanted = 1.345 * 1.4826 * np.median(np.abs(kept - np.median(kept)))
    assert Huber().refit(z, y, weights).delta == pytest.approx(wanted, rel=1e-2)
    assert Huber(7.0).refit(y, y, None) == Huber(7.0)
    assert Huber(7.0).refit(z + 1j, y + 0j, None).delta > 0
    assert Squared().refit(z, y, None) == Squared()
    assert Shifted(Huber(2.0), 1.0).refit(z - 1.0, y, None).loss.delta == pytest.approx(1.345 * 1.4826 * spread)


def test_sigma_is_that_of_greatest_likelihood():
    rng = np.random.default_rng(4)
    z = rng.standard_normal(4000)
    y = np.where(z + 0.7 * rng.standard_normal(4000) > 0, 1.0, -1.0)
    for weights in (None, rng.random(4000)):
        found = Probit(2.0).refit(z, y, weights).sigma
        w = 1.0 if weights is None else weights
        best = minimize_scalar(lambda s, w=w: np.sum(w * Probit(s).value(z, y)), bounds=(0.2, 5), method="bounded")
        assert found == pytest.approx(best.x, rel=1e-4)
    assert found == pytest.approx(0.7, rel=0.1)
    assert Probit(1.0).refit(np.abs(z), np.ones(4000), None).sigma == pytest.approx(0.1)
    assert Probit(1.0).refit(np.abs(z), -np.ones(4000), None).sigma == pytest.approx(10.0)


@pytest.mark.parametrize("penalty", [None, bf.penalties.Ridge(0.5)])
def test_sigma_is_found_where_the_scale_of_z_is_fixed(penalty):
    """Labels of X + dither + noise: the dithers are known, and with them the units of X."""
    rng, dithers = np.random.default_rng(5), np.array([-2.0, -1.0, 1.0, 2.0])
    X = rng.standard_normal((40, 1)) @ rng.standard_normal((1, 30))
    rows, cols = (np.tile(index.ravel(), 12) for index in np.indices(X.shape))
    group = rng.integers(4, size=rows.size)
    z = X[rows, cols] + dithers[group]
    y = np.where(z + 0.7 * rng.standard_normal(rows.size) > 0, 1.0, -1.0)
    losses = [Shifted(Probit(2.0), shift) for shift in dithers]
    problem = bf.Problem(losses, bf.operators.Entries(rows, cols, X.shape), y, penalty=penalty, group=group)
    result = bf.solve(problem, 1, Refitted(), rng=0, max_iter=1000)
    assert result.status.converged
    np.testing.assert_allclose(result.problem.f.parameters.values, 0.7, rtol=0.1)
    assert np.linalg.norm(result.matrix() - X) < 0.15 * np.linalg.norm(X)


def test_groups_with_the_same_loss_have_parameters_of_their_own():
    _, A, y = corrupted(np.random.default_rng(9), outliers=0.0)
    coarse = np.arange(y.size) % 2 == 1
    y = np.where(coarse, y + 0.5 * np.random.default_rng(10).standard_normal(y.size), y)
    problem = bf.Problem([Huber(1.0), Huber(1.0)], A, y, group=coarse.astype(int))
    fine, rough = bf.solve(problem, 2, Refitted(), rng=0).problem.f.parameters.values
    assert rough > 3 * fine


def test_what_cannot_be_fitted_is_refused(make_problem):
    with pytest.raises(InputError, match="No loss of the problem has parameters"):
        bf.solve(make_problem(), 2, Refitted())
    labels = make_problem(loss=Probit(), penalty=bf.penalties.Ridge(1.0))
    with pytest.raises(InputError, match="scale of z can shrink"):
        bf.solve(labels, 2, Refitted())
    with pytest.raises(InputError, match="Refitted cannot run AltMin"):
        bf.solve(make_problem(loss=Huber()), 2, Refitted(bf.solvers.AltMin()))
    for wrapper in (RankContinuation, RidgeHomotopy, lambda s: Race((s,)), Refitted):
        with pytest.raises(InputError, match="cannot wrap Refitted"):
            wrapper(Refitted())
    for settings in ({"every": 0}, {"rounds": 0}, {"tol": 0.0}, {"solver": "PCG"}):
        with pytest.raises(InputError):
            Refitted(**settings)


@pytest.mark.parametrize("solver", [PCG(), Newton(), RankContinuation(), bf.solvers.BFGD(bf.steps.Backtracking())])
def test_other_solvers_can_be_refitted(solver):
    X, A, y = corrupted(np.random.default_rng(6))
    result = bf.solve(bf.Problem(Huber(0.5), A, y), 2, Refitted(solver, every=20), rng=0, max_iter=3000)
    assert np.linalg.norm(result.matrix() - X) < 0.03 * np.linalg.norm(X)


def test_the_parts_of_a_sum_have_parameters_of_their_own():
    X, A, y = corrupted(np.random.default_rng(7))
    rng = np.random.default_rng(8)
    rows, cols = np.nonzero(rng.random(X.shape) < 0.4)
    finer = X[rows, cols] + 0.005 * rng.standard_normal(rows.size)
    problem = bf.Problem(Huber(1.0), A, y) + bf.Problem(Huber(1.0), bf.operators.Entries(rows, cols, X.shape), finer)
    result = bf.solve(problem, 2, Refitted(), rng=0)
    assert result.problem.f.parameters.values[0] == pytest.approx(1.345 * 0.05, rel=0.2)
    assert result.problem.f.parameters.values[1] < 0.5 * result.problem.f.parameters.values[0]
    labels = problem + bf.Problem(Logistic(), A, np.where(y > 0, 1.0, -1.0))
    assert labels.f.parameters.values == problem.f.parameters.values


@pytest.mark.parametrize("whole", [True, False])
def test_theta_of_counts_is_found_in_tables_and_in_entries(whole):
    rng = np.random.default_rng(0)
    mean = np.exp(0.7 * rng.standard_normal((150, 2)) @ rng.standard_normal((2, 60)) + 1)
    y = rng.negative_binomial(3.0, 3.0 / (3.0 + mean)).astype(float)
    rows, cols = np.divmod(np.arange(y.size), 60)
    loss, ridge, fixed = bf.losses.NegativeBinomial(), bf.penalties.Ridge(5.0), (np.ones((150, 1)), None)
    if whole:
        problem = bf.Objective(bf.operators.FullTable(loss, y), ridge, fixed=fixed)
    else:
        problem = bf.Problem(loss, bf.operators.Entries(rows, cols, y.shape), y.ravel(), penalty=ridge, fixed=fixed)
    result = bf.solve(problem, 2, Refitted(), rng=0)
    assert result.problem.f.parameters.values[0] == pytest.approx(3.0, rel=0.15)
