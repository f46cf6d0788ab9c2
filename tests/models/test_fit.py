"""What has been fitted, called by names: laws of predicting, recommending, scoring and adding rows."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.data import Names, Observations, read
from bifactor.data.observations import from_triples
from bifactor.data.seen_items import Pairs
from bifactor.errors import InputError
from bifactor.estimators.matrix_completion import MatrixCompletion
from bifactor.models import Fit
from bifactor.models.completion.fitting import fit_model, validate_settings
from bifactor.models.completion.labels import Labels, two_classes

SHAPE = (25, 14)


def chosen(**options):
    """Settings of a small fit."""
    usual = {"loss": "squared", "n_components": 2, "ridge": 0.5, "offsets": True, "solver": None, "max_iter": 1000}
    return validate_settings(**usual | {"tol": 1e-8, "random_state": 0, "verbose": 0} | options)


def made(loss="squared", dtype=np.float64, **options):
    """A fit of rows that are called u0, u1, … and columns that are called 0, 10, …"""
    data = read(lines(loss, dtype))
    labels = Labels(tuple(two_classes(data.values).tolist())) if loss in ("logistic", "probit") else None
    data = data if labels is None else data.recode(labels)
    return Fit.of(fit_model(data, chosen(loss=loss, **options)).with_recoding(labels), data)


def lines(loss="squared", dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1])) + rng.standard_normal((SHAPE[0], 1))
    i, j = np.nonzero(rng.random(SHAPE) < 0.6)
    values = {
        "logistic": np.where(X > 0, 5, 2),
        "probit": np.where(X > 0, 5, 2),
        "poisson": rng.poisson(np.exp(X / 3)),
    }.get(loss, X + 3)
    return pd.DataFrame({"user": [f"u{k}" for k in i], "item": 10 * j, "rating": values[i, j].astype(dtype)})


@pytest.fixture(scope="module")
def fit():
    return made()


@pytest.fixture(scope="module")
def numbered():
    """A fit of rows and columns that have no names."""
    frame = lines()
    rows = frame["user"].str[1:].astype(int).to_numpy()
    data = from_triples((rows, frame["item"].to_numpy() // 10, frame["rating"].to_numpy()))
    return Fit.of(fit_model(data, chosen()), data)


def scores(fit):
    """μ + bᵢ + cⱼ + uᵢ·vⱼ everywhere."""
    return fit.model.link.intercept + fit.model.U @ fit.model.V.T


# Predicting


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "probit", "poisson"])
@pytest.mark.parametrize("offsets", [True, False])
def test_predictions_are_those_of_the_matrix(loss, offsets):
    fit = made(loss, offsets=offsets)
    rows, cols = np.repeat(list(fit.rows), len(fit.cols)), np.tile(list(fit.cols), len(fit.rows))
    z = scores(fit).ravel()
    np.testing.assert_allclose(fit.decision_function(rows, cols), z, atol=1e-12)
    np.testing.assert_allclose(fit.predict(rows, cols), fit.model.loss.mean(z), atol=1e-12)


def test_single_names_go_with_all_of_the_other_side(fit):
    np.testing.assert_array_equal(fit.predict("u3", [0, 10, 20]), fit.predict(["u3"] * 3, [0, 10, 20]))
    np.testing.assert_array_equal(fit.predict(["u3", "u4"], 10), fit.predict(["u3", "u4"], [10, 10]))
    np.testing.assert_array_equal(fit.predict(["u3"], [0, 10]), fit.predict("u3", [0, 10]))
    assert fit.known("u3", [10, 11]).tolist() == ["both", "row"]
    with pytest.raises(InputError, match="3 rows and 2 columns"):
        fit.predict(["u1", "u2", "u3"], [0, 10])


@pytest.mark.parametrize(("rows", "cols"), [([], []), ("u3", []), ([], 10), (np.empty(0), np.empty(0, int))])
def test_no_pairs(fit, rows, cols):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for unknown in ("mean", "raise"):
            told = fit.predict(rows, cols, unknown=unknown)
            assert (told.shape, told.dtype) == ((0,), np.float64)
        assert fit.known(rows, cols).shape == (0,)


def test_names_are_found_in_any_dress(fit):
    told = fit.predict(["u3", "u4"], [10, 20])
    for rows, cols in (
        (("u3", "u4"), ("10", "20")),
        (pd.Series(["u3", "u4"], index=[7, 7]), pd.array([10, 20], dtype="Int64")),
        (np.array(["u3", "u4"]), np.array([10.0, 20.0])),
        (pd.Categorical(["u3", "u4"]), np.array([10, 20], np.uint8)),
    ):
        np.testing.assert_array_equal(fit.predict(rows, cols, unknown="raise"), told)


def test_seven_and_its_text_are_one_name():
    frame = lines()
    numbers = frame.assign(user=frame["user"].str[1:].astype(int))
    text = numbers.assign(user=numbers["user"].astype(str), item=numbers["item"].astype(str))
    words = text.assign(user=text["user"].where(text["user"] != "0", "zero"))
    for data in (read(numbers), read(text), read(words)):
        fit = Fit.of(fit_model(data, chosen(max_iter=50, tol=1e-3)), data)
        np.testing.assert_array_equal(fit.predict(7, 10, unknown="raise"), fit.predict("7", "10", unknown="raise"))
        assert fit.known([7, "7", "07"], 10).tolist() == ["both", "both", "column"]
        assert np.array_equal(fit.recommend(7)[0], fit.recommend("7")[0])


def test_unknown_names_count_with_an_offset_of_0(fit):
    model = fit.model
    a, b = fit.places(["u3"], "row")[0], fit.places([20], "column")[0]
    wanted = model.link.intercept + np.array([model.U[a] @ model.V[b], model.V[b, 0], model.U[a, 1], 0])
    rows, cols = ["u3", "nobody", "u3", "nobody"], [20, 20, 21, 21]
    with pytest.warns(UserWarning, match="In 3 of 4 pairs a name was not in the fit") as caught:
        np.testing.assert_allclose(fit.predict(rows, cols), wanted, atol=1e-12)
    assert caught[0].filename == __file__
    assert fit.known(rows, cols).tolist() == ["both", "column", "row", "neither"]


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
def test_unknown_names_are_seen_through_the_loss(loss):
    fit = made(loss)
    with pytest.warns(UserWarning, match="1 of 1"):
        told = fit.predict("nobody", "nothing")
    np.testing.assert_allclose(told, fit.model.loss.mean(np.array([fit.model.link.intercept])))


def test_without_offsets_an_unknown_name_is_the_intercept():
    fit = made(offsets=False)
    with pytest.warns(UserWarning, match="2 of 2"):
        np.testing.assert_array_equal(fit.predict(["nobody", "u3"], [20, 21]), [0, 0])


def test_unknown_names_can_be_refused(fit):
    with pytest.raises(InputError, match="The fit has no row named 'nobody'"):
        fit.predict(["u3", "nobody", "else"], [10, 10, 10], unknown="raise")
    with pytest.raises(InputError, match="The fit has no column named 21"):
        fit.predict("u3", [10, 21], unknown="raise")
    with pytest.raises(InputError, match="unknown='drop' is not possible"):
        fit.predict("u3", 10, unknown="drop")
    fit.predict(["u3", "u4"], 10, unknown="raise")


def test_rows_without_names_are_called_by_their_numbers(fit, numbered):
    assert list(numbered.rows) == list(range(SHAPE[0]))
    np.testing.assert_allclose(numbered.predict(3, 2), fit.predict("u3", 20), atol=1e-3)
    with pytest.warns(UserWarning, match="2 of 2"):
        numbered.predict([-1, 99], 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_precision_stays(dtype):
    fit = made(dtype=dtype)
    with pytest.warns(UserWarning, match="1 of 2"):
        told = fit.predict(["u3", "nobody"], 10)
    new = fit.fold_in(read(pd.DataFrame({"user": ["new"], "item": [10], "rating": [1.0]})))
    assert {told.dtype, fit.recommend("u3")[1].dtype, new.predict("new", 20).dtype} == {np.dtype(dtype)}


def test_it_can_be_pickled(fit):
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.predict("u3", [0, 10]), fit.predict("u3", [0, 10]))


# Recommending


def test_recommendations_are_the_largest_predictions_of_columns_that_were_not_seen(fit):
    frame = lines()
    names, told = fit.recommend(["u7", "u2"], n=4)
    for user, best, values in zip(["u7", "u2"], names, told, strict=True):
        unseen = np.setdiff1d(list(fit.cols), frame["item"][frame["user"] == user])
        z = fit.predict(user, unseen)
        order = np.argsort(-z, kind="stable")[:4]
        assert best.tolist() == unseen[order].tolist()
        np.testing.assert_allclose(values, z[order])


def test_recommendations_for_all_and_for_none(fit):
    names, told = fit.recommend(n=3)
    assert names.shape == told.shape == (SHAPE[0], 3)
    np.testing.assert_array_equal(names[[7, 2]], fit.recommend(fit.rows[[7, 2]], n=3)[0])
    assert [part.shape for part in fit.recommend([], n=3)] == [(0, 3), (0, 3)]
    everything, _ = fit.recommend("u3", n=100, filter_seen=False)
    assert sorted(everything[0].tolist()) == sorted(fit.cols)


def test_where_too_few_columns_are_left(fit):
    frame = lines()
    unseen = len(fit.cols) - frame["item"][frame["user"] == "u3"].nunique()
    names, told = fit.recommend("u3", n=10**9)
    assert names.shape == told.shape == (1, unseen)
    assert np.all(np.isfinite(told))
    assert fit.recommend("u3", n=10**9, filter_seen=False)[0].shape == (1, len(fit.cols))


KINDS = {
    "integers": (np.arange(14), -1),
    "unsigned": (np.arange(14, dtype=np.uint8), -1),
    "beyond int64": (np.arange(14, dtype=np.uint64) + np.uint64(2**63), None),
    "numbers": (np.arange(14) / 2, np.nan),
    "dates": (np.datetime64("2020-01-01") + np.arange(14), np.datetime64("NaT", "D")),
    "text": (np.array([f"i{k}" for k in range(14)], object), None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_fewer_columns_left_are_filled_up_in_kind(fit, kind):
    values, gap = KINDS[kind]
    fit = replace(fit, cols=Names(values))
    left = len(fit.cols) - np.diff(fit.seen.starts)
    names, told = fit.recommend(n=100)
    assert names.shape == told.shape == (len(fit.rows), left.max())
    gaps = np.arange(left.max()) >= left[:, None]
    np.testing.assert_array_equal(np.isnan(told), gaps)
    assert names.dtype == (np.int64 if kind == "unsigned" else object if gap is None else values.dtype)
    np.testing.assert_array_equal(names[gaps], np.full(gaps.sum(), gap, names.dtype))
    assert set(names[~gaps].tolist()) <= set(values.tolist())
    single = fit.recommend([fit.rows[int(np.argmin(left))]], n=100)[0]
    assert single.dtype == values.dtype


def test_of_single_names_single_values_are_told(fit):
    one = fit.predict("u3", 20)
    assert isinstance(one, float)
    assert one == fit.predict(["u3"], [20])[0] == fit.predict("u3", [20])[0]
    assert isinstance(fit.decision_function("u3", 20), float)
    assert fit.known("u3", 20) == "both"
    assert fit.predict(["u3"], 20).shape == (1,)


def test_recommendations_that_cannot_be_made(fit):
    with pytest.raises(InputError, match=r"The fit has no row named 'nobody'.*fold it in"):
        fit.recommend(["u3", "nobody"])
    for n in (0, -1, 1.5, True, "3"):
        with pytest.raises(InputError, match="is not an integer ≥ 1"):
            fit.recommend("u3", n=n)


# New rows

NEW = pd.DataFrame({"user": ["ann", "ann", "bob", "ann"], "item": [10, 30, 50, 90], "rating": [4.0, 2.0, 1.5, 3.0]})


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "probit", "poisson"])
@pytest.mark.parametrize("offsets", [True, False])
def test_rows_that_are_folded_in_are_those_of_transform(loss, offsets):
    fit = made(loss, offsets=offsets)
    new = read(NEW.assign(rating={"logistic": 5, "probit": 2, "poisson": 3}.get(loss, NEW["rating"])))
    table = np.full((2, len(fit.cols)), np.nan)
    table[new.rows, fit.cols.indices(new.column_names.values)[new.cols]] = new.values
    estimator = MatrixCompletion(loss=loss, offsets=offsets)
    estimator.model_, estimator.n_features_in_ = fit.model, len(fit.cols)
    wanted = estimator.transform(table)
    folded = fit.fold_in(new)
    found = folded.model.U[folded.places(list(new.row_names), "row")]
    np.testing.assert_array_equal(found[:, int(offsets) :], wanted)
    np.testing.assert_array_equal(found[:, : int(offsets)], 1)


def forms(fit, folder, of_clicks=False):
    """The entries of NEW in every form; in a matrix, the rows have no names."""
    user, item, rating = (NEW[name].to_numpy() for name in NEW)
    i, j = np.array([0, 0, 1, 0]), fit.cols.indices(item)
    table = np.full((2, len(fit.cols)), np.nan)
    table[i, j] = rating
    named = NEW.drop(columns="rating") if of_clicks else NEW
    path = folder / "new.csv"
    named.to_csv(path, index=False)
    values = () if of_clicks else (rating,)
    yield from (named, polars.DataFrame(named), polars.LazyFrame(named), pyarrow.Table.from_pandas(named))
    yield from (path, str(path), (user, item, *values), (user.tolist(), item.tolist(), *(v.tolist() for v in values)))
    if of_clicks:
        table = np.where(np.isnan(table), 0, 1)
        yield from (named.assign(when=7, how="app"), table.astype(bool), sparse.csr_array(table))
    else:
        yield from (table, table.tolist(), np.ma.masked_invalid(table))
        yield from (
            kind((rating, (i, j)), table.shape) for kind in (sparse.csr_array, sparse.coo_matrix, sparse.csc_array)
        )


def test_all_forms_of_new_entries_give_the_same_rows(fit, tmp_path):
    wanted = fit.fold_in(read(NEW))
    for data in forms(fit, tmp_path):
        folded = fit.fold_in(data)
        assert folded.model.U.shape == wanted.model.U.shape
        np.testing.assert_allclose(folded.model.U[-2:], wanted.model.U[-2:], rtol=1e-12)
        np.testing.assert_array_equal(
            folded.seen.select(np.array([25, 26])).columns, wanted.seen.select(np.array([25, 26])).columns
        )
    odd = NEW.rename(columns={"user": "who", "item": "what", "rating": "much"}).assign(w=[1.0, 2.0, 1.0, 0.5])
    asked = {"row": "who", "col": "what", "value": "much", "weight": "w"}
    np.testing.assert_array_equal(fit.fold_in(odd, **asked).model.U, fit.fold_in(read(odd, **asked)).model.U)
    one = fit.fold_in(("ann", [10, 30, 90], [4.0, 2.0, 3.0]))
    np.testing.assert_allclose(one.predict("ann", 50), wanted.predict("ann", 50), rtol=1e-12)


def test_new_choices_need_no_values(tmp_path):
    clicks = lines().drop(columns="rating")
    settings = {"n_components": 3, "unobserved": 0.2, "ridge": 0.1, "item_share": 0.3, "item_ridge": 5.0}
    bf.Recommender(**settings, random_state=0).fit_long(clicks).save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    wanted = fit.fold_in(read(NEW, values=False))
    for data in forms(fit, tmp_path, of_clicks=True):
        folded = fit.fold_in(data)
        np.testing.assert_allclose(folded.model.U[-2:], wanted.model.U[-2:], rtol=1e-12)
    weighed = NEW.assign(w=[1.0, 2.0, 1.0, 0.5]).drop(columns="rating")
    twice = fit.fold_in(weighed, weight="w").model.U[-2:]
    plays = fit.fold_in(NEW.assign(plays=np.e).drop(columns="rating"), value="plays").model.U[-2:]
    double = fit.fold_in(weighed.assign(w=2.0), weight="w").model.U[-2:]
    assert np.abs(twice - wanted.model.U[-2:]).max() > 1e-3
    np.testing.assert_allclose(plays, double, rtol=1e-12)  # 1 + log e


NOT_ENTRIES = {
    "The matrix has 3 columns, but the fit has 14": np.ones((1, 3)),
    "list is not a table": [1.0, 2.0],
    "object": {"user": "ann"},
    "int is not a table": 7,
    "pairs without values": (["ann"], [10]),
    r"shapes \(2,\), \(3,\), \(3,\)": (["ann", "bob"], [10, 30, 50], [1.0, 2.0, 3.0]),
    "values holds 1 NaN": (["ann"], [10], [np.nan]),
    "ndarray is not a table of finite real numbers": np.full((1, 14), np.inf),
    "has two columns and no values.*fold_in": NEW[["user", "item"]],
}


@pytest.mark.parametrize("message", NOT_ENTRIES)
def test_what_holds_no_new_entries_is_refused(fit, message):
    with pytest.raises(InputError, match=message):
        fit.fold_in(NOT_ENTRIES[message])
    with pytest.raises(InputError, match="tuple has no named columns"):
        fit.fold_in((["ann"], [10], [1.0]), value="rating")


def test_rows_that_are_folded_in_are_served(fit):
    folded = fit.fold_in(read(NEW))
    assert list(folded.rows)[-2:] == ["ann", "bob"]
    names, told = folded.recommend(["ann", "bob", "u3"], n=100)
    kept = [set(row[row >= 0].tolist()) for row in names]
    assert kept[0] == set(fit.cols) - {10, 30, 90}
    assert kept[1] == set(fit.cols) - {50}
    np.testing.assert_allclose(told[0, :3], folded.predict("ann", names[0, :3]))
    np.testing.assert_array_equal(names[2][names[2] >= 0], fit.recommend("u3", n=100)[0][0])
    assert folded.known("ann", [10, 11]).tolist() == ["both", "row"]


def test_all_else_stays_as_it_is(fit):
    before = fit.model.U.copy(), fit.model.V.copy(), fit.seen.columns.copy()
    folded = fit.fold_in(read(NEW))
    np.testing.assert_array_equal(folded.model.U[: SHAPE[0]], fit.model.U)
    assert folded.model.V is fit.model.V
    assert all(np.array_equal(a, b) for a, b in zip(before, (fit.model.U, fit.model.V, fit.seen.columns), strict=True))
    assert (len(fit.rows), len(folded.rows)) == (SHAPE[0], SHAPE[0] + 2)


def test_a_row_of_the_fit_is_found_anew_from_the_new_entries_alone(fit):
    folded = fit.fold_in(read(NEW.replace("ann", "u3")))
    assert len(folded.rows) == SHAPE[0] + 1
    other = fit.fold_in(read(NEW))
    np.testing.assert_array_equal(folded.predict("u3", [0, 10]), other.predict("ann", [0, 10]))
    names, _ = folded.recommend("u3", n=100)
    assert set(names[names >= 0].tolist()) == set(fit.cols) - {10, 30, 90}


def test_entries_in_columns_that_are_not_known_are_left_out(fit):
    more = pd.concat([NEW, pd.DataFrame({"user": ["ann", "cyd"], "item": [11, 11], "rating": [9.0, 9.0]})])
    folded, plain = fit.fold_in(read(more)), fit.fold_in(read(NEW))
    np.testing.assert_allclose(folded.predict("ann", [0, 10]), plain.predict("ann", [0, 10]), rtol=1e-12)
    np.testing.assert_allclose(folded.predict("cyd", 20), fit.model.link.intercept + fit.model.V[2, 0])
    with pytest.raises(InputError, match="No entry is in a column of the fit"):
        fit.fold_in(read(pd.DataFrame({"user": ["ann"], "item": [11], "rating": [9.0]})))


def test_a_row_of_which_nothing_is_known_anew_stays(fit):
    more = pd.concat([NEW, pd.DataFrame({"user": ["u3"], "item": [11], "rating": [9.0]})])
    folded = fit.fold_in(read(more))
    np.testing.assert_array_equal(folded.predict("u3", [0, 10]), fit.predict("u3", [0, 10]))
    np.testing.assert_array_equal(folded.recommend("u3")[0], fit.recommend("u3")[0])


def test_weights_of_new_rows_count(fit):
    twice = fit.fold_in(read(pd.concat([NEW, NEW[:1]])))
    weighed = fit.fold_in(read(NEW.assign(w=[2.0, 1.0, 1.0, 1.0]), weight="w"))
    np.testing.assert_allclose(twice.predict("ann", [0, 10]), weighed.predict("ann", [0, 10]), atol=1e-8)


def test_the_last_of_many_measurements_is_seen_once(fit):
    folded = fit.fold_in(read(pd.concat([NEW, NEW])))
    assert folded.seen.size == fit.seen.size + 4


def test_names_of_new_rows_are_of_the_kind_of_the_old(fit):
    folded = fit.fold_in(read(NEW.assign(user=[7, 7, 8, 7], item=NEW["item"].astype(str))))
    np.testing.assert_array_equal(folded.predict(7, 10), folded.predict("7", "10"))
    np.testing.assert_array_equal(folded.predict(7, 10), fit.fold_in(read(NEW)).predict("ann", 10))


def test_rows_that_cannot_be_folded_in(fit, numbered):
    with pytest.raises(InputError, match="X contains 4, but the fit had only 2 and 5"):
        made("logistic").fold_in(read(NEW))
    with pytest.raises(InputError, match="Poisson needs each y"):
        made("poisson").fold_in(read(NEW.assign(rating=-1)))
    with pytest.raises(InputError, match="one kind"):
        numbered.fold_in(read(NEW.assign(item=NEW["item"] // 10)))
    with pytest.raises(InputError, match="value"):
        fit.fold_in(read(NEW, values=False))


def test_pairs_are_counted_once_and_rows_replaced():
    data = Observations(np.array([1, 0, 1, 1]), np.array([2, 0, 0, 2]), np.ones(4), (3, 3))
    pairs = Pairs.of(data)
    assert [pairs[k].tolist() for k in range(3)] == [[0], [0, 2], []]
    assert pairs.size == 3
    more = pairs.with_rows(Observations(np.array([1, 3]), np.array([1, 2]), np.ones(2), (4, 3)))
    assert [more[k].tolist() for k in range(4)] == [[0], [1], [], [2]]


# Scores


def test_the_score_is_the_share_of_deviance_explained(fit):
    frame = lines()
    y, told = frame["rating"].to_numpy(), fit.predict(frame["user"], frame["item"])
    wanted = 1 - np.sum((told - y) ** 2) / np.sum((y - y.mean()) ** 2)
    assert fit.score(frame["user"], frame["item"], y) == pytest.approx(wanted)
    weights = np.arange(len(y)) % 3
    mean = np.average(y, weights=weights)
    wanted = 1 - np.sum(weights * (told - y) ** 2) / np.sum(weights * (y - mean) ** 2)
    assert fit.score(frame["user"], frame["item"], y, weights) == pytest.approx(wanted)


def test_labels_are_scored_as_they_are_written():
    fit, frame = made("logistic"), lines("logistic")
    assert fit.classes.tolist() == [2, 5]
    assert fit.score(frame["user"], frame["item"], frame["rating"]) > 0.3
    assert fit.score(frame["user"], frame["item"], 7 - frame["rating"]) < 0
    with pytest.raises(InputError, match="the fit had only 2 and 5"):
        fit.score("u3", [0, 10], [1.0, 0.0])


def test_scores_of_unknown_names(fit):
    value = fit.score(["u3", "nobody"], [10, 20], [3.0, 1.0])
    assert np.isfinite(value)
    with pytest.raises(InputError, match="no row named 'nobody'"):
        fit.score(["u3", "nobody"], [10, 20], [3.0, 1.0], unknown="raise")


@pytest.mark.parametrize(
    ("rows", "cols", "values", "weights"),
    [
        ([], [], [], None),
        ("u3", 10, [1.0, 2.0], None),
        (["u3", "u4"], 10, [1.0], None),
        (["u3", "u4"], 10, [1.0, np.nan], None),
        (["u3", "u4"], 10, [1.0, np.inf], None),
        (["u3", "u4"], 10, ["good", "bad"], None),
        (["u3", "u4"], 10, [1.0, 2.0], [1.0]),
        (["u3", "u4"], 10, [1.0, 2.0], [1.0, -1.0]),
        (["u3", "u4"], 10, [1.0, 2.0], [0.0, 0.0]),
    ],
    ids=["none", "2 values", "1 value", "NaN", "infinite", "words", "1 weight", "negative weight", "no weight"],
)
def test_scores_that_cannot_be_told(fit, rows, cols, values, weights):
    with pytest.raises(InputError):
        fit.score(rows, cols, values, weights)


def test_a_fit_is_public():
    assert bf.models.Fit is Fit
