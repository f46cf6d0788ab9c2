"""Progress, as a terminal shows it."""

import io
import re
import time

import pytest
from rich.console import Console

from bifactor.cli import monitor
from bifactor.running import progress


@pytest.fixture
def terminal(monkeypatch):
    shown = io.StringIO()
    console = Console(file=shown, force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(monitor, "stderr", lambda: console)
    monkeypatch.setattr("rich.progress.get_console", lambda: console)
    return shown


@pytest.mark.parametrize("bar", [monitor.share, lambda name: progress.share_bar(True, name)], ids=["shell", "python"])
def test_bars_show_how_long_the_rest_takes(terminal, bar):
    with bar("filling in") as show:
        for share in range(6):
            show(share / 12)
            time.sleep(0.15)
    said = terminal.getvalue()
    assert "filling in" in said
    assert "33%" in said
    assert re.search(r"left \d:\d\d:\d\d", said)


def test_nothing_is_shown_elsewhere(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(monitor, "stderr", lambda: Console(file=shown))
    with monitor.share("filling in") as show:
        show(0.3)
    assert shown.getvalue().strip() == ""
    with progress.share_bar(False, "filling in") as show:
        assert show is None


def test_choices_are_counted_with_the_time_that_is_left(terminal):
    with progress.choice_bar(True) as show:
        for what, most in (("choosing the rank", 3), ("choosing the ridge", 7)):
            for done in range(3):
                show(what, done, most)
                time.sleep(0.15)
    said = terminal.getvalue()
    assert re.search(r"choosing the rank 2/3", said)
    assert re.search(r"choosing the ridge 2/7 .*left at most \d:\d\d:\d\d", said)


def test_nothing_to_choose_shows_nothing(terminal):
    with progress.choice_bar(True):
        pass
    assert terminal.getvalue() == ""
    with progress.choice_bar(False) as show:
        assert show is None
