"""Factor analysis of tables with holes: laws of the fit, and what is said of rows."""

import subprocess
import sys

import numpy as np
import pytest

import bifactor as bf
from bifactor import kernels
from bifactor.errors import InputError
from bifactor.models.factor_analysis import lanes_reference, updates
from bifactor.models.factor_analysis import model as fitted_model
from bifactor.models.factor_analysis.fit import fit_factors, search_rank
from bifactor.models.factor_analysis.model import FactorModel
from bifactor.models.factor_analysis.updates import (
    BlockedTable,
    bound,
    extrapolated,
    optimal_rotation,
    sort_components,
    start,
    update_columns,
)

NAN = np.nan


def planted(n=400, q=12, rank=3, noise=0.7, holes=0.25, seed=0):
    rng = np.random.default_rng(seed)
    full = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, q))
    full = full / full.std(axis=0) + noise * rng.uniform(0.5, 1.5, q) * rng.standard_normal((n, q))
    full /= full.std(axis=0)
    return full, np.where(rng.random((n, q)) < holes, NAN, full)


def few_patterns(n=400, q=12, seed=0):
    """Holes in a few columns alone, so that many rows have the same."""
    full, _ = planted(n, q, seed=seed)
    rng = np.random.default_rng(seed + 1)
    Y = full.copy()
    Y[rng.random(n) < 0.4, 3] = NAN
    Y[rng.random(n) < 0.4, 7] = NAN
    return Y


TABLES = {
    "planted": planted()[1],
    "few patterns": few_patterns(),
    "no holes": planted()[0],
    "wide": planted(30, 50, 2)[1],
    "small": planted(12, 4, 1)[1],
    "exact": planted(100, 10, 2, noise=0.0)[1],
    "many": planted(3000, 10, 2)[1],
}
each = pytest.mark.parametrize("Y", TABLES.values(), ids=TABLES)


@each
@pytest.mark.parametrize("noise", ["columns", "one"])
def test_the_bound_never_falls(Y, noise):
    bounds = []
    model = fit_factors(Y, noise=noise, tol=1e-5, max_iter=60, on_round=lambda k, value, change: bounds.append(value))
    assert np.all(np.diff(bounds) >= -1e-9 * np.abs(bounds[:-1]))
    assert model.bound >= bounds[-1] - 1e-9 * abs(bounds[-1])  # the last rotation raises it
    assert len(bounds) > 5


def rows_densely(model, y):
    """Mean and covariance of (u | known of y) from the joint Gaussian of both."""
    known = ~np.isnan(y)
    V, noise = model.loadings[known], np.diag(model.noise[known])
    gain = V.T @ np.linalg.inv(V @ V.T + noise)
    return gain @ (y[known] - model.mean[known]), np.eye(V.shape[1]) - gain @ V


def without_doubt(model):
    """The same model with loadings that are known exactly."""
    return FactorModel(
        model.mean,
        model.loadings,
        0 * model.covariances,
        model.noise,
        model.precisions,
        model.bound,
        model.n_iter,
        model.converged,
    )


