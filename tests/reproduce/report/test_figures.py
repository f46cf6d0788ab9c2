"""Figures: one drawing, three forms, in the colours of the page around it."""

import re
import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from bifactor.errors import BifactorError
from bifactor_reproduce.harness.items import Figure
from bifactor_reproduce.report.figures import COLOURS, INK, PAPER, drawn

WINDOW = r'<svg viewBox="([^"]+)"'


def panels(draw, size=(10.0, 3.6)):
    """The windows through which a narrow screen sees the figure."""
    inline = drawn(Figure("name", "title", "", draw, size)).inline
    boxes = [tuple(map(float, found.split())) for found in re.findall(WINDOW, inline)]
    assert boxes[0] == (0, 0, 72 * size[0], 72 * size[1])
    for left, top, width, height in boxes:
        assert min(left, top) >= 0
        assert left + width <= 72 * size[0] + 0.1
        assert top + height <= 72 * size[1] + 0.1
    return boxes[1:]


def lines(count):
    def draw(figure):
        for ax in np.atleast_1d(figure.subplots(1, count)):
            ax.plot([1, 2, 3], [3, 1, 2], label="line")
            ax.set_ylabel("error")

    return draw


@pytest.fixture(scope="module")
def drawing():
    def draw(figure):
        lines(2)(figure)
        figure.axes[0].legend()
        figure.axes[0].set_title("<script>alert(1)</script> --> & $10^{-3}$")
        figure.axes[1].imshow(np.eye(4))

    return drawn(Figure("some-name", 'A "title" <b>', "", draw, (6, 3)))


def test_the_page_gives_the_colours(drawing):
    for sentinel in (INK, PAPER):
        assert sentinel in (drawing.svg if sentinel == INK else INK + PAPER)
        assert sentinel not in drawing.inline
    assert "currentColor" in drawing.inline
    assert "fill: var(--page)" in drawing.inline
    assert "currentColor" not in drawing.svg
    assert "#ffffff" not in drawing.inline
    assert COLOURS[0] in drawing.inline


def test_well_formed_and_without_foreign_text(drawing, parse):
    ElementTree.fromstring(drawing.svg.encode())
    page = parse(drawing.inline)
    assert page.tags["script"] == page.tags["style"] == page.tags["metadata"] == 0
    assert "alert" not in drawing.inline
    assert 'aria-label="A &quot;title&quot; &lt;b&gt;"' in drawing.inline
    assert "http" not in drawing.inline
    assert "data:image/png;base64," in drawing.inline


def test_ids_belong_to_the_figure(drawing, parse):
    page = parse(drawing.inline)
    assert len(page.ids) == len(set(page.ids)) > 3
    assert all(name.startswith("some-name.") for name in page.ids)
    used = re.findall(r'(?:url\(|href=")#([^)"]+)', drawing.inline)
    assert used
    assert set(used) <= set(page.ids)


def test_a_size_in_pixels_and_no_date(drawing):
    assert drawing.png[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(drawing.png[16:20]) == 900
    assert b"Software" not in drawing.png
    assert "date" not in drawing.svg.lower()


def test_panels_of_a_wide_figure():
    boxes = panels(lines(3))
    assert len(boxes) == 3
    assert [box[0] for box in boxes] == sorted(box[0] for box in boxes)
    assert all(200 < width < 250 and height > 200 for _, _, width, height in boxes)


def test_entries_of_a_shared_legend_come_first():
    def draw(figure):
        lines(2)(figure)
        figure.suptitle("all")
        figure.legend(handles=[*figure.axes[0].lines, *figure.axes[1].lines], loc="outside lower center", ncols=2)

    boxes = panels(draw)
    assert len(boxes) == 5
    assert all(height < 30 for *_, height in boxes[:3])
    assert all(height > 150 for *_, height in boxes[3:])


def test_two_axes_on_one_place_are_one_panel():
    def draw(figure):
        lines(2)(figure)
        figure.axes[0].twinx().plot([1, 2], [5, 6], color="C1")

    assert len(panels(draw)) == 2


def coloured(figure):
    for ax in figure.subplots(1, 2):
        figure.colorbar(ax.imshow(np.eye(3)), ax=ax)


def unnumbered(figure):
    lines(2)(figure)
    figure.axes[1].tick_params(labelleft=False)


def named(figure):
    lines(2)(figure)
    figure.supylabel("error")


@pytest.mark.parametrize(
    ("draw", "size"),
    [
        (lines(1), (10.0, 3.6)),
        (lines(2), (5.0, 3.0)),
        (unnumbered, (10.0, 3.6)),
        (coloured, (10.0, 3.6)),
        (named, (10.0, 3.6)),
        (lambda figure: None, (10.0, 3.6)),
    ],
    ids=["one", "narrow", "unnumbered", "coloured", "named", "empty"],
)
def test_figures_that_stay_whole(draw, size):
    assert panels(draw, size) == []


def test_panels_that_share_axes_have_numbers_of_their_own():
    def draw(figure):
        axes = figure.subplots(2, 2, sharex=True, sharey=True)
        axes[0, 0].semilogy([1, 2, 3], [1e-3, 1e-2, 1.0])
        figures.append(figure)

    figures = []
    assert len(panels(draw)) == 4
    for ax in figures[0].axes:
        assert all(label.get_text() for label in (*ax.get_xticklabels(), *ax.get_yticklabels()))
        assert ax.xaxis.get_major_ticks()[0].label1.get_visible()
        assert ax.yaxis.get_major_ticks()[0].label1.get_visible()


def test_pyplot_and_its_settings_are_left_alone():
    import matplotlib
    from matplotlib import pyplot as plt

    before, open_before = dict(matplotlib.rcParams), plt.get_fignums()
    with matplotlib.rc_context({"axes.facecolor": "red", "text.color": "#abcdef"}):  # a user's own file
        drawing = drawn(Figure("name", "", "", lines(1), (3, 2)))
        assert matplotlib.rcParams["axes.facecolor"] == "red"
    assert drawing == drawn(Figure("name", "", "", lines(1), (3, 2)))
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == open_before


def luminance(colour):
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("page", ["#ffffff", "#14181d"])
def test_lines_can_be_seen_by_day_and_by_night(page):
    for colour in COLOURS:
        low, high = sorted([luminance(colour), luminance(page)])
        assert (high + 0.05) / (low + 0.05) > 3


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(BifactorError, match=r"bifactor\[plot\]"):
        drawn(Figure("name", "", "", lines(1)))
