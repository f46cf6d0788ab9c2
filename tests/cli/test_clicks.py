"""Clicks in the shell: `complete --implicit`, `recommend` and `evaluate` as a user meets them."""

import csv
import gzip
import json
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import sparse

import bifactor as bf
from bifactor.cli.main import main
from bifactor.reports.clicks import trial_used

QUICK = ("--rank", 6, "--unobserved", 0.2, "--ridge", 0.01)
MODEL = {"n_components": 6, "unobserved": 0.2, "ridge": 0.01, "random_state": 0}


def choices(m=80, n=40, seed=0):
    rng = np.random.default_rng(seed)
    taste = rng.standard_normal((m, 3)) @ rng.standard_normal((3, n)) + rng.standard_normal(n)
    i, j = np.nonzero(rng.random((m, n)) < 1 / (1 + np.exp(2 - 2 * taste)))
    return pd.DataFrame({"user": [f"u{k}" for k in i], "item": [f"i{k}" for k in j], "plays": 1 + (i + j) % 4})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = choices()
    frame[["user", "item"]].to_csv("clicks.csv", index=False)
    frame.to_csv("plays.csv", index=False)
    titles = sorted(set(frame["item"]))
    called = [f"Film, no. {name[1:]}" for name in titles]
    pd.DataFrame({"item": titles, "title": called}).to_csv("titles.csv", index=False)
    return tmp_path


def invoke(*arguments, code=0):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    assert code == 0 or "Traceback" not in done.output
    return done


def answer(*arguments):
    return json.loads(invoke(*arguments, "--json").stdout)


def words(text):
    """Without the line breaks and the frames of tables."""
    return " ".join(text.replace("│", " ").split())


@pytest.fixture
def fitted(folder):
    invoke("complete", "clicks.csv", "--implicit", *QUICK, "--holdout", 0, "-o", "fit")
    return bf.load("fit")


# Fitting


def same(one, two):
    np.testing.assert_array_equal(one.model.U, two.model.U)
    np.testing.assert_array_equal(one.model.V, two.model.V)
    assert list(one.rows) == list(two.rows)
    assert list(one.cols) == list(two.cols)
    assert one.model.clicks.unobserved == two.model.clicks.unobserved
    return True


def test_the_shell_fits_what_python_fits(fitted):
    assert same(fitted, bf.Recommender(**MODEL).fit_long("clicks.csv").fit_)
    invoke("complete", "plays.csv", "--implicit", *QUICK, "--holdout", 0, "--value", "plays", "-o", "counted")
    counted = bf.Recommender(**MODEL).fit_long("plays.csv", value="plays").fit_
    assert same(bf.load("counted"), counted)
    np.testing.assert_array_equal(bf.load("counted").seen.weights, counted.seen.weights)
    invoke("complete", "plays.csv", "--implicit", *QUICK, "--holdout", 0, "--weight", "plays", "-o", "sure")
    assert same(bf.load("sure"), bf.Recommender(**MODEL).fit_long("plays.csv", weight="plays").fit_)


def test_what_is_chosen_by_the_data_is_told():
    choices(400, 30).to_csv("more.csv", index=False)
    told = answer("complete", "more.csv", "--implicit", "--rank", 4, "--holdout", 0, "-o", "fit")
    model = bf.Recommender(n_components=4, random_state=0).fit_long("more.csv")
    assert (told["choice"]["unobserved"], told["choice"]["ridge"]) == (model.unobserved_, model.ridge_)
    assert [trial["ndcg"] for trial in told["choice"]["trials"]] == model.weight_search_.score.tolist()
    assert same(bf.load("fit"), model.fit_)
    page = invoke("complete", "more.csv", "--implicit", "--rank", 4, "--holdout", 0, "-o", "fit", "--force").stdout
    assert f"chosen by {model.weight_search_.score.size} trials, with NDCG@20" in words(page)


