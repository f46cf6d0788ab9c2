"""Counts of local Pauli measurements, in various forms.

A setting such as "XZY" has one letter per qubit: the Pauli matrix in whose eigenbasis it was measured. An outcome such
as "010" has one bit per qubit, 0 for the eigenvalue +1 and 1 for −1.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from string import hexdigits
from typing import Any

import numpy as np

from bifactor.arrays import Array, floating, is_complex
from bifactor.data.text import content, head, number_of, require_file
from bifactor.errors import FileError, InputError
from bifactor.validation import is_count, pluralize, require_finite

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
                f"{what} holds {label[:40]!r}. Each must have "
                f"{pluralize(n, 'letter')}, one per qubit, out of {letters}."
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


def describe_invalid_outcomes(outcomes: Sequence[Any], n: int) -> str:
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
        raise InputError(f"counts {describe_invalid_outcomes(list(dict.fromkeys(bad)), n)}")
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
            f"counts has shape {y.shape}. For {pluralize(n_settings, 'setting')} of {pluralize(n, 'qubit')} "
            f"pass {(n_settings, 2**n)}: "
            "one row per setting, one column per outcome from 00…0 to 11…1."
        )
    require_finite(y, "counts", "Leave out settings that were not measured.")
    if is_complex(y) or np.any(y < 0):
        raise InputError("counts holds a negative or complex number. Pass how often each outcome was seen.")
    if not np.any(y > 0):
        raise InputError("counts are all zero. At least one shot is needed.")
    return y.astype(np.float64)


# Counts of measured qubits from a csv or json file.

Line = tuple[int, list[str]]
"""A line's number and its fields."""


def read_counts(path: Any, n_qubits: int | None = None) -> tuple[list[str], Array]:
    """Read settings and the counts of their outcomes, n_settings × 2ⁿ.

    A csv file is in long form, with columns setting, outcome and count, or in wide form, with a column setting and one
    column for each outcome. Counts of lines with the same setting and outcome are added up. A json file holds an object
    such as {"XX": {"00": 512, "11": 488}}. Either may be gzipped. Columns of the result are the outcomes 00…0 to 11…1,
    in the bit order of the file.

    Parameters
    ----------
    path : path of a file
    n_qubits : int, optional
        By default the number of letters of the first setting.
    """
    path = Path(path)
    require_file(path)
    head(path, advice="Pass counts as csv or json.")  # raises for files that are not text
    try:
        text = content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not text in UTF-8 ({error}). Convert it.") from None
    try:
        read = _from_json if ".json" in path.suffixes[-2:] else _from_csv
        return read(text, path, n_qubits)
    except InputError as error:
        raise FileError(f"{path}: {error}") from None


def _from_json(text: str, path: Path, n_qubits: int | None) -> tuple[list[str], Array]:
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not valid json ({error}). Correct it.") from None
    if not isinstance(counts, dict):
        raise FileError(f'{path} does not hold an object. Write it as {{"XX": {{"00": 512, "11": 488}}}}.')
    return counts_of(counts, None, n_qubits)


def _from_csv(text: str, path: Path, n_qubits: int | None) -> tuple[list[str], Array]:
    header, lines = _lines(text, path)
    place = header.index("setting")
    listed = check_labels([words[place].upper() for _, words in lines], "setting", "XYZ", n_qubits)
    settings, n = list(dict.fromkeys(listed)), len(listed[0])
    require_room(len(settings), n)
    row = {setting: k for k, setting in enumerate(settings)}
    table, bad = np.zeros((len(settings), 2**n)), []
    for setting, outcome, count in _cells(header, listed, lines, path):
        # Spreadsheets drop leading zeros; these can be restored.
        column = outcome_place(outcome if set(outcome) - {"0", "1"} else outcome.zfill(n), n)
        if column is None:
            bad.append(outcome)
        else:
            table[row[setting], column] += count
    if bad:
        raise FileError(f"{path} {describe_invalid_outcomes(list(dict.fromkeys(bad)), n)}")
    if not table.any():
        raise FileError(f"{path} holds no count above 0. At least one shot is needed.")
    return settings, table


def _lines(text: str, path: Path) -> tuple[list[str], list[Line]]:
    """The names of columns in lower case, and the lines below them."""
    first = text.lstrip().split("\n", 1)[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))
    try:
        lines = [(rows.line_num, [word.strip() for word in words]) for words in rows if any(map(str.strip, words))]
    except csv.Error as error:
        raise FileError(f"{path} is not a csv file ({error}). Convert it.") from None
    if not lines:
        raise FileError(f"{path} holds nothing but blank lines. Pass at least one count.")
    header = [word.lower() for word in lines[0][1]]
    if "setting" not in header:
        raise FileError(f"{path} has no column called setting. Begin with a line such as setting,outcome,count.")
    if len(lines) < 2:
        raise FileError(f"{path} has a header but no lines below it. Pass at least one count.")
    for number, words in lines[1:]:
        if len(words) != len(header):
            raise FileError(
                f"Line {number} of {path} has {len(words)} fields, but the header has {len(header)}. Check that line."
            )
    return header, lines[1:]


def _cells(header: list[str], settings: list[str], lines: list[Line], path: Path) -> list[tuple[str, str, float]]:
    """A (setting, outcome, count) for each count, in long and wide layouts."""
    cells = []
    long = "outcome" in header or "count" in header
    if long and not {"outcome", "count"} <= set(header):
        lacking = "count" if "outcome" in header else "outcome"
        raise FileError(f"{path} has no column called {lacking}. Begin with a line such as setting,outcome,count.")
    wide = [k for k, name in enumerate(header) if name.startswith("0x") or (name and not set(name) - set("01 "))]
    if not long and not wide:
        raise FileError(
            f"{path} has neither columns outcome and count, nor one per outcome such as 00 and 01. Add them."
        )
    for setting, (number, words) in zip(settings, lines, strict=True):
        for k in [header.index("count")] if long else wide:
            count = number_of(words[k])
            if count is None or not count >= 0:
                raise FileError(
                    f"Line {number} of {path}: the count {words[k][:40]!r} is not a number ≥ 0. Correct it."
                )
            cells.append((setting, words[header.index("outcome")] if long else header[k], count))
    return cells
