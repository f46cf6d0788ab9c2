"""The shell and Python are two doors to one house: the same data and seed give the same bits, whichever is taken."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import bifactor as bf
from bifactor.cli.main import main
from bifactor.estimators.matrix_completion import MatrixCompletion, OneBitCompletion

SHAPE = (30, 20)


def ratings(kind="numbers"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1])) + rng.standard_normal((SHAPE[0], 1)) + 3
    i, j = np.nonzero(rng.random(SHAPE) < 0.6)
    values = {
        "numbers": np.round(X + 0.1 * rng.standard_normal(SHAPE), 3),
        "labels": (X > 3).astype(int),
        "counts": rng.poisson(np.exp(np.clip(X / 3, None, 3))),
    }[kind]
    return pd.DataFrame({"user": i + 100, "item": [f"i{k}" for k in j], "rating": values[i, j]})


NEW = "user,item,rating\n7,i3,4.5\n7,i8,1\n8,i3,2\n7,nothing,5\n"
"""What is known of two rows that are new; one of the columns is new too."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ratings().to_csv("data.csv", index=False)
    (tmp_path / "new.csv").write_text(NEW)
    return tmp_path


def invoke(*arguments, code=0):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    assert code == 0 or "Traceback" not in done.output
    return done


def answer(*arguments):
    return json.loads(invoke(*arguments, "--json").stdout)


def same(one, two):
    """Whether two fits are the same, bit by bit."""
    assert list(one.rows) == list(two.rows)
    assert list(one.cols) == list(two.cols)
    assert (one.model.loss, one.model.rows.ridge, one.model.link.intercept) == (
        two.model.loss,
        two.model.rows.ridge,
        two.model.link.intercept,
    )
    for a, b in (
        (one.model.U, two.model.U),
        (one.model.V, two.model.V),
        (one.seen.starts, two.seen.starts),
        (one.seen.columns, two.seen.columns),
    ):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert (one.classes is None) == (two.classes is None)
    assert one.classes is None or one.classes.tolist() == two.classes.tolist()
    return True


# Fitting


@pytest.mark.parametrize("seed", [0, 5])
@pytest.mark.parametrize("rank", [2, "auto"])
@pytest.mark.parametrize("ridge", [0.5, "auto"])
def test_both_doors_give_the_same_bits(seed, rank, ridge):
    invoke("complete", "data.csv", "--rank", rank, "--ridge", ridge, "--seed", seed, "-o", "fit")
    model = MatrixCompletion(n_components=rank, ridge=ridge, random_state=seed).fit_long("data.csv")
    assert same(bf.load("fit"), model.fit_)


@pytest.mark.parametrize(("loss", "kind"), [("squared", "numbers"), ("huber", "numbers"), ("poisson", "counts")])
@pytest.mark.parametrize("offsets", [True, False])
def test_both_doors_for_every_loss(loss, kind, offsets):
    ratings(kind).to_csv("other.csv", index=False)
    flag = "--offsets" if offsets else "--no-offsets"
    invoke("complete", "other.csv", "--rank", 2, "--loss", loss, flag, "--max-iter", 500, "--tol", 1e-3, "-o", "fit")
    settings = {"n_components": 2, "loss": loss, "offsets": offsets, "max_iter": 500, "tol": 1e-3, "random_state": 0}
    assert same(bf.load("fit"), MatrixCompletion(**settings).fit_long("other.csv").fit_)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_both_doors_for_labels(link):
    ratings("labels").to_csv("labels.csv", index=False)
    invoke("complete", "labels.csv", "--rank", 2, "--loss", link, "-o", "fit")
    fit = bf.load("fit")
    model = OneBitCompletion(n_components=2, link=link, random_state=0).fit_long("labels.csv")
    assert same(fit, model.fit_)
    assert fit.classes.tolist() == [0, 1]
    frame = ratings("labels")
    np.testing.assert_array_equal(
        fit.predict(frame["user"], frame["item"]), model.predict_proba(frame["user"], frame["item"])[:, 1]
    )


