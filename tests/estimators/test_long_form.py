"""Files and frames with one line per entry: the same laws as for tables, by names."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

import bifactor as bf
from bifactor.errors import BifactorError, InputError
from bifactor.estimators.matrix_completion import MatrixCompletion, OneBitCompletion

SHAPE, RANK = (30, 16), 2
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "polars, lazy": pl.LazyFrame, "pyarrow": pa.table}
EAGER = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "polars, lazy": pl.DataFrame, "pyarrow": pa.Table}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = 2 + rng.standard_normal((SHAPE[0], RANK)) @ rng.standard_normal((RANK, SHAPE[1]))
    return np.where(rng.random(SHAPE) < 0.6, X + 0.1 * rng.standard_normal(SHAPE), np.nan)


@pytest.fixture(scope="module")
def lines(table):
    """The table, one line per entry: rows are called u0, u1, … and columns 0, 10, …"""
    return long(table)


@pytest.fixture(scope="module")
def fitted(lines):
    return make().fit_long(lines)


@pytest.fixture(params=FRAMES)
def library(request):
    return request.param


def long(table, first=0):
    rows, cols = np.nonzero(~np.isnan(table))
    return pd.DataFrame({"user": [f"u{k + first}" for k in rows], "item": 10 * cols, "rating": table[rows, cols]})


def make(**options):
    return MatrixCompletion(**{"n_components": RANK, "ridge": 0.5, "random_state": 0, "tol": 1e-8} | options)


def convert(frame, library):
    return FRAMES[library]({name: frame[name].to_list() for name in frame.columns})


def column(frame, name):
    return np.array(frame[name].to_pylist() if isinstance(frame, pa.Table) else frame[name].to_list())


def columns(frame):
    return frame.column_names if isinstance(frame, pa.Table) else list(frame.columns)


# Fitting


def test_a_long_frame_is_the_table(table, fitted):
    wide = make().fit(table)
    assert list(fitted.row_names_) == [f"u{k}" for k in range(SHAPE[0])]
    assert list(fitted.column_names_) == list(range(0, 10 * SHAPE[1], 10))
    assert (wide.row_names_, wide.column_names_) == (None, None)
    np.testing.assert_array_equal(fitted.complete(), wide.complete())
    assert fitted.n_features_in_ == SHAPE[1]
    assert not hasattr(fitted, "feature_names_in_")


def test_columns_are_found_as_the_shell_finds_them(lines, fitted, library, tmp_path):
    mixed = lines.rename(columns={"user": "User-ID", "item": "movieId"})[["rating", "movieId", "User-ID"]]
    other = lines.rename(columns={"user": "a", "item": "b", "rating": "c"})
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    other.to_csv(tmp_path / "other.tsv", index=False, header=False, sep="\t")
    for source in (
        convert(mixed, library),
        convert(other, library),
        tmp_path / "mixed.csv",
        str(tmp_path / "other.tsv"),
    ):
        model = make().fit_long(source)
        np.testing.assert_array_equal(model.components_, fitted.components_)
        np.testing.assert_array_equal(model.row_factors_, fitted.row_factors_)
    told = make().fit_long(convert(other.assign(z=1), library), row="a", col="b", value="c")
    np.testing.assert_array_equal(told.components_, fitted.components_)
    with pytest.raises(InputError, match="not clear which"):
        make().fit_long(convert(other.assign(y=1, z=1), library))


def test_observations_that_were_read_before(lines, fitted):
    data = bf.data.read(lines)
    np.testing.assert_array_equal(make().fit_long(data).complete(), fitted.complete())
    with pytest.raises(InputError, match="Use fit_long"):
        make().fit(data)
    with pytest.raises(InputError, match="Use fit_long"):
        bf.Recommender().fit(data)


def test_weights_and_holes(lines, library):
    light = lines.assign(trust=1.0)
    light.loc[::5, "trust"] = 0.0
    holes = lines.assign(rating=lines["rating"].where(light["trust"] > 0))
    model = make().fit_long(convert(light, library), weight="trust")
    without = make().fit_long(convert(holes, library))
    np.testing.assert_allclose(model.complete(), without.complete(), atol=1e-6)
    assert model.observations_.origin.missing == without.observations_.origin.missing == len(lines[::5])


def test_lines_in_any_order_are_the_same_fit(lines, fitted):
    mixed = make().fit_long(lines.sample(frac=1, random_state=0))
    pairs = lines["user"], lines["item"]
    np.testing.assert_allclose(mixed.predict(*pairs), fitted.predict(*pairs), atol=1e-4)


def test_long_frames_are_not_taken_for_tables(lines, fitted, library):
    if library == "polars, lazy":
        return  # which scikit-learn does not take either
    frame = convert(lines, library)
    for use in (make().fit, make().fit_transform, make().partial_fit, fitted.transform, fitted.score):
        with pytest.raises(InputError, match=r"one line per entry: user, item, rating\. Use fit_long"):
            use(frame)


def test_sources_that_are_none(lines, tmp_path):
    with pytest.raises(InputError, match="neither a data frame nor the name of a file"):
        make().fit_long({"user": [1], "item": [2], "rating": [3]})
    with pytest.raises(BifactorError, match="There is no file"):
        make().fit_long(tmp_path / "none.csv")
    with pytest.raises(BifactorError, match=r"no entry|No entry"):
        make().fit_long(lines.assign(rating=np.nan))
    with pytest.raises(InputError, match="n_components=-1"):
        make(n_components=-1).fit_long(tmp_path / "none.csv")  # settings are checked before a file is read


# Predicting


PAIRS = pd.DataFrame({"note": ["a", "b", "c", "d"], "item": [30, 30, 31, 31], "user": ["u7", "no", "u7", "no"]})


def test_predictions_are_added_to_a_frame(fitted, library):
    frame = convert(PAIRS, library)
    told = fitted.predict_long(frame)
    assert isinstance(told, EAGER[library])
    assert columns(told) == ["note", "item", "user", "prediction", "known"]
    assert all(column(told, name).tolist() == PAIRS[name].to_list() for name in PAIRS)
    assert column(told, "known").tolist() == ["both", "column", "row", "neither"]
    with pytest.warns(UserWarning, match="3 of 4 pairs"):
        wanted = fitted.predict(PAIRS["user"], PAIRS["item"])
    np.testing.assert_array_equal(column(told, "prediction"), wanted)
    if library != "polars, lazy":
        assert columns(frame) == list(PAIRS.columns)  # the user's frame is as it was


def test_an_index_stays(fitted):
    told = fitted.predict_long(PAIRS.set_index(pd.Index([5, 5, 2, 9])))
    assert told.index.tolist() == [5, 5, 2, 9]
    assert told["prediction"].tolist() == fitted.predict_long(PAIRS)["prediction"].tolist()


def test_pairs_in_other_columns(fitted, library):
    frame = convert(PAIRS.rename(columns={"user": "who", "item": "what"}), library)
    told = fitted.predict_long(frame, row="who", col="what")
    np.testing.assert_array_equal(column(told, "prediction"), fitted.predict_long(PAIRS)["prediction"])
    first = convert(PAIRS[["user", "item"]].rename(columns={"user": "x", "item": "y"}), library)
    np.testing.assert_array_equal(
        column(fitted.predict_long(first), "prediction"), fitted.predict_long(PAIRS)["prediction"]
    )
    with pytest.raises(InputError, match="no column 'film'"):
        fitted.predict_long(frame, row="who", col="film")


def test_unknown_names_can_be_refused(fitted, library):
    frame = convert(PAIRS, library)
    with pytest.raises(InputError, match="The fit has no row named 'no'"):
        fitted.predict_long(frame, unknown="raise")
    with pytest.raises(InputError, match="The fit has no row named 'no'"):
        fitted.predict(PAIRS["user"], PAIRS["item"], unknown="raise")
    with pytest.raises(InputError, match="The fit has no column named 31"):
        fitted.predict("u7", 31, unknown="raise")
    for use in (fitted.predict_long, fitted.predict):
        with pytest.raises(InputError, match="unknown='drop' is not possible"):
            use(frame, unknown="drop")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.predict_long(frame)  # has a column for it


def test_a_frame_of_pairs_may_be_predicted(fitted, library):
    known = PAIRS[:1][["user", "item"]]
    np.testing.assert_array_equal(fitted.predict(convert(known, library)), fitted.predict(known["user"], known["item"]))
    np.testing.assert_array_equal(
        fitted.decision_function(convert(known, library)), fitted.decision_function(known["user"], known["item"])
    )
    with pytest.warns(UserWarning, match="3 of 4 pairs"):
        every = fitted.predict(convert(PAIRS[["user", "item"]], library))
    np.testing.assert_array_equal(every, fitted.predict_long(PAIRS)["prediction"])
    with pytest.raises(InputError, match="no row named 'no'"):
        fitted.predict(convert(PAIRS[["user", "item"]], library), unknown="raise")


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_a_frame_of_pairs_is_one_however_many_columns_the_fit_has(lines, count):
    few = lines[lines["item"].isin([10 * k for k in range(count)])]
    model = make(n_components=1).fit_long(few)
    wanted = model.predict(few["user"], few["item"])
    np.testing.assert_array_equal(model.predict(few[["user", "item"]]), wanted)
    np.testing.assert_array_equal(model.predict(few[["user", "item"]].assign(note="x")), wanted)
    np.testing.assert_array_equal(model.predict_long(few)["prediction"], wanted)


def test_tables_of_new_rows_may_be_predicted_too(table, fitted):
    wide = make().fit(table)
    np.testing.assert_array_equal(fitted.predict(table[:3]), wide.predict(table[:3]))
    np.testing.assert_array_equal(fitted.predict(pd.DataFrame(table[:3])), wide.predict(table[:3]))


def test_names_in_either_dress(lines, library):
    numbers = lines.assign(user=lines["user"].str[1:].astype(int))
    model = make().fit_long(convert(numbers, library))
    text = numbers.astype({"user": str, "item": str})
    told = model.predict_long(convert(text, library))
    assert set(column(told, "known").tolist()) == {"both"}
    np.testing.assert_array_equal(column(told, "prediction"), model.predict(numbers["user"], numbers["item"]))


def test_a_file_of_pairs_gives_columns(fitted, tmp_path):
    PAIRS.to_csv(tmp_path / "pairs.csv", index=False)
    told = fitted.predict_long(tmp_path / "pairs.csv")
    frame = fitted.predict_long(PAIRS)
    assert list(told) == ["user", "item", "prediction", "known"]
    np.testing.assert_array_equal(told["prediction"], frame["prediction"])
    assert list(told["known"]) == list(frame["known"])


def test_no_pairs_give_no_predictions(fitted):
    told = fitted.predict_long(PAIRS[:0])
    assert list(told.columns) == [*PAIRS.columns, "prediction", "known"]
    assert len(told) == 0


def test_frames_that_cannot_be_predicted(fitted):
    with pytest.raises(InputError, match="row names are missing in 'user'"):
        fitted.predict_long(PAIRS.assign(user=["u7", None, "u7", "u7"]))
    with pytest.raises(InputError, match="2 are needed: row, column"):
        fitted.predict_long(PAIRS[["user"]])
    for source in ({"user": ["u7"], "item": [30]}, [1, 2], np.eye(3)):
        with pytest.raises(InputError, match="neither a data frame"):
            fitted.predict_long(source)


# New rows


@pytest.mark.parametrize("offsets", [True, False])
def test_factors_of_rows_are_those_of_transform(table, library, offsets):
    model = make(offsets=offsets).fit_long(long(table[:20]))
    frame = convert(long(table[20:], 20), library)
    told, wanted = model.transform_long(frame), model.transform(table[20:])
    assert isinstance(told, EAGER[library])
    assert columns(told) == ["user", *model.get_feature_names_out()]
    assert column(told, "user").tolist() == [f"u{k}" for k in range(20, SHAPE[0])]
    found = np.column_stack([column(told, name) for name in columns(told)[1:]])
    np.testing.assert_array_equal(found, wanted)


def test_factors_of_rows_in_a_file(table, tmp_path):
    model = make().fit_long(long(table[:20]))
    frame = long(table[20:], 20)
    frame.to_csv(tmp_path / "new.csv", index=False)
    told, wanted = model.transform_long(tmp_path / "new.csv"), model.transform_long(frame)
    assert list(told) == list(wanted.columns)
    for name in told:
        np.testing.assert_array_equal(told[name], wanted[name])


def test_factors_are_those_of_the_rows_that_are_folded_in(table):
    model = make().fit_long(long(table[:20]))
    new = long(table[20:], 20)
    folded = model.fit_.fold_in(bf.data.read(new))
    told = model.transform_long(new)
    np.testing.assert_array_equal(folded.model.U[20:, 1:], told.to_numpy()[:, 1:].astype(float))
    np.testing.assert_allclose(model.inverse_transform(told.iloc[:, 1:])[0, 3], folded.predict("u20", 30), rtol=1e-12)


def test_columns_that_are_not_known_are_left_out(fitted, lines):
    more = pd.concat([lines[:40], pd.DataFrame({"user": ["u0", "new"], "item": [77, 77], "rating": [9.0, 9.0]})])
    told = fitted.transform_long(more)
    assert told["user"].to_list()[-1] == "new"
    assert np.all(told.iloc[-1, 1:] == 0)
    # Up to rounding: how a library multiplies may depend on the number of rows.
    np.testing.assert_allclose(told.iloc[:-1, 1:], fitted.transform_long(lines[:40]).iloc[:, 1:], rtol=1e-12)


# Scores


def test_scores_are_those_of_triples(table, fitted, lines, library, tmp_path):
    rows, cols = np.nonzero(~np.isnan(table))
    wanted = fitted.score((rows, cols, table[rows, cols]))
    assert fitted.score_long(convert(lines, library)) == wanted
    assert fitted.fit_.score(lines["user"], lines["item"], lines["rating"]) == wanted
    lines.to_csv(tmp_path / "lines.csv", index=False)
    assert fitted.score_long(tmp_path / "lines.csv") == wanted
    weights = np.arange(len(lines)) % 3
    weighed = fitted.score_long(convert(lines.assign(w=weights), library), weight="w")
    assert weighed == pytest.approx(fitted.score((rows, cols, table[rows, cols]), sample_weight=weights))
    assert weighed != wanted


def test_scores_of_unknown_names(fitted, lines, library):
    strange = pd.concat([lines, pd.DataFrame({"user": ["no"], "item": [30], "rating": [2.0]})])
    assert fitted.score_long(convert(strange, library)) == pytest.approx(fitted.score_long(lines), abs=0.05)
    with pytest.raises(InputError, match="no row named 'no'"):
        fitted.score_long(convert(strange, library), unknown="raise")


def test_scores_of_nothing(fitted, lines):
    with pytest.raises(BifactorError, match=r"[Nn]o entry"):
        fitted.score_long(lines.assign(rating=np.nan))


def test_columns_are_those_of_the_fit_or_none(lines):
    """What is wrong with a column is said, and another column is not taken in its place."""
    plain = lines.assign(user=lines["user"].str[1:].astype(int))
    plain = plain.rename(columns={"user": "a", "item": "b", "rating": "c"})
    model = make().fit_long(plain)
    mixed = plain[["c", "a", "b"]]
    assert model.score_long(mixed) == model.score_long(plain)
    with pytest.raises(InputError, match="Column 'c' of the frame holds infinite values"):
        model.score_long(mixed.assign(c=np.inf))


# More data


def test_new_rows_and_columns(lines, library):
    late = lines["user"].isin(["u5", "u28"]) | (lines["item"] == 70)
    model = make().fit_long(convert(lines[~late], library))
    before, factors = model.n_features_in_, model.components_.copy()
    model.partial_fit_long(convert(lines[late], library))
    assert (before, model.n_features_in_) == (SHAPE[1] - 1, SHAPE[1])
    assert list(model.row_names_)[-2:] == ["u5", "u28"]
    assert list(model.column_names_)[-1] == 70
    np.testing.assert_array_equal(model.components_[:, : SHAPE[1] - 1], factors)
    whole = make().fit_long(lines)
    told = [m.predict(lines["user"], lines["item"], unknown="raise") for m in (model, whole)]
    assert np.sqrt(np.mean((told[0] - told[1]) ** 2)) < 0.25
    names, _ = model.recommend("u5", n=100)
    seen = set(lines["item"][lines["user"] == "u5"])
    assert set(names[names >= 0].tolist()) == set(model.column_names_) - seen


def test_partial_fit_long_first_is_fit_long(lines, fitted):
    model = make().partial_fit_long(lines)
    np.testing.assert_array_equal(model.components_, fitted.components_)


def test_more_lines_for_names_that_are_there(lines):
    model = make().fit_long(lines[:-30]).partial_fit_long(lines[-30:])
    assert model.observations_.values.size == len(lines)
    again = make().fit_long(lines).partial_fit_long(lines[-30:])
    assert again.observations_.values.size == len(lines)  # of an entry that is in both, the new value counts


def test_names_that_do_not_go_together(lines, table):
    numbers = make().fit_long(lines.assign(user=lines["user"].str[1:].astype(int)))
    with pytest.raises(InputError, match="one kind"):
        numbers.partial_fit_long(lines)
    assert len(numbers.row_names_) == SHAPE[0]
    wide = make().fit(table)
    for use in (wide.partial_fit_long, wide.predict_long, wide.transform_long, wide.score_long):
        with pytest.raises(InputError, match="not fitted to names"):
            use(lines)
    with pytest.raises(InputError, match="Use partial_fit_long"):
        numbers.partial_fit(table)


# Folders


def test_a_fit_is_saved_and_loaded(lines, fitted, tmp_path):
    fitted.save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    np.testing.assert_array_equal(
        fit.predict(lines["user"], lines["item"]), fitted.predict(lines["user"], lines["item"])
    )
    for one, two in zip(fit.recommend(["u7"], n=4), fitted.recommend(["u7"], n=4), strict=True):
        np.testing.assert_array_equal(one, two)
    assert fit.card["estimator"] == "MatrixCompletion"
    assert fit.card["settings"]["n_components"] == RANK
    assert fit.card["data"]["columns"] == ["user", "item", "rating"]
    with pytest.raises(InputError, match="already exists"):
        fitted.save(tmp_path / "fit")
    fitted.save(tmp_path / "fit", force=True)


def test_a_fit_to_a_table_is_saved_and_loaded(table, tmp_path):
    model = make().fit(table)
    model.save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    rows, cols = np.nonzero(np.isnan(table))
    np.testing.assert_array_equal(fit.predict(rows, cols), model.predict(rows, cols))
    assert fit.card["data"]["columns"] == ["row", "column", "value"]


def test_clones_know_nothing_of_a_fit(fitted):
    assert not hasattr(clone(fitted), "fit_")


# Labels


@pytest.mark.parametrize("coding", [(0, 1), (-1, 1), (2, 5)])
def test_labels(lines, library, coding, tmp_path):
    labels = lines.assign(rating=np.where(lines["rating"] > 2, coding[1], coding[0]))
    model = OneBitCompletion(n_components=1, ridge=1.0, random_state=0).fit_long(convert(labels, library))
    told = model.predict_long(convert(PAIRS, library))
    assert columns(told) == ["note", "item", "user", "prediction", "probability", "known"]
    chance = column(told, "probability")
    assert np.all((chance > 0) & (chance < 1))
    assert column(told, "prediction").tolist() == [coding[int(p > 0.5)] for p in chance]
    with pytest.warns(UserWarning, match="3 of 4"):
        np.testing.assert_array_equal(chance, model.predict_proba(PAIRS["user"], PAIRS["item"])[:, 1])
    assert model.score_long(convert(labels, library)) > 0.3
    model.save(tmp_path / "fit")
    np.testing.assert_array_equal(
        bf.load(tmp_path / "fit").predict(labels["user"], labels["item"]),
        model.predict_proba(labels["user"], labels["item"])[:, 1],
    )
    with pytest.raises(InputError, match="only"):
        model.score_long(convert(lines, library))


def test_labels_by_a_threshold(lines):
    model = OneBitCompletion(n_components=1, ridge=1.0, random_state=0, binarize=2.0).fit_long(lines)
    labels = lines.assign(rating=(lines["rating"] > 2).astype(int))
    same = OneBitCompletion(n_components=1, ridge=1.0, random_state=0).fit_long(labels)
    np.testing.assert_array_equal(model.components_, same.components_)
    assert model.score_long(lines) == same.score_long(labels)


def test_labels_are_taken_in_as_the_fit_had_them(lines):
    labels = lines.assign(rating=np.where(lines["rating"] > 2, 5, 2))
    late = labels["user"] == "u5"
    model = OneBitCompletion(n_components=1, ridge=1.0, random_state=0).fit_long(labels[~late])
    model.partial_fit_long(labels[late])
    assert "u5" in model.row_names_
    with pytest.raises(InputError, match="the fit had only 2 and 5"):
        model.partial_fit_long(labels[late].assign(rating=1))
    np.testing.assert_array_equal(
        model.transform_long(labels[late]).to_numpy()[0, 1:].astype(float),
        np.append(model.row_offsets_[-1], model.row_factors_[-1]),
    )


def test_integer_names_may_be_kept_as_text():
    i, j = np.nonzero(np.random.default_rng(0).random((12, 9)) < 0.7)
    frame = pd.DataFrame({"user": i, "item": j, "rating": (i * j) % 5})
    new = pd.DataFrame({"user": ["ann", "ann"], "item": [1, 2], "rating": [4, 3]})
    with pytest.raises(InputError, match="text_names=True"):
        bf.MatrixCompletion(n_components=1, ridge=1.0).fit_long(frame).partial_fit_long(new)
    model = bf.MatrixCompletion(n_components=1, ridge=1.0).fit_long(frame, text_names=True).partial_fit_long(new)
    assert {"0", "ann"} <= set(model.row_names_)
    clicks = bf.Recommender(n_components=1, ridge=0.1, unobserved=0.3, item_share=0.0)
    assert "0" in set(clicks.fit_long(frame[["user", "item"]], text_names=True).row_names_)
