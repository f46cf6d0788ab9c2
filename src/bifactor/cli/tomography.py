"""`bifactor tomography`: the state of some qubits from counts."""

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from bifactor.arrays import Array
from bifactor.cli import watch
from bifactor.cli.look import INTERRUPTED, emit_json, wants_json
from bifactor.cli.options import INPUT, force_option, json_option, seed_option
from bifactor.errors import FileError, InputError
from bifactor.estimators.linear_inversion import check_labels, state_factor
from bifactor.estimators.state_tomography import StateTomography
from bifactor.running.places import new_file, require_free
from bifactor.running.result import Status
from bifactor.tables.numbers import number_of
from bifactor.tables.source import chunks, head, reading, require_file

EXAMPLES = """\b
Examples:
  bifactor tomography counts.csv --qubits 4 -o state.npz
  bifactor tomography counts.csv --rank 1 --target ghz

\b
A file in long form, and the same in wide form:
  setting,outcome,count        setting,00,01,10,11
  XX,00,512                    XX,512,9,11,492
  XX,01,9                      XY,248,260,251,265
"""

FOLDS = 5
"""Parts of the settings, each held out once, where the rank is left to the data."""

SHOWN = 6
"""Eigenvalues."""


@click.command(epilog=EXAMPLES)
@click.argument("counts", type=INPUT)
@click.option("--qubits", type=click.IntRange(1, 12), help="How many; by default as many as a setting has letters.")
@click.option("--rank", default="auto", show_default=True, help="Of the state, or auto: settings held out decide.")
@click.option("--target", help="State to compare with: ghz, w, singlet, or an npy or npz file.")
@click.option("-o", "--output", type=INPUT, help="npz file to write: rho, factor and eigenvalues.")
@seed_option
@force_option
@json_option
def tomography(
    counts: Path, qubits: int | None, rank: str, target: str | None, output: Path | None, seed: int, force: bool
) -> None:
    """Find the state that makes COUNTS, a csv file, most likely.

    A setting such as XZY says in which Pauli basis each qubit was measured; an outcome such as 010 has one bit per
    qubit in the same order, 0 for the eigenvalue +1. Counts of lines that repeat both are added up.
    """
    if rank != "auto" and not (rank.isdecimal() and int(rank) >= 1):
        raise InputError(f"--rank {rank} is not an integer ≥ 1, nor auto.")
    if output is not None:
        if output.suffix != ".npz":
            raise InputError(f"{output} should end in .npz.")
        require_free(output, force)
    settings, y, n = _read(counts, qubits)
    if rank != "auto" and int(rank) > 2**n:
        raise InputError(f"--rank {rank} is more than the {2**n} that {n} qubits allow.")
    state = None if target is None else _target(target, n)
    with watch.fitting("fitting", "choosing the rank" if rank == "auto" else "fitting"):
        tried, cut = _held_out(settings, y, n, seed) if rank == "auto" else ({}, False)
        chosen = int(rank) if rank != "auto" else max(tried, key=lambda r: tried[r], default=2**n)
        fit = StateTomography(n, chosen, rng=seed).fit_counts(settings, y)
    answer = _answer(fit, settings, y, tried) | {"choice_interrupted": cut}
    answer["fidelity"] = None if state is None else fit.fidelity(state)
    if output is not None:
        _write(fit, output)
    answer["output"] = None if output is None else str(output)
    if wants_json():
        emit_json(answer)
    else:
        _told(answer)
    if fit.result_.status is Status.INTERRUPTED:
        click.get_current_context().exit(INTERRUPTED)