def test_the_report_tells_the_trial_that_was_used_and_the_components_apart():
    choices(400, 30).to_csv("more.csv", index=False)
    told = answer("complete", "more.csv", "--implicit", "--rank", 4, "--holdout", 0, "-o", "fit")
    model, used = bf.load("fit").model, trial_used(told["choice"])
    assert used is not None
    # The last trial without item-to-item scores, and all after it, have all components.
    trials = told["choice"]["trials"]
    alone = max(k for k, one in enumerate(trials) if one["item_share"] == 0)
    assert used["ndcg"] == max(one["ndcg"] for one in trials[alone:])
    assert told["fit"]["rank"] == 4
    assert told["fit"]["item_rank"] == model.rank - 4 > 0
    page = Path("fit/report.html").read_text(encoding="utf-8")
    assert "fitted by 4 components" in page
    first = page.split("How the weights and the ridge were chosen")[1].split("<td", 7)
    assert f">{used['ndcg']:.4f}<" in first[5]


def test_a_first_fit_is_checked_against_what_is_popular():
    told = answer("complete", "clicks.csv", "--implicit", *QUICK, "-o", "fit")
    check = told["scores"]["held out"]
    assert 40 < check["users"] < 80  # of whom something was held out
    ndcg = check["metrics"]["ndcg@10"]
    assert ndcg["low"] < ndcg["mean"] < ndcg["high"]
    assert ndcg["mean"] > ndcg["popular"]
    assert check["gain"]["mean"] == pytest.approx(ndcg["mean"] - ndcg["popular"])
    assert told["data"]["choices"] == len(choices())
    # What is written is a fit to all choices.
    rows, cols = choices()["user"], choices()["item"]
    assert bf.load("fit").seen.size == len(rows) == len(cols)
    said = words(invoke("complete", "clicks.csv", "--implicit", *QUICK, "-o", "fit", "--force").stdout)
    for part in ("choices by 80 users of 40 items", "NDCG@10", "recall@10", "hits/|T|", "most popular items", "above"):
        assert part in said


def test_a_model_that_learns_nothing_is_found_out():
    rng = np.random.default_rng(0)
    lines = pd.DataFrame({"user": np.repeat(np.arange(60), 6), "item": rng.integers(0, 40, 360)})
    lines.to_csv("noise.csv", index=False)
    said = words(invoke("complete", "noise.csv", "--implicit", *QUICK, "-o", "fit").stdout)
    assert "not clearly better than that of the most popular" in said or "below that of the most popular" in said


def test_the_report_tells_how_well_and_why():
    invoke("complete", "clicks.csv", "--implicit", *QUICK, "--names", "titles.csv", "-o", "fit")
    with open("fit/report.html", encoding="utf-8") as file:
        page = file.read()
    for part in ("How well it ranks", "NDCG@10", "most popular", "Popular items", "Film, no.", "because of Film"):
        assert part in page
    assert "<script" not in page


def test_other_forms_of_data():
    frame = choices()
    i, j = (pd.factorize(frame[side])[0] for side in ("user", "item"))
    np.savez("a.npz", user=i, item=j)
    frame[["user", "item"]].to_parquet("b.parquet")
    frame[["user", "item"]].to_json("c.jsonl", orient="records", lines=True)
    table = np.zeros((80, 40), int)
    table[i, j] = 1
    pd.DataFrame(table, columns=[f"i{k}" for k in range(40)]).to_csv("d.csv", index_label="user")
    lines = "".join(f"{row + 1} {col + 1}\n" for row, col in zip(i, j, strict=True))
    with open("e.mtx", "w", encoding="utf-8") as file:
        file.write(f"%%MatrixMarket matrix coordinate pattern general\n80 40 {len(frame)}\n{lines}")
    for name in ("a.npz", "b.parquet", "c.jsonl", "e.mtx"):
        told = answer("complete", name, "--implicit", *QUICK, "--holdout", 0, "-o", f"fit-{name}")
        assert told["data"]["choices"] == len(frame)
    told = answer("complete", "d.csv", "--wide", "--implicit", *QUICK, "--holdout", 0, "-o", "wide")
    assert told["data"]["choices"] == len(frame)


