"""Affine rank minimisation with noiselets from random starts (§6.3: Tables 1 to 3, Figure 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from bifactor_reproduce.harness.experiment import Experiment, Finished, Outcome, Scale
from bifactor_reproduce.harness.items import Figure, Findings, Table, Value
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.noiselets.cells import (
    CALIBRATED,
    COMPLETION,
    PRINTED,
    RANDOM,
    SensingCell,
    Summaries,
    run_cell,
    summaries,
)
from bifactor_reproduce.noiselets.sensing_verdicts import by_ratio, verdicts

METHODS = ("SVP", "Procrustes Flow", "SparseApproxSDP", "GuaranteedMC", COMPLETION, PRINTED, CALIBRATED, "PCG")

SIZES = ("1024 × 1024", "2048 × 4096")
"""The paper's two cases, in the order of ours."""

PAPER: dict[str, tuple[tuple[tuple[float, float], ...], ...]] = {
    "SVP": (
        ((6.8623e-07, 29.0563), (3.7511e-06, 115.9088), (5.7362e-04, 517.5673)),
        ((1.4106e-06, 349.7021), (5.6928e-06, 1144.7489), (1.4110e-04, 4703.2012)),
    ),
    "Procrustes Flow": (
        ((8.6546e-03, 291.0442), (5.4418e-01, 236.4496), (1.0831e00, 223.2486)),
        ((2.1174e-01, 1909.4748), (8.7944e-01, 1653.7020), (1.1088e00, 1692.7454)),
    ),
    "SparseApproxSDP": (
        ((1.5616e-02, 223.1522), (4.9298e-02, 158.5459), (3.8444e-01, 141.5906)),
        ((1.4268e-02, 1484.2220), (2.8839e-02, 1187.5287), (1.7544e-01, 1165.4210)),
    ),
    "GuaranteedMC": (
        ((9.2570e-01, 95.5135), (9.3168e-01, 260.8471), (9.3997e-01, 59.4259)),
        ((1.0114e00, 69.2279), (1.0465e00, 53.1636), (1.1147e00, 78.2304)),
    ),
    "BFGD": (
        ((7.0830e-07, 16.2818), (2.3199e-06, 35.3988), (1.1575e-05, 157.6610)),
        ((6.9736e-07, 103.8387), (1.7946e-06, 195.5111), (6.6787e-06, 561.8248)),
    ),
}
"""Errors and seconds of Tables 1 and 2 for C = 10, 5 and 3."""

PAPER_STEPS = {
    "SVP": (1.604e-01, 1.040),
    "Procrustes Flow": (5.871e-02, 4.525e-01),
    "SparseApproxSDP": (3.407e-02, 3.001e-01),
    "GuaranteedMC": (7.142e-02, 4.059e-01),
    "BFGD": (5.337e-02, 3.981e-01),
}
"""Seconds of an iteration at C = 3, Table 3."""

NOTES = (
    "All algorithms get the same problem, the same random start of norm 1 and the same stopping rule. The paper's text "
    "says that the relative change of X must fall to 5·10⁻⁶; with the rates of SVP and BFGD that leaves errors far "
    "above those of its tables, which go with about 5·10⁻⁸. We take 5·10⁻⁸, three times in a row, and at most 4,000 "
    "iterations as the paper does.",
    "BFGD has two rows. “Printed step” is the paper's rule (12) with L = 1. “Calibrated step” is "
    "η = 1/(2√ρ‖[U₀; V₀]‖₂²), which was fitted to the iteration counts behind the paper's tables: that its counts "
    "agree, at all three C, is by construction.",
    "Procrustes Flow takes the spectral norm in its step, where the paper prints the Frobenius norm: only the spectral "
    "norm gives the paper's errors. SparseApproxSDP is kept to the true rank, as the paper says of all its algorithms.",
    "GuaranteedMC has two rows. The first minimises the objective that the paper states, with Armijo's rule. The paper "
    "ran its authors' program, which completes matrices; “as completion” is our guess at that, the same algorithm on "
    "A*(y) as if it were a fully observed matrix.",
    "Seconds are processor seconds of one thread, without those spent on errors and compilation. The paper's are "
    "Matlab's on another machine, so that only their ratios compare.",
)


@dataclass(frozen=True)
class Case:
    """One size of matrices."""

    shape: tuple[int, int]
    rank: int
    seeds: tuple[int, ...]


@dataclass(frozen=True)
class Configuration:
    """p = C·n·r measurements for each C; tol is on ‖Xₜ − Xₜ₋₁‖_F/‖Xₜ‖_F, three times in a row."""

    cases: tuple[Case, ...]
    ratios: tuple[float, ...] = (10, 5, 3)
    max_iter: int = 4000
    tol: float = 5e-8
    budget: float = 600.0
    """Processor seconds of a cell."""


