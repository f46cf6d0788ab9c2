"""Bars in notebooks, with a notebook that only takes notes."""

import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import bifactor as bf
from bifactor.running import bars
from bifactor.running.progress import choice_bar, share_bar


@pytest.fixture
def shown(monkeypatch):
    """What a notebook was told to display, in order: a list of (how, data)."""
    told = []

    def display(data, raw, display_id):
        assert raw
        assert display_id
        told.append(("new", data))
        return SimpleNamespace(update=lambda data, raw: told.append(("update", data)))

    python, page = ModuleType("IPython"), ModuleType("IPython.display")
    python.get_ipython, page.display = lambda: SimpleNamespace(kernel=object()), display
    monkeypatch.setitem(sys.modules, "IPython", python)
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    monkeypatch.setattr(bars, "PAUSE", 0.0)
    return told


def require_one_bar_that_vanished(shown):
    assert [how for how, _ in shown] == ["new"] + ["update"] * (len(shown) - 1)
    assert shown[-1][1] == {"text/plain": "", "text/html": ""}
    assert all(data["text/html"].startswith("<progress") for _, data in shown[:-1])


def test_a_run_has_one_bar_that_vanishes(shown, capsys):
    problem = bf.Problem("squared", bf.operators.Full((6, 5)), np.random.default_rng(0).standard_normal((6, 5)))
    result = bf.solve(problem, 2, rng=0, max_iter=8, tol=0, gradient_tol=0, progress=True)
    require_one_bar_that_vanished(shown)
    assert f"{result.n_iter}/8" in shown[-2][1]["text/plain"]
    assert "objective" in shown[-2][1]["text/plain"]
    assert capsys.readouterr() == ("", "")


def test_a_time_limit_that_comes_first_is_what_is_left(shown):
    problem = bf.Problem("squared", bf.operators.Full((6, 5)), np.random.default_rng(0).standard_normal((6, 5)))
    asked = {"rng": 0, "tol": 0, "gradient_tol": 0, "objective_tol": 0, "progress": True}
    bf.solve(problem, 2, bf.solvers.BFGD(), max_iter=10**9, time_limit=0.3, **asked)
    require_one_bar_that_vanished(shown)
    assert "left at most 0:00:00" in shown[-2][1]["text/plain"]
    shares = [float(re.search(r'value="([\d.]+)"', data["text/html"])[1]) for _, data in shown[:-1]]
    assert shares == sorted(shares)
    assert shares[-1] > 0.9


def test_it_vanishes_after_an_error_too(shown):
    def fails():
        with share_bar(True, "<b>filling in") as show:
            show(0.25)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    require_one_bar_that_vanished(shown)
    assert 'value="0.2500"' in shown[0][1]["text/html"]
    assert "25%" in shown[0][1]["text/plain"]
    assert "<b>" not in shown[0][1]["text/html"]


def test_choices_and_bars_that_were_never_shown(shown):
    with choice_bar(True):
        pass
    assert shown == []
    with choice_bar(True) as show:
        show("ridge", 1, 4)
        show("rank", 2, 3)
    require_one_bar_that_vanished(shown)
    assert "2/3" in shown[-2][1]["text/plain"]


def test_elsewhere_there_is_no_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not bars.in_notebook()
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert not bars.in_notebook()