def _read(path: Path, qubits: int | None) -> tuple[list[str], Array, int]:
    """Settings, counts of all outcomes of each, and the number of qubits."""
    require_file(path)
    head(path)  # refuses what is not text
    try:
        text = b"".join(chunks(path)).decode("utf-8")
        first = text.lstrip().split("\n", 1)[0]
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
        lines = [(rows.line_num, [word.strip() for word in words]) for words in rows if any(map(str.strip, words))]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path} is no csv in UTF-8 ({error}). Convert it.") from None
    header = [word.lower() for word in lines[0][1]] if lines else []
    if "setting" not in header:
        raise FileError(f"{path} has no column called setting. Begin with a line such as setting,outcome,count.")
    if len(lines) < 2:
        raise FileError(f"{path} has a header and nothing below it. Pass at least one count.")
    for number, words in lines[1:]:
        if len(words) != len(header):
            raise FileError(
                f"Line {number} of {path} has {len(words)} fields, but the header has {len(header)}. Check that line."
            )
    place = header.index("setting")
    n = qubits or len(lines[1][1][place])
    try:
        listed = check_labels([words[place].upper() for _, words in lines[1:]], f"{path}", "XYZ", n)
    except InputError as error:
        raise FileError(str(error)) from None
    settings = list(dict.fromkeys(listed))
    row = {setting: k for k, setting in enumerate(settings)}
    y = np.zeros((len(settings), 2**n))
    for setting, outcome, count in _cells(lines, header, listed, path):
        y[row[setting], _bits(outcome, n, path)] += count
    if not y.any():
        raise FileError(f"{path} holds no count above 0. At least one shot is needed.")
    return settings, y, n


def _cells(
    lines: list[tuple[int, list[str]]], header: list[str], settings: list[str], path: Path
) -> list[tuple[str, str, float]]:
    """(setting, outcome, count) of each count, whatever the layout."""
    cells = []
    long = "outcome" in header or "count" in header
    if long and not {"outcome", "count"} <= set(header):
        lacking = "count" if "outcome" in header else "outcome"
        raise FileError(f"{path} has no column called {lacking}. Begin with a line such as setting,outcome,count.")
    wide = [k for k, name in enumerate(header) if name and not set(name) - {"0", "1"}]
    if not long and not wide:
        raise FileError(
            f"{path} has neither columns outcome and count, nor one per outcome such as 00 and 01. Add them."
        )
    for setting, (number, words) in zip(settings, lines[1:], strict=True):
        places = [header.index("count")] if long else wide
        for k in places:
            count = number_of(words[k])
            if count is None or not count >= 0:
                raise FileError(
                    f"Line {number} of {path}: the count {words[k][:40]!r} is not a number ≥ 0. Correct it."
                )
            cells.append((setting, words[header.index("outcome")] if long else header[k], count))
    return cells


def _bits(outcome: str, n: int, path: Path) -> int:
    if not outcome or len(outcome) > n or set(outcome) - {"0", "1"}:
        raise FileError(f"{path} holds the outcome {outcome[:40]!r}. Each must have {n} bits, one per qubit.")
    return int(outcome, 2)  # spreadsheets drop leading zeros, and nothing is lost by that


def _target(name: str, n: int) -> Array:
    """A state by its name, or from a file."""
    known = {"ghz": _ghz, "w": _w, "singlet": _singlet}
    if name.lower() in known:
        return known[name.lower()](n)
    path = Path(name)
    if path.suffix not in (".npy", ".npz"):
        raise InputError(f"--target {name} is none of {', '.join(known)}, nor an npy or npz file.")
    require_file(path)
    try:
        with reading(path), path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.lib.npyio.NpzFile):
                with loaded:
                    loaded = loaded["rho" if "rho" in loaded.files else loaded.files[0]]
    except (ValueError, EOFError, IndexError, zipfile.BadZipFile):
        raise FileError(f"{path} is damaged, or holds no array of numbers. Save it again with numpy.") from None
    if loaded.dtype.kind not in "iufc" or loaded.shape[:1] != (2**n,):
        raise InputError(f"{path} holds an array of shape {loaded.shape}. {n} qubits need {2**n}, or its square.")
    state_factor(loaded)  # refuses what is no state
    return loaded


def _ghz(n: int) -> Array:
    """(|0…0⟩ + |1…1⟩)/√2."""
    state = np.zeros(2**n)
    state[[0, -1]] = 2**-0.5
    return state