class Sensing(Experiment[SensingCell]):
    name = "sensing"
    title = "Affine rank minimisation with noiselets, from random starts"
    place = "§6.3, Tables 1–3, Figure 3"
    configurations: ClassVar[Mapping[Scale, Configuration]] = {
        "quick": Configuration((Case((128, 128), 6, (1, 2, 3)), Case((256, 512), 6, (1,)))),
        "paper": Configuration((Case((1024, 1024), 50, (1,)), Case((2048, 4096), 50, (1,)))),
    }

    def cells(self, scale: Scale, sources: Sources) -> list[SensingCell]:
        c = self.configurations[scale]
        return [
            SensingCell(case.shape, case.rank, ratio, method, RANDOM, seed, c.max_iter, c.tol, c.budget)
            for case in c.cases
            for seed in case.seeds
            for ratio in c.ratios
            for method in METHODS
        ]

    def run(self, cell: SensingCell, sources: Sources) -> Outcome:
        return run_cell(cell)

    def label(self, cell: SensingCell) -> str:
        return f"{cell.shape[0]}×{cell.shape[1]}, C = {cell.ratio:g}, {cell.method}, seed {cell.seed}"

    def findings(self, finished: Sequence[Finished[SensingCell]]) -> Findings:
        found = summaries(finished)
        shapes = list(dict.fromkeys(cell.shape for cell in found))
        items: list[Table | Figure] = []
        for index, shape in enumerate(shapes):
            of_shape = {cell: summary for cell, summary in found.items() if cell.shape == shape}
            curves = [done for done in finished if done.cell.shape == shape]
            items += [_table(index, of_shape), _figure(index, curves)]
        judged = [verdict for index, shape in enumerate(shapes) for verdict in verdicts(found, shape, _paper(index))]
        return Findings([*items, _steps(found, shapes)], judged, NOTES)


def _paper(index: int) -> dict[str, tuple[float, ...]]:
    """The paper's errors for C = 10, 5, 3."""
    return {method: tuple(error for error, _ in cases[index]) for method, cases in PAPER.items()}


def _known(method: str) -> str:
    """The row of the paper that a row of ours is beside."""
    return {PRINTED: "BFGD", CALIBRATED: "BFGD", COMPLETION: "GuaranteedMC"}.get(method, method)


def _table(index: int, found: Summaries) -> Table:
    rows: list[list[Value]] = []
    for place, ratio in enumerate(dict.fromkeys(cell.ratio for cell in found)):
        for method, summary in by_ratio(found, ratio).items():
            theirs = PAPER.get(_known(method))
            error, seconds = (None, None) if theirs is None else theirs[index][place]
            numbers = (summary.error, error, summary.seconds, seconds, summary.iterations)
            rows.append([ratio, method, *numbers, summary.stopped])
    size = _size(next(iter(found)))
    return Table(
        f"sensing-table-{index + 1}",
        f"Table {index + 1}: errors and total times, {size}",
        f"Errors are ‖X − X*‖_F/‖X*‖_F, from p = C·n·r noiselets; medians over seeds. Ours are for {size}, the paper's "
        f"for {SIZES[index]}, r = 50. Beside both rows of BFGD stands the paper's one.",
        ("C", "algorithm", "error", "paper's error", "seconds", "paper's seconds", "iterations", "ended by"),
        rows,
        {"C": "g", "iterations": ".0f"},
    )


def _steps(found: Summaries, shapes: Sequence[tuple[int, int]]) -> Table:
    """Table 3: the fewest measurements."""
    least = min((cell.ratio for cell in found), default=0.0)
    columns, rows = ["algorithm"], {method: [method] for method in METHODS}
    table: dict[str, list[Value]] = {method: [*row] for method, row in rows.items()}
    for index, shape in enumerate(shapes):
        ours = by_ratio({cell: s for cell, s in found.items() if cell.shape == shape}, least)
        columns += [
            f"seconds, {shape[0]} × {shape[1]}",
            f"paper's, {SIZES[index]}",
            "over BFGD's",
            "paper's over BFGD's",
        ]
        base = ours.get(CALIBRATED)
        for method in METHODS:
            mine, theirs = ours.get(method), PAPER_STEPS.get(_known(method))
            number = None if mine is None else mine.per_iteration
            ratio = None if mine is None or base is None else mine.per_iteration / base.per_iteration
            paper = (None, None) if theirs is None else (theirs[index], theirs[index] / PAPER_STEPS["BFGD"][index])
            table[method] += [number, paper[0], ratio, paper[1]]
    return Table(
        "sensing-table-3",
        "Table 3: median time of an iteration",
        f"At C = {least:g}. The paper's times are Matlab's on another machine; the ratios can be compared. An "
        "iteration of PCG computes the measurements of two directions and so costs about two of BFGD.",
        columns,
        [table[method] for method in METHODS],
    )


def _figure(index: int, finished: Sequence[Finished[SensingCell]]) -> Figure:
    first = finished[0].cell
    return Figure(
        f"sensing-figure-3-row-{index + 1}",
        f"Figure 3, row {index + 1}: convergence, {_size(first)}",
        "Error against processor seconds, fewer measurements from left to right; the first seed of each cell.",
        partial(_draw, finished),
        (13.0, 4.6),
    )


def _draw(finished: Sequence[Finished[SensingCell]], figure: Any) -> None:
    ratios = list(dict.fromkeys(cell.ratio for cell, _ in finished))
    seed = min(cell.seed for cell, _ in finished)
    axes = figure.subplots(1, len(ratios), sharey=True, squeeze=False)[0]
    for axis, ratio in zip(axes, ratios, strict=True):
        for cell, outcome in finished:
            if (cell.ratio, cell.seed) == (ratio, seed):
                curve, style = outcome["curve"], "--" if cell.method in (PRINTED, COMPLETION) else "-"
                colour = f"C{METHODS.index(cell.method)}"
                axis.loglog(curve["seconds"], curve["error"], style, color=colour, label=cell.method)
        axis.set(title=f"C = {ratio:g}", xlabel="processor seconds")
    axes[0].set_ylabel("‖X − X*‖_F/‖X*‖_F")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def _size(cell: SensingCell) -> str:
    return f"{cell.shape[0]} × {cell.shape[1]}, r = {cell.rank}"
