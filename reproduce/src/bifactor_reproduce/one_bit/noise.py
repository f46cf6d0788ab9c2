"""1-bit completion of a matrix of rank 1 under more and more noise (§6.5: Figure 7, left panel of Figure 8)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from bifactor_reproduce.harness.experiment import Experiment, Finished, Outcome, Scale
from bifactor_reproduce.harness.items import Figure, Findings, Table, Value
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.one_bit.cells import EARLY, LATE, LATER, OWN, SOON, VALIDATED, OneBitCell, Rules, run_cell
from bifactor_reproduce.one_bit.noise_verdicts import SWEET, verdicts
from bifactor_reproduce.one_bit.series import (
    CONVEX,
    CUT,
    ORDER,
    Runs,
    Series,
    by,
    draw_lines,
    legend_below,
    median_of,
    medians,
    rows,
)

NOTES = (
    "X* = U*V*ᵀ with entries of U*, V* uniform on [−½, ½], scaled to ‖X*‖_∞ = 1; Ω is a quarter of the entries, and "
    "y = sign(X* + s·Gaussian noise) on it, so that the loss is the probit one with scale s. X*, Ω and the noise's "
    "directions are the same at all levels s. The convex estimators know α = ‖X*‖_∞ = 1 and r, and so the radius "
    "α√(rmn). Debiasing is the truncated SVD of rank r.",
    "The stopping rule of BFGD. Without a constraint or a ridge the likelihood of rank r need not have a maximum: rows "
    "and columns whose signs can be told apart push X to infinity. What BFGD gives is then decided by when it stops, "
    "and the paper does not say when it did. Here the step is that of eq. (20) with L = 1/s² and the start is "
    "P_r(−∇f(0)/L), with three rules: (1) validated: a tenth of the entries is held out, the iteration with the least "
    "held-out loss is noted, and BFGD is run that long on all entries; (2) T = 200, a number found by looking at X* at "
    "moderate noise, and so an oracle's rule that flatters BFGD; (3) T = 4000, the cap of the other experiments. "
    "Claims are judged by the first, which is the only one that could be used on data.",
    "SPG stops when its projected step is a small part of X (the configuration says which) or at its cap. For small s "
    "the ball holds many matrices that explain all signs, and the one that SPG comes to depends on its path.",
    "PCG, not in the paper, minimises the same loss with a ridge on the factors, the one that predicts a tenth of the "
    "entries, held out, best; then it fits all entries. It does not look at X* either. Its time and that of the "
    "validated BFGD include the choosing.",
)


TICKS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Of the axis of noise levels."""


@dataclass(frozen=True, kw_only=True)
class Configuration(Rules):
    """The paper's size at both scales."""

    seeds: tuple[int, ...]
    exponents: tuple[float, ...]
    """Of the noise levels, log₁₀ s."""
    size: int = 100
    rank: int = 1
    share: float = 0.25


class OneBitNoise(Experiment[OneBitCell]):
    name = "one-bit-noise"
    title = "1-bit completion against noise"
    place = "§6.5, Figure 7 and the left panel of Figure 8"
    configurations: ClassVar[Mapping[Scale, Configuration]] = {
        "quick": Configuration(
            seeds=(1, 2, 3),
            exponents=(-1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.5),
            spg_tol=1e-3,
            spg_iterations=200,
        ),
        "paper": Configuration(
            seeds=tuple(range(1, 11)),
            exponents=tuple(k / 8 for k in range(-12, 5)),
            spg_tol=1e-5,
            spg_iterations=1000,
        ),
    }

    def cells(self, scale: Scale, sources: Sources) -> list[OneBitCell]:
        c = self.configurations[scale]
        return [
            OneBitCell(method, c.size, c.rank, c.share, round(10**exponent, 4), seed, max_iter, tol)
            for seed in c.seeds
            for exponent in c.exponents
            for method, (max_iter, tol) in c.stops().items()
        ]

    def run(self, cell: OneBitCell, sources: Sources) -> Outcome:
        return run_cell(cell)

    def label(self, cell: OneBitCell) -> str:
        return f"s = {cell.noise:g}, {cell.method}, seed {cell.seed}"

    def findings(self, finished: Sequence[Finished[OneBitCell]]) -> Findings:
        errors, signs = (medians(finished, _noise, measure) for measure in ("error", "wrong_signs"))
        items: list[Table | Figure] = [
            _recovery_figure(errors),
            _errors_table(finished, errors),
            _signs_figure(signs),
            _signs_table(finished, signs),
            _stopping_figure(finished),
            _stopping_table(finished, errors),
        ]
        return Findings(items, verdicts(finished, errors, signs), NOTES)


def _noise(cell: OneBitCell) -> float:
    return cell.noise


def _levels(series: Series) -> list[float]:
    return sorted({s for line in series.values() for s in line})


def _errors_table(runs: Runs, errors: Series) -> Table:
    levels = _levels(errors)
    columns = [f"s = {s:.3g}" for s in levels]
    return Table(
        "one-bit-noise-errors",
        "Errors over noise levels",
        "‖X̂ − X*‖_F/‖X*‖_F, medians over draws; 1 is the error of X̂ = 0. Seconds are the median over all runs. The "
        "paper has a figure without numbers.",
        ["method", *columns, "seconds"],
        rows(runs, errors, levels),
        dict.fromkeys(columns, ".3f") | {"seconds": ".2g"},
    )


