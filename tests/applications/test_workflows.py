"""Each command is one call from Python, with equal numbers."""

import json
import os
import signal

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from PIL import Image

import bifactor as bf
from bifactor.applications.completion import workflow as completion
from bifactor.applications.recommender import workflow as recommender
from bifactor.applications.watch import AfterFit
from bifactor.cli.main import main
from bifactor.errors import BifactorError

TIMES = ("seconds", "seconds_compared", "timings", "created", "history")
QUICK = {"n_components": 2, "ridge": 1.0, "holdout": 0.2}
CLICKS = {"n_components": 3, "unobserved": 0.3, "ridge": 0.1}


def invoke(*words, code=0):
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == code, done.output
    return done.stdout


def answer(*words):
    return json.loads(invoke(*words, "--json"))


def timeless(card):
    """A card without times and the names of files, as JSON returns it."""
    found = json.loads(json.dumps(card))
    for one in (found, *(part for part in found.values() if isinstance(part, dict))):
        for name in TIMES:
            one.pop(name, None)
    return {name: value for name, value in found.items() if name not in ("output", "doubt", "format", "model")}


def same_fit(first, second):
    one, other = bf.load(first), bf.load(second)
    np.testing.assert_array_equal(one.model.U, other.model.U)
    np.testing.assert_array_equal(one.model.V, other.model.V)
    assert timeless(one.card) == timeless(other.card)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Ratings, clicks, a table, counts and a picture in one folder."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    X = 3 + rng.standard_normal((40, 2)) @ rng.standard_normal((2, 30)) + rng.standard_normal((40, 1))
    i, j = np.nonzero(rng.random(X.shape) < 0.5)
    ratings = pd.DataFrame({"user": [f"u{k}" for k in i], "item": j, "rating": np.clip(np.rint(X[i, j]), 1, 5)})
    test = rng.random(i.size) < 0.2
    ratings[~test].to_csv(folder / "ratings.csv", index=False)
    ratings[test].to_csv(folder / "test.csv", index=False)
    liked = X > 4
    i, j = np.nonzero(liked & (rng.random(X.shape) < 0.7))
    pd.DataFrame({"user": [f"u{k}" for k in i], "item": j}).to_csv(folder / "clicks.csv", index=False)
    i, j = np.nonzero(liked)
    pd.DataFrame({"user": [f"u{k}" for k in i], "item": j}).to_csv(folder / "later.csv", index=False)
    (folder / "history.csv").write_text("user,item,rating\nnew,3,5\nnew,5,1\nnew,8,4\n")
    (folder / "titles.csv").write_text("".join(f"{k},Title {k}\n" for k in range(30)))
    a = rng.standard_normal(60)
    table = pd.DataFrame({"a": a.round(2), "b": (2 * a).round(2), "c": np.where(a > 0, "yes", "no")})
    table.mask(pd.DataFrame(rng.random(table.shape) < 0.2, columns=table.columns)).to_csv(
        folder / "table.csv", index=False
    )
    counts = {"XX": [512, 9, 11, 492], "YY": [7, 508, 499, 10], "ZZ": [500, 3, 4, 517]}
    lines = [",".join(map(str, (name, *row))) for name, row in counts.items()]
    (folder / "counts.csv").write_text("\n".join(["setting,00,01,10,11", *lines]) + "\n")
    y, x = np.mgrid[:24, :32]
    pixels = np.stack([128 + 90 * np.sin(x / 7), 128 + 90 * np.cos(y / 9), x + y], axis=2).astype(np.uint8)
    Image.fromarray(pixels).save(folder / "photo.png")
    Image.fromarray(np.where(rng.random((24, 32)) < 0.6, 255, 0).astype(np.uint8)).save(folder / "mask.png")
    return folder