def test_lines_that_repeat_count_as_plays():
    frame = choices()
    pd.concat([frame, frame[:30]])[["user", "item"]].to_csv("twice.csv", index=False)
    told = answer("complete", "twice.csv", "--implicit", *QUICK, "--holdout", 0, "-o", "fit")
    assert (told["data"]["entries"], told["data"]["choices"]) == (len(frame) + 30, len(frame))
    assert np.count_nonzero(bf.load("fit").seen.weights > 1) == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--loss", "logistic"), "--loss is for values"),
        (("--noise", "one"), "--noise is for values"),
        (("--no-offsets",), "--offsets is for values"),
        (("--no-error-bars",), "--error-bars is for values"),
        (("--test", "clicks.csv"), "bifactor evaluate"),
        (("--rank", 0), "no components to rank by"),
        (("--unobserved", 0), "With --unobserved 0 the fit is 1 everywhere"),
    ],
)
def test_options_of_values_are_refused(options, message):
    assert message in invoke("complete", "clicks.csv", "--implicit", *options, "-o", "fit", code=2).stderr


@pytest.mark.parametrize("option", ["--unobserved", "--names"])
def test_options_of_clicks_ask_for_them(option):
    done = invoke("complete", "plays.csv", option, "1", "-o", "fit", code=2)
    assert f"{option} requires --implicit" in done.stderr


def test_a_file_of_clicks_asks_for_it(folder):
    said = invoke("complete", "clicks.csv", "-o", "fit", code=1).stderr
    assert "has two columns and no values" in said
    assert "--implicit" in said
    choices().assign(plays=1).to_csv("ones.csv", index=False)
    said = invoke("complete", "ones.csv", "-o", "fit", code=1).stderr
    assert "are 1, as in data of clicks" in said
    assert "--implicit" in said
    told = answer("complete", "ones.csv", "--no-implicit", "--rank", 1, "-o", "fit")
    assert told["fit"]["rank"] <= 1
    (folder / "negative.csv").write_text("user,item,plays\na,b,-1\nc,d,2\n")
    said = invoke("complete", "negative.csv", "--implicit", "--value", "plays", "-o", "f", code=1).stderr
    assert "counts above 0" in said
    (folder / "nothing.csv").write_text("user,item,plays\na,b,0\nc,d,0\n")
    said = invoke("complete", "nothing.csv", "--implicit", "--value", "plays", "-o", "f", code=1).stderr
    assert "There are no choices" in said
    (folder / "single.csv").write_text("user,item\na,b\nc,d\n")
    assert not (folder / "f").exists()
    told = answer("complete", "single.csv", "--implicit", "-o", "f")
    assert told["scores"] == {}
    assert any("too few choices to hold some out" in note for note in told["notes"])


def test_few_users_and_a_rank_that_is_too_large(folder):
    (folder / "few.csv").write_text("user,item\na,b\na,c\nd,b\n")
    told = answer("complete", "few.csv", "--implicit", "-o", "fit")
    assert told["fit"]["rank"] == 2
    assert told["choice"]["trials"] == []
    assert any("cut to 2" in note for note in told["notes"])


