"""The outcomes on MovieLens in order, and the numbers of the paper's Table 7 beside which they are put."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from bifactor_reproduce.harness.experiment import Finished, Outcome
from bifactor_reproduce.movielens.cells import CONVEX, PRINTED, RAW, RatingsCell

COUNTS = [6110, 11370, 27145, 34174, 21201]
"""How often MovieLens 100k has the ratings 1 to 5."""

LOOKS = (1, 100, 400, 1000, 2000, 4000)
"""Iterations of BFGD after which the table of iterations looks."""

Runs = dict[int, Outcome]
"""By split."""


class Printed(NamedTuple):
    """A row of the paper's Table 7."""

    ratings: tuple[float, ...]
    """Percent of right signs among ratings of 1, 2, 3, 4 and 5."""
    overall: float
    seconds: float


PAPER = {
    (CONVEX, 0.32): Printed((73.7, 68.4, 52.5, 74.9, 91.0), 71.3, 79.5),
    (CONVEX, 4.64): Printed((77.2, 71.0, 58.5, 72.5, 86.9), 71.8, 213.4),
    (CONVEX, 10.0): Printed((76.2, 71.3, 58.3, 71.0, 85.7), 71.0, 491.8),
    (RAW, 1.0): Printed((70.4, 69.4, 59.2, 39.1, 59.4), 64.8, 42.3),
    (PRINTED, 3): Printed((79.4, 74.5, 56.9, 72.5, 88.2), 72.2, 25.4),
    (PRINTED, 5): Printed((79.0, 72.4, 56.8, 71.6, 86.2), 71.2, 27.5),
    (PRINTED, 10): Printed((77.6, 75.0, 57.5, 70.5, 84.1), 70.9, 30.3),
}


@dataclass(frozen=True)
class Row:
    """A method with its settings, on several splits."""

    method: str
    setting: float
    """The radius of SPG over √(mn), the ρ of the nuclear norm over the size of the noise, or r."""
    runs: Runs

    @property
    def name(self) -> str:
        letter = {CONVEX: "α√r", RAW: "ρ/noise"}.get(self.method, "r")
        return f"{self.method}, {letter} = {self.setting:g}"

    @property
    def paper(self) -> Printed | None:
        return PAPER.get((self.method, self.setting))


@dataclass(frozen=True)
class Results:
    """What there is; each method's rows by their settings, from the smallest."""

    convex: dict[float, Row] = field(default_factory=dict)
    raw: dict[float, Row] = field(default_factory=dict)
    printed: dict[float, Row] = field(default_factory=dict)
    own: dict[float, Row] = field(default_factory=dict)
    longer: dict[float, Row] = field(default_factory=dict)
    """BFGD with more iterations than in the table."""
    ridges: dict[float, dict[float, Row]] = field(default_factory=dict)
    """PCG with other ridges than in the table: by ρ over the size of the noise, then by r."""
    data: Outcome | None = None
    """Any outcome, for what it says of the ratings."""

    @property
    def rows(self) -> list[Row]:
        """Those of the table, in the paper's order."""
        return [row for part in (self.convex, self.raw, self.printed, self.own) for row in part.values()]

    @property
    def familiar(self) -> bool:
        """Whether the ratings are the paper's."""
        return self.data is not None and self.data["counts"] == COUNTS


def collected(finished: Sequence[Finished[RatingsCell]]) -> Results:
    """Cells in the order of their settings."""
    results = Results(data=finished[0].outcome if finished else None)
    shortest = min((cell.max_iter for cell, _ in finished if cell.method == PRINTED), default=0)
    for cell, outcome in sorted(finished, key=lambda one: (one.cell.level, one.cell.rank, one.cell.split)):
        if cell.method in (CONVEX, RAW):
            part, setting = (results.convex if cell.method == CONVEX else results.raw), cell.level
        elif cell.method == PRINTED:
            part, setting = (results.printed if cell.max_iter == shortest else results.longer), float(cell.rank)
        else:
            part = results.own if cell.level == 1 else results.ridges.setdefault(cell.level, {})
            setting = float(cell.rank)
        part.setdefault(setting, Row(cell.method, setting, {})).runs[cell.split] = outcome
    return results


def shared(*rows: Row) -> list[int]:
    """The splits that all of them have."""
    first, *others = (set(row.runs) for row in rows)
    return sorted(first.intersection(*others))


def mean(row: Row, splits: Sequence[int] | None = None) -> float:
    """Percent of right signs."""
    chosen = row.runs if splits is None else splits
    return statistics.fmean(row.runs[split]["overall"] for split in chosen)


def mean_of(row: Row, place: int) -> float | None:
    """Percent of right signs among the ratings of one level."""
    known = [outcome["accuracy"][place] for outcome in row.runs.values() if outcome["accuracy"][place] is not None]
    return statistics.fmean(known) if known else None


def spread(numbers: Sequence[float]) -> float | None:
    """The standard error of a mean over splits."""
    return statistics.stdev(numbers) / len(numbers) ** 0.5 if len(numbers) > 1 else None


def median(row: Row, number: str | Callable[[Outcome], float], splits: Sequence[int] | None = None) -> float:
    chosen = row.runs if splits is None else splits
    take = (lambda outcome: float(outcome[number])) if isinstance(number, str) else number
    return statistics.median(take(row.runs[split]) for split in chosen)


def differences(one: Row, other: Row) -> list[float]:
    """Points that one is above the other, split by split."""
    return [one.runs[split]["overall"] - other.runs[split]["overall"] for split in shared(one, other)]


def at(outcome: Outcome, count: int, name: str) -> float:
    """A number of the curve at the last iteration up to `count` that was looked at."""
    curve = outcome["curve"]
    place = max(k for k, t in enumerate(curve["iteration"]) if k == 0 or t <= count)
    return float(curve[name][place])


def mean_at(row: Row, count: int) -> float:
    """Percent of right signs after `count` iterations."""
    return 100 - statistics.fmean(at(outcome, count, "error") for outcome in row.runs.values())


def length(row: Row) -> int:
    """Iterations."""
    return max(int(outcome["iterations"]) for outcome in row.runs.values())


class Look(NamedTuple):
    """BFGD after some iterations."""

    accuracy: float
    seconds: float
    splits: int


def over_iterations(row: Row) -> dict[int, Look]:
    """By the number of iterations, as far as these runs go."""
    return {
        count: Look(mean_at(row, count), median(row, partial(at, count=count, name="seconds")), len(row.runs))
        for count in LOOKS
        if count <= length(row)
    }


def listed(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row.name}: {percent(row)}" for row in rows)


def percent(row: Row) -> str:
    """The mean over splits, with its standard error."""
    return f"{mean(row):.2f}{plus_minus([outcome['overall'] for outcome in row.runs.values()])}%"


def plus_minus(numbers: Sequence[float]) -> str:
    error = spread(numbers)
    return "" if error is None else f" ± {error:.2f}"
