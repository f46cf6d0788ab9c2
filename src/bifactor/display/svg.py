"""Small charts as SVG text; colours come from the classes of the page around them."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np

from bifactor.arrays import Array

NEAR = 1e3
"""Ratio of ticks above which decimal and scientific notation may be mixed, as on a logarithmic axis."""

POINTS = 200
"""Number of points of a long curve that are drawn."""

CELLS = 24
"""Number of cells of a density along each side."""


@dataclass(frozen=True)
class PlotArea:
    """Size of a chart in pixels, margins around its axes, and approximate number of ticks per axis."""

    width: int = 460
    height: int = 270
    left: int = 76
    right: int = 14
    top: int = 12
    bottom: int = 46
    ticks: int = 5

    @property
    def across(self) -> tuple[float, float]:
        return self.left, self.width - self.right

    @property
    def up(self) -> tuple[float, float]:
        return self.height - self.bottom, self.top


PAGE = PlotArea()
CARD = PlotArea(300, 170, 66, 10, 8, 40, 4)
"""Frames for a report page and for a card in a notebook."""


@dataclass(frozen=True)
class Axis:
    """Map from numbers to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def over(cls, values: Array, start: float, end: float, log: bool = False, room: float = 0.04) -> "Axis":
        """Axis that covers all values, with a margin around them."""
        numbers = np.log10(values) if log else np.asarray(values, np.float64)
        low, high = float(numbers.min()), float(numbers.max())
        if high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):
            low, high = low - 0.5 * (abs(low) or 1), high + 0.5 * (abs(high) or 1)
        margin = room * (high - low)
        return cls(low - margin, high + margin, start, end, log)

    def __call__(self, value: float) -> float:
        number = float(np.log10(value)) if self.log else float(value)
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """About this many round numbers along the axis."""
        span = self.high - self.low
        if self.log and span >= 1:
            step = max(1, int(np.ceil(span / about)))
            decades = range(int(np.floor(self.low)), int(np.floor(self.high)) + 1, step)
            every = [k * 10.0**e for e in decades for k in ((1, 2, 5) if span < 3 else (1,))]
            return [tick for tick in every if self.low <= np.log10(tick) <= self.high]
        low, high = (10**self.low, 10**self.high) if self.log else (self.low, self.high)
        raw = (high - low) / about
        unit = 10.0 ** np.floor(np.log10(raw))
        step = unit * min((k for k in (1, 2, 2.5, 5, 10) if k * unit >= raw), default=10)
        return [float(k * step) for k in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)]


def line_chart(
    x: Array,
    y: Array,
    x_name: str,
    y_name: str,
    *,
    whole_x: bool = False,
    log_x: bool = False,
    log_y: bool = False,
    errors: Array | None = None,
    mark: int | None = None,
    frame: PlotArea = PAGE,
) -> str:
    """Curve; `errors` adds error bars, `mark` highlights a point, and `whole_x` puts ticks at integers."""
    extent = y if errors is None else np.concatenate([y - errors, y + errors])
    across = Axis.over(x, *frame.across, log_x)
    up = Axis.over(extent, *frame.up, log_y, 0.08)
    parts = [_axes(frame, across, up, x_name, y_name, whole_x)]
    points = [(across(a), up(b)) for a, b in zip(x, y, strict=True)]
    path = " ".join(f"{'L' if k else 'M'}{a:.1f} {b:.1f}" for k, (a, b) in enumerate(points))
    parts.append(f'<path class="curve" d="{path}"/>')
    if errors is not None:
        for (a, _), value, error in zip(points, y, errors, strict=True):
            parts.append(f'<path class="error" d="M{a:.1f} {up(value - error):.1f}V{up(value + error):.1f}"/>')
    if errors is not None or len(points) <= 40:
        parts += [f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in points]
    if mark is not None:
        a, b = points[mark]
        parts.append(f'<circle class="mark" cx="{a:.1f}" cy="{b:.1f}" r="6"/>')
    return _svg(frame, parts, f"{y_name} over {x_name}")


def bar_chart(values: Array, x_name: str, y_name: str, frame: PlotArea = PAGE) -> str:
    """Bars numbered from 1; only the axes if there are no values."""
    across = Axis(0.4, max(len(values), 1) + 0.6, *frame.across)
    up = Axis(0.0, 1.06 * (float(np.max(values, initial=0.0)) or 1.0), *frame.up)
    parts = [_axes(frame, across, up, x_name, y_name, whole=True)]
    for k, value in enumerate(values, start=1):
        left, right, top = across(k - 0.38), across(k + 0.38), up(value)
        height = frame.up[0] - top
        parts.append(
            f'<rect class="bar" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{height:.1f}"/>'
        )
    return _svg(frame, parts, f"{y_name} over {x_name}")


