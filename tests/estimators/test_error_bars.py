"""Error bars of `MatrixCompletion`: what they mean, how they travel, and who has none."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import bifactor as bf
from bifactor.errors import InputError
from bifactor.estimators import validation
from bifactor.models.completion import fitting, noise_selection
from bifactor.solvers import PCG, Variational

M, N, NOISE = 120, 60, 0.5


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    return 3 + rng.standard_normal((M, 3)) @ rng.standard_normal((3, N)) + rng.standard_normal((M, 1))


@pytest.fixture(scope="module")
def table(truth):
    rng = np.random.default_rng(1)
    return np.where(rng.random(truth.shape) < 0.3, truth + NOISE * rng.standard_normal(truth.shape), np.nan)


@pytest.fixture(scope="module")
def fitted(table):
    return bf.MatrixCompletion(n_components=4, random_state=0).fit(table)


@pytest.fixture(scope="module")
def named(table):
    i, j = np.nonzero(~np.isnan(table))
    frame = pd.DataFrame({"user": [f"u{k}" for k in i], "item": 10 * j, "rating": table[i, j]})
    return bf.MatrixCompletion(n_components=4, random_state=0).fit_long(frame)


def test_it_beats_the_ridge_that_is_chosen(table, truth, fitted):
    hidden = np.isnan(table)
    ridge = bf.MatrixCompletion(n_components=4, ridge="auto", random_state=0).fit(table)
    errors = [np.mean((model.complete() - truth)[hidden] ** 2) for model in (fitted, ridge)]
    assert errors[0] < 0.9 * errors[1]
    assert (ridge.noise_, ridge.evidence_, ridge.noise_search_) == (None, None, None)
    assert (fitted.ridge_, fitted.ridge_search_) == (None, None)
    assert fitted.noise_ == pytest.approx(NOISE, rel=0.1)
    assert fitted.evidence_ == -fitted.result_.objective
    assert fitted.result_.status.converged


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_hold_as_often_as_they_say(table, truth, fitted, level):
    rng = np.random.default_rng(2)
    i, j = np.nonzero(np.isnan(table))
    lower, upper = fitted.predict_interval(i, j, level)
    new = truth[i, j] + NOISE * rng.standard_normal(i.size)
    assert np.mean((lower <= new) & (new <= upper)) == pytest.approx(level, abs=0.02)
    told, std = fitted.predict(i, j, return_std=True)
    np.testing.assert_allclose((lower + upper) / 2, told, rtol=1e-10)
    np.testing.assert_array_equal(told, fitted.predict(i, j))
    assert np.all(std > 0)
    assert np.mean(((new - told) / std) ** 2) == pytest.approx(1, abs=0.1)


def test_draws_have_the_mean_and_the_spread_that_are_told(fitted):
    i, j = np.array([0, 5, 7]), np.array([3, 4, 1])
    drawn = fitted.sample(4000, i, j, random_state=0)
    told, std = fitted.predict(i, j, return_std=True)
    assert drawn.shape == (4000, 3)
    np.testing.assert_allclose(drawn.mean(axis=0), told, atol=5 * std.max() / 4000**0.5)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=0.08)
    below = fitted.sample(4000, i, j, noise=False, random_state=0)
    assert np.all(below.std(axis=0) < std)
    np.testing.assert_array_equal(fitted.sample(2, i, j, random_state=0), drawn[:2])
    assert fitted.sample(3, 0, 3, random_state=0).shape == (3,)


def test_draws_of_the_whole_matrix_keep_what_is_known(table, fitted):
    drawn = fitted.sample(3, random_state=0)
    known = ~np.isnan(table)
    assert drawn.shape == (3, M, N)
    np.testing.assert_array_equal(drawn[:, known], np.broadcast_to(table[known], (3, known.sum())))
    assert np.all(drawn[0][~known] != drawn[1][~known])
    assert np.all(fitted.sample(1, noise=False, random_state=0)[0][known] != table[known])


def test_new_rows_have_error_bars(table, truth, fitted):
    rng = np.random.default_rng(3)
    rest = bf.MatrixCompletion(n_components=4, random_state=0).fit(table[20:])
    told, std = rest.predict(table[:20], return_std=True)
    assert told.shape == std.shape == (20, N)
    lower, upper = rest.predict_interval(table[:20], level=0.9)
    hidden = np.isnan(table[:20])
    new = truth[:20] + NOISE * rng.standard_normal((20, N))
    assert np.mean(((lower <= new) & (new <= upper))[hidden]) == pytest.approx(0.9, abs=0.04)
    assert rest.sample(2, table[:20], random_state=0).shape == (2, 20, N)
    # Little is known of the first row, nothing of the second: what is told is ever less sure.
    few = np.full((3, N), np.nan)
    few[0, :30], few[1, :3] = truth[0, :30], truth[0, :3]
    spread = rest.predict(few, return_std=True)[1].mean(axis=1)
    assert spread[0] < spread[1] < spread[2]


def test_rows_of_the_fit_found_anew_are_as_sure_as_in_the_fit(table, fitted):
    long = clone(fitted).set_params(solver=Variational(tol=1e-7)).fit(table)
    told, std = long.predict(table, return_std=True)
    i, j = np.indices(table.shape).reshape(2, -1)
    first, spread = long.predict(i, j, return_std=True)
    np.testing.assert_allclose(told.ravel(), first, atol=2e-3)
    np.testing.assert_allclose(std.ravel(), spread, rtol=2e-3)


def test_partial_fit_adds_rows_and_columns_with_error_bars(table, fitted):
    new = clone(fitted).fit(table[:100]).partial_fit(table[100:])
    i, j = np.repeat(np.arange(100, M), N), np.tile(np.arange(N), 20)
    expected, spread = clone(fitted).fit(table[:100]).predict(table[100:], return_std=True)
    told, std = new.predict(i, j, return_std=True)
    np.testing.assert_allclose(told, expected.ravel(), rtol=1e-10)
    np.testing.assert_allclose(std, spread.ravel(), rtol=1e-10)
    wide = clone(fitted).fit(table[:, :50])
    i, j = np.nonzero(~np.isnan(table[:, 50:]))
    wide.partial_fit((i, j + 50, table[:, 50:][i, j]))
    seen, unseen = wide.predict([0], [55], return_std=True)[1], fitted.predict([0], [55], return_std=True)[1]
    assert seen == pytest.approx(unseen, rel=0.4)


def test_names_that_are_not_known_are_less_sure(named):
    frame = pd.DataFrame({"user": ["u1", "nobody", "u1", "nobody"], "item": [10, 10, 7, 7]})
    told = named.predict_long(frame, return_std=True)
    assert list(told) == ["user", "item", "prediction", "std", "known"]
    assert told["std"][0] < min(told["std"][1:])
    with pytest.warns(UserWarning, match="In 3 of 4 pairs"):
        _, std = named.predict(frame["user"], frame["item"], return_std=True)
    np.testing.assert_array_equal(std, told["std"])
    lower, upper = named.predict_interval(frame)
    np.testing.assert_allclose((lower + upper) / 2, told["prediction"], rtol=1e-10)
    with pytest.raises(InputError, match="no row named 'nobody'"):
        named.predict_interval(frame, unknown="raise")
    assert np.ndim(named.predict("u1", 10, return_std=True)[1]) == 0
    assert [np.ndim(end) for end in named.predict_interval("u1", 10)] == [0, 0]


@pytest.mark.parametrize("noise", ["one", "columns", "rows", "both", "student"])
def test_saved_and_loaded(tmp_path, named, noise):
    i, j = named.observations_.rows, named.observations_.cols
    frame = pd.DataFrame({"user": i, "item": j, "rating": named.observations_.values})
    model = bf.MatrixCompletion(n_components=3, noise=noise, max_iter=20, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # 20 sweeps are not always enough
        model.fit_long(frame)
    model.save(tmp_path / "whole")
    fit = bf.load(tmp_path / "whole")
    told, std = fit.predict(i[:50], j[:50], return_std=True)
    np.testing.assert_allclose(told, model.predict(i[:50], j[:50]), rtol=1e-12)
    np.testing.assert_allclose(std, model.predict(i[:50], j[:50], return_std=True)[1], rtol=1e-9)
    for ours, theirs in zip(fit.predict_interval(0, 3, 0.8), model.predict_interval(0, 3, 0.8), strict=True):
        assert ours == pytest.approx(theirs)
    new = pd.DataFrame({"user": [999] * 3, "item": [0, 1, 2], "rating": [2.0, 3.0, 4.0]})
    added = fit.fold_in(bf.data.read(new))
    also = model.partial_fit_long(new)
    np.testing.assert_allclose(added.predict(999, 5, return_std=True), also.predict(999, 5, return_std=True), rtol=1e-7)
    model.save(tmp_path / "bare", error_bars=False)
    bare = bf.load(tmp_path / "bare")
    assert bare.predict(0, 3) == pytest.approx(model.predict(0, 3))
    assert np.isfinite(bare.fold_in(bf.data.read(new)).predict(999, 5))
    with pytest.raises(InputError, match="Only the means"):
        bare.predict(0, 3, return_std=True)
    sizes = [(tmp_path / name / "posterior.safetensors").stat().st_size for name in ("whole", "bare")]
    assert sizes[1] < sizes[0] / 2


def test_the_noise_is_the_one_that_predicts_best(table, monkeypatch):
    model = bf.MatrixCompletion(n_components=3, random_state=0).fit(table)
    search = model.noise_search_
    plain = len(noise_selection.CANDIDATES)
    assert search["implicit"].tolist() == [False] * plain + [True]
    assert search.index == np.argmin(search.score[:plain])  # the pattern tells nothing here
    assert search.standard_error[np.argmin(search.score)] == 0
    assert search.chosen["noise"] in model.result_.solver
    never = bf.MatrixCompletion(n_components=3, noise="columns", implicit_features=False, random_state=0)
    one = never.fit(table).noise_search_
    assert one["noise"].tolist() == ["columns", "columns"]
    assert one["prior"].tolist() == ["shared", "separate"]
    given = bf.MatrixCompletion(n_components=3, solver=Variational("rows"), random_state=0).fit(table)
    assert given.noise_search_ is None
    assert given.model_.posterior.noise_model.rows is not None


def test_implicit_features_on_request(table):
    model = bf.MatrixCompletion(n_components=3, implicit_features=True, random_state=0).fit(table)
    assert model.noise_search_["implicit"].all()
    assert model.model_.posterior.rows.weights[1].mean.shape == (N, 4)
    told, std = model.predict(table[:3], return_std=True)
    again = model.predict(np.repeat(np.arange(3), N), np.tile(np.arange(N), 3))
    assert np.corrcoef(told.ravel(), again)[0, 1] > 0.99
    assert np.all(std > 0)


@pytest.mark.parametrize("turned", [False, True])
def test_of_many_entries_those_of_some_rows_are_tried(table, monkeypatch, turned):
    monkeypatch.setattr(fitting, "MAX_NOISE_SELECTION_ENTRIES", 500)
    seen, solve = [], noise_selection.solve

    def watched(problem, *args, **options):
        seen.append((problem.shape, int(np.count_nonzero(problem.weights))))
        return solve(problem, *args, **options)

    monkeypatch.setattr(noise_selection, "solve", watched)
    X = table.T if turned else table
    model = bf.MatrixCompletion(n_components=3, random_state=0).fit(X)
    assert model.model_.U.shape[0] == X.shape[0]
    shape, size = seen[0]
    assert shape[int(turned)] < X.shape[int(turned)]
    assert shape[1 - int(turned)] == X.shape[1 - int(turned)]
    assert 300 < size < 500


def test_as_many_components_as_live(table):
    model = bf.MatrixCompletion(n_components="auto", random_state=0).fit(table)
    assert 3 <= model.n_components_ <= 5
    assert model.row_factors_.shape == (M, model.n_components_)
    told, std = model.predict(table[:3], return_std=True)
    assert np.all(np.isfinite(told))
    assert np.all(std > 0)
    rest = bf.MatrixCompletion(n_components="auto", noise="one", random_state=0)
    rng = np.random.default_rng(0)
    assert rest.fit(rng.standard_normal((40, 30))).n_components_ <= 1


def test_few_entries_have_error_bars_too():
    X = np.array([[1.0, 2.0, np.nan], [2.0, np.nan, 3.0]])
    model = bf.MatrixCompletion(n_components=1, random_state=0).fit(X)
    assert model.noise_search_ is None
    told, std = model.predict([0], [2], return_std=True)
    assert np.isfinite(told)
    assert std > 0


def test_float32_stays(table):
    model = bf.MatrixCompletion(n_components=3, random_state=0).fit(table.astype(np.float32))
    told, std = model.predict([0, 1], [2, 3], return_std=True)
    kinds = {told.dtype, std.dtype, model.sample(1).dtype, model.predict_interval([0], [1])[0].dtype}
    assert kinds == {np.dtype(np.float32)}


def test_without_offsets_and_without_components(table):
    plain = bf.MatrixCompletion(n_components=3, offsets=False, random_state=0).fit(table)
    assert plain.predict([0], [1], return_std=True)[1] > 0
    flat = bf.MatrixCompletion(n_components=0, random_state=0).fit(table)
    told, std = flat.predict(table[:2], return_std=True)
    assert told.shape == std.shape == (2, N)
    assert flat.n_components_ == 0


def test_weights_are_precisions(table, truth):
    """An entry of weight 1/4 is one whose noise is twice as large."""
    rng = np.random.default_rng(5)
    i, j = np.nonzero(~np.isnan(table))
    loud = rng.random(i.size) < 0.5
    y = truth[i, j] + np.where(loud, 2.0, 0.5) * rng.standard_normal(i.size)
    errors = {}
    for name, weights in (("right", np.where(loud, 1 / 16, 1.0)), ("none", None)):
        model = bf.MatrixCompletion(n_components=3, noise="one", random_state=0).fit((i, j, y), sample_weight=weights)
        found = model.inverse_transform(np.hstack([model.row_offsets_[:, None], model.row_factors_]))
        errors[name] = np.mean((found - truth) ** 2)
    assert errors["right"] < 0.8 * errors["none"]


def same_law(table, other, unit=1.0, zero=0.0, weight=1.0, **options):
    """Whether predictions and their error bars are those of `table` for another unit, another zero, other weights."""
    a = bf.MatrixCompletion(random_state=0, **options).fit(table)
    b = bf.MatrixCompletion(random_state=0, **options).fit(other, sample_weight=np.full(len(table), weight))
    assert b.n_components_ == a.n_components_
    i, j = np.indices(table.shape).reshape(2, -1)
    (p, s), (q, t) = (model.predict(i, j, return_std=True) for model in (a, b))
    close = 1e-8 if other.dtype == np.float64 else 2e-5
    np.testing.assert_allclose((q.astype(np.float64) - zero) / unit, p, atol=close)
    np.testing.assert_allclose(t.astype(np.float64) / unit, (s if weight == 1 else t), rtol=close)


@pytest.mark.parametrize("n_components", [3, "auto"])
@pytest.mark.parametrize("noise", ["auto", "student"])
@pytest.mark.parametrize(("unit", "zero"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e3)])
def test_the_unit_and_the_zero_of_y_do_not_matter(table, n_components, noise, unit, zero):
    same_law(table[:50], unit * table[:50] + zero, unit, zero, n_components=n_components, noise=noise)


@pytest.mark.parametrize("unit", [1e-20, 1e-6, 1e6, 1e15])
def test_nor_in_single_precision(table, unit):
    single = table[:50].astype(np.float32).astype(np.float64)
    same_law(single, (unit * single).astype(np.float32), unit, n_components=3, noise="both")


@pytest.mark.parametrize("weight", [1e-6, 1e6])
def test_nor_does_the_unit_of_weights(table, weight):
    same_law(table[:50], table[:50], weight=weight, n_components="auto")


def test_warm_start_ends_where_a_cold_one_does(table):
    model = bf.MatrixCompletion(n_components=3, solver=Variational("one"), warm_start=True, random_state=0).fit(table)
    first, n_iter = model.complete(), model.n_iter_
    again = model.fit(table)
    assert again.n_iter_ < n_iter
    np.testing.assert_allclose(again.complete(), first, atol=0.1)


def short_rows(seed, entries=704):
    rng = np.random.default_rng(seed)
    i, j = (np.r_[rng.integers(0, size, entries), size - 1] for size in (338, 38))
    Z = 3 + rng.standard_normal((338, 2)) @ rng.standard_normal((2, 38))
    return (i, j, Z[i, j] + 0.3 * rng.standard_normal(i.size)), Z


@pytest.mark.parametrize("seed", [1, 2])
def test_where_rows_are_short_blocks_and_memory_end_at_the_same_place(seed, tmp_path):
    """One start ends 30 to 100 nats from the other there, so both are tried, and the evidence compares them."""
    triples, Z = short_rows(seed)
    bf.data.partition(triples, tmp_path / "blocks")
    a, b = (
        bf.MatrixCompletion(n_components=2, noise="one", random_state=0).fit(data)
        for data in (triples, str(tmp_path / "blocks"))
    )
    assert abs(a.evidence_ - b.evidence_) < 2
    i, j = np.indices(Z.shape).reshape(2, -1)
    errors = [np.sqrt(np.mean((model.predict(i, j) - Z[i, j]) ** 2)) for model in (a, b)]
    assert errors[1] == pytest.approx(errors[0], rel=0.05)


@pytest.mark.parametrize(("entries", "count"), [(704, 2), (6000, 1)])
def test_only_short_rows_have_two_starts(entries, count, monkeypatch):
    runs, function = [], fitting.run
    monkeypatch.setattr(fitting, "run", lambda *a, **k: runs.append(function(*a, **k)) or runs[-1])
    triples, _ = short_rows(3, entries)
    model = bf.MatrixCompletion(n_components=2, solver=Variational("one"), random_state=0).fit(triples)
    assert len(runs) == count
    assert model.result_.objective == min(run.objective for run in runs)


def test_a_callback_that_stops_a_fit_stops_it():
    seen = []
    model = bf.MatrixCompletion(n_components=2, solver=Variational("one"), random_state=0)
    data = short_rows(3)[0]
    settings = replace(model._settings(), callback=lambda sweep, state: seen.append(sweep) or sweep == 3)
    observations = bf.data.Observations(*data, (338, 38))
    result = fitting.fit_model(observations, settings).result
    assert (result.n_iter, result.status, seen) == (3, bf.Status.CALLBACK, [1, 2, 3])


# Mistakes


def test_a_ridge_has_no_error_bars(table):
    ridge = bf.MatrixCompletion(n_components=2, ridge=1.0).fit(table)
    for ask in (
        lambda: ridge.predict([0], [0], return_std=True),
        lambda: ridge.predict_interval([0], [0]),
        lambda: ridge.sample(),
        lambda: ridge.predict_interval(table[:2]),
    ):
        with pytest.raises(InputError, match="error bars need a posterior"):
            ask()


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.1, np.nan, "0.9", True])
def test_levels_are_probabilities(fitted, level):
    with pytest.raises(InputError, match="not between 0 and 1"):
        fitted.predict_interval([0], [0], level)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": "loud"}, "noise='loud' is unknown"),
        ({"noise": "one", "ridge": 1.0}, "needs loss='squared', without ridge"),
        ({"noise": "one", "loss": "huber"}, "needs loss='squared'"),
        ({"noise": "one", "solver": PCG()}, "needs loss='squared'"),
        ({"noise": "one", "solver": Variational()}, r"Pass Variational\('one'\)"),
        ({"ridge": 1.0, "solver": Variational()}, "Leave out ridge, or the solver"),
        ({"ridge": "auto", "solver": Variational()}, "Leave out ridge, or the solver"),
        ({"loss": "poisson", "solver": Variational()}, "Variational needs loss='squared'"),
        ({"implicit_features": 1}, "implicit_features=1 is unknown"),
        ({"ridge": "none"}, "Pass such a number, 'auto' or None"),
    ],
)
def test_settings_that_do_not_go_together(table, options, message):
    with pytest.raises(InputError, match=message):
        bf.MatrixCompletion(**options).fit(table)


def test_other_mistakes(fitted, monkeypatch):
    with pytest.raises(NotFittedError):
        bf.MatrixCompletion().predict_interval([0], [0])
    with pytest.raises(NotFittedError):
        bf.MatrixCompletion().sample()
    for count in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="n_samples"):
            fitted.sample(count)
    with pytest.raises(InputError, match="noise"):
        fitted.sample(1, noise="yes")
    with pytest.raises(InputError):
        fitted.predict_interval([M], [0])
    monkeypatch.setattr(validation, "LARGEST", 100)
    with pytest.raises(InputError, match="more than 100 entries"):
        fitted.sample(1)


def test_another_solver_takes_a_ridge(table):
    model = bf.MatrixCompletion(n_components=2, solver=PCG(), random_state=0).fit(table)
    assert model.ridge_ > 0
    assert model.model_.posterior is None