@pytest.mark.parametrize("coding", [(-1, 1), (2, 5), (-0.5, 0.25)])
def test_any_two_values_are_labels_at_both_doors(coding):
    frame = ratings("labels")
    frame["rating"] = np.where(frame["rating"] > 0, coding[1], coding[0])
    frame.to_csv("labels.csv", index=False)
    notes = answer("complete", "labels.csv", "--rank", 1, "--ridge", 1, "--loss", "logistic", "-o", "fit")["notes"]
    assert f"Values {coding[0]:g} and {coding[1]:g} are two classes" in notes[0]
    assert same(bf.load("fit"), OneBitCompletion(n_components=1, ridge=1.0, random_state=0).fit_long("labels.csv").fit_)


def test_both_doors_read_the_same_files():
    frame = ratings().assign(trust=lambda lines: 1 + np.arange(len(lines)) % 3)
    frame.to_csv("a.csv", index=False)
    frame.to_csv("b.csv", index=False, sep=";", decimal=",")
    frame.to_json("c.jsonl", orient="records", lines=True)
    frame.to_parquet("d.parquet")
    options = "--rank", 2, "--ridge", 0.5, "--weight", "trust"
    wanted = MatrixCompletion(n_components=2, ridge=0.5, random_state=0).fit_long(frame, weight="trust").fit_
    for name in ("a.csv", "b.csv", "c.jsonl", "d.parquet"):
        invoke("complete", name, *options, "-o", f"fit-{name}")
        assert same(bf.load(f"fit-{name}"), wanted)


def test_scores_are_those_of_python():
    frame = ratings()
    hidden = np.arange(len(frame)) % 7 == 0
    frame[~hidden].to_csv("train.csv", index=False)
    frame[hidden].to_csv("test.csv", index=False)
    told = answer("complete", "train.csv", "--rank", 2, "--ridge", 0.5, "--test", "test.csv", "-o", "fit")
    model = MatrixCompletion(n_components=2, ridge=0.5, random_state=0).fit_long("train.csv")
    assert told["scores"]["test"]["explained"] == model.score_long("test.csv")
    part = frame[hidden]
    assert told["scores"]["test"]["explained"] == bf.load("fit").score(part["user"], part["item"], part["rating"])


# Each reads what the other wrote


def test_the_shell_reads_what_python_wrote():
    model = MatrixCompletion(n_components=2, ridge=0.5, random_state=0).fit_long("data.csv")
    model.save("mine")
    invoke("complete", "data.csv", "--rank", 2, "--ridge", 0.5, "-o", "fit")
    for command in (("predict", "{}", "data.csv"), ("recommend", "{}", "--user", 103, "--user", 104)):
        ours, theirs = (invoke(*(part.format(name) if part == "{}" else part for part in command))
                        for name in ("mine", "fit"))  # fmt: skip
        assert ours.stdout == theirs.stdout
    told = answer("predict", "mine", "data.csv")
    frame = ratings()
    assert [one["prediction"] for one in told["predictions"]] == model.predict(frame["user"], frame["item"]).tolist()
    names, values = model.recommend([103], n=5)
    best = answer("recommend", "mine", "--user", 103, "-n", 5)["rows"][0]["recommended"]
    assert [one["column"] for one in best] == names[0].tolist()
    assert [one["prediction"] for one in best] == values[0].tolist()


def test_the_shell_reads_a_fit_to_a_table():
    frame = ratings()
    table = np.full(SHAPE, np.nan)
    table[frame["user"] - 100, frame["item"].str[1:].astype(int)] = frame["rating"]
    model = MatrixCompletion(n_components=2, ridge=0.5, random_state=0).fit(table)
    model.save("mine")
    best = answer("recommend", "mine", "--row", 3, "-n", 2)["rows"][0]
    assert best["row"] == 3
    assert [one["column"] for one in best["recommended"]] == model.recommend([3], n=2)[0][0].tolist()
    invoke("recommend", "mine", "--row", 3)
    with open("pairs.csv", "w") as file:
        file.write("row,column\n3,2\n4,5\n")
    told = [one["prediction"] for one in answer("predict", "mine", "pairs.csv")["predictions"]]
    assert told == model.predict([3, 4], [2, 5]).tolist()


