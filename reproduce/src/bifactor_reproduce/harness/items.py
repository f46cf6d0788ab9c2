"""What an experiment is turned into: tables, figures and verdicts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Value = str | float | int | None


@dataclass(frozen=True)
class Table:
    """Rows of numbers and texts; None is a number that there is not, as where the paper has none."""

    name: str
    """Of its file."""
    title: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    formats: Mapping[str, str] = field(default_factory=dict)
    """How the numbers of a column are shown, as `format` has it; by default with four digits."""


@dataclass(frozen=True)
class Figure:
    """A picture that is drawn when it is asked for."""

    name: str
    title: str
    caption: str
    draw: Callable[[Any], None]
    """Draws on an empty `matplotlib.figure.Figure`."""
    size: tuple[float, float] = (10.0, 3.6)
    """Inches."""


@dataclass(frozen=True)
class Verdict:
    """A claim, and whether it holds here."""

    claim: str
    holds: bool | None
    """None where these cells cannot tell."""
    numbers: str
    """What it was judged by."""
    note: str = ""
    """How and why ours differs from the paper, where it does."""
    ours: bool = False
    """Whether the claim is about bifactor's own additions and not the paper's."""


@dataclass(frozen=True)
class Findings:
    """All that an experiment shows, in the order of the report."""

    items: Sequence[Table | Figure]
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()
    """How the experiment was done where the paper leaves it open or is corrected, a paragraph each."""
