"""`bifactor complete` on a block store, as a user meets it."""

import contextlib
import json
import signal
import socket
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bifactor as bf
from bifactor.cli.main import main
from bifactor.data import BlockStore
from bifactor.data.store import partition
from bifactor.running import solve

QUICK = ("--rank", 2, "--ridge", 1)


def table(m=120, n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 2)) @ rng.standard_normal((2, n)) + rng.standard_normal((m, 1)) + 3
    i, j = np.nonzero(rng.random((m, n)) < 0.4)
    return i, j, np.clip(np.round(X[i, j]), 1, 5).astype(int)


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(partition, "SMALL", 1)
    text = "".join(f"u{a},{b},{c}\n" for a, b, c in zip(*table(), strict=True))
    Path("data.csv").write_text("user,item,rating\n" + text)

    def run(*arguments, code=0):
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert done.exit_code == code, done.output
        assert code == 0 or "Traceback" not in done.output
        return done

    run("partition", "data.csv", "-o", "blocks")
    return run


def answer(invoke, *arguments):
    return json.loads(invoke(*arguments, "--json").stdout)


@pytest.mark.parametrize(
    "options",
    [QUICK, (*QUICK, "--loss", "huber"), (*QUICK, "--loss", "ordinal"), ("--rank", 2, "--noise", "one")],
)
def test_blocks_are_fitted_and_scored_as_a_file_is(invoke, options):
    told = [
        answer(invoke, "complete", name, *options, "--holdout", 0.2, "-o", f"of-{name}")
        for name in ("data.csv", "blocks")
    ]
    (file, blocks), names = [one["scores"]["held out"] for one in told], {"rmse", "mae", "mean_loss", "explained"}
    assert file["entries"] == blocks["entries"] > 300
    near = 0.05 if "--noise" in options else 1e-3  # a posterior rests where predictions move by little beside the noise
    assert all(file[name] == pytest.approx(blocks[name], rel=near) for name in names)
    assert told[1]["data"]["blocks"] == len(BlockStore.open("blocks").parts) > 1
    clip = None if "ordinal" in options else [1, 5]  # means of grades need no limits
    assert told[0]["fit"]["clip"] == told[1]["fit"]["clip"] == clip
    i, j, _ = table()
    predicted = [bf.load(f"of-{name}").predict([f"u{a}" for a in i], j) for name in ("data.csv", "blocks")]
    assert np.allclose(*predicted, atol=0.3 if "--noise" in options else 0.02)


def test_labels_of_blocks(invoke):
    i, j, y = table()
    text = "".join(f"u{a},{b},{int(c > 2)}\n" for a, b, c in zip(i, j, y, strict=True))
    Path("labels.csv").write_text("user,item,liked\n" + text)
    invoke("partition", "labels.csv", "-o", "labels")
    options = ("--loss", "logistic", *QUICK, "--holdout", 0.2)
    told = [answer(invoke, "complete", name, *options, "-o", f"of-{name}") for name in ("labels.csv", "labels")]
    file, blocks = (one["scores"]["held out"] for one in told)
    assert file["accuracy"] == pytest.approx(blocks["accuracy"], abs=0.01)
    assert file["mean_loss"] == pytest.approx(blocks["mean_loss"], rel=1e-2)
    assert bf.load("of-labels").classes.tolist() == [0, 1]


def test_clicks_in_blocks(invoke):
    invoke("partition", "data.csv", "--implicit", "-o", "clicks")
    said = invoke("complete", "clicks", "-o", "fit", code=1).output
    assert "--implicit" in said
    options = ("--implicit", "--rank", 3, "--unobserved", 0.1, "--ridge", 0.01)
    told = answer(invoke, "complete", "clicks", *options, "-o", "fit")
    assert told["scores"]["held out"]["users"] > 50
    assert told["data"]["choices"] == table()[0].size
    lists = answer(invoke, "recommend", "fit", "--user", "u3", "-n", 4)["rows"][0]["recommended"]
    i, j, _ = table()
    assert not {one["column"] for one in lists} & set(j[i == 3].tolist())
    popular = answer(invoke, "recommend", "fit", "--user", "nobody", "--unknown", "popular", "-n", 4)["rows"][0]
    assert popular["based_on"] == "popularity"
    invoke("evaluate", "fit", "data.csv", code=1)  # all of it is known
    Path("later.csv").write_text(f"user,item\nu3,{lists[0]['column']}\n")
    assert answer(invoke, "evaluate", "fit", "later.csv")["users"] == 1


def test_a_log_has_a_line_for_each_iteration(invoke):
    told = answer(invoke, "complete", "blocks", *QUICK, "--log", "log.jsonl", "-o", "fit")
    lines = [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines[:-1]] == list(range(1, told["fit"]["iterations"] + 1))
    assert all(np.isfinite(line["objective"]) and line["stage"] == "fitting" for line in lines[:-1])
    assert all(line["observations_per_second"] > 0 and line["left_at_most"] > 0 for line in lines[1:-1])
    assert np.all(np.diff([line["seconds"] for line in lines[:-1]]) >= 0)
    assert lines[-1]["status"] == told["fit"]["status"]
    invoke("complete", "data.csv", *QUICK, "--log", "log.jsonl", "-o", "again")
    assert len(Path("log.jsonl").read_text().splitlines()) > len(lines)
    said = invoke("complete", "blocks", *QUICK, "--log", "none/log.jsonl", "-o", "new", code=1).output
    assert "Cannot write to none/log.jsonl" in said