@pytest.fixture
def ctrl_c():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with Ctrl-C turned off
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_choice_and_then_the_fit(monkeypatch):
    from bifactor.models.recommender import hyperparameters as clicks

    choices(400, 30).to_csv("more.csv", index=False)
    found, count = clicks._Fold.ndcg, 0

    def interrupted(self, unobserved, ridge):
        nonlocal count
        count += 1
        if count == 3:
            signal.raise_signal(signal.SIGINT)
        return found(self, unobserved, ridge)

    monkeypatch.setattr(clicks._Fold, "ndcg", interrupted)
    monkeypatch.setattr(clicks, "FOLDS", 1)
    told = answer("complete", "more.csv", "--implicit", "--rank", 3, "--holdout", 0, "-o", "fit")
    assert len(told["choice"]["trials"]) == 2
    assert any("Ctrl-C ended the search" in note for note in told["notes"])


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("holdout", [0, 0.1])
def test_ctrl_c_ends_a_fit_with_the_best_so_far(monkeypatch, holdout):
    from bifactor.cli import monitor

    def iterations(self, most):
        def show(iteration, state):
            if iteration == 2:
                signal.raise_signal(signal.SIGINT)

        return show

    monkeypatch.setattr(monitor.FitMonitor, "iterations", iterations)
    options = ("--implicit", *QUICK, "--holdout", holdout, "-o", "f", "--json")
    told = json.loads(invoke("complete", "clicks.csv", *options, code=130).stdout)
    assert told["fit"]["status"] == "INTERRUPTED"
    assert any("Interrupted: this is the best fit so far" in note for note in told["notes"])
    assert bf.load("f").recommend("u3", n=2)[0].shape == (1, 2)


# Recommending


def test_lists_are_those_of_python(fitted):
    told = answer("recommend", "fit", "--user", "u3", "--user", "u5", "-n", 4)["rows"]
    names, scores = fitted.recommend(["u3", "u5"], n=4)
    for one, line, values in zip(told, names, scores, strict=True):
        assert [best["column"] for best in one["recommended"]] == line.tolist()
        assert [best["score"] for best in one["recommended"]] == values.tolist()
        assert one["based_on"] == "choices"


def test_one_user_on_the_screen_is_told_why(fitted):
    said = words(invoke("recommend", "fit", "--user", "u3", "-n", 2, "--names", "titles.csv").stdout)
    best = fitted.recommend("u3", n=1)[0][0, 0]
    carriers, parts, rest = fitted.explain("u3", best, n=3)
    assert "because of" in said
    for name in (best, *carriers):
        assert f"Film, no. {name[1:]}" in said
    assert "because" not in invoke("recommend", "fit", "--user", "u3", "--no-explain").stdout
    assert "because" not in invoke("recommend", "fit", "--user", "u3", "--user", "u4").stdout
    assert "because" in invoke("recommend", "fit", "--user", "u3", "--user", "u4", "--explain").stdout
    told = answer("recommend", "fit", "--user", "u3", "-n", 1, "--explain", "--names", "titles.csv")["rows"][0]
    because = told["recommended"][0]["because"]
    assert [one["column"] for one in because] == carriers.tolist()
    assert because[0]["title"] == f"Film, no. {carriers[0][1:]}"
    np.testing.assert_allclose([one["part"] for one in because], parts)
    assert told["recommended"][0]["rest"] == pytest.approx(rest)


def test_files_for_all_users(fitted, monkeypatch):
    from bifactor.cli import recommend

    names, scores = fitted.recommend(n=7)
    monkeypatch.setattr(recommend, "BLOCK", 11)
    monkeypatch.setattr(recommend, "LINES", 100)
    invoke("recommend", "fit", "--all", "-n", 7, "-o", "all.csv", "--names", "titles.csv")
    invoke("recommend", "fit", "--all", "-n", 7, "-o", "all.csv.gz", "--explain")
    invoke("recommend", "fit", "--all", "-n", 7, "-o", "all.parquet")
    plain, packed, parquet = pd.read_csv("all.csv"), pd.read_csv("all.csv.gz"), pd.read_parquet("all.parquet")
    assert list(plain) == ["user", "rank", "item", "score", "title", "based_on"]
    assert list(packed) == ["user", "rank", "item", "score", "because", "based_on"]
    assert list(parquet) == ["user", "rank", "item", "score", "based_on"]
    wanted = [
        (user, k + 1, name)
        for user, line, values in zip(fitted.rows, names, scores, strict=True)
        for k, (name, value) in enumerate(zip(line, values, strict=True))
        if not np.isnan(value)
    ]
    for frame in (plain, packed, parquet):
        assert list(frame[["user", "rank", "item"]].itertuples(index=False, name=None)) == wanted
    np.testing.assert_array_equal(parquet["score"], scores[~np.isnan(scores)])
    assert plain["title"][0] == f"Film, no. {plain['item'][0][1:]}"
    with gzip.open("all.csv.gz", "rt") as file:
        first = next(csv.DictReader(file))
    carriers, _, _ = fitted.explain(first["user"], first["item"], n=3)
    assert first["because"] == "; ".join(carriers)
    told = answer("recommend", "fit", "--all", "-n", 7, "-o", "all.csv", "--force")
    assert (told["rows"], told["lines"], told["popular"]) == (80, len(wanted), 0)