@each
def test_rows_are_conditionals_of_the_joint_gaussian(Y):
    model = without_doubt(fit_factors(Y, max_iter=10))
    rows = model.rows(Y)
    covariances = rows.covariances
    for i in range(0, len(Y), max(1, len(Y) // 10)):
        mean, covariance = rows_densely(model, Y[i])
        np.testing.assert_allclose(rows.means[i], mean, atol=1e-9)
        np.testing.assert_allclose(covariances[i], covariance, atol=1e-9)


@each
def test_likelihoods_are_those_of_the_joint_gaussian(Y):
    model = fit_factors(Y, max_iter=10)
    found = model.log_likelihood(Y)
    whole = model.loadings @ model.loadings.T + np.diag(model.noise)
    for i in range(0, len(Y), max(1, len(Y) // 10)):
        known = ~np.isnan(Y[i])
        apart, part = (Y[i] - model.mean)[known], whole[np.ix_(known, known)]
        log_det = np.linalg.slogdet(2 * np.pi * part)[1]
        assert found[i] == pytest.approx(-0.5 * (apart @ np.linalg.solve(part, apart) + log_det), rel=1e-9)


def test_a_row_step_maximises_its_part_of_the_bound():
    """Rows by the formulas of the model, one cell after another."""
    Y = TABLES["small"]
    model = fit_factors(Y)
    rows = model.rows(Y)
    r = len(model.precisions)
    for i in range(len(Y)):
        precision, linear = np.eye(r), np.zeros(r)
        for j in np.flatnonzero(~np.isnan(Y[i])):
            v, S = model.loadings[j], model.covariances[j]
            precision += (np.outer(v, v) + S[:r, :r]) / model.noise[j]
            linear += (v * (Y[i, j] - model.mean[j]) - S[:r, r]) / model.noise[j]
        np.testing.assert_allclose(rows.covariances[i], np.linalg.inv(precision), atol=1e-10)
        np.testing.assert_allclose(rows.means[i], np.linalg.solve(precision, linear), atol=1e-10)


@each
def test_variances_are_those_of_the_formula(Y):
    model = fit_factors(Y, max_iter=10)
    rows = model.rows(Y)
    Z, S2 = model.predict(rows)
    np.testing.assert_allclose(Z, model.expected(rows))
    covariances, r = rows.covariances, len(model.precisions)
    for i, j in ((0, 0), (len(Y) - 1, 2), (5, 3)):
        C, e, v = covariances[i], np.append(rows.means[i], 1), model.loadings[j]
        S = model.covariances[j]
        wanted = v @ C @ v + e @ S @ e + np.trace(C @ S[:r, :r]) + model.noise[j]
        assert S2[i, j] == pytest.approx(wanted, rel=1e-9)


def test_rows_in_blocks_are_those_at_once(monkeypatch):
    Y = TABLES["planted"]
    model = fit_factors(Y)
    whole = model.rows(Y), model.predict(model.rows(Y)), model.sample(model.rows(Y), 0)
    monkeypatch.setattr(updates, "BLOCK", 64)
    monkeypatch.setattr(fitted_model, "KEPT", 0)
    rows = model.rows(Y)
    assert rows.kept is None
    np.testing.assert_allclose(rows.means, whole[0].means, atol=1e-12)
    np.testing.assert_allclose(rows.covariances, whole[0].covariances, atol=1e-12)
    for found, wanted in zip(model.predict(rows), whole[1], strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(model.sample(rows, 0), whole[2], atol=1e-10)


def test_rows_that_share_holes_are_as_those_that_do_not(monkeypatch):
    Y = TABLES["few patterns"]
    assert BlockedTable(Y).repeated is not None
    model = fit_factors(Y, tol=1e-6)
    rows = model.rows(Y)
    monkeypatch.setattr(updates, "ALIKE", np.inf)
    assert BlockedTable(Y).repeated is None
    other = fit_factors(Y, tol=1e-6)
    assert other.bound == pytest.approx(model.bound, rel=1e-6)
    np.testing.assert_allclose(model.rows(Y).means, rows.means, atol=1e-10)
    np.testing.assert_allclose(other.predict(other.rows(Y))[1], model.predict(rows)[1], atol=1e-3)


def test_a_turn_is_where_the_bound_is_largest():
    """No other coordinates of scores and loadings, with the best ridges there, have a larger bound."""
    Y = TABLES["planted"]
    table = BlockedTable(Y)
    state = start(table, 4, False)
    for age in range(2):
        state = update_columns(table, state, table.collect(state.columns), age, False)
    sums = table.collect(state.columns)
    turn = optimal_rotation(state, sums, None)
    K = lanes_reference.matrices(state.columns.moments.sum(axis=1)[:, None], 5)[0]
    M = lanes_reference.matrices(sums.total[:, None], 5)[0]

    def cost(onto):
        """Of the priors of scores, loadings and means, when (u, 1) become onto·(u, 1)."""
        back = np.linalg.inv(onto)
        scores, loadings = onto @ M @ onto.T, back.T @ K @ back
        size, n, q = np.linalg.slogdet(onto)[1], len(Y), Y.shape[1]
        ridges = 0.5 * (q + 2) * np.sum(np.log(np.diagonal(loadings)[:-1] + 0.4))
        return 0.5 * np.trace(scores) - n * size + q * size + ridges + 0.005 * loadings[-1, -1]

    least = cost(turn.onto)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            near = np.eye(5)
            near[:-1] += scale * rng.standard_normal((4, 5))
            assert cost(near @ turn.onto) >= least - 1e-9 * abs(least)
    assert cost(np.eye(5)) > least


def test_a_rotation_at_the_end_is_counted_in_the_bound():
    Y = TABLES["planted"]
    table = BlockedTable(Y)
    state = start(table, 5, False)
    for age in range(5):
        state = update_columns(table, state, table.collect(state.columns), age, False)
    value = bound(table, state, table.collect(state.columns), False)
    tidy, promised = sort_components(state, value)
    assert promised == pytest.approx(bound(table, tidy, table.collect(tidy.columns), False), rel=1e-10)
    assert promised >= value
    K = tidy.columns.moments.sum(axis=1)
    whole = lanes_reference.matrices(K[:, None], 6)[0][:-1, :-1]
    np.testing.assert_allclose(whole, np.diag(np.diagonal(whole)), atol=1e-8)
    assert np.all(np.diff(np.diagonal(whole)) <= 0)


def test_a_step_of_length_one_is_the_round_itself():
    Y = TABLES["planted"]
    table = BlockedTable(Y)
    state = start(table, 4, False)
    for age in range(3):
        state = update_columns(table, state, table.collect(state.columns), age, False)
    same = extrapolated(state, 1.0)
    np.testing.assert_allclose(same.columns.means, state.columns.means)
    np.testing.assert_allclose(same.columns.noise, state.columns.noise)
    none = extrapolated(state, 0.0)  # the round before, in other coordinates, which predicts the same
    assert none.columns.means.shape == state.columns.means.shape


def test_planted_factors_are_recovered():
    full, Y = planted(2000, 15, 3, holes=0.3)
    model = fit_factors(Y, tol=1e-4)
    truth = np.cov(full.T)
    found = model.loadings @ model.loadings.T + np.diag(model.noise)
    assert np.abs(found - truth).max() < 0.1
    Z = model.expected(model.rows(Y))
    hidden = np.isnan(Y)
    best = full.mean(axis=0) + _conditional_means(truth, Y)
    errors = [np.mean((table - full)[hidden] ** 2) for table in (Z, best)]
    assert errors[0] < 1.03 * errors[1]  # with the covariance of all data known


def _conditional_means(covariance, Y):
    found = np.zeros_like(Y)
    for i, y in enumerate(Y):
        known = ~np.isnan(y)
        found[i] = covariance[:, known] @ np.linalg.solve(covariance[np.ix_(known, known)], y[known])
    return found


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_the_number_of_factors_is_found(rank):
    Y = planted(600, 14, rank, seed=rank)[1] if rank else np.random.default_rng(0).normal(size=(300, 8))
    search = search_rank(Y)
    assert search.chosen == {"rank": rank}
    assert search.score[search.index] == search.score.max()


def test_variances_cover_what_is_hidden():
    full, Y = planted(1500, 12, 3, seed=3)
    model = fit_factors(Y)
    Z, S2 = model.predict(model.rows(Y))
    hidden = np.isnan(Y)
    apart = ((full - Z) / np.sqrt(S2))[hidden]
    assert np.mean(np.abs(apart) < 1.96) == pytest.approx(0.95, abs=0.01)


def test_draws_have_the_predicted_moments():
    _, Y = planted(30, 6, 2, seed=4)
    Y[0] = NAN
    model = fit_factors(Y)
    rows = model.rows(Y)
    rng = np.random.default_rng(0)
    draws = np.array([model.sample(rows, rng) for _ in range(3000)])
    Z, S2 = model.predict(rows)
    apart = (draws.mean(axis=0) - Z) / np.sqrt(S2 / len(draws))
    assert np.abs(apart).max() < 5
    np.testing.assert_allclose(draws.var(axis=0) / S2, 1, atol=0.2)
    # Within a row, two cells share the score; with the loadings given, the covariance is VCVᵀ + Ψ.
    V, mu = model.sample_loadings(1)
    given = np.array([model.sample(rows, rng, loadings=(V, mu))[3] for _ in range(3000)])
    wanted = V @ rows.covariances[3] @ V.T + np.diag(model.noise)
    np.testing.assert_allclose(np.cov(given.T), wanted, atol=0.15 * np.diagonal(wanted).max())


def test_draws_of_loadings_have_their_covariance():
    model = fit_factors(TABLES["small"])
    rng = np.random.default_rng(0)
    draws = np.array([np.column_stack(model.sample_loadings(rng)) for _ in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0)[:, -1], model.mean, atol=0.05)
    for j in range(len(model.mean)):
        scale = np.sqrt(np.diagonal(model.covariances[j]))
        found = np.cov(draws[:, j].T) / np.outer(scale, scale)
        np.testing.assert_allclose(found, model.covariances[j] / np.outer(scale, scale), atol=0.12)


def test_seen_and_unseen_rows_are_alike():
    Y = TABLES["planted"]
    model = fit_factors(Y)
    np.testing.assert_allclose(model.rows(Y[7:9]).means, model.rows(Y).means[7:9], atol=1e-12)
    nothing = model.rows(np.full((2, Y.shape[1]), NAN))
    np.testing.assert_array_equal(nothing.means, 0)
    np.testing.assert_allclose(
        nothing.covariances, np.broadcast_to(np.eye(nothing.means.shape[1]), (2, *nothing.covariances.shape[1:]))
    )
    assert model.rows(Y[:0]).means.shape == (0, len(model.precisions))
    assert model.predict(model.rows(Y[:0]))[1].shape == (0, Y.shape[1])


def test_rows_without_entries_change_nothing():
    Y = TABLES["planted"]
    more = np.insert(Y, [0, 50], NAN, axis=0)
    np.testing.assert_array_equal(fit_factors(more).loadings, fit_factors(Y).loadings)


def test_columns_without_entries_are_as_before_the_data():
    Y = TABLES["planted"].copy()
    Y[:, 4] = NAN
    model = fit_factors(Y)
    rest = np.delete(Y, 4, axis=1)
    np.testing.assert_array_equal(np.delete(model.loadings, 4, axis=0), fit_factors(rest).loadings)
    np.testing.assert_array_equal(model.loadings[4], 0)
    assert np.all(model.predict(model.rows(Y))[1][:, 4] > 50)  # nothing is known of its mean


EDGES = {
    "one cell": [[1.0]],
    "one row": [[1.0, 2.0, NAN]],
    "one column": [[1.0], [2.0], [NAN], [0.5]],
    "constant column": np.column_stack([np.ones(20), TABLES["planted"][:20, :3]]),
    "zeros": np.zeros((10, 4)),
    "two equal columns": TABLES["exact"][:, [0, 0, 1]],
    "one known cell each": np.where(np.eye(5) > 0, 1.0, NAN),
}


@pytest.mark.parametrize("Y", EDGES.values(), ids=EDGES)
def test_edges_have_finite_answers(Y):
    Y = np.asarray(Y)
    model = fit_factors(Y)
    rows = model.rows(Y)
    Z, S2 = model.predict(rows)
    assert np.all(np.isfinite(Z))
    assert np.all(np.isfinite(S2) & (S2 > 0))
    assert np.isfinite(model.bound)
    assert np.all(np.isfinite(model.sample(rows, 0)))
    assert np.all(np.isfinite(model.log_likelihood(Y)))


def test_rank_zero_is_columns_by_themselves():
    Y = TABLES["planted"]
    model = fit_factors(Y, 0)
    assert model.loadings.shape == (12, 0)
    np.testing.assert_allclose(model.mean, np.nanmean(Y, axis=0), atol=1e-3)
    np.testing.assert_allclose(model.noise, np.nanvar(Y, axis=0), rtol=0.02)
    assert model.rows(Y).covariances.shape == (400, 0, 0)


def test_other_kinds_of_arrays():
    Y = TABLES["planted"]
    model = fit_factors(Y)
    locked = np.asfortranarray(Y)
    locked.flags.writeable = False
    np.testing.assert_array_equal(fit_factors(locked).loadings, model.loadings)
    np.testing.assert_array_equal(fit_factors(np.repeat(Y, 2, axis=1)[:, ::2]).loadings, model.loadings)
    single = fit_factors(Y.astype(np.float32))
    assert single.bound == pytest.approx(model.bound, rel=1e-5)
    before = Y.copy()
    fit_factors(Y)
    np.testing.assert_array_equal(Y, before)


@pytest.mark.parametrize("sample", [None, 200])
def test_same_bits(sample):
    Y = TABLES["many"]
    first, second = (fit_factors(Y, sample=sample, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.loadings, second.loadings)
    with bf.threads(1):
        np.testing.assert_array_equal(fit_factors(Y, sample=sample, seed=1).loadings, first.loadings)


def test_a_sample_of_rows_is_a_good_start():
    Y = TABLES["many"]
    model, quick = fit_factors(Y), fit_factors(Y, sample=300)
    hidden = np.isnan(Y)
    apart = (model.expected(model.rows(Y)) - quick.expected(quick.rows(Y)))[hidden]
    assert np.sqrt(np.mean(apart**2)) < 0.03
    assert fit_factors(Y, sample=300, seed=1).bound == pytest.approx(quick.bound, rel=1e-2)


def test_the_end():
    Y = TABLES["planted"]
    rounds = []
    stopped = fit_factors(Y, on_round=lambda k, value, change: rounds.append((k, change)) or k == 3)
    assert [k for k, _ in rounds] == [1, 2, 3]
    assert stopped.n_iter == 3
    assert not stopped.converged
    assert rounds[-1][1] < rounds[0][1]
    assert fit_factors(Y, max_iter=2).n_iter == 2
    assert fit_factors(Y, max_iter=500, tol=1e-6).converged


@pytest.mark.parametrize(
    ("Y", "settings", "message"),
    [
        (np.full((3, 2), NAN), {}, "No entry of Y"),
        (np.zeros(3), {}, "has shape"),
        (np.zeros((0, 3)), {}, "has shape"),
        (np.zeros((3, 0)), {}, "has shape"),
        (np.zeros((3, 2), complex), {}, "real numbers"),
        ([[1.0, np.inf]], {}, "infinity"),
        ([["a", "b"]], {}, "dtype"),
        (np.eye(3), {"rank": 4}, "rank=4"),
        (np.eye(3), {"rank": -1}, "rank=-1"),
        (np.eye(3), {"rank": 1.0}, "rank=1.0"),
        (np.eye(3), {"noise": "rows"}, "noise='rows'"),
        (np.eye(3), {"max_iter": 0}, "max_iter=0"),
        (np.eye(3), {"tol": -1.0}, "tol=-1.0"),
        (np.eye(3), {"sample": 1}, "sample=1"),
        (np.eye(3), {"seed": -1}, "seed=-1"),
    ],
)
def test_mistakes(Y, settings, message):
    with pytest.raises(InputError, match=message):
        fit_factors(Y, **settings)


def test_other_columns_are_refused():
    model = fit_factors(np.eye(3))
    with pytest.raises(InputError, match="2 columns, but the fit has 3"):
        model.rows(np.eye(2))


SCRIPT = """
import sys
import numpy as np
from bifactor.models.factor_analysis.fit import fit_factors
Y = np.random.default_rng(0).standard_normal((60, 6))
fit_factors(Y)
print(sorted(set(sys.modules) & {"numba", "sklearn"}))
"""


def test_small_tables_load_neither_numba_nor_scikit_learn():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("rank", [0, 1, 2, 9, 31])
@pytest.mark.parametrize("count", [0, 1, 8, 21])
def test_kernels_are_their_references(rank, count):
    rng = np.random.default_rng(rank)
    X = rng.standard_normal((count, rank, rank + 3))
    whole = np.eye(rank) + X @ X.transpose(0, 2, 1)
    packed, vectors = lanes_reference.packed_of(whole), rng.standard_normal((rank, count))
    fast = kernels.get("models.factor_analysis.lanes", packed, np.inf)
    np.testing.assert_array_equal(lanes_reference.matrices(packed, rank), whole)
    inverses = [packed.copy(), packed.copy()]
    logs = [kernel.invert(one, rank) for kernel, one in zip((fast, lanes_reference), inverses, strict=True)]
    np.testing.assert_allclose(inverses[0], inverses[1], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(logs[0], logs[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(lanes_reference.matrices(inverses[1], rank), np.linalg.inv(whole), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(logs[1], np.linalg.slogdet(whole)[1], atol=1e-10)
    np.testing.assert_allclose(fast.times(packed, vectors), lanes_reference.times(packed, vectors), atol=1e-10)
    sums = [packed.copy(), packed.copy()]
    for kernel, one in zip((fast, lanes_reference), sums, strict=True):
        kernel.add_squares(one, vectors)
    np.testing.assert_allclose(sums[0], sums[1], atol=1e-12)


def test_a_fit_with_either_kernel(monkeypatch):
    Y = TABLES["planted"]
    fast = fit_factors(Y, max_iter=15)
    monkeypatch.setattr(kernels, "SMALL", np.inf)
    slow = fit_factors(Y, max_iter=15)
    assert slow.bound == pytest.approx(fast.bound, rel=1e-9)
    np.testing.assert_allclose(slow.expected(slow.rows(Y)), fast.expected(fast.rows(Y)), atol=1e-6)