def test_processes_of_this_machine_fit_blocks(invoke):
    pytest.importorskip("distributed")
    options = ("--rank", 2, "--noise", "one", "--max-iter", 3)
    interrupts = signal.getsignal(signal.SIGINT)
    alone = answer(invoke, "complete", "blocks", *options, "--memory", "64MB", "-o", "alone")
    with socket.socket() as taken:
        with contextlib.suppress(OSError):  # another program has taken it
            taken.bind(("", 8787))
            taken.listen()
        several = answer(invoke, "complete", "blocks", *options, "--workers", 2, "-o", "several")
    assert several["fit"]["objective"] == pytest.approx(alone["fit"]["objective"], rel=1e-5)
    i, j, _ = table()
    std = [bf.load(name).predict([f"u{a}" for a in i], j, return_std=True)[1] for name in ("alone", "several")]
    assert np.allclose(*std, rtol=1e-3)
    assert signal.getsignal(signal.SIGINT) is interrupts  # only workers ignore it


def test_a_run_that_was_stopped_goes_on(invoke):
    options = (*QUICK, "--checkpoint", "run.ckpt")
    whole = answer(invoke, "complete", "blocks", *options, "-o", "whole")
    Path("run.ckpt").unlink()
    invoke("complete", "blocks", *options, "--max-iter", 5, "-o", "first")
    assert Path("run.ckpt").is_file()
    rest = answer(invoke, "complete", "blocks", *options, "--log", "log.jsonl", "-o", "rest")
    assert json.loads(Path("log.jsonl").read_text().splitlines()[0])["iteration"] == 6
    assert rest["fit"]["objective"] == whole["fit"]["objective"]


def test_ctrl_c_keeps_the_best_fit_so_far(invoke, monkeypatch):
    def stopped(problem, *arguments, callback, **options):
        def interrupt(iteration, state):
            callback(iteration, state)
            if iteration == 3:
                raise KeyboardInterrupt

        return solve.solve(problem, *arguments, callback=interrupt, **options)

    monkeypatch.setattr("bifactor.models.completion.fitting.solve", stopped)
    told = json.loads(invoke("complete", "blocks", *QUICK, "-o", "fit", "--json", code=130).stdout)
    assert told["fit"]["status"] == "INTERRUPTED"
    assert bf.load("fit").predict("u1", 3) > 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("data.csv", "--memory", "2GB"), 2, "--memory is for block stores"),
        (("blocks", "--memory", "2GB", "--workers", 2), 2, "exclude each other"),
        (("blocks", "--dask", "tcp://x", "--workers", 2), 2, "exclude each other"),
        (("blocks", "--row", "user"), 2, "--row is for files"),
        (("blocks", "--long"), 2, "--long is for files"),
        (("blocks", "--memory", "much"), 1, "memory='much' is not"),
        (("blocks", "--noise", "student"), 1, "needs all data in memory"),
        (("blocks", "--loss", "poisson", "--clip", "1,5"), 1, "clip"),
        ((".",), 1, "not a block store"),
        (("nowhere",), 1, "nowhere"),
    ],
)
def test_mistakes_are_told_in_a_sentence(invoke, arguments, code, said):
    assert said in invoke("complete", *arguments, "-o", "fit", code=code).output
    assert not Path("fit").exists()


def test_a_damaged_block_is_named(invoke):
    path = Path(BlockStore.open("blocks").parts[2].path)
    path.write_bytes(path.read_bytes()[:-20])
    assert path.name in invoke("complete", "blocks", *QUICK, "-o", "fit", code=1).output


def test_without_dask_a_sentence_says_how_to_install_it(invoke, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    for option in (("--workers", 2), ("--dask", "tcp://127.0.0.1:1")):
        assert "bifactor[dask]" in invoke("complete", "blocks", *option, "-o", "fit", code=1).output


def test_pairs_in_parquet_are_predicted_in_pieces(invoke, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    from bifactor.cli import predict

    monkeypatch.setattr(predict, "BATCH", 100)
    i, j, _ = table()
    names = [f"u{a}" for a in i[:450]]
    parquet.write_table(pa.table({"user": [*names, "stranger"], "item": [*j[:450], 3]}), "pairs.parquet")
    invoke("complete", "blocks", *QUICK, "-o", "fit")
    told = answer(invoke, "predict", "fit", "pairs.parquet", "-o", "found.parquet")
    assert (told["pairs"], told["unknown"]) == (451, 1)
    found = parquet.read_table("found.parquet").to_pydict()
    assert found["user"] == [*names, "stranger"]
    assert found["item"] == [*j[:450].tolist(), 3]
    assert np.allclose(found["prediction"][:450], bf.load("fit").predict(names, j[:450]))
    assert found["known"][-1] == "column"
    invoke("predict", "fit", "pairs.parquet", "-o", "found.csv")
    assert len(Path("found.csv").read_text().splitlines()) == 452
    Path("bad.parquet").write_bytes(b"PAR1 no")
    assert "bad.parquet" in invoke("predict", "fit", "bad.parquet", "-o", "x.csv", code=1).output
    assert "--safe-cells" in invoke("predict", "fit", "pairs.parquet", "--safe-cells", "-o", "x.parquet", code=1).output
