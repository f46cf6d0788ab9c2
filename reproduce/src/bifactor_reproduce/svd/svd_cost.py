"""The cost of truncated SVDs beside matrix–matrix multiplication (§6.1: Figure 1 and its table of errors)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, ClassVar

from bifactor_reproduce.harness.experiment import Experiment, Finished, Outcome, Scale
from bifactor_reproduce.harness.items import Figure, Findings, Table, Value
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.svd.routines import (
    RANDOMIZED,
    ROUTINES,
    TRUNCATED,
    Key,
    Summaries,
    SvdCell,
    product_seconds,
    run_cell,
    summaries,
)
from bifactor_reproduce.svd.verdicts import verdicts

PRODUCTS = "2 MM"

PAPER: dict[str, dict[int, float]] = {
    "irblsvds": {2000: 3.63e-15, 4000: 4.33e-09, 6000: 8.11e-11, 8000: 4.79e-12, 10000: 5.82e-10},
    "irbla": {2000: 6.00e-15, 4000: 9.01e-07, 6000: 1.05e-04, 8000: 2.99e-04, 10000: 7.29e-04},
    "irblablk": {2000: 1.48e03, 4000: 1.67e03, 6000: 1.24e03, 8000: 1.45e03, 10000: 7.91e11},
    "LMSVD": {2000: 2.14e-14, 4000: 4.49e-12, 6000: 3.94e-11, 8000: 1.33e-10, 10000: 7.30e-10},
    "PROPACK": {2000: 4.10e-12, 4000: 2.46e-10, 6000: 1.63e-12, 8000: 7.90e-12, 10000: 3.55e-11},
}
"""Errors at r = 100 by m, with Matlab's svds as the reference."""


@dataclass(frozen=True)
class Configuration:
    """Matrices with independent N(0, 1) entries, m×m."""

    sizes: tuple[int, ...]
    """Where all routines are tried, at `rank`."""
    larger: tuple[int, ...]
    """Where those are that need not compute all triplets."""
    rank: int
    fixed_size: int
    """Where the rank varies."""
    ranks: tuple[int, ...]
    seeds: tuple[int, ...]
    tol: float = 1e-6
    """A residual over ‖X‖₂ for those routines that need one; errors of singular values go with its square."""
    max_iter: int = 300
    """LOBPCG's iterations, and the restarts of our own routine."""
    lanczos_vectors: int = 2000
    """After which PROPACK, which does not restart, gives up."""
    power_passes: int = 7
    """Of the randomized SVD: scikit-learn's own choice for small ranks."""
    repeats: int = 7
    """Of the products."""

    def cells(self) -> list[SvdCell]:
        wanted = [
            *product(self.sizes, (self.rank,), ROUTINES),
            *product(self.larger, (self.rank,), TRUNCATED),
            *product((self.fixed_size,), self.ranks, TRUNCATED),
        ]
        return [
            SvdCell(*one, seed, self.tol, self.max_iter, self.lanczos_vectors, self.power_passes, repeats=self.repeats)
            for one in dict.fromkeys(wanted)
            for seed in self.seeds
        ]

    def notes(self) -> tuple[str, ...]:
        return (
            "The paper's routines are Matlab's. Here are those of today's Python: SciPy's svds with the solvers ARPACK "
            "and PROPACK (to machine precision, their default) and LOBPCG, and scikit-learn's randomized_svd with "
            f"{self.power_passes} power passes; beside them our own block Krylov iteration, and LAPACK's SVD, which "
            "computes all triplets. LOBPCG and our own routine are asked for residuals of "
            f"{self.tol:g}·‖X‖₂: SciPy's default for LOBPCG, 20 iterations and no tolerance, always ends in a warning.",
            "“2 MM” are the products X V and Xᵀ U with thin matrices of r columns, which is what gradient descent on "
            f"the factors needs instead of an SVD: the median of {self.repeats} repeats, taken in the same process as "
            "each SVD. Seconds are processor seconds of one thread.",
        )


class SvdCost(Experiment[SvdCell]):
    name = "svd"
    title = "The cost of SVDs and of matrix–matrix multiplication"
    place = "§6.1, Figure 1 and its table of errors"
    configurations: ClassVar[Mapping[Scale, Configuration]] = {
        "quick": Configuration((250, 500, 1000), (1500, 2000), 50, 1000, (10, 25, 50, 100), (1, 2)),
        "paper": Configuration(
            (1000, 2000, 3000, 4000), (5000, 6000, 8000, 10000), 100, 5000, (10, 25, 50, 100, 200), (1,)
        ),
    }

    def cells(self, scale: Scale, sources: Sources) -> list[SvdCell]:
        return self.configurations[scale].cells()

    def run(self, cell: SvdCell, sources: Sources) -> Outcome:
        return run_cell(cell)

    def label(self, cell: SvdCell) -> str:
        return f"{cell.routine}, m = {cell.m}, r = {cell.r}"

    def findings(self, finished: Sequence[Finished[SvdCell]]) -> Findings:
        plan = self._plan(finished)
        found, products = summaries(finished), product_seconds(finished)
        judged = verdicts(found, plan.rank, plan.sizes, plan.larger, plan.fixed_size, plan.ranks)
        return Findings(
            [_figure(plan, found, products), _accuracy(plan, found), _times(found, products)], judged, plan.notes()
        )

    def _plan(self, finished: Sequence[Finished[SvdCell]]) -> Configuration:
        """The configuration that these cells are of."""
        given = {cell for cell, _ in finished}
        return next(plan for plan in self.configurations.values() if given <= set(plan.cells()))