def test_some_users_and_some_items_from_files(fitted, folder):
    (folder / "users.txt").write_text("u7\n\nu2\n")
    (folder / "users.csv").write_text("user,age\nu7,30\nu2,40\n")
    (folder / "items.txt").write_text("i1\ni1\ni2\ni30\n")
    for name in ("users.txt", "users.csv"):
        assert [one["row"] for one in answer("recommend", "fit", "--users", name)["rows"]] == ["u7", "u2"]
    told = answer("recommend", "fit", "--users", "users.txt", "--items", "items.txt", "--include-seen")["rows"]
    assert all({line["column"] for line in one["recommended"]} == {"i1", "i2", "i30"} for one in told)


def test_newcomers_are_found_from_their_choices(fitted, folder):
    (folder / "new.csv").write_text("user,item\nme,i3\nme,i8\nyou,i1\nnobody,i999\n")
    told = answer("recommend", "fit", "--history", "new.csv", "-n", 3)["rows"]
    assert [one["row"] for one in told] == ["me", "you", "nobody"]
    assert [one["based_on"] for one in told] == ["choices", "choices", "popularity"]
    mine = bf.Recommender(**MODEL).fit_long("clicks.csv")
    history = np.zeros((1, 40))
    history[0, mine.fit_.places(["i3", "i8"], "column")] = 1
    places, scores = mine.recommend(sparse.csr_array(history), 3)
    assert [line["column"] for line in told[0]["recommended"]] == places[0].tolist()
    np.testing.assert_allclose([line["score"] for line in told[0]["recommended"]], scores[0], rtol=1e-6)
    assert "because of" in invoke("recommend", "fit", "--history", "new.csv", "--user", "me").stdout
    (folder / "pairs.csv").write_text("user,item\nme,i5\nu3,i6\n")
    told = answer("predict", "fit", "pairs.csv", "--history", "new.csv")["predictions"]
    assert [one["known"] for one in told] == ["both", "both"]


def test_counts_of_newcomers_count_where_the_fit_had_counts(folder):
    invoke("complete", "plays.csv", "--implicit", *QUICK, "--holdout", 0, "--value", "plays", "-o", "fit")
    (folder / "many.csv").write_text("user,item,plays\nme,i3,50\nme,i8,1\n")
    (folder / "pairs.csv").write_text("user,item\nme,i3\nme,i8\n")
    (folder / "ones.csv").write_text("user,item,plays\nme,i3,1\nme,i8,1\n")
    scores = {
        name: [line["score"] for line in answer("recommend", "fit", "--history", name)["rows"][0]["recommended"]]
        for name in ("many.csv", "pairs.csv", "ones.csv")
    }
    assert scores["pairs.csv"] == scores["ones.csv"]
    assert scores["many.csv"] != scores["ones.csv"]