def density(observed: Array, predicted: Array) -> str:
    """Distribution of the predictions for each observed value; darker cells hold more of them."""
    both = np.concatenate([observed, predicted])
    low, high = np.quantile(both, [0.001, 0.999]) if both.size > 2000 else (both.min(), both.max())
    levels = np.unique(observed)
    across = Axis.over(np.array([low, high]), *PAGE.across)
    up = Axis.over(np.array([low, high]), *PAGE.up)
    if levels.size <= CELLS and levels.size > 1:  # ratings: a column of cells for each
        half = float(np.min(np.diff(levels))) / 2
        across = Axis(float(levels[0]) - half, float(levels[-1]) + half, *PAGE.across)
        x_edges = np.concatenate([[levels[0] - half], (levels[1:] + levels[:-1]) / 2, [levels[-1] + half]])
    else:
        x_edges = np.linspace(across.low, across.high, CELLS + 1)
    y_edges = np.linspace(up.low, up.high, 2 * CELLS + 1)
    counts = np.histogram2d(observed, predicted, bins=[x_edges, y_edges])[0]
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    parts = []
    for a, b in zip(*np.nonzero(counts), strict=True):
        x, right, y, top = across(x_edges[a]), across(x_edges[a + 1]), up(y_edges[b]), up(y_edges[b + 1])
        opacity = 0.08 + 0.92 * float(share[a, b] / share.max()) ** 0.6
        parts.append(
            f'<rect class="cell" x="{x:.1f}" y="{top:.1f}" width="{right - x - 0.5:.1f}" height="{y - top:.1f}" '
            f'fill-opacity="{opacity:.2f}"/>'
        )
    start, end = max(across.low, up.low), min(across.high, up.high)
    parts.append(f'<path class="diagonal" d="M{across(start):.1f} {up(start):.1f}L{across(end):.1f} {up(end):.1f}"/>')
    return _svg(PAGE, [_axes(PAGE, across, up, "observed", "predicted"), *parts], "predicted over observed values")


def _axes(frame: PlotArea, across: Axis, up: Axis, x_name: str, y_name: str, whole: bool = False) -> str:
    parts = []
    (left, right), (bottom, top) = frame.across, frame.up
    steps = [tick for tick in across.ticks(frame.ticks) if not whole or tick == round(tick)]
    heights = up.ticks(frame.ticks)
    for tick, text in zip(steps, labels(steps), strict=True):
        x = across(tick)
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{text}</text>')
    for tick, text in zip(heights, labels(heights), strict=True):
        y = up(tick)
        parts.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        parts.append(f'<text class="tick" x="{left - 7}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>')
    middle, height = (left + right) / 2, (top + bottom) / 2
    parts.append(f'<text class="name" x="{middle}" y="{frame.height - 8}" text-anchor="middle">{escape(x_name)}</text>')
    parts.append(
        f'<text class="name" transform="translate(13 {height})rotate(-90)" text-anchor="middle">{escape(y_name)}</text>'
    )
    return "".join(parts)


def thinned(count: int) -> Array:
    """Indices of at most POINTS of `count` points: the first, the last and some between, dense at the beginning."""
    if count <= POINTS:
        return np.arange(count)
    return np.unique(np.concatenate([[0], np.geomspace(1, count - 1, POINTS - 1).round()]).astype(np.int64))


def labels(ticks: Sequence[float]) -> list[str]:
    """Labels with the fewest digits that place all ticks to within a thousandth of a step."""
    step = min((abs(b - a) for a, b in pairwise(ticks)), default=max(map(abs, ticks), default=0.0))
    powers = [_by_power(tick) for tick in ticks]
    sizes = [abs(tick) for tick in ticks if tick]
    if any(powers) and max(sizes) < NEAR * min(sizes):  # the same notation for all, not 80000 next to 1.2e5
        powers = [tick != 0 for tick in ticks]
    for digits in range(17):
        texts = [_short(tick, digits, power) for tick, power in zip(ticks, powers, strict=True)]
        if all(abs(float(text) - tick) <= 1e-3 * step for text, tick in zip(texts, ticks, strict=True)):
            break
    return [text.replace("-", "−") for text in texts]


def _by_power(value: float) -> bool:
    """Whether a number is so large or small that it needs a power of ten."""
    return value != 0 and not 1e-3 <= abs(value) < 1e5


def _short(value: float, digits: int, power: bool) -> str:
    """Format with this many digits after the first one."""
    if not power:
        return f"{value:.{max(digits, 5) + 1}g}"
    mantissa, exponent = f"{value:.{digits}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def _svg(frame: PlotArea, parts: Sequence[str], label: str) -> str:
    size = f"0 0 {frame.width} {frame.height}"
    return f'<svg viewBox="{size}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
