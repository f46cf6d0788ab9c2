"""`bifactor tomography`: find the state of some qubits from counts."""

from pathlib import Path
from typing import Any

import click

from bifactor.applications import tomography as application
from bifactor.cli.monitor import TerminalWatch
from bifactor.cli.options import INPUT, Auto, force_option, json_option, seed_option
from bifactor.cli.output import code_of, print_result
from bifactor.cli.output import notes as noted
from bifactor.data.counts import read_counts
from bifactor.errors import InputError
from bifactor.models.tomography.fit import ORDERS, require_npz
from bifactor.models.tomography.goodness_of_fit import GoodnessOfFit
from bifactor.running.files import require_free
from bifactor.validation import pluralize

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
    found = application.tomography(
        (settings, table),
        n_qubits=qubits,
        rank=rank,
        bit_order=bit_order,
        target=target,
        random_state=seed,
        output=output,
        force=force,
        watch=TerminalWatch(),
    )
    print_result(found.card, _summary(found.card), code_of(found.fit.result_.status))


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
