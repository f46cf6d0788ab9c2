"""What the 1-bit experiments show over noise levels or numbers of entries: medians over draws, lines, comparisons."""

import statistics
from collections.abc import Callable, Sequence
from typing import Any

from bifactor_reproduce.harness.experiment import Finished, Outcome
from bifactor_reproduce.harness.items import Value, Verdict
from bifactor_reproduce.one_bit.cells import BALL, BOUND, EARLY, LATE, OWN, VALIDATED, OneBitCell, debiased

Runs = Sequence[Finished[OneBitCell]]

Series = dict[str, dict[float, float]]
"""Of each estimate, a number at each noise level or share of entries."""

CONVEX, CUT = (BALL, BOUND), (debiased(BALL), debiased(BOUND))

ORDER = (*CONVEX, *CUT, VALIDATED, EARLY, LATE, OWN)
"""Of estimates, in tables and legends."""

ALIKE = 1.05
"""How many times the other's error an error is that is called no worse."""

Place = Callable[[OneBitCell], float]


def estimates(cell: OneBitCell, outcome: Outcome) -> dict[str, Outcome]:
    """What a cell estimates X* by, each with its name: SPG gives two."""
    told = {cell.method: outcome["raw"]}
    return told | {debiased(cell.method): outcome["debiased"]} if "debiased" in outcome else told


def medians(runs: Runs, place: Place, measure: str) -> Series:
    """Medians over draws of `error` or `wrong_signs`."""
    found: dict[str, dict[float, list[float]]] = {}
    for cell, outcome in runs:
        for name, judged in estimates(cell, outcome).items():
            found.setdefault(name, {}).setdefault(place(cell), []).append(judged[measure])
    return {name: {x: statistics.median(values) for x, values in line.items()} for name, line in found.items()}


def median_of(runs: Runs, number: Callable[[Outcome], float]) -> float | None:
    values = [number(outcome) for _, outcome in runs]
    return statistics.median(values) if values else None


def by(method: str, runs: Runs) -> Runs:
    return [done for done in runs if done.cell.method == method]


def seconds(outcome: Outcome) -> float:
    """Of the processor, what was spent on choosing a ridge or an iteration included."""
    return float(outcome["seconds"] + outcome.get("choosing_seconds", 0.0))


def rows(runs: Runs, series: Series, columns: Sequence[float]) -> list[list[Value]]:
    """A row for each estimate: its name, its numbers, and the median time of a run."""
    return [
        [name, *(series[name].get(x) for x in columns), median_of(by(_run(name), runs), seconds)]
        for name in ORDER
        if name in series
    ]


def _run(name: str) -> str:
    """The run that an estimate comes from."""
    return dict(zip(CUT, CONVEX, strict=True)).get(name, name)


def looks(name: str) -> dict[str, Any]:
    """A colour and a marker for each algorithm; dashes are for SPG before it is debiased, dots for BFGD run on."""
    if _run(name) in CONVEX:
        hollow = {"color": "C1", "marker": "s", "markersize": 8, "markerfacecolor": "none"}
        solid = {"color": "C0", "marker": "o"}
        return (hollow if _run(name) == BOUND else solid) | {"linestyle": "--" if name in CONVEX else "-"}
    if name == OWN:
        return {"color": "C4", "marker": "D"}
    if name == VALIDATED:
        return {"color": "C3", "marker": "v"}
    return {"color": "C3", "linestyle": ":", "marker": "x"} if name == LATE else {"color": "C2", "marker": "^"}


def draw_lines(axis: Any, series: Series, names: Sequence[str], factor: float = 1.0) -> None:
    for name in names:
        if name in series:
            line = sorted(series[name].items())
            axis.plot([x for x, _ in line], [factor * y for _, y in line], label=name, **looks(name))


def legend_below(figure: Any, columns: int = 4) -> None:
    """One legend for all panels."""
    known: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    figure.legend(list(known.values()), list(known), loc="outside lower center", ncols=columns, frameon=False)


def shared(series: Series, names: Sequence[str], within: Callable[[float], bool]) -> list[float]:
    """The places at which all these estimates have a number."""
    lines = [set(series.get(name, {})) for name in names]
    return sorted(x for x in set.intersection(*lines) if within(x))


def average(series: Series, name: str, places: Sequence[float]) -> float:
    return statistics.fmean(series[name][x] for x in places)


def average_ratio(series: Series, name: str, other: str, places: Sequence[float]) -> float:
    """The mean of one number over the other's, over the places."""
    return statistics.fmean(series[name][x] / series[other][x] for x in places)


def span(numbers: Sequence[float]) -> str:
    """The least and the largest."""
    low, high = f"{min(numbers):.2f}", f"{max(numbers):.2f}"
    return low if low == high else f"{low} to {high}"


def time_verdict(runs: Runs, where: str) -> Verdict:
    times = {method: [seconds(outcome) for _, outcome in by(method, runs)] for method in (OWN, BALL, VALIDATED)}
    known = len({len(spent) for spent in times.values()}) == 1 and bool(times[OWN])
    own, spg, bfgd = (sum(spent) for spent in times.values())
    return Verdict(
        f"PCG, the choice of its ridge included, takes less processor time than SPG in the ball, over {where}.",
        own < spg if known else None,
        f"{own:.1f} s against {spg:.1f} s; BFGD stopped by validation {bfgd:.1f} s" if known else "runs are missing",
        ours=True,
    )