def test_the_shell_reads_labels_that_python_wrote():
    ratings("labels").to_csv("labels.csv", index=False)
    model = OneBitCompletion(n_components=1, ridge=1.0, random_state=0).fit_long("labels.csv")
    model.save("mine")
    told = answer("predict", "mine", "labels.csv")["predictions"]
    frame = ratings("labels")
    wanted = model.predict_proba(frame["user"], frame["item"])[:, 1]
    assert [one["prediction"] for one in told] == wanted.tolist()


def test_the_shell_replaces_a_fit_of_python_when_asked():
    MatrixCompletion(n_components=1, ridge=0.5, random_state=0).fit_long("data.csv").save("fit")
    assert "already exists" in invoke("complete", "data.csv", "--rank", 2, "-o", "fit", code=1).stderr
    invoke("complete", "data.csv", "--rank", 2, "--ridge", 1, "-o", "fit", "--force")
    assert bf.load("fit").model.rank == 2
    MatrixCompletion(n_components=1, ridge=0.5, random_state=0).fit_long("data.csv").save("fit", force=True)
    assert bf.load("fit").model.rank == 1
    assert sorted(os.listdir("fit")) == ["card.json", "factors.safetensors", "ids.safetensors", "seen.safetensors"]


def test_a_fit_with_a_loss_of_the_user_is_refused_by_the_shell():
    loss = bf.losses.Shifted(bf.losses.Squared(), 0.5)
    MatrixCompletion(n_components=1, ridge=0.5, random_state=0, loss=loss).fit_long("data.csv").save("mine")
    said = invoke("predict", "mine", "data.csv", code=1).stderr
    assert said.count("\n") == 1
    assert "Shifted" in said


# New rows


@pytest.fixture
def fit(folder):
    invoke("complete", "data.csv", "--rank", 2, "--ridge", 0.5, "-o", "fit")
    return bf.load("fit")


def test_new_rows_are_recommended_for(fit):
    told = answer("recommend", "fit", "--ratings", "new.csv", "-n", 100)
    folded = fit.fold_in(bf.data.read("new.csv"))
    assert [one["row"] for one in told["rows"]] == [7, 8]
    for one, names, values in zip(told["rows"], *folded.recommend([7, 8], n=100), strict=True):
        there = ~np.isnan(values)
        assert [best["column"] for best in one["recommended"]] == names[there].tolist()
        assert [best["prediction"] for best in one["recommended"]] == values[there].tolist()
    assert not {"i3", "i8", "nothing"} & {best["column"] for best in told["rows"][0]["recommended"]}
    with_seen = answer("recommend", "fit", "--ratings", "new.csv", "-n", 100, "--include-seen")
    assert len(with_seen["rows"][0]["recommended"]) == SHAPE[1]
    both = answer("recommend", "fit", "--ratings", "new.csv", "--user", 103, "--user", 8)
    assert [one["row"] for one in both["rows"]] == [103, 8]
    assert "for user 7" in invoke("recommend", "fit", "--ratings", "new.csv").stdout


def test_new_rows_are_predicted(fit):
    with open("pairs.csv", "w") as file:
        file.write("user,item\n7,i1\n8,i1\n103,i1\n9,i1\n7,nothing\n")
    told = answer("predict", "fit", "pairs.csv", "--ratings", "new.csv")
    folded = fit.fold_in(bf.data.read("new.csv"))
    assert [one["known"] for one in told["predictions"]] == ["both", "both", "both", "column", "row"]
    assert (told["pairs"], told["unknown"]) == (5, 2)
    with pytest.warns(UserWarning, match="2 of 5"):
        wanted = folded.predict([7, 8, 103, 9, 7], ["i1", "i1", "i1", "i1", "nothing"])
    assert [one["prediction"] for one in told["predictions"]] == wanted.tolist()
    without = answer("predict", "fit", "pairs.csv")
    assert [one["known"] for one in without["predictions"]] == ["column", "column", "both", "column", "neither"]


