"""The range that predictions are kept in."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import bifactor as bf
from bifactor.cli.main import main
from bifactor.errors import FileError, InputError
from bifactor.models.completion.clipping import clip_range, describe_range, restored_range, stored_range

SHAPE = (60, 40)


def range_of(values):
    """The limits of values in one row."""
    places = np.zeros(values.size, int), np.arange(values.size)
    return clip_range("auto", bf.data.Observations(*places, values, (1, values.size)))


def grades(observed=0.5, seed=0):
    """A matrix of grades from 1 to 5, many of them at the ends, and which of them are shown."""
    rng = np.random.default_rng(seed)
    X = (
        3.5
        + rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1]))
        + rng.standard_normal((SHAPE[0], 1))
    )
    return np.clip(np.round(X), 1, 5), rng.random(SHAPE) < observed


@pytest.fixture(scope="module")
def shown():
    truth, mask = grades()
    return np.where(mask, truth, np.nan)


@pytest.fixture(scope="module")
def fitted(shown):
    return bf.MatrixCompletion(n_components=3, noise="one", random_state=0).fit(shown)


@pytest.fixture(scope="module")
def free(shown):
    return bf.MatrixCompletion(n_components=3, noise="one", clip=False, random_state=0).fit(shown)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (np.arange(1, 6), (1, 5)),
        (np.arange(1, 11) / 2, (0.5, 5)),
        (np.arange(1, 11) / 10, (0.1, 1)),
        (np.arange(-10, 11), (-10, 10)),
        (np.arange(101), (0, 100)),
        ([0, 1], (0, 1)),
        ([1, 2, 5], (1, 5)),  # a grade may be missing
        (np.arange(102), None),
        ([0, 1, 1000], None),
        ([1, 2, 2.5, 3.2], None),
        ([3], None),
    ],
)
def test_what_counts_as_grades(scale, expected, dtype):
    values = np.tile(np.asarray([*scale, scale[0], scale[-1]], dtype), 30)
    found = range_of(values)
    assert found == (None if expected is None else tuple(float(dtype(end)) for end in expected))


@pytest.mark.parametrize("seed", range(20))
def test_numbers_are_no_grades_however_they_are_rounded(seed):
    x = np.random.default_rng(seed).standard_normal(20_000)
    assert range_of(x) is None
    assert range_of(np.round(x, 1)) is None
    assert range_of(np.round(x)) is None
    assert range_of(np.round(x[:50], 1)) is None
    assert range_of(np.array([1.0])) is None
    assert range_of(np.array([-1e308, 1e308] * 50)) is None


def test_counts_have_one_limit():
    counts = np.random.default_rng(0).poisson(1.0, 5000).astype(float)
    assert range_of(counts) == (0, np.inf)
    assert range_of(-counts) == (-np.inf, 0)


def test_many_numbers_are_told_from_grades_whatever_their_order():
    values = np.sort(np.random.default_rng(0).integers(1, 6, 100_000)).astype(float)
    assert range_of(values) == (1, 5)
    values[::997] += 0.123  # which a glance may miss
    assert range_of(values) is None


def test_predictions_are_kept_in_the_range(shown, fitted, free):
    i, j = np.indices(SHAPE).reshape(2, -1)
    z = free.decision_function(i, j)
    assert fitted.clip_ == (1, 5)
    assert free.clip_ is None
    assert np.any(z > 5)
    np.testing.assert_array_equal(fitted.decision_function(i, j), z)
    np.testing.assert_array_equal(free.predict(i, j), z)
    expected = np.clip(z, 1, 5)
    np.testing.assert_array_equal(fitted.predict(i, j), expected)
    np.testing.assert_array_equal(fitted.predict(i, j, return_std=True)[1], free.predict(i, j, return_std=True)[1])
    np.testing.assert_array_equal(fitted.complete(), np.where(np.isnan(shown), expected.reshape(SHAPE), shown))
    np.testing.assert_array_equal(fitted.fit_.predict(i, j), expected)
    for told in (fitted.predict(shown), fitted.inverse_transform(fitted.transform(shown))):
        assert (told.min(), told.max()) == (1, 5)


def test_errors_do_not_grow_and_intervals_hold_as_often(shown, fitted, free):
    truth, _ = grades()
    i, j = np.nonzero(np.isnan(shown))
    hidden = (i, j, truth[i, j])
    assert fitted.score(hidden) > free.score(hidden)
    assert fitted.score(shown[:10]) >= free.score(shown[:10])
    assert fitted.fit_.score(*hidden) == pytest.approx(fitted.score(hidden))
    inside = []
    for model in (fitted, free):
        lower, upper = model.predict_interval(i, j, 0.8)
        inside.append((lower <= hidden[2]) & (hidden[2] <= upper))
        np.testing.assert_array_equal(model.fit_.predict_interval(i, j, 0.8), (lower, upper))
    assert np.all(inside[0] >= inside[1])
    lower, upper = fitted.predict_interval(i, j, 0.8)
    assert (lower.min(), upper.max()) == (1, 5)


@pytest.mark.parametrize("clip", [True, (1, 5), [0.5, 5.5], (0, np.inf)], ids=str)
def test_ranges_that_are_asked_for(shown, clip):
    model = bf.MatrixCompletion(n_components=2, ridge=1.0, clip=clip, random_state=0).fit(shown)
    assert model.clip_ == ((1, 5) if clip is True else tuple(clip))
    told = model.predict(*np.indices(SHAPE).reshape(2, -1))
    assert model.clip_[0] <= told.min()
    assert told.max() <= model.clip_[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clip": "always"}, "Pass 'auto', True, False"),
        ({"clip": 5}, "Pass 'auto', True, False"),
        ({"clip": (1, 2, 3)}, "Pass 'auto', True, False"),
        ({"clip": (1, "a")}, "Pass 'auto', True, False"),
        ({"clip": None}, "Pass 'auto', True, False"),
        ({"clip": (5, 1)}, "is not increasing"),
        ({"clip": (np.nan, 1)}, "is not increasing"),
        ({"clip": (0, 1)}, "median of the values, 3"),
        ({"clip": True, "loss": "poisson"}, "needs loss='squared' or 'huber'"),
        ({"clip": (0, 9), "loss": "poisson"}, "needs loss='squared' or 'huber'"),
    ],
)
def test_ranges_that_are_refused(shown, options, words):
    with pytest.raises(InputError, match=words):
        bf.MatrixCompletion(**options).fit(shown)


@pytest.mark.parametrize(("loss", "expected"), [("huber", (1, 5)), ("poisson", None)])
def test_other_losses(shown, loss, expected):
    assert bf.MatrixCompletion(n_components=1, ridge=5.0, loss=loss, random_state=0).fit(shown).clip_ == expected


def test_values_that_are_all_alike_and_single_precision():
    same = bf.MatrixCompletion(n_components=1, clip=True).fit(np.full((5, 4), 2.5))
    assert same.clip_ == (2.5, 2.5)
    assert np.all(same.predict([0, 1], [1, 2]) == 2.5)
    single = bf.MatrixCompletion(n_components=1, ridge=1.0).fit(grades()[0].astype(np.float32))
    told = single.predict(*np.indices(SHAPE).reshape(2, -1))
    assert told.dtype == np.float32
    assert told.max() <= 5


def test_it_travels_with_names_folders_and_new_rows(tmp_path, shown):
    i, j = np.nonzero(~np.isnan(shown))
    frame = pd.DataFrame({"user": [f"u{k}" for k in i], "item": j, "rating": shown[i, j]})
    model = bf.MatrixCompletion(n_components=3, noise="one", random_state=0).fit_long(frame)
    pairs = pd.DataFrame({"user": [f"u{k}" for k in np.repeat(np.arange(60), 40)], "item": np.tile(np.arange(40), 60)})
    told = model.predict_long(pairs)["prediction"]
    assert told.max() == 5
    assert model.score_long(frame) > 0
    model.save(tmp_path / "fit")
    fit = bf.load(tmp_path / "fit")
    assert fit.model.link.clip == (1, 5)
    np.testing.assert_array_equal(fit.predict(pairs["user"], pairs["item"]), told)
    best = pd.DataFrame({"user": "new", "item": np.arange(40), "rating": 5.0})
    served = fit.fold_in(bf.data.read(best))
    assert served.predict("new", np.arange(40)).max() <= 5
    assert model.partial_fit_long(best).predict("new", np.arange(40)).max() <= 5


@pytest.mark.parametrize("by", ["mean", "lower", "draw"])
def test_lists_are_ranked_before_clipping_and_shown_after_it(by, fitted, free):
    """The list of the same fit without a range, with its numbers moved into the range."""
    asked = {"n": SHAPE[1], "by": by, "level": 0.2, "random_state": 3, "filter_seen": False}
    columns, shown = fitted.recommend(None, **asked)
    same, raw = free.recommend(None, **asked)
    assert np.any(raw > 5)
    assert np.any(raw < 1)
    np.testing.assert_array_equal(columns, same)
    np.testing.assert_array_equal(shown, np.clip(raw, 1, 5))
    if by == "mean":
        rows = np.repeat(np.arange(SHAPE[0]), SHAPE[1])
        np.testing.assert_allclose(shown.ravel(), fitted.predict(rows, columns.ravel()), rtol=1e-12)


def test_the_shell_shows_the_same_numbers_everywhere(tmp_path, fitted, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fitted.save("fit")
    run = CliRunner().invoke(main, ["recommend", "fit", "--all", "-n", "5", "-o", "lists.csv"])
    assert run.exit_code == 0, run.output
    lists = pd.read_csv("lists.csv")
    assert lists["prediction"].max() == 5
    lists.to_csv("pairs.csv", index=False)
    names = lists.columns[[0, 2]]
    asked = ["predict", "fit", "pairs.csv", "--row", names[0], "--col", names[1], "-o", "predicted.csv"]
    assert CliRunner().invoke(main, asked).exit_code == 0
    np.testing.assert_allclose(pd.read_csv("predicted.csv")["prediction"], lists["prediction"], rtol=1e-5)
    told = json.loads(CliRunner().invoke(main, ["recommend", "fit", "--user", "0", "--json"]).stdout)
    assert max(line["prediction"] for line in told["rows"][0]["recommended"]) <= 5


@pytest.mark.parametrize("limits", [None, (1.0, 5.0), (0.0, np.inf), (-np.inf, 2.0), (2.5, 2.5)])
def test_ranges_in_cards(limits):
    assert restored_range(json.loads(json.dumps(stored_range(limits), allow_nan=False))) == limits


@pytest.mark.parametrize("stored", ["1,5", [1], [1, 2, 3], [2, 1], [True, 2], {"low": 1}, ["a", 2]])
def test_damaged_ranges_are_refused(stored, tmp_path, free):
    with pytest.raises(ValueError, match="clip is"):
        restored_range(stored)
    free.save(tmp_path / "fit")
    path = tmp_path / "fit" / "card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    card["model"]["clip"] = stored
    path.write_text(json.dumps(card), encoding="utf-8")
    with pytest.raises(FileError, match="clip is"):
        bf.load(tmp_path / "fit")


@pytest.mark.parametrize(
    ("limits", "words"), [((1, 5), "1 to 5"), ((0, np.inf), "at least 0"), ((-np.inf, 9.5), "at most 9.5")]
)
def test_ranges_in_words(limits, words):
    assert describe_range(limits) == words


@pytest.fixture
def shell(tmp_path, monkeypatch, shown):
    monkeypatch.chdir(tmp_path)
    i, j = np.nonzero(~np.isnan(shown))
    pd.DataFrame({"user": i, "item": j, "rating": shown[i, j]}).to_csv("data.csv", index=False)

    def run(*arguments, code=0):
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert done.exit_code == code, done.output
        return done

    return run


def test_the_shell_clips_too(shell):
    done = shell("complete", "data.csv", "--rank", 2, "--ridge", 1, "--holdout", 0.3, "-o", "fit", "--json")
    free = shell(
        "complete", "data.csv", "--rank", 2, "--ridge", 1, "--holdout", 0.3, "--clip", "no", "-o", "free", "--json"
    )
    ours, theirs = (json.loads(run.stdout)["scores"]["held out"] for run in (done, free))
    assert ours["rmse"] < theirs["rmse"]
    assert ours["explained"] > theirs["explained"]
    assert json.loads(done.stdout)["fit"]["clip"] == [1, 5]
    assert "1 to 5" in shell("complete", "data.csv", "--rank", 1, "--ridge", 1, "-o", "told").stdout
    told = json.loads(shell("predict", "fit", "data.csv", "--json").stdout)["predictions"]
    assert max(one["prediction"] for one in told) == 5
    told = json.loads(shell("predict", "free", "data.csv", "--json").stdout)["predictions"]
    assert max(one["prediction"] for one in told) > 5


@pytest.mark.parametrize(("given", "kept"), [("0,4.5", [0, 4.5]), ("data", [1, 5]), ("0,inf", [0, None])])
def test_ranges_of_the_shell(shell, given, kept):
    done = shell("complete", "data.csv", "--rank", 1, "--ridge", 1, "--clip", given, "-o", "fit", "--json")
    assert json.loads(done.stdout)["fit"]["clip"] == kept


@pytest.mark.parametrize("given", ["5,1", "5", "1,2,3", "nan,5", "always", "1,a"])
def test_ranges_that_the_shell_refuses(shell, given):
    assert "nor auto, data or no" in shell("complete", "data.csv", "--clip", given, "-o", "fit", code=2).stderr