def _w(n: int) -> Array:
    """All states with a single 1, alike."""
    state = np.zeros(2**n)
    state[2 ** np.arange(n)] = n**-0.5
    return state


def _singlet(n: int) -> Array:
    """Total spin 0: of two spins, or of two pairs that have spin 1 each."""
    if n == 2:
        return np.array([0, 1, -1, 0]) / 2**0.5
    if n == 4:
        state = np.zeros(16)
        state[[0b0011, 0b1100]], state[[0b0101, 0b0110, 0b1001, 0b1010]] = 2, -1
        return state / 12**0.5
    raise InputError(f"There is no singlet of {n} qubits here, but of 2 and 4. Pass a file.")


def _held_out(settings: list[str], y: Array, n: int, seed: int) -> tuple[dict[int, float], bool]:
    """The mean log-likelihood of held-out settings for ranks 1, 2, 4, … until it falls; none where settings are few.

    And whether Ctrl-C ended it.
    """
    used = np.flatnonzero(y.sum(axis=1) > 0)
    if used.size < 2 * FOLDS:
        return {}, False
    order = np.random.default_rng(seed).permutation(used)
    told: dict[int, float] = {}
    for rank in 2 ** np.arange(n + 1):
        total = 0.0
        for k in range(FOLDS):
            out, rest = order[k::FOLDS], np.setdiff1d(order, order[k::FOLDS])
            fit = StateTomography(n, int(rank), rng=seed).fit_counts([settings[s] for s in rest], y[rest])
            if fit.result_.status is Status.INTERRUPTED:
                return told, True
            total += fit.log_likelihood([settings[s] for s in out], y[out]) * float(y[out].sum())
        if told and total / y.sum() < max(told.values()):
            break
        told[int(rank)] = total / float(y.sum())
    return told, False


def _answer(fit: StateTomography, settings: list[str], y: Array, tried: dict[int, float]) -> dict[str, Any]:
    sizes = np.linalg.norm(fit.factor_, axis=0) ** 2
    status = fit.result_.status
    return {
        "qubits": fit.n_qubits,
        "settings": len(settings),
        "shots": float(y.sum()),
        "rank": fit.rank,
        "held_out": {str(rank): value if np.isfinite(value) else None for rank, value in tried.items()},
        "purity": fit.purity(),
        "eigenvalues": sizes.tolist(),
        "log_likelihood": fit.log_likelihood(settings, y),
        "status": status.name,
        "sentence": str(status),
        "converged": status.converged,
        "iterations": fit.result_.n_iter,
    }


def _write(fit: StateTomography, output: Path) -> None:
    with new_file(output) as temporary, temporary.open("wb") as file:
        eigenvalues = np.linalg.norm(fit.factor_, axis=0) ** 2
        np.savez(file, rho=fit.density_matrix(), factor=fit.factor_, eigenvalues=eigenvalues)


def _told(answer: dict[str, Any]) -> None:
    shots = f"{answer['shots']:,.0f} shots in {answer['settings']} settings"
    table = Table(title=f"{answer['qubits']} qubits, {shots}", show_header=False, title_justify="left")
    reason = ", as settings held out justify" if answer["held_out"] else ""
    reason = ", Ctrl-C having ended its choice early" if answer["choice_interrupted"] else reason
    table.add_row("rank", f"{answer['rank']}{reason}")
    table.add_row("purity", f"{answer['purity']:.4f}")
    leading = answer["eigenvalues"][:SHOWN]
    rest = " …" if len(answer["eigenvalues"]) > SHOWN else ""
    table.add_row("eigenvalues", ", ".join(f"{value:.4f}" for value in leading) + rest)
    table.add_row("log-likelihood per shot", f"{answer['log_likelihood']:.5f}")
    if answer["fidelity"] is not None:
        table.add_row("fidelity with the target", f"{answer['fidelity']:.4f}")
    table.add_row("run", f"{answer['sentence']} ({answer['iterations']} iterations)")
    if answer["output"] is not None:
        table.add_row("written", answer["output"])
    Console(highlight=False).print(table)