@pytest.fixture
def folder(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in data.iterdir():
        (tmp_path / path.name).symlink_to(path)
    return tmp_path


@pytest.fixture(scope="module")
def fits(data, tmp_path_factory):
    """Folders of a fit with error bars and of a fit to clicks."""
    made = tmp_path_factory.mktemp("fits")
    bf.completion.complete(data / "ratings.csv", n_components=2, noise="one", output=made / "values")
    bf.recommender.complete(data / "clicks.csv", **CLICKS, output=made / "clicks")
    return made


# Completion


def test_complete_is_the_command(folder):
    told = answer(
        "complete", "ratings.csv", "--rank", 2, "--ridge", 1, "--holdout", 0.2, "--test", "test.csv", "-o", "a"
    )
    completed = bf.completion.complete("ratings.csv", **QUICK, test="test.csv", output="b")
    assert timeless(completed.card) == timeless(told)
    same_fit("a", "b")
    assert completed.report is not None
    assert "RMSE, baseline" in completed.report
    assert set(completed.scores) == {"held out", "baseline", "test"}
    assert completed.scores["held out"]["rmse"] < completed.scores["baseline"]["rmse"]
    completed.save("c")
    same_fit("a", "c")


def test_blocks_and_datasets_are_completed_alike(folder):
    store = bf.data.partition("ratings.csv", "blocks")
    told = answer("complete", "blocks", "--rank", 2, "--ridge", 1, "--holdout", 0.2, "-o", "a")
    by_folder, by_store = (bf.completion.complete(one, **QUICK) for one in ("blocks", store))
    assert timeless(by_folder.card) == timeless(told)
    assert by_store.scores == by_folder.scores == told["scores"]
    in_memory = bf.completion.complete(bf.data.read("ratings.csv"), **QUICK)
    of_frame = bf.completion.complete(pd.read_csv("ratings.csv"), **QUICK, test=pd.read_csv("test.csv"))
    assert in_memory.card["data"]["file"] == "data in memory"
    assert in_memory.scores["held out"] == of_frame.scores["held out"]
    assert in_memory.scores["held out"]["rmse"] == pytest.approx(by_store.scores["held out"]["rmse"], rel=1e-2)
    of_frame.save("frame")
    assert bf.load("frame").card["scores"] == of_frame.scores


@pytest.mark.parametrize("loss", ["huber", "ordinal", "poisson", "logistic"])
def test_the_baseline_has_the_loss_of_the_fit(folder, loss):
    frame = pd.read_csv("ratings.csv")
    frame["rating"] = frame["rating"] > 3 if loss == "logistic" else frame["rating"]
    completed = bf.completion.complete(frame, loss=loss, **QUICK)
    ours, baseline = (completed.scores[name] for name in ("held out", "baseline"))
    assert ours["entries"] == baseline["entries"]
    alone = bf.completion.complete(frame, loss=loss, **QUICK | {"n_components": 0})
    assert set(alone.scores) == {"held out"}
    assert baseline["mean_loss"] == pytest.approx(alone.scores["held out"]["mean_loss"], rel=0.05)


def test_whole_rows_can_be_held_out(folder):
    mask = bf.data.RandomLines(0.2, 0)
    completed = bf.completion.complete("ratings.csv", **QUICK | {"holdout": mask}, output="fit")
    assert completed.card["settings"]["holdout"] == repr(mask)
    frame = bf.data.read("ratings.csv")
    assert completed.scores["held out"]["entries"] == int(np.count_nonzero(mask(frame.rows, frame.cols)))
    assert bf.load("fit").card["settings"] == completed.card["settings"]
    clicks = bf.recommender.complete("clicks.csv", **CLICKS, holdout=bf.data.RandomCells(0.3, 1))
    assert "The choices in RandomCells" in clicks.report


def test_values_are_evaluated_and_predicted_as_by_the_commands(folder, fits):
    fit = fits / "values"
    for more, options in (([], {}), (["--history", "history.csv"], {"history": "history.csv"})):
        told = answer("evaluate", fit, "test.csv", *more)
        scores = bf.completion.evaluate(fit, "test.csv", **options).scores
        assert scores == {name: told[name] for name in scores}
        told = answer("predict", fit, "test.csv", "--std", *more)
        predictions = bf.completion.predict(fit, "test.csv", std=True, **options)
        assert predictions.records() == told["predictions"]
    again = bf.completion.predict(bf.load(fit), pd.read_csv("test.csv"), std=True)
    told = answer("predict", fit, "test.csv")["predictions"]
    np.testing.assert_array_equal(again.values, [one["prediction"] for one in told])
    np.testing.assert_array_equal(again.std, predictions.std)
    assert pd.DataFrame(again.frame()).shape == (len(again), 5)
    estimator = bf.MatrixCompletion(2, noise="one", random_state=0).fit_long("ratings.csv")
    store = bf.data.partition("test.csv", "blocks")
    for pairs in (store, "blocks", bf.data.read("test.csv")):
        assert len(bf.completion.predict(estimator, pairs)) == len(again)


# Clicks


def test_clicks_are_completed_as_by_the_command(folder):
    options = ("--implicit", "--rank", 3, "--unobserved", 0.3, "--ridge", 0.1)
    told = answer("complete", "clicks.csv", *options, "--names", "titles.csv", "-o", "a")
    completed = bf.recommender.complete("clicks.csv", **CLICKS, titles="titles.csv", output="b")
    assert timeless(completed.card) == timeless(told)
    same_fit("a", "b")
    assert "Title " in completed.report
    titles = {k: f"Title {k}" for k in range(30)}
    assert "Title " in bf.recommender.complete(pd.read_csv("clicks.csv"), **CLICKS, titles=titles).report


def test_clicks_are_evaluated_and_recommended_as_by_the_commands(folder, fits):
    fit = fits / "clicks"
    told = answer("evaluate", fit, "later.csv", "-n", 5)
    found = bf.recommender.evaluate(fit, "later.csv", 5)
    assert {**found.scores, "left_out": found.left_out} == {name: told[name] for name in (*found.scores, "left_out")}
    for words, options in (
        (["--user", "u1", "--user", "u3", "--explain"], {"rows": ["u1", "u3"], "explain": True}),
        (["--all", "-n", 3, "--include-seen"], {"n": 3, "filter_seen": False}),
        (["--history", "history.csv", "--names", "titles.csv"], {"history": "history.csv", "titles": "titles.csv"}),
        (["--user", "who", "--unknown", "popular"], {"rows": ["who"], "unknown": "popular"}),
    ):
        lists = list(bf.recommender.recommend(fit, **options))
        told = answer("recommend", fit, *words)["rows"]
        assert [one.row for one in lists] == [one["row"] for one in told]
        for mine, theirs in zip(lists, told, strict=True):
            assert [line.column for line in mine.lines] == [line["column"] for line in theirs["recommended"]]
            assert [line.score for line in mine.lines] == [line["score"] for line in theirs["recommended"]]


def test_ratings_are_recommended_as_by_the_command(folder, fits):
    told = answer("recommend", fits / "values", "--user", "u1", "--by", "lower", "--level", 0.8)["rows"][0]
    (mine,) = bf.recommender.recommend(fits / "values", ["u1"], by="lower", level=0.8)
    assert [line.score for line in mine.lines] == [line["lower"] for line in told["recommended"]]


# Tables, pictures and states


def test_impute_is_the_command(folder):
    told = answer("impute", "table.csv", "--effort", "fast", "--column", "c", "category", "-o", "a.csv")
    filled = bf.imputation.impute("table.csv", effort="fast", columns={"c": "category"}, output="b.csv")
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()
    assert timeless(filled.card) == timeless(told)
    frame = pd.read_csv("table.csv")
    of_frame = bf.imputation.impute(frame, effort="fast", columns={"c": "category"})
    assert of_frame.table.notna().all().all()
    assert of_frame.scores == filled.scores
    np.testing.assert_allclose(of_frame.table["b"], pd.read_csv("b.csv")["b"], rtol=1e-5)
    of_frame.save("frame.parquet")
    assert pd.read_parquet("frame.parquet").equals(of_frame.table)


def test_inpaint_is_the_command(folder):
    options = ("--mask", "mask.png", "--truth", "photo.png", "--doubt", "c.png")
    told = answer("inpaint", "photo.png", *options, "-o", "a.png")
    filled = bf.pictures.inpaint("photo.png", mask="mask.png", truth="photo.png", output="b.png", doubt="d.png")
    assert timeless(filled.card) == timeless(told)
    assert (folder / "a.png").read_bytes() == (folder / "b.png").read_bytes()
    assert (folder / "c.png").read_bytes() == (folder / "d.png").read_bytes()
    with Image.open("photo.png") as photo, Image.open("mask.png") as mask:
        pixels, known = np.asarray(photo), np.asarray(mask) > 127
    of_array = bf.pictures.inpaint(pixels, mask=known)
    np.testing.assert_array_equal(of_array.pixels, filled.pixels)
    assert of_array.scores == {}
    holes = np.where(known, pixels[:, :, 0].astype(np.float32), np.nan)
    assert np.isfinite(bf.pictures.inpaint(holes).pixels).all()


def test_tomography_is_the_command(folder):
    told = answer("tomography", "counts.csv", "--rank", 1, "--target", "singlet", "-o", "a.npz")
    found = bf.tomography.tomography("counts.csv", rank=1, target="singlet", output="b.npz")
    assert timeless(found.card) == timeless(told)
    with np.load("a.npz") as one, np.load("b.npz") as other:
        np.testing.assert_array_equal(one["rho"], other["rho"])
        np.testing.assert_array_equal(found.density_matrix, other["rho"])
    counts = pd.read_csv("counts.csv", index_col=0)
    mapping = {name: {f"{k:02b}": int(n) for k, n in enumerate(row)} for name, *row in counts.itertuples()}
    again = bf.tomography.tomography(mapping, rank=1, target="singlet")
    assert again.card == found.card | {"output": None}


# Mistakes


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: bf.completion.complete("none.csv"), "There is no file none.csv"),
        (lambda: bf.completion.complete("ratings.csv", holdout=2), "holdout=2 is not a share"),
        (lambda: bf.completion.complete("ratings.csv", n_components=-1), "n_components=-1 is not an integer"),
        (lambda: bf.completion.complete("ratings.csv", workers=0), "workers=0 is not an integer"),
        (lambda: bf.completion.complete("ratings.csv", executor=3), "executor"),
        (lambda: bf.completion.complete("ratings.csv", output="ratings.csv"), "already exists"),
        (lambda: bf.completion.complete("ratings.csv", implicit=True), "Use recommender.complete"),
        (lambda: bf.completion.complete(bf.data.read("ratings.csv"), row="user"), "row is for files"),
        (lambda: bf.completion.complete(pd.read_csv("later.csv").assign(n=1)), "clicks, plays or purchases"),
        (lambda: bf.completion.complete("test.csv", loss="logistic"), "different values"),
        (lambda: bf.completion.complete("test.csv", checkpoint="none/run"), "does not exist"),
        (lambda: bf.completion.predict(3, "test.csv"), "int is not a fit"),
        (lambda: bf.completion.predict("values", "test.csv", unknown="no"), "unknown='no'"),
        (lambda: bf.completion.predict("values", "history.csv", unknown="raise"), "pass unknown='mean'"),
        (lambda: bf.completion.evaluate("clicks", "later.csv"), "Use recommender.evaluate"),
        (lambda: bf.recommender.evaluate("values", "test.csv"), "Use completion.evaluate"),
        (lambda: bf.recommender.evaluate("clicks", "later.csv", 0), "n=0 is not an integer"),
        (lambda: bf.recommender.complete("clicks.csv", unobserved=0), "unobserved=0 is not a number above 0"),
        (lambda: bf.recommender.complete("clicks.csv", n_components="auto"), "n_components='auto'"),
        (lambda: bf.recommender.complete("clicks.csv", titles="later.csv"), "None of the"),
        (lambda: bf.recommender.recommend("values", ["who"]), "no row named 'who'"),
        (lambda: bf.recommender.recommend("values", ["u1"], n=0), "n=0 is not an integer"),
        (lambda: bf.recommender.recommend("values", ["u1"], unknown="popular"), "is for clicks"),
        (lambda: bf.recommender.recommend("values", ["u1"], explain=True), "Only recommendations from clicks"),
        (lambda: bf.imputation.impute("table.csv", effort="much"), "effort='much'"),
        (lambda: bf.imputation.impute("table.csv", columns={"z": "keep"}), "no column 'z' to keep"),
        (lambda: bf.imputation.impute("table.csv", output="x.parquet"), "different formats"),
        (lambda: bf.imputation.impute(pd.DataFrame()), "the frame has no columns"),
        (lambda: bf.imputation.impute(np.zeros((3, 3))), "ndarray is neither a file nor a data frame"),
        (lambda: bf.pictures.inpaint("photo.png"), "no transparency"),
        (lambda: bf.pictures.inpaint("photo.png", mask="mask.png", keep=0.5), "mask and keep exclude each other"),
        (lambda: bf.pictures.inpaint("photo.png", keep=0), "keep=0 is not above 0"),
        (lambda: bf.pictures.inpaint("photo.png", keep=0.5, truth="photo.png"), "Leave out truth"),
        (lambda: bf.pictures.inpaint(np.zeros((4, 4, 7))), "ImageCompletion takes any number"),
        (lambda: bf.pictures.inpaint(np.zeros((4, 4)), mask=np.ones((3, 3), bool)), "mask has dtype bool"),
        (lambda: bf.tomography.tomography({}), "neither a file, a mapping"),
        (lambda: bf.tomography.tomography("counts.csv", rank=9), "rank=9 is not possible"),
        (lambda: bf.tomography.tomography("counts.csv", output="state.txt"), ".npz"),
    ],
)
def test_mistakes_are_told_before_any_work(folder, fits, call, words):
    for name in ("values", "clicks"):
        (folder / name).symlink_to(fits / name)
    names = set(os.listdir(folder))
    with pytest.raises(BifactorError) as error:
        call()
    assert words in str(error.value)
    assert set(os.listdir(folder)) == names


