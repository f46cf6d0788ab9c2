"""Columns that print as tables and become frames."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.display import listing
from bifactor.running.search import rank_search

COUNT = 40
HISTORY = bf.History(*(np.linspace(1, 0.1, COUNT + 1) for _ in range(4)))
RANKS = rank_search(np.arange(1, 4), np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 1.5]), np.array([0.5, 0.0, 0.4]))
RIDGES = bf.Search(
    "ridge", {"ridge": np.array([4.0, 2.0, 0.0])}, np.array([1.0, 0.5, 0.6]), 1, np.array([0.1, 0.0, 0.1])
)


def test_a_history_is_a_short_table():
    lines = repr(HISTORY).splitlines()
    assert lines[0] == f"History: {COUNT} iterations"
    assert lines[1].split("  ")[0] == "iteration"
    assert [line.split()[0] for line in lines[2:]] == [*"01234", "…", *map(str, range(COUNT - 4, COUNT + 1))]
    assert len({len(line) for line in lines[1:]}) == 1
    assert HISTORY._repr_html_().count("<tr>") == 12


def test_a_short_one_is_whole():
    short = bf.History(*(np.ones(3) for _ in range(4)))
    assert [line.split()[0] for line in repr(short).splitlines()[2:]] == ["0", "1", "2"]


@pytest.mark.parametrize("backend", [None, "pandas", "polars", "pyarrow"])
def test_frames_hold_the_columns(backend):
    frame = HISTORY.to_frame(backend)
    assert type(frame).__module__.startswith(backend or "pandas")
    names = frame.column_names if backend == "pyarrow" else list(frame.columns)
    assert names == ["iteration", "objective", "gradient_norm", "relative_change", "seconds"]
    for name in names:
        np.testing.assert_array_equal(np.asarray(frame[name]), HISTORY.columns()[name])


def test_frames_that_cannot_be_made():
    with pytest.raises(bf.errors.InputError, match="backend='excel' is not a data frame library"):
        HISTORY.to_frame("excel")


def test_without_any_library_of_frames(monkeypatch):
    monkeypatch.setattr(listing, "find_spec", lambda name: None)
    with pytest.raises(bf.errors.BifactorError, match="needs pandas, polars or pyarrow"):
        HISTORY.to_frame()
    with pytest.raises(bf.errors.BifactorError, match="needs polars, which is not installed"):
        HISTORY.to_frame("polars")
    monkeypatch.setattr(listing, "find_spec", lambda name: name == "pyarrow" or None)
    assert type(HISTORY.to_frame()).__module__.startswith("pyarrow")


def test_searches_say_what_was_chosen():
    assert repr(RANKS).startswith("Search: 3 candidates tried by held-out loss; chosen: rank 2\n")
    assert repr(RIDGES).startswith("Search: 3 candidates tried by held-out loss; chosen: ridge 2\n")
    assert "interrupted" not in RIDGES.columns()
    for search in (RANKS, RIDGES):
        html = search._repr_html_()
        assert html.count('class="mark"') == 1
        assert html.count("<tr>") == 4


def test_a_search_without_a_ridge_has_no_chart():
    bare = bf.Search("ridge", {"ridge": np.array([0.0])}, np.array([1.0]), 0, np.array([0.0]))
    assert "<svg" not in bare._repr_html_()


def test_names_flags_and_scores_without_errors_are_columns_too():
    noise = {"noise": np.array(["one", "student"]), "implicit": np.array([False, True])}
    search = bf.Search("noise", noise, np.array([0.3, 0.2]), 1, interrupted=True, measure="NDCG@20")
    assert search.chosen == {"noise": "student", "implicit": True}
    lines = repr(search).splitlines()
    assert lines[0].endswith("tried by NDCG@20; chosen: noise student, implicit yes; interrupted by Ctrl-C")
    assert [line.split() for line in lines[1:]] == [
        ["noise", "implicit", "score"], ["one", "no", "0.3"], ["student", "yes", "0.2"]
    ]  # fmt: skip
    assert search.axis()[0] == "candidate"
    assert search._repr_html_().count('class="mark"') == 1
    assert search.to_frame()["noise"].tolist() == ["one", "student"]


def test_scores_that_are_not_finite_are_not_drawn():
    ranks, errors = {"rank": np.array([1, 2, 4])}, np.array([np.nan, 0.1, 0.0])
    search = bf.Search("rank", ranks, np.array([-np.inf, -2.0, -1.0]), 2, errors)
    assert search.pictures()[0].count('class="dot"') == 2