@pytest.mark.parametrize("kind", ["npz", "parquet", "jsonl"])
def test_histories_of_every_kind(kind, folder):
    frame = choices()
    i, j = (pd.factorize(frame[side])[0] for side in ("user", "item"))

    def write(name, lines):
        if kind == "npz":
            np.savez(name, **{side: lines[side].to_numpy() for side in lines})
        elif kind == "parquet":
            lines.to_parquet(name)
        else:
            lines.to_json(name, orient="records", lines=True)

    write(f"data.{kind}", pd.DataFrame({"who": i, "what": j, "often": frame["plays"]}))
    named = ("--row", "who", "--col", "what", "--value", "often")
    invoke("complete", f"data.{kind}", "--implicit", *QUICK, "--holdout", 0, *named, "-o", "fit")
    new = pd.DataFrame({"who": [900, 900], "what": [3, 8], "often": [50, 1]})
    write(f"many.{kind}", new)
    write(f"ones.{kind}", new.assign(often=1))
    many, ones = (answer("recommend", "fit", "--history", f"{one}.{kind}")["rows"][0] for one in ("many", "ones"))
    assert (many["row"], many["based_on"]) == (900, "choices")
    assert many["recommended"][0]["score"] != ones["recommended"][0]["score"]


def test_files_without_a_header_keep_their_columns(folder):
    frame = choices()
    i, j = (pd.factorize(frame[side])[0] for side in ("user", "item"))
    pd.DataFrame({"user": i, "item": j, "day": 0, "plays": frame["plays"]}).to_csv("d.csv", index=False, header=False)
    told = ("--no-header", "--row", 1, "--col", 2, "--value", 4)
    invoke("complete", "d.csv", "--implicit", *QUICK, "--holdout", 0, *told, "-o", "fit")
    (folder / "many.csv").write_text("900,3,0,50\n900,8,0,1\n")
    (folder / "ones.csv").write_text("900,3,0,1\n900,8,0,1\n")
    many, ones = (answer("recommend", "fit", "--history", name)["rows"][0] for name in ("many.csv", "ones.csv"))
    assert many["recommended"][0]["score"] != ones["recommended"][0]["score"]
    invoke("recommend", "fit", "--all", "-o", "all.csv")
    assert list(pd.read_csv("all.csv")) == ["user", "rank", "item", "score", "based_on"]


def test_strangers_get_what_is_popular_and_are_told(fitted, folder):
    said = invoke("recommend", "fit", "--user", "stranger", "--user", "other", code=1).stderr
    assert "The fit has no row named 'stranger', and lacks 1 other" in said
    assert "--unknown popular" in said
    told = answer("recommend", "fit", "--user", "stranger", "--user", "u3", "--unknown", "popular", "-n", 3)["rows"]
    shares = choices().groupby("item")["user"].nunique().sort_values(ascending=False) / 80
    assert [one["based_on"] for one in told] == ["popularity", "choices"]
    np.testing.assert_allclose([line["score"] for line in told[0]["recommended"]], shares.iloc[:3])
    said = invoke("recommend", "fit", "--user", "stranger", "--unknown", "popular").stdout
    assert "for user stranger, who has no known choices: the most popular" in said
    assert "because" not in said
    done = invoke("recommend", "fit", "--user", "stranger", "--user", "u3", "--unknown", "popular", "-o", "a.parquet")
    assert "1 row without choices got the most popular" in done.stderr
    assert pd.read_parquet("a.parquet")["based_on"].tolist() == ["popularity"] * 10 + ["choices"] * 10


def test_who_has_everything(folder):
    lines = [("all", f"i{k}") for k in range(6)] + [("some", "i1"), ("some", "i2")]
    pd.DataFrame(lines, columns=["user", "item"]).to_csv("few.csv", index=False)
    invoke("complete", "few.csv", "--implicit", *QUICK, "--holdout", 0, "-o", "few")
    assert "has an entry in every column" in invoke("recommend", "few", "--user", "all").stdout
    invoke("recommend", "few", "--all", "-o", "few.csv.gz")
    assert set(pd.read_csv("few.csv.gz")["user"]) == {"some"}