# Ctrl-C


def pressed(*_, **__):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def handler():
    """Ctrl-C as in Python; it is ignored in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield signal.default_int_handler
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("name", "missing", "scores"),
    [
        ("held_out_scores", "the score at held-out entries, the baseline, the fit to all entries, the report", set()),
        ("about_fit", "the report", {"held out", "baseline"}),
        ("report", "the report", {"held out", "baseline"}),
    ],
)
def test_ctrl_c_in_a_stage_keeps_the_fit(folder, monkeypatch, handler, name, missing, scores):
    plain = getattr(completion, name)
    monkeypatch.setattr(completion, name, lambda *a, **k: (pressed(), plain(*a, **k))[1])
    completed = bf.completion.complete("ratings.csv", **QUICK, output="fit")
    assert completed.interrupted
    assert completed.report is None
    assert completed.notes == [f"Interrupted, without {missing}."]
    assert set(completed.scores) == scores
    assert np.isfinite(bf.load("fit").predict("u1", 1)).all()


def test_ctrl_c_in_the_baseline_keeps_the_score(folder, monkeypatch, handler):
    plain, calls = completion.fit_model, []

    def fit_model(*arguments):
        calls.append(None)
        if len(calls) == 2:
            pressed()
        return plain(*arguments)

    monkeypatch.setattr(completion, "fit_model", fit_model)
    completed = bf.completion.complete("ratings.csv", **QUICK)
    assert set(completed.scores) == {"held out"}
    assert completed.notes == ["Interrupted, without the baseline, the fit to all entries, the report."]


def test_ctrl_c_in_the_check_of_clicks_keeps_the_fit(folder, monkeypatch, handler):
    monkeypatch.setattr(recommender, "evaluate_fit", pressed)
    completed = bf.recommender.complete("clicks.csv", **CLICKS)
    assert completed.notes[-1] == "Interrupted, without the check, the fit to all choices, the report."
    assert completed.fit.recommend(["u1"], 3)[0].size


def test_ctrl_c_before_there_is_a_fit_is_raised(folder, monkeypatch, handler):
    monkeypatch.setattr(completion, "fit_model", pressed)
    with pytest.raises(KeyboardInterrupt):
        bf.completion.complete("ratings.csv", **QUICK, output="fit")
    assert not (folder / "fit").exists()


def test_a_second_ctrl_c_is_raised(handler):
    with AfterFit().answer_signals() as rest:
        rest.keep()
        pressed()
        assert rest.ended
        with pytest.raises(KeyboardInterrupt):
            pressed()
    assert rest.stage("more", lambda: 1) is None
    assert rest.notes == ["Interrupted, without more."]
