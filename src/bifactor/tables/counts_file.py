"""Counts of measured qubits from a csv or json file."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError, InputError
from bifactor.tables.counts import check_labels, counts_of, outcome_place, refused, require_room
from bifactor.tables.numbers import number_of
from bifactor.tables.source import content, head, require_file

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
        raise FileError(f"{path} {refused(list(dict.fromkeys(bad)), n)}")
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
