"""Text in blocks, cut into fields without a Python object for each."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError

SPACES = " "
"""The delimiter that stands for spaces and tabs, any number of them."""

BATCH = 50_000
"""Records with quotes that are taken at a time."""

_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9


@dataclass(frozen=True)
class Block:
    """Some records: field c of record t is text[starts[t, c]:ends[t, c]]."""

    text: Array
    starts: Array
    ends: Array
    lines: Array
    """The number of each record's line in the file, from 1."""

    def word(self, record: int, column: int) -> str:
        part = self.text[self.starts[record, column] : self.ends[record, column]]
        return part.tobytes().decode("utf-8", errors="replace")


def records(
    blocks: Iterable[bytes], delimiter: str, width: int, path: Path, skip: int = 0, first_line: int = 1
) -> Iterator[Block]:
    """Blocks of records, each of `width` fields, without the first `skip` records; blank lines do not count.

    From the first quote on the text goes through Python's csv module, which knows what quotes mean and is slower.
    """
    remaining, line, source = skip, first_line, iter(blocks)
    for text in source:
        if b'"' in text and delimiter != SPACES:
            parts = _quoted(chain([text], source), delimiter, width, path, line)
        else:
            parts = iter([_cut(text, delimiter, width, path, line)])
        for block in parts:
            gone = min(remaining, block.lines.size)
            remaining -= gone
            if block.lines.size > gone:
                yield Block(block.text, block.starts[gone:], block.ends[gone:], block.lines[gone:])
        line += text.count(b"\n")


def _cut(raw: bytes, delimiter: str, width: int, path: Path, line: int) -> Block:
    if delimiter == SPACES:
        text = np.frombuffer(raw, np.uint8)
        starts, ends, owner = _words(text)
    else:
        if len(delimiter) > 1:
            raw, delimiter = raw.replace(delimiter.encode(), b"\x1f"), "\x1f"
        text = np.frombuffer(raw, np.uint8)
        starts, ends, owner = _delimited(text, ord(delimiter))
    counts = np.bincount(owner)
    lines = np.flatnonzero(counts)
    counts = counts[lines]
    if np.any(counts != width):
        bad = int(np.argmax(counts != width))
        raise _ragged(path, int(lines[bad]) + line, int(counts[bad]), width)
    return Block(text, starts.reshape(-1, width), ends.reshape(-1, width), lines + line)


def _delimited(text: Array, delimiter: int) -> tuple[Array, Array, Array]:
    """Where fields start and end, without the spaces around them, and the line that each is in."""
    ends = np.flatnonzero((text == delimiter) | (text == _NEWLINE))
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    last = text[ends] == _NEWLINE
    owner = np.cumsum(last) - last
    starts, ends = trimmed(text, starts, ends)
    single = last.copy()
    single[1:] &= last[:-1]
    blank = single & (starts == ends)
    return (starts[~blank], ends[~blank], owner[~blank]) if blank.any() else (starts, ends, owner)


def _words(text: Array) -> tuple[Array, Array, Array]:
    gap = (text == _SPACE) | (text == _TAB) | (text == _RETURN) | (text == _NEWLINE)
    before = np.concatenate([[True], gap[:-1]])
    starts, ends = np.flatnonzero(~gap & before), np.flatnonzero(gap & ~before)
    return starts, ends, np.searchsorted(np.flatnonzero(text == _NEWLINE), starts)


def trimmed(text: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Without spaces, and the carriage returns of other systems, at either end."""

    def space(at: Array) -> Array:
        here = text[np.minimum(at, text.size - 1)]
        return (here == _SPACE) | (here == _RETURN)

    _walk(ends, lambda: (starts < ends) & space(ends - 1), -1)
    _walk(starts, lambda: (starts < ends) & space(starts), 1)
    return starts, ends


def _walk(places: Array, wanted: Callable[[], Array], step: int) -> None:
    while (move := wanted()).any():
        places[move] += step


def _quoted(blocks: Iterable[bytes], delimiter: str, width: int, path: Path, line: int) -> Iterator[Block]:
    """Blocks again, of the words that the csv module finds."""
    if len(delimiter) > 1:
        raise FileError(f"{path} has quotes and the delimiter {delimiter!r}, which do not go together. Use a tab.")
    stream = io.TextIOWrapper(io.BufferedReader(_Raw(blocks)), encoding="utf-8", errors="strict", newline="")
    reader = csv.reader(stream, delimiter=delimiter)
    try:
        while batch := [(reader.line_num, words) for words in islice(reader, BATCH)]:
            yield _joined([(n, words) for n, words in batch if words], width, path, line - 1)
    except (csv.Error, UnicodeDecodeError) as error:
        raise FileError(f"Line {line - 1 + reader.line_num} of {path} is no text in UTF-8 csv ({error}).") from None


def _joined(batch: list[tuple[int, list[str]]], width: int, path: Path, before: int) -> Block:
    for number, words in batch:
        if len(words) != width:
            raise _ragged(path, before + number, len(words), width)
    coded = [word.strip().encode() for _, words in batch for word in words]
    ends = np.cumsum([len(word) for word in coded], dtype=np.int64).reshape(-1, width)
    starts = ends - np.array([len(word) for word in coded], np.int64).reshape(-1, width)
    text = np.frombuffer(b"".join(coded) + b"\n", np.uint8)
    return Block(text, starts, ends, np.array([before + number for number, _ in batch], np.int64))


class _Raw(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, blocks: Iterable[bytes]):
        self._blocks, self._rest = iter(blocks), b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            try:
                self._rest = next(self._blocks)
            except StopIteration:
                return 0
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _ragged(path: Path, line: int, count: int, width: int) -> FileError:
    return FileError(
        f"Line {line} of {path} has {count} field{'s' if count != 1 else ''}, but the first has {width}. "
        "Check that line, and the delimiter."
    )