def _accuracy(plan: Configuration, found: Summaries) -> Table:
    """The paper's table, ours above it; a size that only one of the two has is empty in the other."""
    sizes = sorted({*plan.sizes, *plan.larger, *PAPER["PROPACK"]})
    rows: list[list[Value]] = []
    for routine in ROUTINES:
        ours = [found.get(Key(m, plan.rank, routine)) for m in sizes]
        rows.append([routine, "here", *(None if one is None else one.error for one in ours)])
    rows += [[routine, "paper", *(errors.get(m) for m in sizes)] for routine, errors in PAPER.items()]
    columns = ["routine", "where", *(f"m = {m}" for m in sizes)]
    return Table(
        "svd-errors",
        "Errors of singular values",
        f"‖Σ̂ − Σ*‖_F/‖Σ*‖_F of the r leading singular values, Σ* from ARPACK (the paper: from Matlab's svds, which is "
        f"ARPACK too); ARPACK's own is against LAPACK. Ours are for r = {plan.rank} and the worst of all seeds, the "
        "paper's for r = 100.",
        columns,
        rows,
        dict.fromkeys(columns[2:], ".1e"),
    )


def _times(found: Summaries, products: Mapping[tuple[int, int], float]) -> Table:
    rows: list[list[Value]] = []
    for (m, r), two in products.items():
        rows.append([m, r, PRODUCTS, two, 1.0, None, None, ""])
        for routine in ROUTINES:
            one = found.get(Key(m, r, routine))
            if one is not None:
                rows.append([m, r, routine, one.seconds, one.ratio, one.error, one.residual, one.said])
    return Table(
        "svd-times",
        "Times behind the figure",
        "Medians over seeds; the ratio to two products (2 MM) is taken within each process. The residual is the "
        "largest ‖X bⱼ − sⱼ aⱼ‖ or ‖Xᵀ aⱼ − sⱼ bⱼ‖ over s₁. The paper prints no times of this experiment.",
        ("m", "r", "routine", "seconds", "over 2 MM", "error", "residual", "what it said"),
        rows,
        {"seconds": ".3g", "over 2 MM": ".1f", "error": ".1e", "residual": ".1e"},
    )


def _figure(plan: Configuration, found: Summaries, products: Mapping[tuple[int, int], float]) -> Figure:
    return Figure(
        "svd-figure-1",
        "Figure 1: truncated SVDs and two products",
        f"Left: r = {plan.rank}, all routines. Middle: larger m, without the routine that computes all triplets. "
        f"Right: m = {plan.fixed_size}, r varies. The randomized SVD is dotted, since its singular values are rough.",
        partial(_draw, plan, found, products),
        (13.0, 4.6),
    )


def _draw(plan: Configuration, found: Summaries, products: Mapping[tuple[int, int], float], figure: Any) -> None:
    axes = figure.subplots(1, 3)
    middle = (plan.sizes[-1], *plan.larger)
    panels = (
        (f"r = {plan.rank}", "m", [(m, plan.rank) for m in plan.sizes], plan.sizes),
        (f"r = {plan.rank}, larger m", "m", [(m, plan.rank) for m in middle], middle),
        (f"m = {plan.fixed_size}", "r", [(plan.fixed_size, r) for r in plan.ranks], plan.ranks),
    )
    for place, (axis, (title, across, shapes, ticks)) in enumerate(zip(axes, panels, strict=True)):
        for index, routine in enumerate(ROUTINES if place == 0 else TRUNCATED):
            known = {shape: found.get(Key(*shape, routine)) for shape in shapes}
            times = [None if one is None else one.seconds for one in known.values()]
            _line(axis, ticks, times, routine, index, ":" if routine == RANDOMIZED else "-")
        _line(axis, ticks, [products.get(shape) for shape in shapes], PRODUCTS, len(ROUTINES), "--")
        axis.set(title=title, xlabel=across, ylabel="processor seconds", xscale="log", yscale="log")
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def _line(axis: Any, across: Sequence[int], times: Sequence[float | None], label: str, index: int, style: str) -> None:
    points = [(x, time) for x, time in zip(across, times, strict=True) if time is not None]
    axis.plot([x for x, _ in points], [time for _, time in points], style, marker="o", color=f"C{index}", label=label)