def test_new_rows_are_those_of_transform(fit):
    model = MatrixCompletion(n_components=2, ridge=0.5, random_state=0).fit_long("data.csv")
    factors = model.transform_long("new.csv")
    told = model.inverse_transform(np.column_stack([factors[name] for name in model.get_feature_names_out()]))
    best = answer("recommend", "fit", "--ratings", "new.csv", "-n", 1)["rows"]
    for one, row in zip(best, told, strict=True):
        place = list(model.column_names_).index(one["recommended"][0]["column"])
        assert one["recommended"][0]["prediction"] == pytest.approx(row[place], rel=1e-12)


def test_new_rows_are_read_in_the_columns_of_the_fit():
    frame = ratings().rename(columns={"user": "who", "item": "what", "rating": "much"})
    frame = frame.assign(when=5)[["when", "much", "what", "who"]]
    frame.to_csv("other.csv", index=False)
    told = "--row", "who", "--col", "what", "--value", "much"
    invoke("complete", "other.csv", *told, "--rank", 2, "--ridge", 0.5, "-o", "fit")
    new = frame[:8].assign(who=7)
    new.to_csv("some.csv", index=False)
    best = answer("recommend", "fit", "--ratings", "some.csv", "-n", 3)["rows"]
    folded = bf.load("fit").fold_in(bf.data.read(new, row="who", col="what", value="much"))
    assert [one["row"] for one in best] == [7]
    assert [one["column"] for one in best[0]["recommended"]] == folded.recommend(7, n=3)[0][0].tolist()


def test_new_rows_that_cannot_be_found(fit):
    for name, text, message in (
        ("far.csv", "user,item,rating\n7,nothing,3\n", "No entry is in a column of the fit"),
        ("words.csv", "user,item,rating\nann,i3,3\n", "one kind"),
        ("bad.csv", "user,item,rating\n7,i3,good\n", "Line 2 of bad.csv"),
    ):
        with open(name, "w") as file:
            file.write(text)
        for command in (("recommend", "fit"), ("predict", "fit", "data.csv")):
            done = invoke(*command, "--ratings", name, code=1)
            assert message in done.stderr
            assert done.stdout == ""
    assert "There is no file none.csv" in invoke("recommend", "fit", "--ratings", "none.csv", code=1).stderr
    assert "no row to recommend to" in invoke("recommend", "fit", code=1).stderr
    assert "no row named '7'" in invoke("recommend", "fit", "--user", 7, code=1).stderr


def test_labels_of_new_rows():
    frame = ratings("labels")
    frame["rating"] = np.where(frame["rating"] > 0, 5, 2)
    frame.to_csv("labels.csv", index=False)
    invoke("complete", "labels.csv", "--rank", 1, "--ridge", 1, "--loss", "logistic", "-o", "fit")
    with open("new.csv", "w") as file:
        file.write("user,item,rating\n7,i3,5\n7,i8,2\n")
    told = answer("recommend", "fit", "--ratings", "new.csv", "-n", 3)["rows"][0]["recommended"]
    assert all(0 < one["prediction"] < 1 for one in told)
    with open("new.csv", "w") as file:
        file.write("user,item,rating\n7,i3,1\n")
    assert "the fit had only 2 and 5" in invoke("recommend", "fit", "--ratings", "new.csv", code=1).stderr


# Names


