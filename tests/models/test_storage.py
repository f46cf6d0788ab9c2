"""Fits in folders: what is read is what was written, and nothing else is read, replaced or left behind."""

import datetime as dt
import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bifactor as bf
from bifactor.data import Names, read
from bifactor.errors import FileError, InputError
from bifactor.estimators.matrix_completion import MatrixCompletion, OneBitCompletion
from bifactor.losses import Huber, Logistic, Loss, Ordinal, Poisson, Probit, Squared
from bifactor.models import storage
from bifactor.running import files
from bifactor.running import files as exchange

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are not installed with the library

from benchmarks.fuzz import fuzz_folders
from benchmarks.harness.children import outcomes

SHAPE = (12, 9)
FORMATS = Path(__file__).parent / "formats"
FILES = {"card.json", "factors.safetensors", "ids.safetensors", "seen.safetensors"}


@dataclass(frozen=True)
class Scaled(Loss):
    """A loss of a user."""

    scale: float = 1.0
    targets, smoothness, quadratic = Squared.targets, 1.0, False

    def value(self, z, y):
        return 0.5 * self.scale * (z - y) ** 2

    def gradient(self, z, y):
        return self.scale * (z - y)

    def curvature(self, z, y):
        return self.scale * np.ones_like(z)

    def mean(self, z):
        return z


def lines(values="numbers", dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1]))
    i, j = np.nonzero(rng.random(SHAPE) < 0.7)
    values = {"numbers": X, "labels": np.where(X > 0, 1, -1), "counts": rng.poisson(np.exp(X / 3))}[values]
    return pd.DataFrame({"user": [f"u{k}" for k in i], "item": j, "rating": values[i, j].astype(dtype)})


def made(frame=None, **options):
    model = MatrixCompletion(**{"n_components": 2, "ridge": 0.5, "random_state": 0} | options)
    return model.fit_long(lines() if frame is None else frame).fit_


@pytest.fixture(scope="module")
def fit():
    return made()


def same(a, b):
    """Whether two fits are the same, bit by bit, in all they can tell."""
    assert list(a.rows) == list(b.rows)
    assert list(a.cols) == list(b.cols)
    for one, two in (
        (a.model.U, b.model.U),
        (a.model.V, b.model.V),
        (a.seen.starts, b.seen.starts),
        (a.seen.columns, b.seen.columns),
        tuple(np.array([fit.model.link.intercept, fit.model.rows.ridge]) for fit in (a, b)),
    ):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    assert (a.model.loss, a.model.fixed) == (b.model.loss, b.model.fixed)
    assert type(a.model.loss) is type(b.model.loss)
    assert (a.classes is None) == (b.classes is None)
    assert a.classes is None or a.classes.tolist() == b.classes.tolist()
    rows, cols = list(a.rows) * 2, [list(a.cols)[k % len(a.cols)] for k in range(2 * len(a.rows))]
    np.testing.assert_array_equal(a.predict(rows, cols), b.predict(rows, cols))
    np.testing.assert_array_equal(a.recommend(n=3)[1], b.recommend(n=3)[1])
    assert a.model.result.status is b.model.result.status
    np.testing.assert_array_equal(a.model.result.history.objective, b.model.result.history.objective)
    return True


def again(fit, folder, **options):
    fit.save(folder)
    return bf.load(folder, **options)


# What is read is what was written


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("loss", "values"),
    [
        (Squared(), "numbers"),
        (Huber(0.7), "numbers"),
        (Huber(), "numbers"),
        (Logistic(), "labels"),
        (Probit(2.0), "labels"),
        (Probit(0.1 + 0.2), "labels"),
        (Poisson(), "counts"),
        (Ordinal([-1, 0, 1], [-0.3, 0.1 + 0.2]), "labels"),
    ],
    ids=str,
)
def test_every_named_loss(tmp_path, loss, values, dtype):
    fit = made(lines(values, dtype), loss=loss)
    assert fit.model.U.dtype == dtype
    assert same(fit, again(fit, tmp_path / "fit"))


@pytest.mark.parametrize("name", ["squared", "huber", "logistic", "probit", "poisson", "ordinal"])
def test_losses_by_their_names(tmp_path, name):
    values = {"logistic": "labels", "probit": "labels", "poisson": "counts", "ordinal": "counts"}.get(name, "numbers")
    fit = made(lines(values), loss=name)
    assert same(fit, again(fit, tmp_path / "fit"))