def test_mistakes_are_told_before_any_work(fitted, folder):
    (folder / "others.csv").write_text("item,title\nx1,One\nx2,Two\n")
    (folder / "strange.txt").write_text("i1\nx9\n")
    choices().to_csv("ratings.csv", index=False)
    invoke("complete", "ratings.csv", "--rank", 1, "--ridge", 1, "-o", "numbers")
    for arguments, code, message in (
        (("fit",), 1, "no row to recommend to"),
        (("fit", "--all", "--user", "u1"), 2, "--all excludes --user"),
        (("none", "--user", "u1"), 1, "not the folder of a fit"),
        (("fit", "--all", "-o", "all.xlsx"), 1, "an unsupported extension"),
        (("fit", "--all", "-o", "clicks.csv"), 1, "already exists"),
        (("fit", "--all", "-o", "a.parquet", "--safe-cells"), 1, "--safe-cells is for csv"),
        (("fit", "--user", "u1", "-n", 0), 2, "'-n'"),
        (("fit", "--user", "u1", "--names", "others.csv"), 1, "is an item of the fit"),
        (("fit", "--user", "u1", "--names", "none.csv"), 1, "There is no file none.csv"),
        (("fit", "--user", "u1", "--items", "strange.txt"), 1, "no column named 'x9'"),
        (("fit", "--users", "none.txt"), 1, "There is no file none.txt"),
        (("numbers", "--user", "u1", "--explain"), 1, "--explain is for clicks"),
        (("numbers", "--user", "zz", "--unknown", "popular"), 1, "--unknown popular is for clicks"),
        (("numbers", "--user", "u1", "--by", "lower"), 1, "--by lower needs error bars, but a fit with a ridge"),
        (("fit", "--user", "u1", "--by", "draw"), 1, "--by draw needs error bars, but a fit to clicks has none"),
        (("fit", "--user", "u1", "--by", "best"), 2, "'best' is not one of"),
        (("fit", "--user", "u1", "--level", 0.9), 2, "--level requires --by lower, not --by mean"),
        (("fit", "--user", "u1", "--by", "lower", "--level", 1), 2, "'--level'"),
    ):
        assert message in invoke("recommend", *arguments, code=code).stderr, arguments


def test_files_of_a_fit_of_values(folder):
    choices().to_csv("ratings.csv", index=False)
    invoke("complete", "ratings.csv", "--rank", 1, "--ridge", 1, "-o", "numbers")
    invoke("recommend", "numbers", "--all", "-n", 3, "-o", "all.csv", "--names", "titles.csv")
    frame = pd.read_csv("all.csv")
    assert list(frame) == ["user", "rank", "item", "prediction", "title"]
    names, values = bf.load("numbers").recommend(n=3)
    assert frame["item"].tolist() == names.ravel().tolist()
    np.testing.assert_allclose(frame["prediction"], values.ravel(), rtol=1e-5)


def test_cells_that_spreadsheets_would_run(folder):
    (folder / "clicks.csv").write_text("user,item\n=a,+b\n=a,c\nd,+b\nd,e\n")
    invoke("complete", "clicks.csv", "--implicit", *QUICK, "--holdout", 0, "-o", "fit")
    invoke("recommend", "fit", "--all", "-o", "plain.csv")
    invoke("recommend", "fit", "--all", "-o", "safe.csv", "--safe-cells")
    assert set(pd.read_csv("plain.csv")["user"]) == {"=a", "d"}
    assert set(pd.read_csv("safe.csv")["user"]) == {"'=a", "d"}


def test_a_run_goes_on_from_its_checkpoint():
    options = ("--implicit", *QUICK, "--holdout", 0, "--checkpoint", "run.ckpt")
    invoke("complete", "clicks.csv", *options, "--max-iter", 3, "-o", "short")
    invoke("complete", "clicks.csv", *options, "-o", "resumed")
    invoke("complete", "clicks.csv", *options[:-2], "-o", "whole")
    np.testing.assert_allclose(bf.load("resumed").model.U, bf.load("whole").model.U, rtol=1e-6, atol=1e-9)


def test_a_log_with_times_asks_for_it(folder):
    choices().assign(plays=1365029107).to_csv("log.csv", index=False, header=["user", "item", "timestamp"])
    assert "--implicit" in invoke("complete", "log.csv", "-o", "fit", code=1).stderr
    invoke("complete", "log.csv", "--implicit", *QUICK, "-o", "fit")


