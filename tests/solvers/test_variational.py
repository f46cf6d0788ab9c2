"""The variational posterior: its bound, closed forms where there are any, and how often intervals hold."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.decomposition import PCA, FactorAnalysis

import bifactor as bf
from bifactor.errors import InputError
from bifactor.kernels.row_blocks_reference import transposed
from bifactor.solvers import Variational
from bifactor.solvers.variational.factor_posterior import balancing_rotation
from bifactor.solvers.variational.noise import GammaPrior

NOISES = ["one", "columns", "rows", "both", "student"]
PRIORS = ["separate", "shared"]


def planted(seed=0, m=40, n=25, rank=3, noise=0.5, share=0.5, **options):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    seen = rng.random((m, n)) < share
    i, j = np.nonzero(seen)
    y = X[i, j] + noise * rng.standard_normal(i.size)
    return bf.Problem("squared", bf.operators.Entries(i, j, (m, n)), y, **options), X, seen


def run(problem, rank, noise="one", iterations=100, tol=1e-8, prior="separate", **options):
    """The result, and the last state."""
    states = []
    result = bf.solve(
        problem, rank, Variational(noise, prior, tol=0), rng=0, max_iter=iterations, tol=tol,
        callback=lambda t, state: states.append(state), **options,
    )  # fmt: skip
    return result, states[-1]


def covariances(side, rank):
    return transposed(side.covariance, rank)


# The bound


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("options", [{}, {"offsets": True}, {"weights": 0}, {"fixed": 1}], ids=str)
def test_the_bound_never_falls(noise, prior, options):
    rng = np.random.default_rng(1)
    if "weights" in options:
        size = planted()[0].y.size
        options = {"weights": rng.random(size) * (rng.random(size) < 0.9) + 1e-3}
    if "fixed" in options:
        options = {"fixed": (rng.standard_normal((40, 2)), np.ones((25, 1)))}
    problem = planted(**options)[0]
    history = bf.solve(problem, 4, Variational(noise, prior, tol=0), rng=0, max_iter=60, tol=0).history
    assert np.all(np.diff(history.objective) <= 1e-9 * np.abs(history.objective[0]))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("prior", PRIORS)
def test_its_gradient_is_that_of_the_bound(noise, prior):
    """The objective of `Result.problem` is another computation of the bound; here its derivative is compared, too."""
    problem = planted(offsets=True)[0]
    _, state = run(problem, 3, noise, iterations=4, tol=0, prior=prior)
    at = Variational(noise, prior).current(problem, state)
    rng = np.random.default_rng(0)
    x, h = state.point.x, 1e-5
    d = x.gradient(rng.standard_normal(x.left.shape), rng.standard_normal(x.right.shape))
    slope = (at.objective(x.plus(h, d)) - at.objective(x.plus(-h, d))) / (2 * h)
    assert state.point.value == pytest.approx(at.objective(x), rel=1e-12)
    assert state.point.gradient.inner(d) == pytest.approx(slope, rel=1e-5)
    term = at.penalties[0]
    change = (1 / (2 * h)) * (term.evaluate(x.plus(h, d))[1] - term.evaluate(x.plus(-h, d))[1])
    assert (term.hessian(x, d) - change).norm() <= 1e-6 * change.norm()


def test_it_prefers_the_right_rank_and_the_right_noise():
    problem = planted(m=120, n=80)[0]
    bounds = [bf.solve(problem, rank, Variational(), rng=0, max_iter=200, tol=1e-6).objective for rank in (1, 2, 3)]
    assert bounds[2] < bounds[1] < bounds[0]
    more = bf.solve(problem, 6, Variational(), rng=0, max_iter=300, tol=1e-6)
    assert more.objective >= bounds[2] - 1.0
    rng = np.random.default_rng(3)
    scales = np.exp(rng.standard_normal(80))[problem.operator.cols]
    uneven = bf.Problem("squared", problem.operator, problem.y + scales * rng.standard_normal(problem.y.size))
    ends = {name: bf.solve(uneven, 3, Variational(name), rng=0, max_iter=100, tol=1e-6).objective for name in NOISES}
    assert ends["columns"] < ends["one"] - 50
    assert ends["columns"] < ends["rows"] - 50


# Closed forms


def test_with_one_side_given_it_is_bayesian_regression():
    """z = bᵢ·rⱼ with known r: each row is a regression, with one prior and one noise for all of them."""
    rng = np.random.default_rng(0)
    R, B = rng.standard_normal((30, 3)), rng.standard_normal((50, 3)) * [2.0, 1.0, 0.3]
    i, j = np.nonzero(rng.random((50, 30)) < 0.4)
    y = np.einsum("tk,tk->t", B[i], R[j]) + 0.7 * rng.standard_normal(i.size)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, (50, 30)), y, fixed=(None, R))
    result, state = run(problem, 0, iterations=300, tol=1e-12)
    own = state.own
    assert own.variance == pytest.approx(0.49, rel=0.1)
    # The covariances belong to the prior and the noise before the last update, which by now are the same.
    C = covariances(own.rows, 3)
    for row in range(50):
        mine = R[j[i == row]]
        precision = np.diag(own.rows.prior) + mine.T @ mine / own.variance
        np.testing.assert_allclose(C[row], np.linalg.inv(precision), rtol=1e-5, atol=1e-9)
        mean = np.linalg.solve(precision, mine.T @ y[i == row] / own.variance)
        np.testing.assert_allclose(result.U[row], mean, rtol=1e-4, atol=1e-5)
    # −log evidence, in closed form: y of a row is Gaussian with covariance ψI + R diag(1/a) Rᵀ.
    wanted = 0.0
    for row in range(50):
        mine, values = R[j[i == row]], y[i == row]
        cov = own.variance * np.eye(len(values)) + mine / own.rows.prior @ mine.T
        wanted += 0.5 * (np.linalg.slogdet(2 * np.pi * cov)[1] + values @ np.linalg.solve(cov, values))
    assert result.objective == pytest.approx(wanted, rel=1e-6)


def test_complete_data_are_probabilistic_pca():
    """With many rows, nothing is left to doubt about the columns."""
    rng = np.random.default_rng(0)
    W = rng.standard_normal((12, 3)) * [3.0, 2.0, 1.0]
    Y = rng.standard_normal((2000, 3)) @ W.T + 0.8 * rng.standard_normal((2000, 12))
    Y -= Y.mean(axis=0)
    i, j = np.indices(Y.shape).reshape(2, -1)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, Y.shape), Y[i, j])
    result, state = run(problem, 3, iterations=200)
    pca = PCA(3).fit(Y)
    assert state.own.variance == pytest.approx(pca.noise_variance_, rel=0.01)
    angles = np.linalg.svd(np.linalg.qr(result.V)[0].T @ pca.components_.T)[1]
    assert angles.min() > 1 - 1e-4
    covariance = result.V / state.own.rows.prior @ result.V.T + state.own.variance * np.eye(12)
    np.testing.assert_allclose(covariance, pca.get_covariance(), atol=0.02 * np.abs(covariance).max())


def test_complete_data_with_noise_by_columns_are_factor_analysis():
    rng = np.random.default_rng(0)
    W, psi = rng.standard_normal((10, 2)) * 2, rng.uniform(0.3, 3.0, 10)
    Y = rng.standard_normal((3000, 2)) @ W.T + np.sqrt(psi) * rng.standard_normal((3000, 10))
    Y -= Y.mean(axis=0)
    i, j = np.indices(Y.shape).reshape(2, -1)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, Y.shape), Y[i, j])
    _, state = run(problem, 2, "columns", iterations=300)
    theirs = FactorAnalysis(2, tol=1e-6, max_iter=5000).fit(Y)
    np.testing.assert_allclose(state.own.variance / state.own.cols.noise.mean, theirs.noise_variance_, rtol=0.03)


# What the posterior is for


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_intervals_hold_as_often_as_they_say(share):
    z_held, y_held = [], []
    for seed in range(8):
        problem, X, seen = planted(seed, m=80, n=60, share=share, noise=1.0)
        result = bf.solve(problem, 3, Variational(), rng=0, max_iter=80, tol=1e-5)
        i, j = np.nonzero(~seen)
        z, spread = result.predict(i, j), result.posterior.std(i, j) ** 2
        y = X[i, j] + np.random.default_rng(seed + 99).standard_normal(i.size)
        z_held.append(np.mean(np.abs(X[i, j] - z) <= norm.ppf(0.95) * np.sqrt(spread)))
        y_held.append(np.mean(np.abs(y - z) <= norm.ppf(0.95) * np.sqrt(spread + result.posterior.noise(i, j))))
    assert 0.86 <= np.mean(y_held) <= 0.93
    assert 0.75 <= np.mean(z_held) <= 0.94  # mean-field posteriors are known to be somewhat too sure of z


def test_heavy_tails_are_found_and_do_no_harm():
    rng = np.random.default_rng(0)
    problem, X, seen = planted(5, m=120, n=80, share=0.3, noise=0.0)
    noise = {"t": rng.standard_t(2.5, problem.y.size), "normal": rng.standard_normal(problem.y.size)}
    i, j = np.nonzero(~seen)
    for kind, more in noise.items():
        heavy = bf.Problem("squared", problem.operator, problem.y + more)
        one, student = (bf.solve(heavy, 3, Variational(name), rng=0, max_iter=80) for name in ("one", "student"))
        errors = [np.linalg.norm(result.predict(i, j) - X[i, j]) for result in (one, student)]
        if kind == "t":
            assert student.posterior.noise_model.degrees == pytest.approx(4)
            assert student.objective < one.objective - 100
            assert errors[1] < 0.9 * errors[0]
        else:
            assert student.posterior.noise_model.degrees > 10
            assert errors[1] < 1.02 * errors[0]


@pytest.mark.parametrize(("noise", "draw"), [("one", "standard_normal"), ("student", "t")])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_of_new_measurements(noise, draw, level):
    held = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        problem, X, _ = planted(seed, m=80, n=60, noise=0.0)
        draws = [
            rng.standard_t(3, size) if draw == "t" else rng.standard_normal(size) for size in (problem.y.size, X.size)
        ]
        noisy = bf.Problem("squared", problem.operator, problem.y + draws[0])
        posterior = bf.solve(noisy, 3, Variational(noise), rng=0, max_iter=60, tol=1e-5).posterior
        i, j = np.indices(X.shape).reshape(2, -1)
        low, high = posterior.interval(i, j, level)
        y = X[i, j] + draws[1]
        held.append(np.mean((low <= y) & (y <= high)))
    assert np.mean(held) == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("noise", ["one", "both"])
def test_samples_have_the_spread_that_is_told(noise):
    problem = planted(share=0.2, offsets=True)[0]
    result = bf.solve(problem, 2, Variational(noise), rng=0, max_iter=30)
    posterior, rng = result.posterior, np.random.default_rng(0)
    i, j = np.indices(problem.shape).reshape(2, -1)
    drawn = np.array([np.einsum("tk,tk->t", U[i], V[j]) for U, V in (posterior.sample(rng) for _ in range(2000))])
    std = posterior.std(i, j)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.12)
    assert np.all(np.abs(drawn.mean(axis=0) - result.predict(i, j)) <= 6 * std / 2000**0.5)
    U, V = posterior.sample(0)
    assert np.all(U[:, 0] == 1)
    assert np.all(V[:, 1] == 1)
    assert np.array_equal(posterior.sample(0)[0], U)
    flat = np.ptp(posterior.noise(i, j)) == 0
    assert flat == (noise == "one")


def test_a_posterior_is_asked_for_places_that_there_are():
    result = bf.solve(planted()[0], 2, Variational(), rng=0, max_iter=3)
    assert result.posterior.std([0], [1]).shape == (1,)
    assert result.posterior.std([], []).shape == (0,)
    for rows, cols in (([40], [0]), ([-1], [0]), ([0, 1], [0]), ([0.5], [0])):
        with pytest.raises(InputError):
            result.posterior.std(rows, cols)
    for level in (0, 1, 1.5):
        with pytest.raises(InputError, match="not between 0 and 1"):
            result.posterior.interval([0], [0], level)
    assert bf.solve(planted()[0], 2, rng=0, max_iter=3).posterior is None
    with pytest.raises(InputError, match="Solve at a lower rank"):
        result.truncated(1)


def test_it_predicts_better_than_a_ridge_that_is_chosen():
    errors = []
    for seed in range(4):
        problem, X, seen = planted(seed, m=100, n=70, rank=3, share=0.25, noise=1.5)
        ours = bf.solve(problem, 10, Variational(), rng=0, max_iter=60, tol=1e-5).matrix()
        ridges = [
            bf.solve(problem.penalized(bf.penalties.Ridge(r)), 10, rng=0, tol=1e-5) for r in (2.0, 4.0, 8.0, 16.0)
        ]
        best = min(np.linalg.norm((r.matrix() - X)[~seen]) for r in ridges)  # by the truth: no rule can choose better
        errors.append(np.linalg.norm((ours - X)[~seen]) / best)
    assert np.mean(errors) < 1.0


# Edges


def test_a_weight_of_zero_is_no_entry():
    problem = planted()[0]
    keep = np.random.default_rng(0).random(problem.y.size) < 0.7
    operator = problem.operator
    part = bf.operators.Entries(operator.rows[keep], operator.cols[keep], problem.shape)
    some = bf.Problem("squared", part, problem.y[keep])
    none = bf.Problem("squared", operator, problem.y, keep.astype(float))
    rng = np.random.default_rng(1)
    start = bf.inits.Given(rng.standard_normal((40, 3)), rng.standard_normal((25, 3)))
    a, b = (bf.solve(p, 3, Variational("both"), start, rng=0, max_iter=10, tol=0) for p in (some, none))
    np.testing.assert_allclose(a.matrix(), b.matrix(), atol=1e-7)
    assert a.objective == pytest.approx(b.objective, rel=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_rows_and_columns_without_entries_stay_at_the_prior(noise):
    rng = np.random.default_rng(0)
    i, j = rng.integers(1, 9, size=40), rng.integers(1, 7, size=40)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, (10, 8)), rng.standard_normal(40), offsets=True)
    U, V = rng.standard_normal((10, 4)), rng.standard_normal((8, 4))
    U[:, 0] = V[:, 1] = 1
    start = bf.inits.Given(U, V)
    result = bf.solve(problem, 2, Variational(noise), start, rng=0, max_iter=20, tol=0)
    assert np.all(result.U[[0, 9], 1:] == 0)
    assert np.all(result.V[[0, 7]][:, [0, 2, 3]] == 0)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (3, 3)])
@pytest.mark.parametrize("value", [0.0, 1.0, 1e6, 1e-6])
@pytest.mark.parametrize("noise", ["one", "both"])
def test_little_or_constant_data(shape, value, noise):
    i, j = np.indices(shape).reshape(2, -1)
    problem = bf.Problem("squared", bf.operators.Entries(i, j, shape), np.full(i.size, value), offsets=True)
    result = bf.solve(problem, 1, Variational(noise), rng=0, max_iter=30)
    assert np.all(np.isfinite(result.matrix()))
    assert np.isfinite(result.objective)
    # One number may as well be noise.
    assert i.size == 1 or np.linalg.norm(result.matrix() - value) <= 0.7 * abs(value) * i.size**0.5


def test_single_precision_is_close_to_double():
    problem = planted(offsets=True)[0]
    single = bf.Problem("squared", problem.operator, problem.y.astype(np.float32), offsets=True)
    a, b = (bf.solve(p, 3, Variational("both"), rng=0, max_iter=20, tol=0) for p in (problem, single))
    assert b.U.dtype == np.float32
    assert np.linalg.norm(a.matrix() - b.matrix()) <= 1e-2 * np.linalg.norm(a.matrix())


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("offsets", [False, True])
def test_the_answer_does_not_depend_on_units(noise, unit, offsets):
    """Of y, and of weights: they are relative to the noise. The start is not random numbers of a given size."""
    problem = planted(offsets=offsets)[0]
    y, operator, same = problem.y, problem.operator, {"offsets": offsets}
    scaled, weighted = bf.Problem("squared", operator, unit * y, **same), unit * np.ones_like(y)
    runs = (problem, scaled, bf.Problem("squared", operator, y, weighted, **same))
    a, b, c = (bf.solve(p, 3, Variational(noise), rng=0, max_iter=15, tol=0) for p in runs)
    at = np.arange(20), np.arange(20)
    for other, multiple in ((b, unit), (c, 1.0)):
        np.testing.assert_allclose(other.matrix() / multiple, a.matrix(), rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(other.posterior.std(*at) / multiple, a.posterior.std(*at), rtol=1e-7)
    assert b.objective - a.objective == pytest.approx(y.size * np.log(unit), abs=1e-5)


def test_mistakes():
    problem = planted()[0]
    with pytest.raises(InputError, match=r"noise='two' is not a noise model\. Pass one of 'one', 'columns'"):
        Variational("two")
    for other, words in (
        (problem.penalized(bf.penalties.Ridge(1.0)), "fits its own priors"),
        (bf.Problem("huber", problem.operator, problem.y), "squared errors of real observed entries"),
        (bf.Problem("squared", bf.operators.DCT((16, 8), 60, 0), np.ones(60)), "squared errors of real"),
        (bf.Problem("squared", bf.operators.Entries([0], [1], (3, 3)), np.ones(1), symmetric=True), "two factors"),
        (bf.Problem("squared", bf.operators.Entries([0], [1], (3, 3)), np.ones(1) + 0j), "squared errors of real"),
    ):
        with pytest.raises(InputError, match=words):
            bf.solve(other, 1, Variational())
    with pytest.raises(InputError, match="Variational"):
        bf.solve(problem, 2, bf.solvers.RankContinuation(Variational()))


# Parts


def test_gamma_precisions_are_those_of_the_bound():
    """The cost is a divergence minus what log τ adds, and the strength is the one that makes it least."""
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 30, size=200).astype(float)
    errors = counts * rng.gamma(2.0, 0.5, size=200)
    found = GammaPrior(10.0).fit(counts, errors)
    assert np.all(found.mean[counts == 0] == 1)
    seen = counts > 0
    np.testing.assert_allclose(found.mean[seen], ((counts + 10) / (errors + 10))[seen])
    again = GammaPrior(found.strength).fit(counts, errors)
    # One more round from the fitted strength lowers what is minimised over both.
    total = [p.cost + 0.5 * float(np.sum(p.mean[seen] * errors[seen])) for p in (found, again)]
    assert total[1] <= total[0] + 1e-9


def test_a_turn_makes_both_moments_diagonal():
    rng = np.random.default_rng(0)
    P, Q = (A @ A.T for A in rng.standard_normal((2, 4, 6)))
    R = balancing_rotation(P, Q)
    back = np.linalg.inv(R).T
    for moment, turn in ((P, R), (Q, back)):
        turned = turn.T @ moment @ turn
        np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=1e-8 * np.trace(turned))
    assert balancing_rotation(np.diag([1.0, 0.0]), np.eye(2)) is None


@pytest.mark.parametrize("rows", [(50, 50), (200, 30), (1, 7)])
def test_where_priors_are_shared_no_turn_costs_less(rows):
    rng = np.random.default_rng(1)
    P, Q = (np.cov(rng.standard_normal((4, 9)) * [[3], [1], [0.3], [0.1]]) for _ in range(2))
    m, n = rows

    def cost(R):
        moments = np.trace(R.T @ P @ R), np.trace(np.linalg.solve(R, np.linalg.solve(R, Q).T))
        return 2 * (m * np.log(moments[0]) + n * np.log(moments[1])) - (m - n) * np.linalg.slogdet(R)[1]

    R = balancing_rotation(P, Q, rows)
    best = cost(R)
    assert best <= min(cost(balancing_rotation(P, Q)), cost(np.eye(4)))
    for size in (1e-3, 1e-1):
        for _ in range(20):
            assert cost(R @ (np.eye(4) + size * rng.standard_normal((4, 4)))) >= best - 1e-9 * (m + n)


def test_a_shared_prior_is_that_of_all_components():
    problem = planted(offsets=True)[0]
    result, _ = run(problem, 3, prior="shared", iterations=20)
    for rows in (result.posterior.rows, result.posterior.cols):
        assert np.ptp(rows.prior[1:]) == 0 != rows.prior[0] - rows.prior[1]
        assert rows.prior[0] == pytest.approx(1 / rows.squares[:, 0].mean(), rel=1e-10)
        assert rows.prior[1] == pytest.approx(1 / rows.squares[:, 1:].mean(), rel=1e-10)


# New rows


@cache
def fitted_and_again(noise, prior="separate", offsets=True, seed=3):
    """A fit that has come to rest, and its own rows and columns found anew from its entries."""
    rng = np.random.default_rng(seed)
    problem, *_ = planted(seed=seed, m=30, n=20, noise=0.4, share=0.6, offsets=offsets)
    weights = rng.random(problem.y.size) + 0.5
    problem = problem.reweighted(weights)
    result = bf.solve(problem, 3, Variational(noise, prior, tol=0), rng=0, max_iter=400, tol=1e-8)
    return problem, result.posterior, [result.posterior.fold_in(problem, side) for side in (0, 1)]


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("offsets", [True, False])
def test_rows_of_the_fit_found_anew_are_those_of_the_fit(noise, offsets):
    _, posterior, again = fitted_and_again(noise, offsets=offsets)
    for found, first in zip(again, (posterior.rows, posterior.cols), strict=True):
        np.testing.assert_allclose(found.means, first.means, atol=2e-4 * np.abs(first.means).max())
        np.testing.assert_allclose(found.covariance, first.covariance, atol=2e-3 * np.abs(first.covariance).max())
        np.testing.assert_allclose(found.precision, first.precision, rtol=2e-3)


def test_a_row_of_which_nothing_is_known_is_as_before_the_data():
    _, posterior, _ = fitted_and_again("one")
    first = bf.Problem("squared", bf.operators.Entries([0], [0], (3, 20)), [1.0], offsets=True)
    found, padded = posterior.fold_in(first).take(np.array([1, 2])), posterior.rows.padded(32)
    np.testing.assert_allclose(found.means, padded.means[30:], atol=1e-12)
    np.testing.assert_allclose(found.covariance, padded.covariance[30:], rtol=1e-9, atol=1e-12)
    one = posterior.rows.replaced(np.array([4, 31 - 2]), found)
    assert np.all(one.means[[4, 29]] == found.means)
    assert np.all(one.means[5:29] == posterior.rows.means[5:29])


def test_a_posterior_without_covariances_finds_rows_and_has_no_error_bars():
    problem, posterior, again = fitted_and_again("one")
    bare = replace(
        posterior, rows=replace(posterior.rows, covariance=None), cols=replace(posterior.cols, covariance=None)
    )
    found = bare.fold_in(problem).means
    assert 0 < np.abs(found - again[0].means).max() < 0.2 * np.abs(found).max()
    for ask in (lambda: bare.std([0], [0]), lambda: bare.interval([0], [0]), lambda: bare.sample(0)):
        with pytest.raises(InputError, match="Only the means"):
            ask()


@pytest.mark.parametrize("noise", NOISES)
def test_draws_of_noise_have_the_variance_that_is_told(noise):
    _, posterior, _ = fitted_and_again(noise)
    i, j = np.repeat(3, 40000), np.repeat(5, 40000)
    drawn = posterior.sample_noise(i, j, 0)
    assert drawn.std() == pytest.approx(posterior.noise(i[:1], j[:1])[0] ** 0.5, rel=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_means_and_covariances_are_of_one_sweep(seed):
    """Also where the bound goes up and down within its rounding."""
    result, state = run(planted(seed, m=25, n=40)[0], 3, iterations=80, tol=0)
    assert np.array_equal(result.U, result.posterior.rows.means)
    assert result.objective == pytest.approx(state.value, rel=1e-10)


def test_it_ends_when_predictions_rest():
    problem = planted(offsets=True)[0]
    long = bf.solve(problem, 3, Variational(tol=0), rng=0, max_iter=2000, tol=1e-9)
    default = bf.solve(problem, 3, Variational(), rng=0)
    assert default.status is bf.Status.SETTLED
    assert default.n_iter < 200
    noise = default.posterior.variance**0.5
    assert np.sqrt(np.mean((default.matrix() - long.matrix()) ** 2)) < 0.1 * noise