@pytest.mark.parametrize("offsets", [True, False])
@pytest.mark.parametrize("ridge", [0, 0.1 + 0.2, "auto"])
def test_settings(tmp_path, offsets, ridge):
    fit = made(offsets=offsets, ridge=ridge)
    assert same(fit, again(fit, tmp_path / "fit"))


NAMES = {
    "integers": np.arange(12) * 1000 - 5000,
    "small integers": np.arange(12, dtype=np.int8),
    "unsigned": np.uint64(2**64 - 20) + np.arange(12, dtype=np.uint64),
    "text": np.array([f"näme {k}" for k in range(12)], object),
    "fixed text": np.array([f"n{k}" for k in range(12)]),
    "text of digits": np.array([f"0{k}" for k in range(12)], object),
    "strange text": np.array(["", " ", "\n", '"', "\0", "🙂", "a,b", "\t", "é", "e\u0301", "NaN", "null"], object),
    "floats": np.arange(12) / 10 + 0.2,
    "days": np.datetime64("2020-01-01") + np.arange(12),
    "moments": np.datetime64("2020-01-01T12:00:00.123456789") + np.arange(12),
    "durations": np.arange(12).astype("m8[h]"),
}


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("side", ["rows", "cols"])
def test_names_of_every_kind(tmp_path, fit, kind, side):
    names = Names(NAMES[kind] if side == "rows" else NAMES[kind][: SHAPE[1]])
    named = replace(fit, **{side: names})
    found = again(named, tmp_path / "fit")
    assert same(named, found)
    stored = getattr(found, side)
    np.testing.assert_array_equal(stored.values, names.values)
    assert stored.values.dtype.kind == (names.values.dtype.kind if kind != "fixed text" else "O")
    np.testing.assert_array_equal(stored.indices(names.values), np.arange(len(names)))


def test_booleans_are_names(tmp_path):
    frame = lines()
    fit = made(frame.assign(user=frame["user"] == "u3"))
    assert list(fit.rows) == [False, True]
    assert same(fit, again(fit, tmp_path / "fit"))


def test_dates_are_found_in_any_dress(tmp_path, fit):
    found = again(replace(fit, rows=Names(NAMES["days"])), tmp_path / "fit")
    np.testing.assert_array_equal(found.predict("2020-01-03", 2), found.predict(dt.date(2020, 1, 3), 2))


def test_numbers_for_names(tmp_path):
    table = np.where(np.random.default_rng(0).random(SHAPE) < 0.7, 1.5, np.nan) * np.arange(SHAPE[1])
    fit = MatrixCompletion(n_components=1, ridge=0.5, random_state=0).fit(table).fit_
    assert same(fit, again(fit, tmp_path / "fit"))


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("coding", [(0, 1), (-1, 1), (2, 5), (-0.25, 1e300)])
def test_classes_of_labels(tmp_path, link, coding):
    frame = lines("labels")
    frame["rating"] = np.where(frame["rating"] > 0, coding[1], coding[0])
    model = OneBitCompletion(n_components=1, link=link, ridge=1.0, random_state=0).fit_long(frame)
    found = again(model.fit_, tmp_path / "fit")
    assert same(model.fit_, found)
    assert found.classes.tolist() == list(coding)
    told = model.predict_proba(frame["user"], frame["item"])[:, 1]
    np.testing.assert_array_equal(found.predict(frame["user"], frame["item"]), told)
    assert found.score(frame["user"], frame["item"], frame["rating"]) == model.score_long(frame)


def test_rows_that_were_added_are_kept(tmp_path, fit):
    new = read(pd.DataFrame({"user": ["ann", "ann"], "item": [1, 4], "rating": [1.0, -1.0]}))
    folded = fit.fold_in(new)
    found = again(folded, tmp_path / "fit")
    assert same(folded, found)
    assert found.card["data"]["rows"] == SHAPE[0] + 1
    estimator = MatrixCompletion(n_components=2, ridge=0.5, random_state=0).fit_long(lines())
    more = pd.DataFrame({"user": ["ann", "u1", "u2"], "item": [1, 99, 99], "rating": [1.0, -1.0, 0.5]})
    grown = estimator.partial_fit_long(more).fit_
    assert same(grown, again(grown, tmp_path / "grown"))


def test_what_was_read_can_be_written_again(tmp_path, fit):
    first = again(replace(fit, card={"notes": ["mine"]}), tmp_path / "a")
    second = again(first, tmp_path / "b")
    assert same(fit, second)
    assert second.card["notes"] == ["mine"]


