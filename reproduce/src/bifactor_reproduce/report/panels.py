"""Where the panels of a figure are, so that a narrow screen can show them one by one."""

from typing import Any, NamedTuple

WIDE = 400.0
"""Points; what is narrower can be read on a phone as it is."""

MARGIN = 2.0


class Box(NamedTuple):
    """In points, from the upper left corner of the figure."""

    left: float
    top: float
    width: float
    height: float


class Parts(NamedTuple):
    """What a figure can be taken apart into."""

    keys: list[Box]
    """Titles and entries of legends that belong to all panels."""
    panels: list[Box]


def number_all(figure: Any) -> None:
    """Numbers on each panel, also where matplotlib leaves them to the outer ones since axes are shared."""
    for ax in figure.axes:
        shared = (ax.get_shared_x_axes(), ax.get_shared_y_axes())
        for (axis, labels), group in zip(_sides(ax), shared, strict=True):
            if len(group.get_siblings(ax)) > 1 and not _numbered(axis):
                axis.set_tick_params(which="both", **{labels: True})


def parts(figure: Any) -> Parts:
    """The parts of a figure that was drawn.

    There are none where it is narrow, or where panels cannot be understood without their neighbours.
    """
    axes = [ax for ax in figure.axes if ax.get_visible()]
    if figure.get_figwidth() * 72 <= WIDE or not _apart(figure, axes):
        return Parts([], [])
    renderer = figure.canvas.get_renderer()
    merged: list[Any] = []
    for extent in (ax.get_tightbbox(renderer) for ax in axes):
        over = next((k for k, other in enumerate(merged) if _same(extent, other)), None)
        if over is None:
            merged.append(extent)
        else:  # a second pair of axes on the same place, or an inset
            merged[over] = extent.union([extent, merged[over]])
    if len(merged) < 2:
        return Parts([], [])
    keys = [text.get_window_extent(renderer) for text in figure.texts if text.get_visible()]
    keys += [extent for legend in figure.legends for extent in _entries(legend, renderer)]
    return Parts(*([_box(extent, figure) for extent in extents] for extents in (keys, merged)))


def _apart(figure: Any, axes: list[Any]) -> bool:
    """Whether each panel has all that it needs: numbers on its axes, and no colour bar or name shared with others."""
    if figure.subfigs or figure.get_supxlabel() or figure.get_supylabel():
        return False
    if any(ax.get_label() == "<colorbar>" for ax in axes):
        return False
    return all(not ax.axison or all(_numbered(axis) for axis, _ in _sides(ax)) for ax in axes)


def _sides(ax: Any) -> tuple[tuple[Any, str], ...]:
    return (ax.xaxis, "labelbottom"), (ax.yaxis, "labelleft")


def _numbered(axis: Any) -> bool:
    """By the ticks themselves: get_tick_params of Matplotlib 3.9 has other names for those of x."""
    ticks = axis.get_major_ticks()
    return not axis.get_visible() or not ticks or ticks[0].label1.get_visible() or ticks[0].label2.get_visible()


def _entries(legend: Any, renderer: Any) -> list[Any]:
    """A legend as wide as the figure fits no phone, its entries do."""
    texts, handles = [legend.get_title(), *legend.get_texts()], [None, *legend.legend_handles]
    extents = []
    for text, handle in zip(texts, handles, strict=True):
        if text.get_visible() and text.get_text():
            extent = text.get_window_extent(renderer)
            extents.append(extent if handle is None else extent.union([extent, handle.get_window_extent(renderer)]))
    return extents


def _same(one: Any, other: Any) -> bool:
    """Whether half of the smaller lies within the larger."""
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    smaller = min(one.width * one.height, other.width * other.height)
    return bool(min(width, height) > 0 and 2 * width * height >= smaller)


def _box(extent: Any, figure: Any) -> Box:
    scale, (width, height) = 72 / figure.dpi, 72 * figure.get_size_inches()
    left, right = max(scale * extent.x0 - MARGIN, 0), min(scale * extent.x1 + MARGIN, width)
    top, bottom = max(height - scale * extent.y1 - MARGIN, 0), min(height - scale * extent.y0 + MARGIN, height)
    return Box(*(round(float(side), 2) for side in (left, top, right - left, bottom - top)))
