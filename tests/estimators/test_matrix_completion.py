"""MatrixCompletion: it finds what was planted, however it is told, and says clearly what it cannot do."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import bifactor as bf
from bifactor.data.observations import Observations
from bifactor.errors import InputError
from bifactor.estimators import base, validation
from bifactor.estimators.matrix_completion import MatrixCompletion, OneBitCompletion
from bifactor.losses import Huber, Ordinal
from bifactor.models.metrics import deviance_explained
from bifactor.solvers import Newton

SHAPE, RANK, NOISE = (120, 60), 3, 0.1


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    return 2 + rng.standard_normal((SHAPE[0], RANK)) @ rng.standard_normal((RANK, SHAPE[1]))


@pytest.fixture(scope="module")
def table(truth):
    rng = np.random.default_rng(1)
    noisy = truth + NOISE * rng.standard_normal(SHAPE)
    return np.where(rng.random(SHAPE) < 0.5, noisy, np.nan)


@pytest.fixture(scope="module")
def fitted(table):
    return make().fit(table)


def make(**kwargs):
    return MatrixCompletion(**{"n_components": RANK, "ridge": 0.1, "random_state": 0} | kwargs)


def triples(table):
    rows, cols = np.nonzero(~np.isnan(table))
    return rows, cols, table[rows, cols]


def rmse(a, b):
    return float(np.sqrt(np.mean((np.asarray(a) - np.asarray(b)) ** 2)))


def hidden_error(model, truth, table):
    hole = np.isnan(table)
    return rmse(model.predict(*np.nonzero(hole)), truth[hole])


@pytest.mark.parametrize("offsets", [True, False])
def test_the_number_of_components_without_a_ridge(table, offsets):
    model = make(n_components="auto", ridge=0, offsets=offsets).fit(table)
    assert model.n_components_ == (RANK if offsets else RANK + 1)  # the mean of the planted matrix is one more


@pytest.mark.parametrize("ridge", [0.1, "auto"])
@pytest.mark.parametrize("components", [RANK, "auto"])
def test_it_finds_what_was_planted(truth, table, components, ridge):
    model = make(n_components=components, ridge=ridge).fit(table)
    assert model.ridge_ >= 0
    assert (model.ridge_search_ is None) == (ridge != "auto")
    assert hidden_error(model, truth, table) < NOISE
    assert model.n_features_in_ == SHAPE[1]
    assert model.components_.shape == (model.n_components_, SHAPE[1])
    assert model.row_factors_.shape == (SHAPE[0], model.n_components_)


def test_exact_data_are_completed_exactly(truth):
    rng = np.random.default_rng(2)
    table = np.where(rng.random(SHAPE) < 0.5, truth, np.nan)
    model = make(ridge=0.0, n_components=RANK + 1, offsets=False, tol=1e-9, max_iter=2000).fit(table)
    assert hidden_error(model, truth, table) < 1e-5


def test_the_parts_make_the_prediction(fitted):
    rows, cols = np.arange(SHAPE[0])[:, None], np.arange(SHAPE[1])[None, :]
    z = fitted.intercept_ + fitted.row_offsets_[rows] + fitted.column_offsets_[cols]
    z = z + fitted.row_factors_ @ fitted.components_
    told = fitted.predict(np.repeat(rows, SHAPE[1]), np.tile(cols.ravel(), SHAPE[0])).reshape(SHAPE)
    np.testing.assert_allclose(told, z, atol=1e-10)


def test_without_offsets(truth, table):
    model = make(offsets=False, n_components=RANK + 1).fit(table)
    assert hidden_error(model, truth, table) < NOISE
    assert model.intercept_ == 0
    assert not model.row_offsets_.any()
    assert model.transform(table).shape == (SHAPE[0], RANK + 1)


# Every form of input


def forms(table):
    rows, cols, values = triples(table)
    frame = {f"c{j}": table[:, j] for j in range(table.shape[1])}
    return {
        "triples": (rows, cols, values),
        "sparse": sparse.csr_array((values, (rows, cols)), shape=table.shape),
        "pandas": pd.DataFrame(frame),
        "polars": pl.DataFrame(frame),
        "masked": np.ma.masked_invalid(table),
    }


@pytest.mark.parametrize("form", ["triples", "sparse", "pandas", "polars", "masked"])
def test_every_form_gives_the_same_fit(table, fitted, form):
    model = make().fit(forms(table)[form])
    np.testing.assert_allclose(model.components_, fitted.components_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("make_frame", [pd.DataFrame, pl.DataFrame])
def test_long_frames(truth, table, fitted, make_frame):
    rows, cols, values = triples(table)
    order = np.random.default_rng(3).permutation(rows.size)
    lines = {"user": [f"u{i}" for i in rows[order]], "item": 7 * cols[order], "stars": values[order]}
    model = make().fit_long(make_frame(lines), row="user", col="item", value="stars")
    told = model.predict(pd.Series(["u3", "u5"]), [7 * 2, 7 * 9])
    np.testing.assert_allclose(told, fitted.predict([3, 5], [2, 9]), atol=1e-3)
    assert list(model.column_names_) == sorted(set((7 * cols).tolist()))
    with pytest.raises(InputError, match=r"no row named 'u999'.*unknown='mean'"):
        model.predict(["u3", "u999"], [0, 7], unknown="raise")
    with pytest.raises(InputError, match="no column named 3"):
        model.predict("u3", 3, unknown="raise")


def test_two_lines_of_the_same_names_are_two_measurements():
    lines = pd.DataFrame({"r": ["a", "a", "b"], "c": ["x", "x", "y"], "v": [1.0, 3.0, 2.0]})
    model = make().fit_long(lines, row="r", col="c", value="v")
    assert model.observations_.values.size == 3


def test_entries_of_weight_zero_are_as_good_as_missing(table):
    known = ~np.isnan(table)
    out = known & (np.random.default_rng(4).random(SHAPE) < 0.3)
    without = make().fit(np.where(out, np.nan, table))
    weighted = make().fit(np.where(out, 1e6, table), sample_weight=np.where(out, 0.0, 1.0))
    # The sign of a component is that of a singular vector, which rounding decides.
    sign = np.sign(np.sum(weighted.components_ * without.components_, axis=1, keepdims=True))
    np.testing.assert_allclose(weighted.components_, sign * without.components_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weighted.complete(), without.complete(), rtol=1e-6, atol=1e-9)
    rows = np.ones(SHAPE[0])
    rows[:40] = 0
    weighted = make().fit(table, sample_weight=rows)
    assert np.abs(weighted.row_factors_[:40]).max() < 1e-12


def test_weights_pull(table):
    weights = np.ones(SHAPE)
    i, j = (int(part[0]) for part in np.nonzero(~np.isnan(table)))
    pulled = table.copy()
    pulled[i, j] += 5
    weights[i, j] = 1e4
    light, heavy = make(ridge=1.0).fit(pulled), make(ridge=1.0).fit(pulled, sample_weight=weights)
    distance = [abs(model.predict(i, j) - pulled[i, j]) for model in (light, heavy)]
    assert distance[1] < 0.1 * distance[0]


@pytest.mark.parametrize("offsets", [True, False])
@pytest.mark.parametrize(
    "X",
    [
        np.array([[3.0]]),
        np.array([[np.nan, 3.0, np.nan]]),
        np.array([[1.0, 2.0, np.nan, 4.0]]),
        np.array([[1.0], [2.0], [np.nan], [4.0]]),
        np.full((5, 4), 2.0),
        np.zeros((5, 4)),
        np.array([[np.nan, np.nan], [1.0, 2.0], [np.nan, 5.0]]),
        np.column_stack([np.arange(6.0), np.full(6, np.nan)]),
    ],
    ids=["one entry", "one known", "one row", "one column", "constant", "zeros", "empty row", "empty column"],
)
def test_small_and_degenerate_tables(X, offsets):
    model = make(n_components=10, offsets=offsets).fit(X)
    assert model.n_components_ == min(X.shape)
    full = model.complete()
    assert np.all(np.isfinite(full))
    known = ~np.isnan(X)
    np.testing.assert_array_equal(full[known], X[known])
    assert np.all(np.isfinite(model.transform(X)))
    if offsets and np.ptp(X[known]) == 0:
        np.testing.assert_allclose(full, X[known][0], atol=1e-12)


def test_nothing_known_is_refused():
    for X in (np.full((3, 2), np.nan), sparse.csr_array((3, 2))):
        with pytest.raises(InputError, match="No entry of X is known"):
            make().fit(X)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"n_components": -1}, "n_components=-1"),
        ({"n_components": 0, "offsets": False}, "Without offsets, at least one component is needed"),
        ({"n_components": "all"}, "n_components='all'"),
        ({"ridge": -1.0}, r"ridge=-1\.0"),
        ({"loss": "absolute"}, "loss='absolute'.*squared"),
        ({"offsets": 1}, "offsets=1"),
        ({"solver": "pcg"}, "solver is 'pcg'"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1.0}, "tol=-1"),
    ],
)
def test_bad_settings_are_refused_in_fit(table, setting, words):
    with pytest.raises(InputError, match=words):
        make(**setting).fit(table)


# Predicting


def test_predict_takes_what_users_have(fitted):
    told = fitted.predict(np.array([3, 4]), np.array([5, 6]))
    for rows, cols in (
        ([3, 4], (5, 6)),
        (pd.Series([3, 4]), pl.Series([5, 6])),
        (np.array([3, 4], np.uint8), np.array([5, 6], np.int32)),
    ):
        np.testing.assert_array_equal(fitted.predict(rows, cols), told)
    np.testing.assert_array_equal(fitted.predict(3, 5), told[:1])
    np.testing.assert_array_equal(fitted.predict(3, [5, 6]), fitted.predict([3, 3], [5, 6]))
    assert fitted.predict([], []).size == 0


@pytest.mark.parametrize(
    ("rows", "cols", "words"),
    [
        ([0, 500], [0, 1], "500"),
        ([0, -1], [0, 1], "-1"),
        ([0, 1, 2], [0, 1], "rows has 3 indices and cols has 2"),
        ([0.5], [1], "rows is float64"),
        (["a"], [1], "rows is <U1"),
        ([0], [np.nan], "cols is float64"),
    ],
)
def test_predict_refuses_what_is_no_entry(fitted, rows, cols, words):
    for unknown in ("mean", "raise"):
        with pytest.raises(InputError, match=words):
            fitted.predict(rows, cols, unknown=unknown)


def test_tables_of_new_rows(truth, table):
    model = make().fit(table[:100])
    factors = model.transform(table[100:])
    told = model.inverse_transform(factors)
    hole = np.isnan(table[100:])
    assert rmse(told[hole], truth[100:][hole]) < 1.5 * NOISE
    np.testing.assert_allclose(model.predict(table[100:]), told, atol=1e-10)
    np.testing.assert_allclose(model.transform(triples(table[100:])), factors, atol=1e-10)
    with pytest.raises(InputError, match=r"shape \(2, 2\).*4 columns"):
        model.inverse_transform(np.ones((2, 2)))
    with pytest.raises(InputError, match=r"There is a column 60.*partial_fit"):
        model.transform(([0], [60], [1.0]))


def test_transform_of_the_rows_of_the_fit_says_what_the_fit_says(table, fitted):
    own = np.column_stack([fitted.row_offsets_, fitted.row_factors_])
    np.testing.assert_allclose(fitted.transform(table), own, atol=0.02)


def test_complete_keeps_what_is_known(truth, table, fitted):
    full = make().fit_transform(table)
    known = ~np.isnan(table)
    np.testing.assert_array_equal(full[known], table[known])
    assert rmse(full[~known], truth[~known]) < NOISE
    np.testing.assert_array_equal(full, fitted.complete())


def test_fit_transform_is_refused_before_any_work(table, monkeypatch):
    monkeypatch.setattr(validation, "LARGEST", 100)
    monkeypatch.setattr(base, "fit_watched", lambda *args: pytest.fail("work was done"))
    for X in (table, triples(table), sparse.csr_array((11, 10)), pl.DataFrame(table)):
        with pytest.raises(InputError, match=r"more than 100 entries.*predict.*transform"):
            make().fit_transform(X)


def test_complete_is_refused_above_a_size(fitted, monkeypatch):
    monkeypatch.setattr(validation, "LARGEST", 100)
    with pytest.raises(InputError, match="120×60 matrix has more than 100 entries"):
        fitted.complete()


def test_recommend(table, fitted):
    columns, told = fitted.recommend([7, 2], n=4)
    for row, best, value in zip([7, 2], columns, told, strict=True):
        unknown = np.flatnonzero(np.isnan(table[row]))
        z = fitted.predict(row, unknown)
        order = np.argsort(-z)[:4]
        np.testing.assert_array_equal(best, unknown[order])
        np.testing.assert_allclose(value, z[order])
    everything, _ = fitted.recommend(n=SHAPE[1], filter_seen=False)
    assert everything.shape == SHAPE
    assert all(sorted(row) == list(range(SHAPE[1])) for row in everything.tolist())
    with pytest.raises(InputError, match="n=0"):
        fitted.recommend([1], n=0)
    with pytest.raises(InputError, match="500"):
        fitted.recommend([500])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_of_single_numbers_single_values_are_told(table, dtype):
    model = make().fit(table.astype(dtype))
    one = model.predict(3, 5)
    assert np.ndim(one) == np.ndim(model.decision_function(3, 5)) == 0
    assert isinstance(one, dtype)
    assert one == model.predict([3], [5])[0] == model.fit_.predict(3, 5)
    assert model.predict([3], 5).shape == (1,)
    labels = OneBitCompletion(n_components=1, ridge=1.0).fit(np.where(np.isnan(table), np.nan, table > 0))
    assert labels.predict(3, 5) in labels.classes_
    assert labels.predict_proba(3, 5).shape == (2,)
    poisson = make(loss="poisson").fit(np.abs(np.round(table)))
    assert isinstance(poisson.predict(3, 5), float)


def test_recommend_where_too_few_are_left():
    lines = pd.DataFrame({"r": ["a", "a", "b"], "c": ["x", "y", "y"], "v": [1.0, 3.0, 2.0]})
    model = make().fit_long(lines, row="r", col="c", value="v")
    names, told = model.recommend(["a", "b"], n=2)
    assert names.tolist() == [[None], ["x"]]
    assert np.isnan(told).tolist() == [[True], [False]]
    assert [part.shape for part in model.recommend("a", n=2)] == [(1, 0), (1, 0)]
    names, told = model.recommend("b", n=1)
    assert names.tolist() == [["x"]]
    assert np.all(np.isfinite(told))
    with pytest.raises(InputError, match="no row named 'z'"):
        model.recommend(["z"])


# More data


def split(table, first):
    return triples(np.where(first, table, np.nan)), triples(np.where(first, np.nan, table))


@pytest.mark.parametrize("kind", ["rows", "columns", "both", "known rows"])
def test_partial_fit_is_nearly_refitting(truth, table, fitted, kind):
    old_row, old_col = np.arange(SHAPE[0])[:, None] < 100, np.arange(SHAPE[1])[None, :] < 52
    first = {
        "rows": old_row | np.zeros(SHAPE, bool),
        "columns": old_col | np.zeros(SHAPE, bool),
        "both": old_row & old_col,
        "known rows": np.random.default_rng(5).random(SHAPE) < 0.8,
    }[kind]
    before, after = split(table, first)
    model = make().fit(before).partial_fit(after)
    assert model.n_features_in_ == SHAPE[1]
    hole = np.isnan(table) if kind == "known rows" else np.isnan(table) & ~first
    index = np.nonzero(hole)
    ours, refit = (rmse(m.predict(*index), truth[hole]) for m in (model, fitted))
    assert ours < 1.15 * refit
    assert rmse(model.predict(*index), fitted.predict(*index)) < 0.05 * np.std(truth)


def test_partial_fit_of_a_table_is_new_rows(table):
    model = make().fit(table[:100]).partial_fit(table[100:])
    other = make().fit(table[:100])
    np.testing.assert_allclose(model.row_factors_[100:], other.transform(table[100:])[:, 1:], atol=1e-10)
    np.testing.assert_array_equal(model.row_factors_[:100], other.row_factors_)
    assert model.complete().shape == SHAPE


def test_partial_fit_first_is_fit(table, fitted):
    np.testing.assert_array_equal(make().partial_fit(table).components_, fitted.components_)


def test_partial_fit_of_names(table):
    rows, cols, values = triples(table)
    frame = pd.DataFrame({"r": rows, "c": [f"c{j}" for j in cols], "v": values})
    names = {"row": "r", "col": "c", "value": "v"}
    late = (frame["r"] >= 100) | (frame["c"] == "c7")
    model = make().partial_fit_long(frame[~late], **names).partial_fit_long(frame[late], **names)
    whole = make().fit_long(frame, **names)
    told = [m.predict([110, 3], ["c7", "c7"]) for m in (model, whole)]
    np.testing.assert_allclose(*told, atol=0.3)
    before = model.row_names_
    with pytest.raises(InputError, match="one kind"):
        model.partial_fit_long(frame.assign(r="x"), **names)
    assert model.row_names_ is before
    with pytest.raises(InputError, match="partial_fit_long"):
        model.partial_fit(table)
    with pytest.raises(InputError, match="not fitted to names"):
        make().fit(table).partial_fit_long(frame, **names)


def test_new_columns_drop_the_names_of_the_old(table):
    model = make().fit(pd.DataFrame(table, columns=[f"c{j}" for j in range(SHAPE[1])]))
    assert model.feature_names_in_[0] == "c0"
    model.partial_fit(([0, 1], [SHAPE[1], SHAPE[1]], [1.0, 2.0]))
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == SHAPE[1] + 1


# Scores


def test_score(truth, table, fitted):
    rows, cols = np.nonzero(np.isnan(table))
    y = truth[rows, cols]
    expected = 1 - np.sum((fitted.predict(rows, cols) - y) ** 2) / np.sum((y - y.mean()) ** 2)
    assert fitted.score((rows, cols, y)) == pytest.approx(expected)
    assert 0.98 < make().fit(table[:100]).score(table[100:]) < 1
    assert make(n_components=1, ridge=0.1).fit(table[:100]).score(table[100:]) < 0.9
    with pytest.raises(InputError, match="the score is undefined"):
        fitted.score(np.full((2, SHAPE[1]), np.nan))


@pytest.mark.parametrize("loss", ["huber", "logistic", "probit", "poisson", Huber(2.0)], ids=str)
def test_other_losses(truth, loss):
    rng = np.random.default_rng(6)
    values = {
        "logistic": np.where(rng.random(SHAPE) < 1 / (1 + np.exp(-truth)), 1.0, -1.0),
        "poisson": rng.poisson(np.exp(np.clip(truth / 2, None, 3))).astype(float),
    }
    values["probit"] = values["logistic"]
    X = np.where(rng.random(SHAPE) < 0.7, values.get(loss, truth), np.nan)
    model = make(loss=loss, ridge="auto").fit(X)
    rows, cols = np.nonzero(np.isnan(X))
    assert model.score((rows, cols, values.get(loss, truth)[rows, cols])) > 0.1
    assert np.all(np.isfinite(model.transform(X)))


# Habits


def test_single_precision_stays(table):
    model = make().fit(table.astype(np.float32))
    results = (
        model.components_,
        model.predict([0], [1]),
        model.transform(table.astype(np.float32)),
        model.inverse_transform(model.transform(table.astype(np.float32))),
        model.complete(),
        model.recommend([0])[1],
    )
    assert {array.dtype for array in results} == {np.dtype(np.float32)}


def test_one_seed_one_answer(table, fitted):
    np.testing.assert_array_equal(make().fit(table).components_, fitted.components_)
    chosen = make(ridge="auto").fit(table)
    held_out, components = chosen.ridge_search_.score, chosen.components_
    np.testing.assert_array_equal(chosen.fit(table).components_, components)
    assert make(ridge="auto", random_state=1).fit(table).ridge_search_.score[0] != held_out[0]


def test_warm_start_goes_on(table):
    cold = make(ridge=2.0, tol=1e-9).fit(table)
    warm = make(ridge=2.0, tol=1e-9, warm_start=True).fit(table)
    first = warm.n_iter_
    warm.fit(table)
    assert warm.n_iter_ < first
    np.testing.assert_allclose(warm.complete(), cold.complete(), atol=1e-4)
    warm.set_params(n_components=RANK + 1).fit(table)
    assert warm.n_components_ == RANK + 1
    warm.fit(table[:50])
    assert warm.row_factors_.shape[0] == 50


def test_another_solver(truth, table):
    assert hidden_error(make(solver=Newton()).fit(table), truth, table) < NOISE


def test_not_converged_is_a_warning_with_advice(table):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        make(max_iter=1).fit(table)


def test_verbose_shows_a_bar(table, capsys):
    make(ridge=1.0, verbose=1).fit(table)
    assert "objective" in capsys.readouterr().out
    make(ridge=1.0).fit(table)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("options", "words"), [({"ridge": None}, "choosing the noise"), ({"ridge": "auto"}, "choosing the ridge")]
)
def test_verbose_counts_choices_too(table, capsys, options, words):
    make(verbose=1, **options).fit(table)
    said = capsys.readouterr().out
    assert words in said
    assert "left at most" in said
    assert "objective" in said


def test_unfitted(table):
    model = make()
    for use in (
        lambda: model.predict([0], [0]),
        lambda: model.predict(table),
        lambda: model.decision_function([0], [0]),
        lambda: model.transform(table),
        lambda: model.inverse_transform(table),
        model.complete,
        model.recommend,
        lambda: model.score(table),
        lambda: model.save("fit"),
        lambda: model.predict_long(table),
        lambda: model.transform_long(table),
        lambda: model.score_long(table),
        model.get_feature_names_out,
    ):
        with pytest.raises(NotFittedError):
            use()


def test_movielens_first_fold():
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    path = Path(os.environ.get("BIFACTOR_DATA", beside)) / "ml-100k" / "ml-100k.npz"
    if not path.is_file():
        pytest.skip(f"{path} is not there: point BIFACTOR_DATA to the folder of measured data")
    with np.load(path) as file:
        rows, cols, y, test = file["user"] - 1, file["item"] - 1, file["rating"].astype(float), file["fold"] == 2
    seen = sparse.coo_array((y[~test], (rows[~test], cols[~test])), shape=(943, 1682))
    model = MatrixCompletion(random_state=0).fit(seen)
    assert rmse(model.predict(rows[test], cols[test]), y[test]) < 0.93


def test_wrong_labels_and_losses_are_told_by_their_own_names(table):
    with pytest.raises(InputError, match=r"^Logistic needs each y to be -1 or \+1"):
        make(loss="logistic").fit(table)
    with pytest.raises(InputError, match="is neither one of squared"):
        make(loss=["squared"]).fit(table)


def test_the_score_of_counts_is_1_for_the_counts_themselves():
    y = np.random.default_rng(2).poisson(3.0, 40).astype(float)
    data = Observations(np.zeros(40, int), np.arange(40), y, (1, 40))
    model = make(loss="poisson", n_components=1).fit(y[None, :]).model_
    assert deviance_explained(model, data, np.log(np.maximum(y, 1e-12))) == pytest.approx(1.0)
    assert deviance_explained(model, data, np.full(40, np.log(y.mean()))) == pytest.approx(0.0, abs=1e-9)


@pytest.fixture(scope="module")
def grades(truth):
    """Grades from 1 to 5 with holes and without, and the losses of those who know the truth."""
    rng, z = np.random.default_rng(5), 1.5 * (truth - 2)
    cuts = np.array([-3.0, -1.0, 0.0, 2.0])
    y = 1.0 + (z[..., None] + rng.logistic(size=(*SHAPE, 1)) > cuts).sum(axis=-1)
    return np.where(rng.random(SHAPE) < 0.6, y, np.nan), y, Ordinal([1, 2, 3, 4, 5], cuts).value(z, y)


def test_grades_are_told_by_their_probabilities(grades, tmp_path):
    table, y, best = grades
    fit = make(loss="ordinal", ridge="auto").fit(table)
    hole = np.isnan(table)
    p, level = fit.predict_proba(*np.nonzero(hole)), y[hole].astype(int) - 1
    np.testing.assert_array_equal(fit.levels_, [1, 2, 3, 4, 5])
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(fit.predict(*np.nonzero(hole)), p @ fit.levels_, atol=1e-9)
    shares = np.bincount(table[~hole].astype(int), minlength=6)[1:] / np.count_nonzero(~hole)
    told, least, most = -np.log(p[np.arange(len(p)), level]).mean(), best[hole].mean(), -np.log(shares[level]).mean()
    assert least < told < least + 0.4 * (most - least)
    for level, share in zip(fit.levels_, p.mean(axis=0), strict=True):
        assert share == pytest.approx(np.mean(y[hole] == level), abs=0.03)  # calibrated on the whole
    assert 0 < fit.score(table) < 1
    fit.save(tmp_path / "fit")
    again = bf.load(tmp_path / "fit")
    assert again.model.loss == fit.model_.loss
    np.testing.assert_array_equal(again.predict([3, 4], [5, 6]), fit.predict([3, 4], [5, 6]))


def test_probabilities_are_those_of_grades(fitted):
    with pytest.raises(AttributeError):
        fitted.predict_proba([0], [0])
    with pytest.raises(NotFittedError):
        make(loss="ordinal").predict_proba([0], [0])