def test_the_card_tells_of_what_is_in_the_folder(tmp_path, fit):
    new = read(pd.DataFrame({"user": ["ann", "ann"], "item": [1, 4], "rating": [1.0, -1.0]}))
    grown = again(again(fit, tmp_path / "a").fold_in(new), tmp_path / "b")
    assert (grown.card["data"]["rows"], grown.card["data"]["cols"]) == (SHAPE[0] + 1, SHAPE[1])
    assert grown.card["data"]["pairs"] == fit.seen.size + 2


def test_the_folder_and_its_card(tmp_path, fit):
    fit.save(tmp_path / "fit")
    assert set(os.listdir(tmp_path / "fit")) == FILES
    card = json.loads((tmp_path / "fit" / "card.json").read_text(encoding="utf-8"))
    assert (card["format"], card["fit"]["rank"], card["data"]["rows"]) == (7, 2, SHAPE[0])
    assert bf.load(str(tmp_path / "fit")).card == card
    replace(fit, card={"notes": ["ä"]}).save(str(tmp_path / "other"), report="<html>")
    assert set(os.listdir(tmp_path / "other")) == FILES | {"report.html"}
    assert bf.load(tmp_path / "other").card["notes"] == ["ä"]


def test_nothing_of_scikit_learn_is_needed(tmp_path, fit):
    fit.save(tmp_path / "fit")
    script = (
        "import sys\nsys.modules['sklearn'] = None\nimport bifactor as bf\n"
        "fit = bf.load(sys.argv[1])\nprint(fit.predict('u3', 2), fit.recommend('u3')[0].size)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "fit")], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[0]) == fit.predict("u3", 2)


# A loss of the user


def test_a_loss_of_the_user(tmp_path):
    fit = made(loss=Scaled(2.0))
    fit.save(tmp_path / "fit")
    assert same(fit, bf.load(tmp_path / "fit", loss=Scaled(2.0)))
    with pytest.raises(InputError, match=r"was fitted with .*Scaled\(scale=2\.0\), a custom loss\. Pass it"):
        bf.load(tmp_path / "fit")
    for wrong in (Scaled(3.0), Squared(), Huber(2.0)):
        with pytest.raises(InputError, match=r"was fitted with .*Scaled\(scale=2\.0\), not .*"):
            bf.load(tmp_path / "fit", loss=wrong)


def test_a_loss_may_be_moved_to_another_module(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:  # as earlier versions wrote it
        patch.setattr(storage, "described", lambda loss: f"elsewhere.{loss!r}")
        made(loss=Scaled(2.0)).save(tmp_path / "earlier")
    made(loss=Scaled(2.0)).save(tmp_path / "fit")
    for folder in ("earlier", "fit"):
        assert bf.load(tmp_path / folder, loss=Scaled(2.0)).model.loss == Scaled(2.0)
    assert "test_store" not in (tmp_path / "fit/card.json").read_text()


@pytest.mark.parametrize("loss", [bf.losses.Shifted(Squared(), 0.5), bf.losses.Shifted(Huber(0.7), 0.5)], ids=str)
def test_losses_of_the_library_that_have_no_name(tmp_path, loss):
    fit = made(loss=loss)
    fit.save(tmp_path / "fit")
    assert same(fit, bf.load(tmp_path / "fit", loss=loss))
    with pytest.raises(InputError, match="was fitted with"):
        bf.load(tmp_path / "fit")


# What cannot be kept


@pytest.mark.parametrize("side", ["row", "column"])
def test_names_that_are_not_kept(tmp_path, fit, side):
    frame = lines()
    which = "user" if side == "row" else "item"
    tuples = made(frame.assign(**{which: [(name, 1) for name in frame[which]]}))
    with pytest.raises(InputError, match=rf"The {side} name \(.*, 1\) has type tuple, which is not saved"):
        tuples.save(tmp_path / "fit")
    assert os.listdir(tmp_path) == []


def test_names_that_are_not_text(tmp_path, fit):
    names = np.array([f"u{k}" for k in range(SHAPE[0])], object)
    names[3] = "\ud800"
    with pytest.raises(InputError, match="row name"):
        replace(fit, rows=Names(names)).save(tmp_path / "fit")
    assert os.listdir(tmp_path) == []


# What is there already


def test_nothing_is_replaced_unasked(tmp_path, fit):
    other = made(ridge=2.0)
    fit.save(tmp_path / "fit")
    before = {name: (tmp_path / "fit" / name).read_bytes() for name in FILES}
    with pytest.raises(InputError, match="fit already exists"):
        other.save(tmp_path / "fit")
    assert {name: (tmp_path / "fit" / name).read_bytes() for name in FILES} == before
    other.save(tmp_path / "fit", force=True)
    assert same(other, bf.load(tmp_path / "fit"))
    assert os.listdir(tmp_path) == ["fit"]


def test_an_empty_folder_may_be_filled(tmp_path, fit):
    (tmp_path / "fit").mkdir()
    assert same(fit, again(fit, tmp_path / "fit"))


@pytest.mark.parametrize("force", [False, True])
def test_what_is_somebody_elses_is_never_replaced(tmp_path, fit, force):
    fit.save(tmp_path / "fit")
    (tmp_path / "fit" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="thesis.txt, which is not part of a fit" if force else "already exists"):
        fit.save(tmp_path / "fit", force=force)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "card.json").mkdir()
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(InputError, match="is a file, but the output is a folder" if force else "already exists"):
        fit.save(tmp_path / "notes", force=force)
    assert (tmp_path / "notes").read_text() == "mine"
    assert (tmp_path / "fit" / "thesis.txt").read_text() == "years of work"
    assert sorted(os.listdir(tmp_path)) == ["data", "fit", "notes"]


def test_a_folder_in_no_folder(tmp_path, fit):
    with pytest.raises(InputError, match="does not exist"):
        fit.save(tmp_path / "no" / "fit")


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("where", ["fsync", "mkdir", "rename"])
def test_a_full_disk_leaves_things_as_they_were(tmp_path, fit, monkeypatch, where, force):
    target = tmp_path / "fit"
    if force:
        fit.save(target)
    before = {path.name: path.read_bytes() for path in target.iterdir()} if force else None

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(*{"fsync": (os, "fsync", full)}.get(where, (Path, where, full)))
        if where == "rename":
            patch.setattr(exchange, "_exchanged", lambda new, old: False)
        with pytest.raises(FileError, match=r"fit was not written: No space left on device\. Nothing is left behind"):
            made(ridge=2.0).save(target, force=force)
    assert os.listdir(tmp_path) == (["fit"] if force else [])
    if force:
        assert {path.name: path.read_bytes() for path in target.iterdir()} == before


def test_ctrl_c_leaves_nothing(tmp_path, fit, monkeypatch):
    def pressed(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", pressed)
    with pytest.raises(KeyboardInterrupt):
        fit.save(tmp_path / "fit")
    assert os.listdir(tmp_path) == []


# What is damaged


def put(array, place, value):
    array[place] = value
    return array


@pytest.fixture
def folder(tmp_path, fit):
    fit.save(tmp_path / "fit")
    return tmp_path / "fit"


def refused(folder, match=None):
    """Whether a folder is refused in one or two sentences of ours."""
    with pytest.raises(FileError, match=match) as caught:
        bf.load(folder)
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith(".")
    assert not said.endswith("..")
    return True


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_that_are_missing_cut_short_or_something_else(folder, name):
    path, whole = folder / name, (folder / name).read_bytes()
    for size in (0, 5, 60, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        assert refused(folder)
    path.write_bytes(b"\xff" * 100)
    assert refused(folder)
    path.unlink()
    assert refused(folder)
    path.mkdir()
    assert refused(folder)


def test_folders_that_are_none(tmp_path):
    assert refused(tmp_path / "none", "is not the folder of a fit")
    assert refused(tmp_path, "is not the folder of a fit")
    (tmp_path / "file").write_text("x")
    assert refused(tmp_path / "file", "is not the folder of a fit")


CARDS = {
    "a list": lambda card: [1, 2],
    "a number": lambda card: 7,
    "null": lambda card: None,
    "no format": lambda card: {**card, "format": None},
    "format 0": lambda card: {**card, "format": 0},
    "a later format": lambda card: {**card, "format": 99},
    "format in words": lambda card: {**card, "format": "2"},
    "format is true": lambda card: {**card, "format": True},
    "format is a fraction": lambda card: {**card, "format": 1.5},
    "no model": lambda card: {**card, "model": None},
    "model left out": lambda card: {k: v for k, v in card.items() if k != "model"},
    "model is a list": lambda card: {**card, "model": [1]},
}


@pytest.mark.parametrize("change", CARDS)
def test_cards_that_are_damaged(folder, change):
    path = folder / "card.json"
    path.write_text(json.dumps(CARDS[change](json.loads(path.read_text()))))
    assert refused(folder, "format 99" if change == "a later format" else None)


MODELS = {
    "no loss": {"loss": None},
    "another loss": {"loss": {"name": "absolute", "parameters": {}}},
    "a loss of an older format": {"loss": "absolute"},
    "a bad parameter": {"loss": {"name": "huber", "parameters": {"delta": -1.0}}},
    "a strange parameter": {"loss": {"name": "huber", "parameters": {"epsilon": 1.0}}},
    "a parameter in words": {"loss": {"name": "huber", "parameters": {"delta": "one"}}},
    "intercept in words": {"intercept": "much"},
    "intercept is not a number": {"intercept": float("nan")},
    "ridge is a list": {"ridge": [1]},
    "ridge of offsets is a list": {"offset_ridge": [1]},
    "ridge of offsets is negative": {"offset_ridge": -1.0},
    "ridge of offsets is not a number": {"offset_ridge": float("nan")},
    "intercept is true": {"intercept": True},
    "intercept is infinite": {"intercept": float("inf")},
    "intercept beyond all numbers": {"intercept": 10**400},
    "intercept is null": {"intercept": None},
    "ridge is negative": {"ridge": -1.0},
    "ridge is not a number": {"ridge": float("nan")},
    "offsets in words": {"offsets": "no"},
    "offsets are a number": {"offsets": 1},
    "offsets are null": {"offsets": None},
    "a loss without parameters": {"loss": {"name": "huber"}},
    "a loss with a list of parameters": {"loss": {"name": "huber", "parameters": [1.0]}},
    "a loss with a list for a name": {"loss": {"name": ["huber"], "parameters": {}}},
    "a loss that is a number": {"loss": 7},
    "a loss of nobody": {"loss": {"name": None, "described": 7}},
    "classes that fall": {"classes": [1.0, 0.0]},
    "classes that are one": {"classes": [1.0, 1.0]},
    "classes that are true": {"classes": [False, True]},
    "classes beyond all numbers": {"classes": [0, 10**400]},
    "classes that are lists": {"classes": [[0], [1]]},
    "one class": {"classes": [1.0]},
    "classes in words": {"classes": "ab"},
    "a range beyond all numbers": {"clip": [1, 10**400]},
}


@pytest.mark.parametrize("change", MODELS)
def test_models_that_are_damaged(folder, change):
    path = folder / "card.json"
    card = json.loads(path.read_text())
    path.write_text(json.dumps({**card, "model": {**card["model"], **MODELS[change]}}))
    assert refused(folder, "card.json is damaged")


def test_a_store_whose_name_is_too_long_is_not_found(tmp_path):
    bf.data.partition(([0, 1, 1], [0, 0, 1], [1.0, 2.0, 3.0]), tmp_path / "blocks")
    bf.MatrixCompletion(n_components=1, ridge=1.0).fit(tmp_path / "blocks").save(tmp_path / "fit")
    path = tmp_path / "fit" / "card.json"
    card = json.loads(path.read_text())
    for name in ("x" * 5000, 10**400, "\0"):
        for place in ("folder", "beside"):
            store = {**card["model"]["store"], place: name}
            path.write_text(json.dumps({**card, "model": {**card["model"], "store": store}}))
            assert bf.load(path.parent).predict([0], [0]).shape == (1,)
    store = {**store, "folder": "x" * 5000}
    path.write_text(json.dumps({**card, "model": {**card["model"], "store": store}}))
    with pytest.raises(FileError):
        bf.load(path.parent).recommend([0])


@pytest.mark.parametrize("name", ["intercept", "offsets", "ridge", "loss"])
def test_models_that_lack_something(folder, name):
    path = folder / "card.json"
    card = json.loads(path.read_text())
    path.write_text(json.dumps({**card, "model": {k: v for k, v in card["model"].items() if k != name}}))
    assert refused(folder, "card.json is damaged")


@pytest.mark.parametrize(
    "content", [b"[" * 100_000, b'{"format": ' + b"[" * 100_000, b'{"format": "\xff"}', b"1" * 5000]
)
def test_cards_that_are_no_cards(folder, content):
    (folder / "card.json").write_bytes(content)
    assert refused(folder, "card.json")


def test_what_else_a_card_says_does_no_harm(folder):
    path = folder / "card.json"
    card = json.loads(path.read_text())
    for strange in (7, None, [], {"columns": 7}, {"columns": [[], {}]}, {"columns": ["\ud800"] * 3}):
        path.write_text(json.dumps({**card, "data": strange, "fit": strange, "path": strange}))
        again(bf.load(folder), folder.with_name("again"))
        shutil.rmtree(folder.with_name("again"))


FACTORS = {
    "NaN": lambda U: put(U, (0, 2), np.nan),
    "infinite": lambda U: put(U, (0, 2), np.inf),
    "integers": lambda U: U.astype(np.int64),
    "booleans": lambda U: U.astype(bool),
    "half precision": lambda U: U.astype(np.float16),
    "single precision": lambda U: U.astype(np.float32),
    "complex": lambda U: U.astype(np.complex128),
    "a vector": lambda U: U.reshape(-1),
    "a column too few": lambda U: U[:, :-1],
    "a row too few": lambda U: U[:-1],
    "no columns": lambda U: U[:, :0],
    "no rows": lambda U: U[:0],
    "other fixed columns": lambda U: put(U, (slice(None), slice(2)), 0.5),
}


@pytest.mark.parametrize("side", ["U", "V", "both"])
@pytest.mark.parametrize("change", FACTORS)
def test_factors_that_are_damaged(folder, change, side):
    path = folder / "factors.safetensors"
    arrays, metadata = files.read(path, "result")
    for name in ("U", "V") if side == "both" else side:
        arrays[name] = FACTORS[change](arrays[name].copy())
    files.write(path, "result", arrays, metadata)
    if side == "both" and change in ("single precision", "a column too few"):
        assert np.isfinite(bf.load(folder).predict("u3", 2)).all()  # another fit, and a sound one
    else:
        assert refused(folder)


def text(*words):
    return np.frombuffer("".join(words).encode(), np.uint8).copy()


IDS = {
    "no UTF-8": lambda ids: {"row:utf8": put(ids["row:utf8"], 0, 0xFF)},
    "ends that fall": lambda ids: {"row:ends": put(ids["row:ends"], 3, 0)},
    "an end that is negative": lambda ids: {"row:ends": put(ids["row:ends"], 0, -3)},
    "an end beyond all": lambda ids: {"row:ends": put(ids["row:ends"], -1, 10**9)},
    "text that is left over": lambda ids: {"row:ends": put(ids["row:ends"], -1, ids["row:ends"][-1] - 1)},
    "ends that are not whole": lambda ids: {"row:ends": ids["row:ends"] + 0.5},
    "a name twice": lambda ids: {"row:utf8": text("u0", "u0", *(f"u{k}" for k in range(2, 12)))},
    "text of integers": lambda ids: {"row:utf8": ids["row:utf8"].astype(np.int64)},
    "a matrix": lambda ids: {"row:utf8": ids["row:utf8"][None]},
    "a number twice": lambda ids: {"column:integers": put(ids["column:integers"], 0, 1)},
    "numbers that are not whole": lambda ids: {"column:integers": ids["column:integers"] + 0.5},
    "a matrix of numbers": lambda ids: {"column:integers": ids["column:integers"][None]},
    "numbers that are missing": lambda ids: {"column:numbers": np.full(9, np.nan), "column:integers": None},
    "numbers of another type": lambda ids: {"column:numbers": np.arange(9), "column:integers": None},
}


@pytest.mark.parametrize("change", IDS)
def test_names_that_are_damaged(folder, change):
    path = folder / "ids.safetensors"
    ids, kinds = files.read(path, "ids")
    changed = {**ids, **IDS[change]({name: array.copy() for name, array in ids.items()})}
    files.write(path, "ids", {name: array for name, array in changed.items() if array is not None}, kinds)
    assert refused(folder, "ids.safetensors is damaged")


@pytest.mark.parametrize("kind", ["O", "nonsense", 7, ["<i8"], "<f8", "|i1", "<M8[s]", {}])
def test_types_of_names_that_are_damaged(folder, kind):
    path = folder / "ids.safetensors"
    ids, kinds = files.read(path, "ids")
    ids["column:integers"][0] = np.iinfo(np.int64).min  # fits no smaller type, and is no date
    files.write(path, "ids", ids, {**kinds, "column": kind})
    assert refused(folder, "ids.safetensors is damaged")


def test_a_checksum_tells_what_has_changed(folder):
    for name in ("factors", "ids", "seen"):
        path = folder / f"{name}.safetensors"
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        assert refused(folder, f"{name}.safetensors is damaged: its content does not match its checksum")
        path.write_bytes(whole)
    assert bf.load(folder)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
@pytest.mark.parametrize("name", sorted(FILES))
def test_a_pipe_in_the_place_of_a_file(folder, name):
    """It would be waited for."""
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert refused(folder)


@pytest.mark.parametrize("kind", fuzz_folders.KINDS)
def test_changes_at_random(kind):
    """A small share of what `python -m benchmarks fuzz_folders` does."""
    told, examples = outcomes(fuzz_folders.case, kind, 0, 40)
    assert set(told) <= {"loaded", "refused"}, examples
    assert told.total() == 40


@pytest.fixture
def sure(tmp_path):
    """A folder with error bars and features."""
    features = {"user_features": np.eye(SHAPE[0])[:, :2], "item_features": np.eye(SHAPE[1])[:, :2]}
    model = MatrixCompletion(n_components=2, random_state=0, keep_features=True, **features)
    table = lines().pivot(index="user", columns="item", values="rating").to_numpy()
    model.fit(table).save(tmp_path / "sure")
    return tmp_path / "sure"


def test_numbers_of_a_posterior_are_tested(sure):
    path = sure / "posterior.safetensors"
    arrays, numbers = files.read(path, "posterior")
    for name in ("variance", "degrees", "row_strength"):
        for strange in (None, [], {}, -1, 1.5, True, "x", "-1", "inf", "nan", "0", "1_0", float("inf"), 10**400):
            files.write(path, "posterior", arrays, {**numbers, name: strange})
            assert refused(sure, match=f"{name} is")


@pytest.mark.parametrize("size", ["", "1", "2"])
def test_weights_of_features_have_their_shape(sure, size):
    path = sure / "posterior.safetensors"
    arrays, numbers = files.read(path, "posterior")
    for name in ("mean", "columns", "average", "scatter", "lines_0"):
        strange = np.ones([1] * int(size or 0))
        files.write(path, "posterior", {**arrays, f"row_features_{name}": strange}, numbers)
        assert refused(sure, match="row_features")


def test_covariances_may_be_singular(sure):
    """They are rounded to the precision of the factors, and may be zeros in a file of another origin."""
    path = sure / "posterior.safetensors"
    arrays, numbers = files.read(path, "posterior")
    names = [name for name in arrays if name.endswith("_covariance")]
    files.write(path, "posterior", {**arrays, **{name: 0 * arrays[name] for name in names}}, numbers)
    model = bf.load(sure)
    rows, values = model.recommend([0], n=3, by="draw", random_state=0)
    same, means = model.recommend([0], n=3)
    np.testing.assert_array_equal(rows, same)
    np.testing.assert_allclose(values, means, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_whose_squares_overflow_are_refused(tmp_path, dtype):
    MatrixCompletion(n_components=2, ridge=1.0, random_state=0).fit_long(lines(dtype=dtype)).save(tmp_path / "fit")
    path = tmp_path / "fit" / "factors.safetensors"
    arrays, metadata = files.read(path, "result")
    huge = float(np.finfo(arrays["U"].dtype).max)
    for value in (huge, 2 * huge**0.5):
        files.write(path, "result", {**arrays, "V": put(arrays["V"].copy(), (0, 0), value)}, metadata)
        assert refused(tmp_path / "fit", match="overflow")
    files.write(path, "result", arrays, metadata)
    card = json.loads((tmp_path / "fit" / "card.json").read_text(encoding="utf-8"))
    card["model"]["intercept"] = huge
    (tmp_path / "fit" / "card.json").write_text(json.dumps(card), encoding="utf-8")
    assert refused(tmp_path / "fit", match="overflow")


def test_item_to_item_scores_are_tested(tmp_path):
    clicks = np.random.default_rng(0).random((12, 9)) < 0.4
    settings = {"n_components": 2, "item_share": 0.3, "item_ridge": 3.0, "unobserved": 0.2, "ridge": 0.03}
    bf.Recommender(**settings, random_state=0).fit(1.0 * clicks).save(tmp_path / "fit")
    path = tmp_path / "fit" / "items.safetensors"
    arrays, metadata = files.read(path, "items")
    whole = arrays["carried"]
    for strange in (whole.astype(int), put(whole.copy(), 0, np.nan), put(whole.copy(), 0, np.inf), whole.ravel()):
        files.write(path, "items", {"carried": strange}, metadata)
        assert refused(tmp_path / "fit", match="items")


@pytest.mark.parametrize("name", ["factors.safetensors", "ids.safetensors", "seen.safetensors"])
def test_files_of_another_fit(tmp_path, folder, name):
    made(lines()[lines()["user"] != "u3"]).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / name, folder / name)
    assert refused(folder, "do not belong together")


def test_ids_of_rows_and_columns_are_not_swapped(folder):
    arrays, kinds = files.read(folder / "ids.safetensors", "ids")
    other = {"row": "column", "column": "row"}
    swapped = {f"{other[key.split(':')[0]]}:{key.split(':')[1]}": array for key, array in arrays.items()}
    files.write(folder / "ids.safetensors", "ids", swapped, {other[side]: kind for side, kind in kinds.items()})
    assert refused(folder, "do not belong together")
    files.write(folder / "ids.safetensors", "ids", {}, kinds)
    assert refused(folder)


def test_one_kind_of_file_is_not_another(folder):
    shutil.copy(folder / "seen.safetensors", folder / "ids.safetensors")
    assert refused(folder, "is not a bifactor ids")


SEEN = {
    "starts without a sign": lambda starts, columns: (starts.astype(np.uint64), columns),
    "columns without a sign": lambda starts, columns: (starts, columns.astype(np.uint32)),
    "a column too many": lambda starts, columns: (starts, put(columns, 0, SHAPE[1])),
    "a column before the first": lambda starts, columns: (starts, put(columns, 0, -1)),
    "starts that fall": lambda starts, columns: (put(starts, 3, starts[-1]), columns),
    "starts that begin late": lambda starts, columns: (put(starts, 0, 2), columns),
    "a column twice": lambda starts, columns: (starts, put(columns, 1, columns[0])),
    "starts beyond all": lambda starts, columns: (put(starts.astype(np.uint64), 3, 2**64 - 1), columns),
    "starts that are negative": lambda starts, columns: (put(starts, 3, -7), columns),
    "a start too few": lambda starts, columns: (starts[:-1], columns),
    "columns too few": lambda starts, columns: (starts, columns[:-1]),
    "numbers that are not whole": lambda starts, columns: (starts, columns + 0.5),
    "a matrix": lambda starts, columns: (starts[:, None], columns),
}


@pytest.mark.parametrize("change", SEEN)
def test_pairs_that_are_damaged(folder, change):
    arrays, _ = files.read(folder / "seen.safetensors", "seen")
    starts, columns = SEEN[change](arrays["starts"].copy(), arrays["columns"].copy())
    files.write(folder / "seen.safetensors", "seen", {"starts": starts, "columns": columns}, {})
    assert refused(folder, "do not belong together")


# Folders of older versions


@pytest.mark.parametrize(
    "name",
    [
        *(f"{kind}-{k}" for kind in ("completion", "labels") for k in (1, 2, 3)),
        "clicks-4",
        "features-4",
        "clicks-5",
        "clicks-6",
        "completion-6",
    ],
)
def test_every_format_is_read(name, tmp_path):
    folder = FORMATS / name
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    assert json.loads((folder / "card.json").read_text(encoding="utf-8"))["format"] == int(name[-1])
    fit = bf.load(folder)
    told = fit.predict(expected["rows"], expected["cols"], unknown="raise")
    np.testing.assert_allclose(told, expected["predictions"], rtol=1e-12)
    assert fit.recommend(expected["rows"][0], n=3)[0][0].tolist() == expected["recommended"]
    new = again(fit, tmp_path / "fit")
    assert same(fit, new)
    assert new.card["format"] == 7
    if "because" in expected:
        for one in (fit, new):
            names, parts, _ = one.explain(expected["rows"][0], expected["recommended"][0], n=3)
            assert names.tolist() == expected["because"]
            np.testing.assert_allclose(parts, expected["parts"], rtol=1e-12)


@pytest.mark.parametrize("weights", [[1.0], [0.0], [np.nan], [np.inf], [1]])
def test_weights_that_cannot_be_are_refused(weights, tmp_path):
    folder = tmp_path / "fit"
    shutil.copytree(FORMATS / "clicks-5", folder)
    (folder / "expected.json").unlink()
    arrays, _ = files.read(folder / "seen.safetensors", "seen")
    wrong = np.resize(np.array(weights), 1 if weights == [1.0] else arrays["columns"].size)
    files.write(folder / "seen.safetensors", "seen", {**arrays, "weights": wrong}, {})
    with pytest.raises(FileError, match="do not belong together"):
        bf.load(folder)


def test_an_older_result_is_read():
    expected = json.loads((FORMATS / "result-1.json").read_text(encoding="utf-8"))
    result = bf.Result.load(FORMATS / "result-1.safetensors")
    np.testing.assert_allclose(result.matrix(), expected["matrix"], rtol=1e-12)
    assert (result.status.name, result.n_iter) == (expected["status"], expected["n_iter"])
    assert result.objective == expected["objective"]


def test_every_format_has_a_folder():
    from bifactor.models.storage import FORMAT

    kept = {int(path.name.rsplit("-", 1)[1]) for path in FORMATS.iterdir() if path.is_dir()}
    assert kept >= set(range(1, FORMAT))
