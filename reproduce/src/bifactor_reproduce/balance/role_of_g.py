"""What the regulariser g does for BFGD from an ill-conditioned start (§6.2: Figure 2)."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from bifactor_reproduce.balance.ill_conditioned_start import BALANCED, SOLVERS, Runs, ToyCell, at, by_method, run_cell
from bifactor_reproduce.balance.verdicts import verdicts
from bifactor_reproduce.harness.experiment import Experiment, Finished, Outcome, Scale
from bifactor_reproduce.harness.items import Figure, Findings, Table, Value
from bifactor_reproduce.harness.sources import Sources

COUNTS = (100, 1000, 3000, 10_000)
"""Iterations at which the table looks."""

NOTES = (
    "X* = U*V*ᵀ with orthonormal U*, V*. The start is U₀ = P E, V₀ = Q E⁻¹, where P and Q are the orthonormal matrices "
    "next to U* and V* with noise, and E = diag(10⁻¹, …, 10): both factors have exactly the paper's condition number "
    "10², and P Qᵀ is near X*. The paper gives neither the noise nor the singular values between.",
    "f = ‖UVᵀ − X*‖²_F without a factor ½, so L = 2, and η is that of eq. (12), from the start and never changed. The "
    "term that is minimised along with f is (kb/4)‖UᵀU − VᵀV‖²_F. The paper's g = ¼‖·‖²_F has kb = 1/4 under the "
    "iteration that its appendix analyses, which leaves out the factor 2 of the chain rule; with the true gradient and "
    "the appendix's λ = 1/2 it has kb = 1/2. The minus sign before λ∇g in Algorithm 1 would make it diverge: it is a "
    "plus here, as in the paper's text.",
    "“Balanced start” is not in the paper: BFGD without g from the same X₀ by balanced factors, which cost one SVD of "
    "an r×r matrix. All runs also end where the gradient has fallen to 10⁻¹² of its first norm.",
)


@dataclass(frozen=True)
class Configuration:
    """The paper's size at both scales; the paper shows one draw."""

    seeds: tuple[int, ...]
    size: int = 100
    rank: int = 10
    condition: float = 100.0
    """σ₁/σᵣ of both factors at the start."""
    noise: float = 0.01
    """Standard deviation of what is added to the entries of U* and V*."""
    iterations: int = 10_000
    gradient_tol: float = 1e-12
    """The part of the first gradient norm at which a run is complete; there is no other stopping rule."""


class RoleOfG(Experiment[ToyCell]):
    name = "balance"
    title = "The role of the regulariser g"
    place = "§6.2, Figure 2"
    configurations: ClassVar[Mapping[Scale, Configuration]] = {
        "quick": Configuration((1, 2, 3)),
        "paper": Configuration(tuple(range(1, 11))),
    }

    def cells(self, scale: Scale, sources: Sources) -> list[ToyCell]:
        c = self.configurations[scale]
        return [
            ToyCell(method, seed, c.size, c.rank, c.condition, c.noise, c.iterations, c.gradient_tol)
            for seed in c.seeds
            for method in SOLVERS
        ]

    def run(self, cell: ToyCell, sources: Sources) -> Outcome:
        return run_cell(cell)

    def label(self, cell: ToyCell) -> str:
        return f"{cell.method}, seed {cell.seed}"

    def findings(self, finished: Sequence[Finished[ToyCell]]) -> Findings:
        runs = by_method(finished)
        return Findings([_figure(runs), _table(runs)], verdicts(runs), NOTES)


def _table(runs: Runs) -> Table:
    rows: list[list[Value]] = []
    for method, seeds in runs.items():
        if seeds:
            middle = partial(_median, list(seeds.values()))
            row: list[Value] = [method, middle(lambda outcome: outcome["iterations"])]
            for name in ("error", "condition"):
                row.append(middle(partial(_first, name)))
                row += [middle(partial(at, name=name, count=count)) for count in COUNTS]
            rows.append([*row, middle(lambda outcome: outcome["seconds"])])
    places = ("at the start", *(f"at {count}" for count in COUNTS))
    errors, conditions = ([f"{name} {place}" for place in places] for name in ("error", "σ₁/σᵣ"))
    return Table(
        "balance-iterations",
        "Errors and condition numbers over iterations",
        "‖UVᵀ − X*‖_F/‖X*‖_F and σ₁(U)/σᵣ(U), medians over seeds; at the last iteration up to the one named that was "
        "looked at (each 4% beyond the last), or at the end of a run that ended earlier. The paper prints no numbers "
        "with this figure but the condition number of the start, 10².",
        ["method", "iterations", *errors, *conditions, "seconds"],
        rows,
        {"iterations": ".0f", "seconds": ".2g"} | dict.fromkeys(errors, ".1e") | dict.fromkeys(conditions, ".3g"),
    )


def _first(name: str, outcome: Outcome) -> float:
    return float(outcome["first"][name])


def _median(outcomes: Sequence[Outcome], number: Callable[[Outcome], float]) -> float:
    return statistics.median(number(outcome) for outcome in outcomes)


def _figure(runs: Runs) -> Figure:
    return Figure(
        "balance-figure-2",
        "Figure 2: BFGD with and without g",
        "Left: error over iterations. Right: condition number of U. All seeds; the iterations are on a logarithmic "
        "axis, so that the few of PCG can be seen.",
        partial(_draw, runs),
        (10.5, 4.6),
    )


def _draw(runs: Runs, figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    for axis, name in ((left, "error"), (right, "condition")):
        for index, (method, seeds) in enumerate(runs.items()):
            for place, outcome in enumerate(seeds.values()):
                curve, style = outcome["curve"], "--" if method == BALANCED else "-"
                label = method if place == 0 else None
                axis.loglog(curve["iteration"], curve[name], style, color=f"C{index}", label=label, alpha=0.8)
    left.set(title="Convergence", xlabel="iteration", ylabel="‖UVᵀ − X*‖_F/‖X*‖_F")
    right.set(title="Condition number", xlabel="iteration", ylabel="σ₁(U)/σᵣ(U)")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
