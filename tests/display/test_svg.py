"""Charts of any numbers: ticks that can be told apart, and nothing that cannot be drawn."""

import re

import numpy as np
import pytest

from bifactor.display.svg import Axis, bar_chart, density, labels, line_chart

RANGES = [
    (4.0e5, 4.9e5),
    (412345.0, 412349.0),
    (0.0, 1.0),
    (-3.0, 2.0),
    (1e-9, 3e-9),
    (-2e-7, 5e-6),
    (99990.0, 100010.0),
    (1e12, 1e12 + 5),
    (123456.1, 123456.5),
    (1e-300, 1e-299),
    (-4.2e8, -4.1e8),
]


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("ends", RANGES, ids=str)
def test_ticks_can_be_told_apart_and_say_where_they_are(ends, log):
    if log and ends[0] <= 0:
        return
    axis = Axis.over(np.array(ends), 0.0, 100.0, log)
    ticks = axis.ticks()
    texts = labels(ticks)
    assert 2 <= len(ticks) <= 20
    assert len(set(texts)) == len(texts)
    for tick, text in zip(ticks, texts, strict=True):
        assert axis(float(text.replace("−", "-"))) == pytest.approx(axis(tick), abs=0.5)


def test_round_numbers_are_short():
    assert labels([0.0, 0.5, 1.0]) == ["0", "0.5", "1"]
    assert labels([-1.0, 0.0, 1.0]) == ["−1", "0", "1"]
    assert labels([1e-8, 1e-4, 1.0]) == ["1e−8", "1e−4", "1"]
    assert labels([4e5, 4.2e5, 4.4e5]) == ["4.0e5", "4.2e5", "4.4e5"]
    assert labels([0.0, 8e4, 1.2e5]) == ["0", "8.0e4", "1.2e5"]
    assert labels([0.0, 5e-4, 1e-3]) == ["0", "5e−4", "1e−3"]
    assert labels([3.0]) == ["3"]
    assert labels([]) == []


def test_no_bars_are_axes_alone():
    empty = bar_chart(np.array([]), "component", "singular value")
    assert 'class="axis"' in empty
    assert 'class="bar"' not in empty
    assert bar_chart(np.array([0.0]), "component", "singular value").count('class="bar"') == 1


def test_iterations_are_whole():
    for count in (1, 2, 3, 50):
        chart = line_chart(np.arange(count), np.ones(count), "iteration", "objective", whole_x=True)
        along = re.findall(r'text-anchor="middle">([^<]*)<', chart.split("rotate")[0])[:-1]
        assert along
        assert all(float(text).is_integer() and float(text) >= 0 for text in along)


@pytest.mark.parametrize("value", [0.0, 3.0, -1e-12, 1e12])
def test_one_value_can_be_drawn(value):
    same = np.full(3, value)
    charts = (line_chart(np.array([0]), same[:1], "iteration", "objective"), density(same, same))
    for chart in charts:
        assert not re.search("nan|inf", chart)