# Judging


def test_later_choices_judge_a_fit(folder):
    frame = choices()[["user", "item"]]
    often = frame["item"].map(frame["item"].value_counts()) > 9
    hidden = (np.arange(len(frame)) % 9 == 0) & often
    frame[~hidden].to_csv("train.csv", index=False)
    more = pd.DataFrame({"user": ["stranger", "u1"], "item": ["i1", "i999"]})
    pd.concat([frame[hidden], frame[~hidden][:5], more]).to_csv("later.csv", index=False)
    invoke("complete", "train.csv", "--implicit", *QUICK, "--holdout", 0, "-o", "fit")
    told = answer("evaluate", "fit", "later.csv", "-n", 5)
    model = bf.Recommender(**MODEL).fit_long("train.csv")
    places = [model.fit_.places(frame[hidden][side], kind) for side, kind in (("user", "row"), ("item", "column"))]
    test = np.zeros((len(model.row_names_), len(model.column_names_)))
    test[tuple(places)] = 1
    known = np.zeros_like(test)
    known[tuple(model.fit_.places(frame[~hidden][s], k) for s, k in (("user", "row"), ("item", "column")))] = 1
    users = np.flatnonzero(test.sum(axis=1))
    ids = model.fit_.places(model.recommend(model.row_names_[users], 5)[0].ravel(), "column").reshape(-1, 5)
    wanted = bf.ranking.judge(ids, sparse.csr_array(test[users]), 5, known=sparse.csr_array(known))
    for name, mean in wanted.means.items():
        assert told["metrics"][name]["mean"] == pytest.approx(mean), name
    assert told["metrics"]["ndcg@5"]["low"] == pytest.approx(wanted.interval("ndcg@5")[0])
    assert told["users"] == users.size
    aside = told["left_out"]
    assert (aside["of_unknown_users"], aside["of_unknown_items"], aside["known_before"]) == (1, 1, 5)
    assert aside["judged"] == int(hidden.sum())
    said = words(invoke("evaluate", "fit", "later.csv").stdout)
    for part in (
        "NDCG@10",
        "most popular",
        f"{users.size} users judged",
        "1 of 1 user not in the fit",
        "5 already in the fit",
    ):
        assert part in said


def test_newcomers_are_judged_by_their_history(fitted, folder):
    (folder / "new.csv").write_text("user,item\nme,i3\nme,i8\n")
    (folder / "rest.csv").write_text("user,item\nme,i5\n")
    assert "None of 1 choice can be evaluated" in invoke("evaluate", "fit", "rest.csv", code=1).stderr
    assert answer("evaluate", "fit", "rest.csv", "--history", "new.csv")["users"] == 1
    (folder / "other.csv").write_text("when;who;what\n1;me;i5\n2;me;i6\n")
    named = ("--row", "who", "--col", "what")
    assert answer("evaluate", "fit", "other.csv", "--history", "new.csv", *named)["left_out"]["judged"] == 2
    assert "were already in the fit" in invoke("evaluate", "fit", "clicks.csv", code=1).stderr


def test_a_fit_of_values_is_judged_by_its_errors():
    frame = choices()
    hidden = np.arange(len(frame)) % 9 == 0
    frame[~hidden].to_csv("train.csv", index=False)
    frame[hidden].to_csv("test.csv", index=False)
    options = ("--rank", 1, "--ridge", 1, "-o", "fit")
    wanted = answer("complete", "train.csv", "--test", "test.csv", *options)["scores"]["test"]
    told = answer("evaluate", "fit", "test.csv")
    assert {name: told[name] for name in wanted} == wanted
    assert "RMSE" in invoke("evaluate", "fit", "test.csv").stdout
    assert "-n is for lists" in invoke("evaluate", "fit", "test.csv", "-n", 5, code=1).stderr
    assert "There is no file none.csv" in invoke("evaluate", "fit", "none.csv", code=1).stderr
