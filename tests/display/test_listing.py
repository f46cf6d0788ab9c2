"""Columns that print as tables and become frames."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.display import listing
from bifactor.models.hyperparameters import RidgePath
from bifactor.running.result import RankPath

COUNT = 40
HISTORY = bf.History(*(np.linspace(1, 0.1, COUNT + 1) for _ in range(4)))
PATH = RankPath(np.arange(1, 4), np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 1.5]), np.array([0.5, 0.0, 0.4]))
RIDGES = RidgePath(np.array([4.0, 2.0, 0.0]), np.array([1.0, 0.5, 0.6]), np.array([0.1, 0.0, 0.1]))


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


def test_paths_say_what_was_chosen():
    assert repr(PATH).startswith("RankPath: 3 ranks tried, 2 chosen\n")
    assert repr(RIDGES).startswith("RidgePath: 3 ridges tried, 2 chosen\n")
    assert "interrupted" not in RIDGES.columns()
    for path in (PATH, RIDGES):
        html = path._repr_html_()
        assert html.count('class="mark"') == 1
        assert html.count("<tr>") == 4


def test_a_path_of_no_ridge_at_all_has_no_chart():
    bare = RidgePath(np.array([0.0]), np.array([1.0]), np.array([0.0]))
    assert "<svg" not in bare._repr_html_()
