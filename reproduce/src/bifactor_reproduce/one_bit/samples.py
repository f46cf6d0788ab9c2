"""1-bit completion from more and more entries (§6.5: right panel of Figure 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from bifactor_reproduce.harness.experiment import Experiment, Finished, Outcome, Scale
from bifactor_reproduce.harness.items import Figure, Findings, Table, Value
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.one_bit.cells import BALL, BOUND, LATE, OneBitCell, Rules, run_cell
from bifactor_reproduce.one_bit.samples_verdicts import EDGE, ByRank, verdicts
from bifactor_reproduce.one_bit.series import ORDER, Runs, by, draw_lines, legend_below, medians, rows

NOTES = (
    "X*, Ω, y, the radius, the debiasing and the stopping rules are those of the experiment over noise levels, with "
    "n = 200, s = 0.244 and p = C·n² entries of Ω. BFGD is again judged by its validated runs; T = 200, which was "
    "found by looking at X* at r = 1, is no good number of iterations at larger ranks.",
    "X* is scaled to ‖X*‖_∞ = 1, so that at higher ranks its entries are smaller against the noise: what gets worse "
    "from rank to rank is the signal as well as the number of unknowns. The radius α√(rmn) of SPG's ball is several "
    "times ‖X*‖_*, and so X̂ is farther from X* than 0 is (an error above 1) where entries are few.",
    "SPG with the bound costs many times what it costs without, and wherever the answer without is within the bound "
    "the two are the same. So it is run at fewer C and for fewer draws, and the last table tells where the bound could "
    "matter. T = 4000 is run where the bound is.",
)


@dataclass(frozen=True, kw_only=True)
class Configuration(Rules):
    """The paper's size at both scales."""

    seeds: tuple[int, ...]
    shares: tuple[float, ...]
    """C."""
    dear_seeds: tuple[int, ...]
    """Draws for SPG with the bound and for the late stop of BFGD, which take longest."""
    dear_shares: tuple[float, ...]
    ranks: tuple[int, ...] = (3, 5, 10)
    size: int = 200
    noise: float = 0.244


class OneBitSamples(Experiment[OneBitCell]):
    name = "one-bit-samples"
    title = "1-bit completion against the number of entries"
    place = "§6.5, right panel of Figure 8"
    configurations: ClassVar[Mapping[Scale, Configuration]] = {
        "quick": Configuration(
            seeds=(1,),
            shares=(0.1, 0.2, 0.3, 0.4, 0.6, 0.9),
            dear_seeds=(1,),
            dear_shares=(0.4,),
            spg_tol=1e-3,
            spg_iterations=100,
        ),
        "paper": Configuration(
            seeds=tuple(range(1, 11)),
            shares=(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
            dear_seeds=(1, 2, 3),
            dear_shares=(0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9),
            spg_tol=1e-4,
            spg_iterations=500,
        ),
    }

    def cells(self, scale: Scale, sources: Sources) -> list[OneBitCell]:
        c = self.configurations[scale]
        dear = (BOUND, LATE)
        return [
            OneBitCell(method, c.size, rank, share, c.noise, seed, max_iter, tol)
            for seed in c.seeds
            for rank in c.ranks
            for share in c.shares
            for method, (max_iter, tol) in c.stops().items()
            if method not in dear or (seed in c.dear_seeds and share in c.dear_shares)
        ]

    def run(self, cell: OneBitCell, sources: Sources) -> Outcome:
        return run_cell(cell)

    def label(self, cell: OneBitCell) -> str:
        return f"r = {cell.rank}, C = {cell.share:g}, {cell.method}, seed {cell.seed}"

    def findings(self, finished: Sequence[Finished[OneBitCell]]) -> Findings:
        ranks = sorted({cell.rank for cell, _ in finished})
        runs = {rank: [done for done in finished if done.cell.rank == rank] for rank in ranks}
        errors = {rank: medians(runs[rank], _share, "error") for rank in ranks}
        tables = [_table(runs[rank], rank, errors) for rank in ranks]
        items: list[Table | Figure] = [_figure(errors), *tables, _largest(finished)]
        return Findings(items, verdicts(finished, errors), NOTES)


def _share(cell: OneBitCell) -> float:
    return cell.share


def _table(runs: Runs, rank: int, errors: ByRank) -> Table:
    shares = sorted({cell.share for cell, _ in runs})
    columns = [f"C = {share:g}" for share in shares]
    return Table(
        f"one-bit-samples-rank-{rank}",
        f"Errors at r = {rank}",
        "‖X̂ − X*‖_F/‖X*‖_F from C·n² entries, medians over draws; 1 is the error of X̂ = 0. Seconds are the median "
        "over all C and draws. The paper has a figure without numbers.",
        ["method", *columns, "seconds"],
        rows(runs, errors[rank], shares),
        dict.fromkeys(columns, ".3f") | {"seconds": ".2g"},
    )


def _largest(runs: Runs) -> Table:
    found: dict[tuple[int, float], float] = {}
    for cell, outcome in by(BALL, runs):
        place = (cell.rank, cell.share)
        found[place] = max(found.get(place, 0.0), outcome["largest"])
    shares = sorted({share for _, share in found})
    columns = [f"C = {share:g}" for share in shares]
    told: list[list[Value]] = [[r, *(found.get((r, share)) for share in shares)] for r in sorted({r for r, _ in found})]
    return Table(
        "one-bit-samples-largest",
        "Where the bound matters",
        "The largest entry of SPG's answer in the ball, over all draws. Where it is at most 1, that is also the answer "
        "with the bound.",
        ["rank", *columns],
        told,
        dict.fromkeys(columns, ".2f"),
    )


def _figure(errors: ByRank) -> Figure:
    return Figure(
        "one-bit-samples-recovery",
        "Figure 8, right: recovery against the number of entries",
        f"One panel for each rank, medians over draws. The vertical line is the paper's C = {EDGE:g}.",
        partial(_draw, errors),
        (12.0, 5.0),
    )


def _draw(errors: ByRank, figure: Any) -> None:
    axes = figure.subplots(1, max(1, len(errors)), sharey=True, squeeze=False)[0]
    for axis, (rank, series) in zip(axes, errors.items(), strict=False):
        draw_lines(axis, series, ORDER)
        axis.axvline(EDGE, color="C7", linestyle="--", linewidth=1)
        axis.set(title=f"r = {rank}", xlabel="C = p/n²", yscale="log", ylim=(0.22, 11), xlim=(0, 1))
        axis.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["0.25", "0.5", "1", "2", "4", "8"])
        axis.minorticks_off()
    axes[0].set_ylabel("‖X̂ − X*‖_F/‖X*‖_F")
    legend_below(figure)
