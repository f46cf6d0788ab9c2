"""`bifactor tomography`: find the state of some qubits from counts."""

import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np

from bifactor.arrays import Array
from bifactor.cli import monitor
from bifactor.cli.options import INPUT, Auto, force_option, json_option, seed_option
from bifactor.cli.output import code_of, print_result
from bifactor.cli.output import notes as noted
from bifactor.data.counts import read_counts
from bifactor.errors import InputError
from bifactor.estimators.state_tomography import ORDERS, StateTomography
from bifactor.models.tomography.fit import require_npz
from bifactor.models.tomography.goodness_of_fit import GoodnessOfFit, MisfitWarning
from bifactor.models.tomography.states import target_state
from bifactor.running.files import require_free
from bifactor.running.search import Search
from bifactor.validation import pluralize, whole

EXAMPLES = """\b
Examples:
  bifactor tomography counts.csv --qubits 4 -o state.npz
  bifactor tomography counts.csv --rank 1 --target ghz
  bifactor tomography counts.json --bit-order reversed

\b
A file in long form, and the same in wide form:
  setting,outcome,count        setting,00,01,10,11
  XX,00,512                    XX,512,9,11,492
  XX,01,9                      XY,248,260,251,265

\b
The same in json:
  {"XX": {"00": 512, "01": 9, "10": 11, "11": 492}, "XY": {"00": 248, …}}
"""

SHOWN = 6
"""Most eigenvalues in the summary."""


@click.command(epilog=EXAMPLES)
@click.argument("counts", type=INPUT)
@click.option("--qubits", type=click.IntRange(1, 12), help="Number of qubits; by default that of letters in a setting.")
@click.option(
    "--rank",
    type=Auto(int, least=1),
    default="auto",
    show_default=True,
    help="Rank of the state; auto chooses it by held-out settings.",
)
@click.option(
    "--bit-order",
    type=click.Choice(ORDERS),
    default="same",
    show_default=True,
    help="Whether the first bit of an outcome belongs to the first letter of its setting or to the last.",
)
@click.option("--target", help="State to compare with: ghz, w or singlet, or an npy or npz file.")
@click.option("-o", "--output", type=INPUT, help="npz file to write: rho, factor and eigenvalues.")
@seed_option
@force_option
@json_option
def tomography(
    counts: Path,
    qubits: int | None,
    rank: Any,
    bit_order: Any,
    target: str | None,
    output: Path | None,
    seed: int,
    force: bool,
) -> None:
    """Find the state that makes COUNTS, a csv or json file, most likely.

    A setting such as XZY says in which Pauli basis each qubit was measured; an outcome such as 010 has one bit per
    qubit in the same order, 0 for the eigenvalue +1. Counts of repeated lines are added up.
    """
    if output is not None:
        require_free(require_npz(output), force)
    settings, table = read_counts(counts, qubits)
    n = len(settings[0])
    if rank != "auto" and rank > 2**n:  # a message that names the option, before any work
        raise InputError(
            f"--rank {rank} is not possible for {pluralize(n, 'qubit')}. Choose from 1 to {2**n}, or auto."
        )
    state = None if target is None else target_state(target, n)
    model = StateTomography(qubits, rank, bit_order=bit_order, random_state=seed)
    before = "choosing the rank" if rank == "auto" else "fitting"
    with warnings.catch_warnings(record=True) as caught, monitor.fit_progress("fitting", before):
        warnings.simplefilter("always")
        model.fit_counts(settings, table)
    # The summary has separate lines for how the run and the choice of the rank ended.
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, MisfitWarning)]
    answer = _answer(model, settings, table) | {"notes": notes}
    answer["fidelity"] = None if state is None else model.fidelity(state)
    if output is not None:
        require_free(output, force)  # another process may have written it in the meantime
        model.save(output)
    answer["output"] = None if output is None else str(output)
    print_result(answer, _summary(answer), code_of(model.result_.status))


def _answer(model: StateTomography, settings: list[str], table: Array) -> dict[str, Any]:
    status, search = model.result_.status, model.rank_search_
    return {
        "qubits": model.n_qubits_,
        "settings": len(settings),
        "shots": whole(table.sum()),
        "bit_order": model.bit_order,
        "rank": model.rank_,
        "held_out": {} if search is None else _scores(search),
        "choice_interrupted": search is not None and search.interrupted,
        "purity": model.purity(),
        "eigenvalues": model.eigenvalues_.tolist(),
        "log_likelihood": model.log_likelihood(settings, table),
        "goodness_of_fit": dict(vars(model.goodness_of_fit_)),
        "status": status.name,
        "sentence": str(status),
        "converged": status.converged,
        "iterations": model.n_iter_,
    }


def _scores(search: Search) -> dict[str, float | None]:
    return {str(one["rank"]): one["score"] if np.isfinite(one["score"]) else None for one in search.lines()}


def _summary(answer: dict[str, Any]) -> list[tuple[str, str]]:
    reason = ", chosen by held-out settings" if answer["held_out"] else ""
    reason = ", the best so far when Ctrl-C ended its choice" if answer["choice_interrupted"] else reason
    leading = ", ".join(f"{value:.4f}" for value in answer["eigenvalues"][:SHOWN])
    rest = " …" if len(answer["eigenvalues"]) > SHOWN else ""
    qubits = pluralize(answer["qubits"], "qubit")
    lines = [
        ("counts", f"{qubits}, {answer['shots']:,.0f} shots in {pluralize(answer['settings'], 'setting')}"),
        ("rank", f"{answer['rank']}{reason}"),
        ("purity", f"{answer['purity']:.4f}"),
        ("eigenvalues", leading + rest),
        ("log-likelihood", f"{answer['log_likelihood']:.5f} per shot"),
        ("goodness of fit", str(GoodnessOfFit(**answer["goodness_of_fit"]))),
    ]
    if answer["fidelity"] is not None:
        lines.append(("fidelity", f"{answer['fidelity']:.4f} with the target"))
    lines += [
        ("run", f"{answer['sentence']} ({pluralize(answer['iterations'], 'iteration')})"),
        *noted(answer["notes"]),
    ]
    return lines if answer["output"] is None else [*lines, ("written", answer["output"])]
