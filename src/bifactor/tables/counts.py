"""Counts of local Pauli measurements, in various forms.

A setting such as "XZY" has one letter per qubit: the Pauli matrix in whose eigenbasis it was measured. An outcome such
as "010" has one bit per qubit, 0 for the eigenvalue +1 and 1 for −1.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from string import hexdigits
from typing import Any

import numpy as np

from bifactor.arrays import Array, floating, is_complex
from bifactor.errors import InputError
from bifactor.validation import counted, is_count, require_finite

MOST = 28
"""Largest log₂ of the number of outcomes of all settings together: 2²⁸ numbers take 2 GiB."""

NAMED = 5
"""Most bad outcomes that an error lists."""


def counts_of(settings: Any, counts: Any = None, n_qubits: int | None = None) -> tuple[list[str], Array]:
    """Settings and the counts of their outcomes, n_settings × 2ⁿ in float64; raise `InputError` for invalid data.

    Parameters
    ----------
    settings : sequence of str, or mapping
        Such as ["XX", "XZ"]; or {"XX": {"00": 512, "11": 488}, …}, which holds the counts as well.
    counts : array, n_settings × 2ⁿ, or list of dict
        The columns of an array are the outcomes 00…0 to 11…1. A dict has outcomes for keys: bit strings, with or
        without spaces between registers, hexadecimal numbers such as "0x3", or integers.
    n_qubits : int, optional
        By default the number of letters of the first setting.
    """
    if isinstance(settings, Mapping):
        if counts is not None:
            raise InputError("settings is a mapping, which already holds the counts. Leave out counts.")
        settings, counts = list(settings), list(settings.values())
    elif counts is None:
        raise InputError("counts is missing. Pass settings and counts, or one mapping of settings to counts.")
    labels = check_labels(settings, "settings", "XYZ", n_qubits)
    n = len(labels[0])
    require_room(len(labels), n)
    if isinstance(counts, Sequence) and any(isinstance(row, Mapping) for row in counts):
        counts = _from_mappings(counts, n)
    return labels, _checked(floating(counts, "counts"), len(labels), n)


def check_labels(labels: Any, what: str, letters: str, n_qubits: int | None = None) -> list[str]:
    """The labels as a list; raise `InputError` unless all have one length and consist of the given letters."""
    if isinstance(labels, str):
        raise InputError(f"{what} is the string {labels!r}. Pass a list of strings, such as [{labels!r}].")
    if not isinstance(labels, Iterable):
        raise InputError(f"{what} is {labels!r}, not a list. Pass a list of strings, such as ['XZ'].")
    listed = [str(label) for label in labels]
    if not listed:
        raise InputError(f"{what} is empty. Pass at least one label.")
    n = n_qubits or len(listed[0])
    for label in listed:
        if len(label) != n or not n or set(label) - set(letters):
            raise InputError(
                f"{what} holds {label[:40]!r}. Each must have {counted(n, 'letter')}, one per qubit, out of {letters}."
            )
    return listed


def require_room(n_settings: int, n: int) -> None:
    """Raise `InputError` if a table of all outcomes would be too large."""
    if n + math.log2(n_settings) > MOST:
        raise InputError(f"{n_settings} settings of {n} qubits have more than 2^{MOST} outcomes. Pass fewer of either.")


def outcome_place(outcome: Any, n: int) -> int | None:
    """The index of an outcome among 00…0 to 11…1, or None if it is not an outcome of n qubits."""
    if isinstance(outcome, str):
        word = "".join(outcome.split())  # Qiskit puts spaces between registers
        if word[:2].lower() == "0x":
            digits = word[2:]
            place = int(digits, 16) if digits and not set(digits) - set(hexdigits) else -1
        else:
            place = int(word, 2) if len(word) == n and not set(word) - {"0", "1"} else -1
    else:
        place = int(outcome) if is_count(outcome, 0) else -1
    return place if 0 <= place < 2**n else None


def bit_reversal(n: int) -> Array:
    """The index of each outcome with its bits reversed; applied twice, it is the identity."""
    return np.arange(2**n).reshape((2,) * n).transpose().ravel()


def refused(outcomes: Sequence[Any], n: int) -> str:
    """The part of a message about outcomes that are not valid."""
    named = ", ".join(repr(outcome)[:40] for outcome in outcomes[:NAMED])
    more = f" and {len(outcomes) - NAMED} more" if len(outcomes) > NAMED else ""
    return (
        f"holds the outcome{'s' if len(outcomes) > 1 else ''} {named}{more}. "
        f"Each must have {n} bits, one per qubit, such as {'0' * n!r}, or be a number from 0 to {2**n - 1}."
    )


def _from_mappings(rows: Sequence[Any], n: int) -> Array:
    table, bad = np.zeros((len(rows), 2**n)), []
    for total, row in zip(table, rows, strict=True):
        if not isinstance(row, Mapping):
            raise InputError(f"counts holds {type(row).__name__} as well as dict. Pass a dict for each setting.")
        for outcome, count in row.items():
            if not isinstance(count, Real) or isinstance(count, bool):
                told = f"{repr(count)[:40]} for the outcome {repr(outcome)[:40]}"
                raise InputError(f"counts has {told}. Pass how often it was seen.")
            place = outcome_place(outcome, n)
            if place is None:
                bad.append(outcome)
            else:
                total[place] += _number(count, outcome)
    if bad:
        raise InputError(f"counts {refused(list(dict.fromkeys(bad)), n)}")
    return table


def _number(count: Real, outcome: Any) -> float:
    try:
        return float(count)
    except OverflowError:
        raise InputError(
            f"The count of the outcome {repr(outcome)[:40]} is too large for a number. Correct it."
        ) from None


def _checked(y: Array, n_settings: int, n: int) -> Array:
    if y.shape != (n_settings, 2**n):
        raise InputError(
            f"counts has shape {y.shape}. For {counted(n_settings, 'setting')} of {counted(n, 'qubit')} "
            f"pass {(n_settings, 2**n)}: "
            "one row per setting, one column per outcome from 00…0 to 11…1."
        )
    require_finite(y, "counts", "Leave out settings that were not measured.")
    if is_complex(y) or np.any(y < 0):
        raise InputError("counts holds a negative or complex number. Pass how often each outcome was seen.")
    if not np.any(y > 0):
        raise InputError("counts are all zero. At least one shot is needed.")
    return y.astype(np.float64)