def test_unknown_names_can_be_refused(fit):
    with open("pairs.csv", "w") as file:
        file.write("user,item\n103,i1\n7,i1\n")
    invoke("predict", "fit", "pairs.csv", "--unknown", "mean")
    done = invoke("predict", "fit", "pairs.csv", "--unknown", "raise", "-o", "out.csv", code=1)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("Error: The fit has no row named 7.")
    assert done.stderr.endswith("Check the name, or pass --unknown mean.\n")
    assert "entries with --history." in invoke("recommend", "fit", "--user", "7", code=1).stderr
    assert not os.path.exists("out.csv")
    told = json.loads(invoke("predict", "fit", "pairs.csv", "--unknown", "raise", "--json", code=1).stdout)
    assert "no row named 7" in told["error"]
    assert "is not one of" in invoke("predict", "fit", "pairs.csv", "--unknown", "drop", code=2).stderr
    invoke("predict", "fit", "data.csv", "--unknown", "raise")


def test_integers_stay_integers_in_every_answer(fit):
    pairs = answer("predict", "fit", "data.csv")["predictions"][0]
    best = answer("recommend", "fit", "--user", 103, "-n", 1)["rows"][0]
    assert (type(pairs["row"]), type(best["row"])) == (int, int)
    assert (type(pairs["column"]), type(best["recommended"][0]["column"])) == (str, str)


@pytest.mark.parametrize("kind", ["integers", "text", "mixed"])
def test_names_are_of_one_type_in_every_answer(kind):
    frame = ratings()
    frame["user"] = {"integers": frame["user"], "text": "u" + frame["user"].astype(str)}.get(
        kind, frame["user"].astype(str).replace("103", "ann")
    )
    frame.to_csv("data.csv", index=False)
    invoke("complete", "data.csv", "--rank", 1, "--ridge", 1, "-o", "fit")
    some = frame[frame["user"] == frame["user"].iloc[50]]
    some.to_csv("some.csv", index=False)
    pairs = answer("predict", "fit", "some.csv")["predictions"]
    name = str(some["user"].iloc[0])
    best = answer("recommend", "fit", "--user", name)["rows"][0]
    wanted = int if kind == "integers" else str
    assert {type(one["row"]) for one in pairs} == {type(best["row"])} == {wanted}
    assert {one["known"] for one in pairs} == {"both"}


def test_dates_are_names_at_both_doors():
    days = np.datetime64("2024-01-01") + np.arange(SHAPE[0])
    frame = ratings().assign(user=lambda lines: days[lines["user"] - 100])
    MatrixCompletion(n_components=1, ridge=1.0, random_state=0).fit_long(frame).save("mine")
    frame[:5].assign(user=frame["user"].dt.strftime("%Y-%m-%d")).to_csv("pairs.csv", index=False)
    told = answer("predict", "mine", "pairs.csv")["predictions"]
    assert {one["known"] for one in told} == {"both"}
    best = answer("recommend", "mine", "--user", "2024-01-03", "-n", 1)["rows"][0]
    assert best["row"].startswith("2024-01-03")


def test_long_integers_are_names_at_both_doors():
    frame = ratings().assign(user=lambda lines: lines["user"] + 1212092628029698048)
    model = MatrixCompletion(n_components=1, ridge=1.0, random_state=0).fit_long(frame)
    model.save("mine")
    frame.to_csv("long.csv", index=False)
    told = answer("predict", "mine", "long.csv")["predictions"]
    assert {one["known"] for one in told} == {"both"}
    invoke("complete", "long.csv", "--rank", 1, "--ridge", 1, "-o", "fit")
    np.testing.assert_array_equal(
        bf.load("fit").predict(frame["user"], frame["item"], unknown="raise"),
        model.predict(frame["user"], frame["item"]),
    )


@pytest.mark.parametrize("data", [{}, None])
def test_a_card_without_names_of_columns_is_no_hindrance(fit, data):
    path = Path("fit/card.json")
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "data": data}), encoding="utf-8")
    assert bf.load("fit").header == ("row", "column", "value")
    invoke("predict", "fit", "data.csv")
    invoke("recommend", "fit", "--user", 103)
