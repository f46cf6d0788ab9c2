"""`bifactor partition`."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import bifactor as bf
from bifactor.cli.main import main


@pytest.fixture
def ratings(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"user": rng.integers(30, size=400), "item": rng.integers(20, size=400), "rating": rng.integers(1, 6, size=400)}
    )
    for k in range(2):
        frame[k::2].to_parquet(tmp_path / f"part-{k}.parquet")
    frame.loc[3, "rating"] = np.nan
    frame.to_csv(tmp_path / "ratings.csv", index=False)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["partition", *map(str, arguments)])


def test_it_tells_what_was_written(ratings):
    done = run(ratings / "part-0.parquet", ratings / "part-1.parquet", "-o", ratings / "blocks")
    assert done.exit_code == 0, done.output
    for words in (
        "400 of 30 rows and 20 columns",
        "1 of rows",
        "bytes per observation",
        "million observations per second",
    ):
        assert words in done.output
    store = bf.data.BlockStore.open(ratings / "blocks")
    assert store.shape == (30, 20)


def test_json_has_the_same_facts(ratings):
    done = run(ratings / "ratings.csv", "-o", ratings / "blocks", "--memory", "100MB", "--json")
    answer = json.loads(done.output)
    assert answer["observations"] == 399
    assert answer["left_out"] == 1
    assert (answer["rows"], answer["columns"], answer["blocks"], answer["blocks_of"]) == (30, 20, 1, "rows")
    assert answer["bytes_per_observation"] == pytest.approx(answer["bytes"] / 399)
    again = json.loads(run(ratings / "ratings.csv", "-o", ratings / "blocks", "--memory", "100MB", "--json").output)
    assert again["new"] is False


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.csv", "-o", "blocks"], 1, "no file"),
        (["ratings.csv", "-o", "blocks", "--memory", "5 minutes"], 1, "amount of memory"),
        (["ratings.csv", "-o", "blocks", "--row", "reader"], 1, "no column 'reader'"),
        (["ratings.csv", "-o", "."], 1, "other files"),
        (["ratings.csv", "-o", "blocks", "--implicit", "--value", "rating"], 2, "Leave out --value"),
        (["ratings.csv"], 2, "Missing option"),
    ],
)
def test_mistakes_get_a_sentence(ratings, monkeypatch, arguments, code, words):
    monkeypatch.chdir(ratings)
    done = run(*arguments)
    assert done.exit_code == code
    assert words in done.output


def test_pairs_without_values(ratings):
    done = run(ratings / "part-0.parquet", "-o", ratings / "blocks", "--row", "user", "--col", "item", "--implicit")
    assert done.exit_code == 0, done.output
    about = bf.data.BlockStore.open(ratings / "blocks").summary()
    assert about.least == about.largest == 1


def test_after_an_interrupt_it_goes_on(ratings, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("bifactor.data.store.partition.write_block", interrupt)
        done = run(ratings / "ratings.csv", "-o", ratings / "blocks")
    assert done.exit_code == 130
    assert "Run the same command again" in done.output
    done = run(ratings / "ratings.csv", "-o", ratings / "blocks")
    assert done.exit_code == 0
    assert bf.data.BlockStore.open(ratings / "blocks").size == 399