def _signs_table(runs: Runs, signs: Series) -> Table:
    levels = _levels(signs)
    columns = [f"s = {s:.3g}" for s in levels]
    told = rows(runs, signs, levels)
    return Table(
        "one-bit-noise-signs",
        "Wrong signs over noise levels",
        "The share of all entries of X̂ whose sign is not that of X*, medians over draws. The paper has a figure "
        "without numbers. At r = 1 a wrong sign in a factor is a whole row or column: shares move in steps of 1%.",
        ["method", *columns],
        [row[:-1] for row in told],
        dict.fromkeys(columns, ".1%"),
    )


def _stopping_table(runs: Runs, errors: Series) -> Table:
    told: list[list[Value]] = []
    for s in _levels(errors):
        here = [done for done in runs if done.cell.noise == s]
        validated, late = by(VALIDATED, here), by(LATE, here)
        told.append(
            [
                s,
                median_of(late, lambda outcome: _best(outcome)[0]),
                median_of(late, lambda outcome: _best(outcome)[1]),
                median_of(validated, lambda outcome: outcome["chosen"]),
                *(errors.get(name, {}).get(s) for name in (VALIDATED, EARLY, LATE)),
                median_of(by(OWN, here), lambda outcome: outcome["chosen"]),
                errors.get(OWN, {}).get(s),
            ]
        )
    formats = {"s": ".3g", "best T": ".0f", "validated T": ".0f", "PCG's ridge": ".2g"}
    names = ["error at best T", "error, validated", f"error, T = {SOON}", f"error, T = {LATER}"]
    return Table(
        "one-bit-noise-stopping",
        "When BFGD stops",
        f"“Best T” is the iteration, of {LATER}, with the least error against X*. Medians over draws.",
        ["s", "best T", names[0], "validated T", *names[1:], "PCG's ridge", "PCG's error"],
        told,
        formats | dict.fromkeys([*names, "PCG's error"], ".3f"),
    )


def _best(outcome: Outcome) -> tuple[float, float]:
    curve = outcome["curve"]
    at = int(np.argmin(curve["error"]))
    return float(curve["iteration"][at]), float(curve["error"][at])


def _recovery_figure(errors: Series) -> Figure:
    return Figure(
        "one-bit-noise-recovery",
        "Figure 7: recovery against noise",
        "Left: SPG as it is. Right: debiased. BFGD and PCG are the same in both. Medians over draws; the shaded range "
        f"is {SWEET[0]:g} ≤ s ≤ {SWEET[1]:g}. Errors above 3 are left to the table.",
        partial(_draw_recovery, errors),
        (10.5, 4.8),
    )


def _draw_recovery(errors: Series, figure: Any) -> None:
    left, right = figure.subplots(1, 2, sharey=True)
    rest = [VALIDATED, EARLY, LATE, OWN]
    for axis, title, convex in (
        (left, "without debias", CONVEX),
        (right, "with debias", CUT),
    ):
        draw_lines(axis, errors, [*convex, *rest])
        axis.set(title=title, xlabel="noise s", xscale="log", yscale="log", ylim=(0.35, 3))
        axis.set_xticks(TICKS, [f"{s:g}" for s in TICKS])
        axis.set_yticks([0.4, 0.6, 1, 2], ["0.4", "0.6", "1", "2"])
        axis.minorticks_off()
        axis.axvspan(*SWEET, color="C7", alpha=0.15, lw=0)
    left.set_ylabel("‖X̂ − X*‖_F/‖X*‖_F")
    legend_below(figure)


def _signs_figure(signs: Series) -> Figure:
    return Figure(
        "one-bit-noise-signs-figure",
        "Figure 8, left: signs against noise",
        "The share of wrong signs, medians over draws; one half is chance.",
        partial(_draw_signs, signs),
        (9.0, 5.0),
    )


def _draw_signs(signs: Series, figure: Any) -> None:
    axis = figure.subplots()
    draw_lines(axis, signs, ORDER, factor=100)
    axis.set(xlabel="noise s", ylabel="wrong signs, %", xscale="log", ylim=(0, 52))
    axis.set_xticks(TICKS, [f"{s:g}" for s in TICKS])
    axis.minorticks_off()
    axis.axvspan(*SWEET, color="C7", alpha=0.15, lw=0)
    legend_below(figure, 3)


def _stopping_figure(runs: Runs) -> Figure:
    return Figure(
        "one-bit-noise-stopping-figure",
        "BFGD over iterations (not in the paper)",
        "The error against X* falls and then rises, as the likelihood has no maximum; the dot is where the held-out "
        "entries say to stop. The first draw.",
        partial(_draw_stopping, runs),
        (9.0, 4.4),
    )


def _draw_stopping(runs: Runs, figure: Any) -> None:
    axis = figure.subplots()
    first = min((cell.seed for cell, _ in runs), default=0)
    chosen = {cell.noise: outcome for cell, outcome in by(VALIDATED, runs) if cell.seed == first}
    curves = sorted((cell.noise, o["curve"]) for cell, o in by(LATE, runs) if cell.seed == first)
    for index, (s, curve) in enumerate(curves[:: max(1, round(len(curves) / 6))]):
        axis.loglog(curve["iteration"], curve["error"], color=f"C{index}", label=f"s = {s:.3g}")
        if s in chosen:
            axis.plot(chosen[s]["chosen"], chosen[s]["raw"]["error"], "o", color=f"C{index}")
    axis.axvline(SOON, color="C7", linestyle="--", label=f"T = {SOON}")
    axis.set(xlabel="iteration of BFGD", ylabel="‖X̂ − X*‖_F/‖X*‖_F")
    legend_below(figure, 4)
