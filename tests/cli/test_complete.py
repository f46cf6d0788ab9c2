"""`bifactor complete`, `predict` and `recommend`, as a user meets them."""

import csv
import errno
import gzip
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bifactor as bf
from bifactor.applications.recommender import lists
from bifactor.cli.main import main
from bifactor.estimators.matrix_completion import MatrixCompletion
from bifactor.models import hyperparameters
from bifactor.models.completion import noise_selection
from bifactor.running import files

FILES = {"card.json", "factors.safetensors", "ids.safetensors", "report.html", "seen.safetensors"}
QUICK = ("--rank", "2", "--ridge", "1")


def ratings(m=40, n=30, observed=0.5, seed=0):
    """Names and values of a matrix of rank 2 with offsets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2)) @ rng.standard_normal((2, n)) + rng.standard_normal((m, 1)) + 3
    i, j = np.nonzero(rng.random((m, n)) < observed)
    return i, j, np.round(X[i, j] + 0.1 * rng.standard_normal(i.size), 3)


def lines(i, j, y):
    return "user,item,rating\n" + "".join(f"u{a},{b},{c}\n" for a, b, c in zip(i, j, y, strict=True))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(lines(*ratings()))
    return tmp_path


@pytest.fixture
def invoke(folder):
    def run(*arguments, code=0):
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert done.exit_code == code, done.output
        assert code == 0 or "Traceback" not in done.output
        return done

    return run


@pytest.fixture(scope="module")
def posterior(tmp_path_factory):
    """A folder with error bars."""
    place = tmp_path_factory.mktemp("posterior")
    (place / "data.csv").write_text(lines(*ratings()))
    arguments = ["complete", place / "data.csv", "--rank", 2, "--noise", "one", "-o", place / "fit"]
    assert CliRunner().invoke(main, [str(argument) for argument in arguments]).exit_code == 0
    return place / "fit"


def test_a_fit_predicts_what_the_estimator_predicts(invoke):
    i, j, y = ratings()
    invoke("complete", "data.csv", "--rank", 2, "--ridge", 0.5, "-o", "fit")
    assert set(os.listdir("fit")) == FILES
    same = MatrixCompletion(n_components=2, ridge=0.5, random_state=0).fit((i, j, y))
    fit = bf.load("fit")
    names = [f"u{k}" for k in i]
    assert fit.predict(names, j) == pytest.approx(same.predict(i, j), abs=1e-3)
    assert bf.Result.load("fit/factors.safetensors").U.shape == (40, 4)


@pytest.mark.parametrize(("flag", "fixed"), [("--offsets", (1, 1)), ("--no-offsets", (0, 0))])
def test_a_folder_says_no_more_of_its_columns_than_whether_there_are_offsets(invoke, flag, fixed):
    """So that folders of earlier versions load."""
    invoke("complete", "data.csv", *QUICK, flag, "-o", "fit")
    core = json.loads(Path("fit/card.json").read_text(encoding="utf-8"))["model"]
    clicks = {"unobserved", "item_share", "item_ridge"}
    ridges = {"ridge", "offset_ridge"}
    assert (
        set(core)
        == {"loss", "intercept", "offsets", "clip", "classes", "binarize", "features", "store"} | clicks | ridges
    )
    assert core["offsets"] == (flag == "--offsets")
    model = bf.load("fit").model
    assert model.fixed == fixed
    assert model.U.shape[1] == model.V.shape[1] == 2 + model.fixed_columns
    ones = np.ones((30, fixed[1])), np.ones((40, fixed[0]))
    np.testing.assert_array_equal(model.V[:, fixed[0] : sum(fixed)], ones[0])
    np.testing.assert_array_equal(model.U[:, : fixed[0]], ones[1])


def test_predictions_of_pairs_known_and_unknown(invoke, folder):
    invoke("complete", "data.csv", *QUICK, "-o", "fit")
    (folder / "pairs.csv").write_text("item,user,note\n3,u5,a\n3,nobody,b\nnothing,u5,c\nnothing,nobody,d\n")
    done = invoke("predict", "fit", "pairs.csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["known"] for row in rows] == ["both", "column", "row", "neither"]
    assert [row["user"] for row in rows] == ["u5", "nobody", "u5", "nobody"]
    fit = bf.load("fit")
    U, V, mu = fit.model.U, fit.model.V, fit.model.link.intercept
    a, b = fit.places(["u5"], "row")[0], fit.places(["3"], "column")[0]
    wanted = [mu + U[a] @ V[b], mu + V[b, 0], mu + U[a, 1], mu]
    assert [float(row["prediction"]) for row in rows] == pytest.approx(wanted, rel=1e-4)
    assert "3 with a name that is not in the fit" in done.stderr
    invoke("predict", "fit", "pairs.csv", "-o", "out.csv.gz")
    assert gzip.decompress((folder / "out.csv.gz").read_bytes()).decode() == done.stdout
    answer = json.loads(invoke("predict", "fit", "pairs.csv", "--json").stdout)
    assert answer["unknown"] == 3
    assert [one["prediction"] for one in answer["predictions"]] == pytest.approx(wanted)


def test_recommendations_leave_out_what_was_seen(invoke):
    i, j, _ = ratings()
    invoke("complete", "data.csv", *QUICK, "-o", "fit")
    answer = json.loads(invoke("recommend", "fit", "--user", "u3", "--user", "u0", "-n", 100, "--json").stdout)
    fit = bf.load("fit")
    for one, row in zip(answer["rows"], (3, 0), strict=True):
        unseen = np.setdiff1d(np.unique(j), j[i == row])
        columns = [item["column"] for item in one["recommended"]]
        values = [item["prediction"] for item in one["recommended"]]
        assert sorted(columns) == unseen.tolist()
        assert values == sorted(values, reverse=True)
        assert values == pytest.approx(fit.predict([f"u{row}"] * len(columns), columns))
    assert "item" in invoke("recommend", "fit", "--user", "u3").stdout
    every = json.loads(invoke("recommend", "fit", "--user", "u3", "-n", 100, "--include-seen", "--json").stdout)
    assert len(every["rows"][0]["recommended"]) == 30
    assert "no row named 'nobody'" in invoke("recommend", "fit", "--user", "nobody", code=1).stderr


@pytest.mark.parametrize(
    ("by", "more"), [("mean", {}), ("lower", {}), ("lower", {"level": 0.2}), ("draw", {"seed": 3})]
)
def test_recommendations_by_error_bars_are_those_of_python(invoke, posterior, monkeypatch, by, more):
    monkeypatch.setattr(lists, "BLOCK", 7)
    asked = [part for name, value in more.items() for part in (f"--{name}", value)]
    answer = json.loads(invoke("recommend", posterior, "--all", "-n", 4, "--by", by, *asked, "--json").stdout)
    options = {"random_state": more.get("seed", 0)} if by == "draw" else more
    names, values = bf.load(posterior).recommend(n=4, by=by, **options)
    measure = "prediction" if by == "mean" else by
    for one, columns, numbers in zip(answer["rows"], names.tolist(), values, strict=True):
        kept = ~np.isnan(numbers)
        assert [line["column"] for line in one["recommended"]] == [c for c, k in zip(columns, kept, strict=True) if k]
        assert [line[measure] for line in one["recommended"]] == pytest.approx(numbers[kept])
    one = json.loads(invoke("recommend", posterior, "--user", "u3", "-n", 4, "--by", by, *asked, "--json").stdout)
    if by != "draw":  # which is another for other rows
        same = next(row for row in answer["rows"] if row["row"] == "u3")["recommended"]
        assert [list(line.values()) for line in one["rows"][0]["recommended"]] == [
            pytest.approx(list(line.values())) for line in same
        ]


def test_bounds_in_a_file_and_of_newcomers(invoke, posterior):
    invoke("recommend", posterior, "--all", "-n", 2, "--by", "lower", "-o", "bounds.csv")
    with open("bounds.csv") as file:
        assert next(csv.reader(file)) == ["user", "rank", "item", "lower"]
    Path("new.csv").write_text("user,item,rating\nme,1,5\nme,2,1\n")
    told = json.loads(invoke("recommend", posterior, "--history", "new.csv", "--by", "lower", "--json").stdout)["rows"]
    assert told[0]["row"] == "me"
    means = json.loads(invoke("recommend", posterior, "--history", "new.csv", "-n", 100, "--json").stdout)["rows"]
    expected = {line["column"]: line["prediction"] for line in means[0]["recommended"]}
    assert all(line["lower"] < expected[line["column"]] for line in told[0]["recommended"])


def test_bounds_need_error_bars_in_the_folder(invoke, posterior):
    bf.load(posterior).save("bare", error_bars=False)
    done = invoke("recommend", "bare", "--user", "u3", "--by", "draw", code=1)
    assert "--by draw needs error bars, but this folder was written without" in done.stderr


def test_scores_and_card(invoke, folder):
    i, j, y = ratings()
    hidden = np.arange(i.size) % 10 == 0
    (folder / "train.csv").write_text(lines(i[~hidden], j[~hidden], y[~hidden]))
    (folder / "test.csv").write_text(lines(i[hidden], j[hidden], y[hidden]) + "nobody,1,3\n")
    done = invoke(
        "complete",
        "train.csv",
        "--rank",
        2,
        "--ridge",
        "auto",
        "--holdout",
        0.2,
        "--test",
        "test.csv",
        "-o",
        "fit",
        "--json",
    )
    answer = json.loads(done.stdout)
    card = json.loads((folder / "fit" / "card.json").read_text())
    assert answer["scores"] == card["scores"]
    fit = bf.load("fit")
    error = fit.predict([f"u{k}" for k in i[hidden]], j[hidden]) - y[hidden]
    with pytest.warns(UserWarning, match="In 1 of 1 pair a name was not in the fit"):
        total = np.sum(error**2) + (fit.predict(["nobody"], [1])[0] - 3) ** 2
    assert card["scores"]["test"]["rmse"] == pytest.approx((total / (hidden.sum() + 1)) ** 0.5)
    assert card["scores"]["test"]["unknown"] == 1
    assert card["scores"]["held out"]["rmse"] < 0.3
    assert card["path"]["chosen"] == card["fit"]["ridge"]
    assert card["data"]["entries"] == (~hidden).sum()
    assert str(folder) not in json.dumps(card)


def test_the_report_begins_with_an_error_and_marks_the_noise_that_was_used(invoke, folder):
    invoke("complete", "data.csv", "--rank", 2, "-o", "fit")
    noise = bf.load("fit").card["fit"]["noise"]
    (used,) = [one for one in noise["tried"] if one["chosen"]]
    assert used["noise"] == noise["model"]
    page = (folder / "fit" / "report.html").read_text()
    first = page.split('<div class="numbers"><div><b>')[1]
    assert first.startswith(f"{(2 * used['held_out']) ** 0.5:.4f}</b><span>RMSE")
    assert page.count("✓</td>") == 1


def test_the_report_stands_alone(invoke, folder):
    (folder / "data.csv").rename(folder / "<b>.csv")
    invoke("complete", "<b>.csv", "--rank", 2, "--ridge", "auto", "--holdout", 0.2, "-o", "fit")
    page = (folder / "fit" / "report.html").read_text()
    assert page.count("<svg") == page.count("</svg>") == 4
    assert "&lt;b&gt;.csv" in page
    assert "<b>.csv" not in page
    for outside in ("http://", "https://", "src=", "<script", "url(", "@import"):
        assert outside not in page
    assert "prefers-color-scheme:dark" in page
    assert "nan" not in page.split("</style>")[1].lower()
    assert len(page) < 100_000


def test_labels_and_counts(invoke, folder):
    i, j, y = ratings()
    (folder / "labels.csv").write_text(lines(i, j, (y > 3).astype(int)))
    done = json.loads(
        invoke("complete", "labels.csv", "--loss", "logistic", *QUICK, "--holdout", 0.1, "-o", "a", "--json").stdout
    )
    assert done["scores"]["held out"]["accuracy"] > 0.7
    assert done["notes"][0] == "Values 0 and 1 are two classes; predictions are probabilities of 1."
    fit = bf.load("a")
    assert fit.classes.tolist() == [0, 1]
    chances = fit.predict([f"u{k}" for k in i], j)
    assert np.all((chances > 0) & (chances < 1))
    assert np.mean((chances > 0.5) == (y > 3)) > 0.8
    said = invoke("complete", "data.csv", "--loss", "logistic", "-o", "b", code=1).stderr
    assert "data.csv: " in said
    assert "different values" in said
    assert "not two" in said
    (folder / "counts.csv").write_text(lines(i, j, np.maximum(np.round(y), 0).astype(int)))
    invoke("complete", "counts.csv", "--loss", "poisson", *QUICK, "-o", "c")


def test_repeated_pairs_are_said(invoke, folder):
    name = "[bold]twice.csv"  # which is no markup
    (folder / name).write_text(lines(*ratings()) + "u0,0,1\nu0,0,2\nu1,5,\n")
    assert name in invoke("complete", name, *QUICK, "-o", "first").stdout
    answer = json.loads(invoke("complete", name, *QUICK, "-o", "fit", "--json").stdout)
    assert any("repeat a pair" in note for note in answer["notes"])
    assert any("Left out: 1 line without a value" in note for note in answer["notes"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("none.csv",), 1, "There is no file none.csv"),
        ((".",), 1, "is not a block store"),
        (("data.csv", "--rank", "-1"), 2, "'--rank': -1 is neither an integer ≥ 0 nor auto."),
        (("data.csv", "--rank", "x"), 2, "nor auto"),
        (("data.csv", "--ridge", "-1"), 2, "'--ridge': -1 is neither a number ≥ 0 nor auto."),
        (("data.csv", "--row", "nope"), 1, "no column 'nope' for the row. Pass one of user, item, rating"),
        (("data.csv", "--checkpoint", "no/such/x"), 1, "does not exist"),
        (("data.csv", "--test", "none.csv"), 1, "There is no file none.csv"),
        (("data.csv", "--holdout", "1.5"), 2, "0<=x<=0.9"),
        (("data.csv", "--delimiter", "abc"), 1, "not a delimiter"),
        (("data.csv", "--loss", "poisson"), 1, "Poisson needs each y"),
    ],
)
def test_mistakes_get_one_sentence_and_leave_nothing(invoke, folder, arguments, code, message):
    done = invoke("complete", *arguments, "-o", "fit", code=code)
    assert message in done.stderr
    assert done.stdout == ""
    assert os.listdir(folder) == ["data.csv"]
    answer = json.loads(invoke("complete", *arguments, "-o", "fit", "--json", code=code).stdout)
    assert message in answer["error"]


def test_nothing_is_replaced_unasked(invoke, folder):
    (folder / "fit").mkdir()
    (folder / "fit" / "thesis.txt").write_text("years of work")
    assert "already exists" in invoke("complete", "data.csv", *QUICK, "-o", "fit", code=1).stderr
    assert "thesis.txt" in invoke("complete", "data.csv", *QUICK, "-o", "fit", "--force", code=1).stderr
    (folder / "fit" / "thesis.txt").rename(folder / "thesis.txt")
    invoke("complete", "data.csv", *QUICK, "-o", "fit")
    before = (folder / "fit" / "card.json").read_text()
    invoke("complete", "data.csv", *QUICK, "-o", "fit", code=1)
    assert (folder / "fit" / "card.json").read_text() == before
    invoke("complete", "data.csv", "--rank", 1, "--ridge", 1, "-o", "fit", "--force")
    assert bf.load("fit").card["fit"]["rank"] == 1
    assert sorted(os.listdir(folder)) == ["data.csv", "fit", "thesis.txt"]
    (folder / "out.csv").write_text("mine")
    assert "already exists" in invoke("predict", "fit", "data.csv", "-o", "out.csv", code=1).stderr
    assert (folder / "out.csv").read_text() == "mine"


@pytest.mark.parametrize("force", [False, True])
def test_a_full_disk_leaves_things_as_they_were(invoke, folder, monkeypatch, force):
    if force:
        invoke("complete", "data.csv", *QUICK, "-o", "fit")
        before = (folder / "fit" / "card.json").read_text()
    there = sorted(os.listdir(folder))

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        done = invoke("complete", "data.csv", *QUICK, "-o", "fit", *(["--force"] if force else []), code=1)
        assert done.stderr.startswith("Error: fit was not written: No space left on device.")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        invoke("complete", "data.csv", *QUICK, "-o", "fit", *(["--force"] if force else []), code=1)
    assert sorted(os.listdir(folder)) == there
    if force:
        assert (folder / "fit" / "card.json").read_text() == before


def test_folders_that_are_no_fit(invoke, folder):
    assert "not the folder of a fit" in invoke("predict", "none", "data.csv", code=1).stderr
    invoke("complete", "data.csv", *QUICK, "-o", "fit")
    path = folder / "fit" / "ids.safetensors"
    path.write_bytes(path.read_bytes()[:50])
    assert "truncated" in invoke("recommend", "fit", "--user", "u1", code=1).stderr
    (folder / "fit" / "card.json").write_text('{"format": 99}')
    assert "has format 99" in invoke("recommend", "fit", "--user", "u1", code=1).stderr


def test_a_checkpoint_goes_on(invoke, folder):
    common = ("complete", "data.csv", "--rank", 3, "--ridge", 0.01, "--checkpoint", "run.checkpoint", "--json")
    first = json.loads(invoke(*common, "--max-iter", 3, "-o", "a").stdout)
    assert (first["fit"]["status"], first["fit"]["converged"]) == ("MAX_ITER", False)
    second = json.loads(invoke(*common, "-o", "b").stdout)
    assert second["fit"]["history"]["objective"][:4] == first["fit"]["history"]["objective"]
    assert second["fit"]["iterations"] > 3
    assert "another problem" in invoke(*common[:-1], "--seed", 5, "-o", "c", code=1).stderr


def interrupted_at(folder, *arguments):
    """The exit code and output of a run that gets Ctrl-C in its third iteration."""
    if os.name != "posix":
        pytest.skip("needs POSIX")
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell may start us with Ctrl-C turned off
        "from bifactor.cli import monitor\n"
        "from contextlib import contextmanager\n"
        "@contextmanager\n"
        "def fit_progress(what, first, observations=0):\n"
        "    yield Pressed()\n"
        "class Pressed:\n"
        "    stage = None\n"
        "    def iterations(self, most):\n"
        "        return lambda iteration, state: iteration == 3 and os.kill(os.getpid(), signal.SIGINT)\n"
        "    def ended(self, status):\n"
        "        pass\n"
        "monitor.fit_progress = fit_progress\n"
        "from bifactor.cli.main import main\n"
        "main()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, capture_output=True, text=True, timeout=100
    )


def test_ctrl_c_keeps_the_best_fit(folder):
    done = interrupted_at(folder, "complete", "data.csv", "--rank", "3", "--ridge", "0.01", "-o", "fit", "--json")
    assert done.returncode == 130, done.stderr
    answer = json.loads(done.stdout)
    assert answer["fit"]["status"] == "INTERRUPTED"
    assert answer["notes"] == ["Interrupted: this is the best fit so far."]
    assert set(os.listdir(folder / "fit")) == FILES
    assert np.isfinite(bf.load(folder / "fit").predict(["u1"], [1])).all()


@pytest.mark.parametrize("where", ["solve", "_fitted"])
def test_ctrl_c_in_the_choice_of_the_ridge_takes_the_best_so_far(invoke, monkeypatch, where):
    """In a fit Ctrl-C is a status, between two of them an exception; both end the choice, not the command."""
    calls, function = [], getattr(hyperparameters, where)

    def pressed(*arguments, **options):
        calls.append(1)
        if len(calls) == 3 and where == "_fitted":
            raise KeyboardInterrupt
        done = function(*arguments, **options)
        return replace(done, status=bf.Status.INTERRUPTED) if len(calls) == 3 else done

    monkeypatch.setattr(hyperparameters, where, pressed)
    answer = json.loads(invoke("complete", "data.csv", "--rank", 2, "--ridge", "auto", "-o", "fit", "--json").stdout)
    assert len(calls) == 3
    assert len(answer["path"]["ridges"]) == 2  # part of a fit is no candidate
    assert answer["fit"]["ridge"] == answer["path"]["chosen"]
    assert "Ctrl-C ended the search" in answer["notes"][0]


def test_ctrl_c_before_there_is_a_fit_leaves_nothing(invoke, folder, monkeypatch):
    def pressed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("bifactor.applications.completion.workflow.fit_model", pressed)
    assert "Nothing was written" in invoke("complete", "data.csv", "-o", "fit", code=130).stderr
    assert os.listdir(folder) == ["data.csv"]


def test_wide_tables_and_triples_with_spaces(invoke, folder):
    i, j, y = ratings()
    X = np.full((40, 30), np.nan)
    X[i, j] = y
    cells = [["name", *(f"c{k}" for k in range(30))]]
    cells += [[f"u{k}", *("" if x != x else str(x) for x in row)] for k, row in enumerate(X.tolist())]
    (folder / "wide.csv").write_text("".join(",".join(row) + "\n" for row in cells))
    (folder / "libmf.txt").write_text("".join(f"{a} {b} {c}\n" for a, b, c in zip(i, j, y, strict=True)))
    answers = [
        json.loads(invoke("complete", name, *QUICK, "-o", f"fit-{name}", "--json").stdout)
        for name in ("data.csv", "wide.csv", "libmf.txt")
    ]
    assert "wide" in answers[1]["data"]["layout"]
    objectives = [answer["fit"]["objective"] for answer in answers]
    assert objectives[1:] == pytest.approx(objectives[:1] * 2, rel=1e-4)


def movielens():
    folder = os.environ.get("BIFACTOR_DATA", Path(__file__).parents[3] / "shared" / "data")
    return Path(folder) / "ml-100k"


@pytest.mark.skipif(not (movielens() / "u.data.gz").exists(), reason="MovieLens 100k is not in BIFACTOR_DATA")
def test_movielens_as_it_was_published(invoke):
    """The raw file, by the command, is what its arrays are to the estimator."""
    stored = np.load(movielens() / "ml-100k.npz")
    path = movielens() / "u.data.gz"
    answer = json.loads(invoke("complete", path, "--rank", 3, "--ridge", 8, "-o", "fit", "--json").stdout)
    assert answer["data"]["entries"] == 100_000
    assert (answer["data"]["rows"], answer["data"]["cols"]) == (943, 1682)
    data = stored["user"], stored["item"], stored["rating"].astype(float)
    same = MatrixCompletion(n_components=3, ridge=8.0, random_state=0).fit((data[0] - 1, data[1] - 1, data[2]))
    assert answer["fit"]["objective"] == pytest.approx(same.result_.objective, rel=1e-4)
    assert bf.load("fit").predict(data[0][:500], data[1][:500]) == pytest.approx(
        same.predict(data[0][:500] - 1, data[1][:500] - 1), abs=0.05
    )


def test_the_installed_command(folder):
    command = Path(sys.executable).with_name("bifactor")
    if not command.exists():
        pytest.skip("bifactor is not installed beside this Python")
    done = subprocess.run(
        [command, "complete", "data.csv", *QUICK, "-o", "fit"], cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert "look at" in done.stdout
    assert done.stderr == ""
    done = subprocess.run([command, "complete", "fit", "-o", "x"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: ")
    assert "is not a block store" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_shows_examples(invoke):
    for command in ((), ("complete",), ("predict",), ("recommend",), ("impute",)):
        assert "Examples:" in invoke(*command, "--help").stdout


@pytest.mark.parametrize("options", [(), ("--no-offsets",), ("--holdout", 0.2), ("--no-offsets", "--holdout", 0.2)])
@pytest.mark.parametrize("value", [0, 3.3])
def test_values_that_are_all_alike(invoke, folder, options, value):
    i, j, _ = ratings()
    (folder / "same.csv").write_text(lines(i, j, np.full(i.size, value)))
    told = json.loads(invoke("complete", "same.csv", *options, "-o", "fit", "--json").stdout)
    assert f"All values are {value:g}, so rows and columns do not differ." in told["notes"]
    none = value == 0 or "--no-offsets" not in options
    assert told["fit"]["rank"] == (0 if none else 1)
    assert any("rank 0" in note for note in told["notes"]) == none
    page = (folder / "fit" / "report.html").read_text()
    assert ("There are no components: the rank of the fit is 0." in page) == none
    answer = json.loads(invoke("predict", "fit", "same.csv", "--json").stdout)
    np.testing.assert_allclose([one["prediction"] for one in answer["predictions"]], value, rtol=2e-6)
    invoke("recommend", "fit", "--user", "u1")
    (folder / "new.csv").write_text("user,item,rating\nz,3,3\nz,4,3\n")
    invoke("recommend", "fit", "--ratings", "new.csv")


@pytest.mark.parametrize("label", [0, 1])
def test_labels_that_are_all_alike(invoke, folder, label):
    i, j, _ = ratings()
    (folder / "same.csv").write_text(lines(i, j, np.full(i.size, label)))
    told = json.loads(invoke("complete", "same.csv", "--loss", "logistic", "-o", "fit", "--json").stdout)
    assert f"All values are {label}, so rows and columns do not differ." in told["notes"]
    assert told["fit"]["rank"] == 0


@pytest.mark.parametrize("options", [(), ("--ridge", 1), ("--holdout", 0.2)])
def test_rank_zero_may_be_asked_for(invoke, options):
    told = json.loads(invoke("complete", "data.csv", "--rank", 0, *options, "-o", "fit", "--json").stdout)
    assert told["fit"]["rank"] == 0
    assert (
        "The fit has rank 0, which means no components: it is an intercept and offsets of rows and columns."
        in (told["notes"])
    )
    assert bf.load("fit").model.U.shape == (40, 2)


def test_rank_zero_without_offsets_is_refused_in_the_words_of_the_shell(invoke):
    said = invoke("complete", "data.csv", "--rank", 0, "--no-offsets", "-o", "fit", code=2).stderr
    assert "--rank 0 with --no-offsets leaves nothing to fit." in said


def test_names_that_spreadsheets_would_run_can_be_made_text(invoke, folder):
    names = ["=cmd", "+1+1", "@sum", "-x", "-7", "plain"]
    text = "user,item,rating\n" + "".join(f"{name},{j},{k + j}\n" for k, name in enumerate(names) for j in range(3))
    (folder / "names.csv").write_text(text)
    invoke("complete", "names.csv", *QUICK, "-o", "fit")
    told = invoke("predict", "fit", "names.csv", "--safe-cells").stdout
    found = {line.split(",")[0] for line in told.splitlines()[1:]}
    assert found == {"'=cmd", "'+1+1", "'@sum", "'-x", "-7", "plain"}
    assert all(float(line.split(",")[2]) is not None for line in told.splitlines()[1:])
    invoke("predict", "fit", "names.csv", "--safe-cells", "-o", "out.csv")
    assert (folder / "out.csv").read_text() == told
    assert "'" not in invoke("predict", "fit", "names.csv").stdout
    records = json.loads(invoke("predict", "fit", "names.csv", "--safe-cells", "--json").stdout)["predictions"]
    assert {one["row"] for one in records} == set(names)


def test_a_row_that_is_known_in_every_column(invoke, folder):
    (folder / "full.csv").write_text("user,item,rating\n" + "".join(f"{u},{j},{j}\n" for u in "ab" for j in range(4)))
    invoke("complete", "full.csv", *QUICK, "-o", "fit")
    assert (
        "a has an entry in every column, so none is left. Pass --include-seen"
        in invoke("recommend", "fit", "--user", "a").stdout
    )
    assert json.loads(invoke("recommend", "fit", "--user", "a", "--json").stdout)["rows"][0]["recommended"] == []


# Error bars


def test_numbers_have_error_bars(invoke, folder):
    answer = json.loads(invoke("complete", "data.csv", "--rank", 3, "-o", "fit", "--json").stdout)
    noise = answer["fit"]["noise"]
    assert answer["fit"]["ridge"] is None
    assert noise["std"] > 0
    assert {one["noise"] for one in noise["tried"]} >= {"one", "student"}
    assert "posterior.safetensors" in os.listdir(folder / "fit")
    done = invoke("predict", "fit", "data.csv", "--std")
    assert done.stdout.splitlines()[0].split(",")[2:] == ["prediction", "std", "known"]
    told = json.loads(invoke("predict", "fit", "data.csv", "--std", "--json").stdout)["predictions"]
    fit = bf.load("fit")
    value, std = fit.predict(told[0]["row"], told[0]["column"], return_std=True)
    assert (told[0]["prediction"], told[0]["std"]) == pytest.approx((value, std))
    (folder / "new.csv").write_text("user,item,rating\nz,3,3\nz,4,3\n")
    (folder / "pairs.csv").write_text("user,item\nz,3\nnobody,3\n")
    rows = json.loads(invoke("predict", "fit", "pairs.csv", "--ratings", "new.csv", "--std", "--json").stdout)
    known, unknown = (one["std"] for one in rows["predictions"])
    assert known < unknown


@pytest.mark.parametrize(("noise", "words"), [
    ("one", "the same for all entries"), ("student", "degrees of freedom"), ("both", "by rows and columns"),
    ("rows", "by rows"), ("columns", "by columns"),
])  # fmt: skip
def test_the_summary_tells_the_noise_and_what_lives(invoke, noise, words):
    done = invoke("complete", "data.csv", "--rank", 3, "--noise", noise, "--holdout", 0.2, "-o", "fit")
    told = " ".join(done.stdout.split())  # lines are broken
    assert words in told
    assert "of 3 components in use" in told
    assert "with error bars" in told
    card = json.loads(Path("fit/card.json").read_text())  # of the second fit, which has nothing left to choose
    assert {one["noise"] for one in card["fit"]["noise"]["tried"]} == {noise}


def test_error_bars_are_left_out_on_request(invoke, folder):
    invoke("complete", "data.csv", "--rank", 2, "--no-error-bars", "-o", "fit")
    invoke("predict", "fit", "data.csv")
    assert "Only the means" in invoke("predict", "fit", "data.csv", "--std", code=1).stderr
    invoke("complete", "data.csv", "--rank", 2, "--ridge", 1, "-o", "ridge")
    assert "error bars need a posterior" in invoke("predict", "ridge", "data.csv", "--std", code=1).stderr
    assert "posterior.safetensors" not in os.listdir(folder / "ridge")
    done = invoke("complete", "data.csv", "--ridge", 1, "--noise", "one", "-o", "other", code=1)
    assert "without ridge or a solver" in done.stderr


@pytest.mark.parametrize("where", ["solve", "_fitted"])
def test_ctrl_c_in_the_choice_of_the_noise_takes_the_best_so_far(invoke, monkeypatch, where):
    calls, function = [], getattr(noise_selection, where)

    def pressed(*arguments, **options):
        calls.append(1)
        if len(calls) == 2 and where == "_fitted":
            raise KeyboardInterrupt
        done = function(*arguments, **options)
        return replace(done, status=bf.Status.INTERRUPTED) if len(calls) == 2 else done

    monkeypatch.setattr(noise_selection, where, pressed)
    answer = json.loads(invoke("complete", "data.csv", "--rank", 2, "-o", "fit", "--json").stdout)
    assert len(calls) == 2
    assert len(answer["fit"]["noise"]["tried"]) == 1  # part of a fit is no candidate
    assert "Ctrl-C ended the search for the noise" in answer["notes"][0]


@pytest.mark.parametrize("change", ["gone", "negative", "short", "nan", "variance"])
def test_a_damaged_posterior_is_refused(invoke, folder, change):
    invoke("complete", "data.csv", "--rank", 2, "-o", "fit")
    path = folder / "fit" / "posterior.safetensors"
    arrays, told = files.read(path, "posterior")
    if change == "gone":
        path.unlink()
    else:
        prior = arrays["row_prior"].copy()
        changed = {"negative": -prior, "short": prior[:-1], "nan": prior * np.nan}.get(change, prior)
        told = {**told, "variance": "-1"} if change == "variance" else told
        files.write(path, "posterior", {**arrays, "row_prior": changed}, told)
    done = invoke("predict", "fit", "data.csv", code=1)
    assert "posterior.safetensors" in done.stderr


def test_a_newcomer_may_have_a_name_of_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("x.csv").write_text(
        "user,item,rating\n" + "".join(f"{i},{j},{(i * j) % 5}\n" for i in range(9) for j in range(6))
    )
    Path("new.csv").write_text("user,item,rating\nann,1,4\nann,2,3\n")
    for more, code in (((), 1), (("--text-names",), 0)):
        command = ["complete", "x.csv", "--rank", "1", "--ridge", "1", "-o", "fit", "--force", *more]
        assert CliRunner().invoke(main, command).exit_code == 0
        done = CliRunner().invoke(main, ["recommend", "fit", "--history", "new.csv"])
        assert done.exit_code == code, done.output
        assert code == 0 or "read the data with text_names=True (--text-names)" in " ".join(done.output.split())
    assert CliRunner().invoke(main, ["recommend", "fit", "--user", "7", "--include-seen"]).exit_code == 0
    blocks = ["partition", "x.csv", "-o", "blocks", "--text-names"]
    assert CliRunner().invoke(main, blocks).exit_code == 0
    assert next(iter(bf.data.BlockStore.open("blocks").row_names)) == "0"
    done = CliRunner().invoke(main, ["complete", "blocks", "--text-names", "-o", "other"])
    assert done.exit_code == 2
    assert "--text-names is for files" in done.output
