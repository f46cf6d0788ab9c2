"""Text files as blocks of fields, without a Python object for each, with errors as one sentence."""

import gzip
import hashlib
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError

SPACES = " "
"""The delimiter that stands for any number of spaces and tabs."""

BLANKS = b" \t\r"
"""Characters that are ignored around a field."""

MAX_QUOTED_BYTES = 1 << 22
"""Most bytes between quotes; a quote that is not closed by then is an error."""

MARK = 0xFF
"""Stands for a delimiter of several bytes: it does not occur in UTF-8."""

_NEWLINE = 10

Spans = list[tuple[int, int, bool]]
"""Positions of the opening and closing quotes of quoted parts, and whether there are doubled quotes between them."""


@dataclass(frozen=True)
class RecordBlock:
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
) -> Iterator[RecordBlock]:
    """Blocks of records, each of `width` fields, without the first `skip` records; blank lines are ignored."""
    remaining = skip
    for raw, spans, line in _whole(blocks, delimiter, path, first_line):
        text, starts, ends, owner = _fields(raw, delimiter, spans)
        counts = np.bincount(owner)
        lines = np.flatnonzero(counts)
        counts = counts[lines]
        if np.any(counts != width):
            bad = int(np.argmax(counts != width))
            raise ragged(path, int(lines[bad]) + line, int(counts[bad]), width)
        gone = min(remaining, lines.size)
        remaining -= gone
        if lines.size > gone:
            starts, ends = starts.reshape(-1, width), ends.reshape(-1, width)
            yield RecordBlock(text, starts[gone:], ends[gone:], lines[gone:] + line)


def cells(lines: Iterable[str], delimiter: str) -> list[list[str]]:
    """The fields of the first lines of a file, by the same rules; bytes that are not UTF-8 become surrogates."""
    raw, spans = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"), Spans()
    if _is_long(delimiter):
        raw = raw.replace(delimiter.encode(), bytes([MARK]))
    elif delimiter != SPACES:
        raw = _closed(raw, spans, _quotes(raw, ord(delimiter), spans, 0))
    text, starts, ends, owner = _fields(raw, delimiter, spans)
    content, found = text.tobytes(), dict[int, list[str]]()
    for start, end, line in zip(starts.tolist(), ends.tolist(), owner.tolist(), strict=True):
        found.setdefault(line, []).append(content[start:end].decode("utf-8", "surrogateescape"))
    return list(found.values())


def open_quote(lines: Iterable[str], delimiter: str) -> int | None:
    """The line, from 0, of a quote that is not closed in these lines."""
    if delimiter == SPACES or _is_long(delimiter):
        return None
    raw = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
    opened = _quotes(raw, ord(delimiter), Spans(), 0)
    return None if opened < 0 else raw.count(b"\n", 0, opened)


def unclosed(path: Path, line: int) -> FileError:
    return FileError(f"Line {line} of {path} has a quote that is not closed. Close it, or double it.")


def _closed(raw: bytes, spans: Spans, opened: int) -> bytes:
    """Drop the record with a quote that closes in a later line, unless it is the first one."""
    if opened < 0:
        return raw
    cut = raw.rfind(b"\n", 0, opened) + 1
    while spans and spans[-1][1] >= cut:
        start, *_ = spans.pop()
        if start < cut:
            cut = raw.rfind(b"\n", 0, start) + 1
    return raw[:cut] if cut else raw


def _is_long(delimiter: str) -> bool:
    """Whether a delimiter has several bytes."""
    return len(delimiter.encode()) > 1


def _marked(blocks: Iterable[bytes], delimiter: str, path: Path) -> Iterator[bytes]:
    """Blocks with one byte for each delimiter."""
    for raw in blocks:
        if _is_long(delimiter):
            if b'"' in raw:
                raise FileError(
                    f"{path} has quotes and the delimiter {delimiter!r}, which cannot be combined. Use a tab."
                )
            if MARK in raw:
                raise FileError(f"{path} is not UTF-8. Convert the file to UTF-8.")
            raw = raw.replace(delimiter.encode(), bytes([MARK]))
        yield raw


def _whole(blocks: Iterable[bytes], delimiter: str, path: Path, line: int) -> Iterator[tuple[bytes, Spans, int]]:
    """Blocks of text that end outside quotes, the positions of quoted parts, and the number of the first line."""
    rest, spans, opened = b"", Spans(), 0
    for block in _marked(blocks, delimiter, path):
        rest += block
        zero = rest.find(b"\0", len(rest) - len(block))
        if zero >= 0:
            number = line + rest.count(b"\n", 0, zero)
            raise FileError(f"Line {number} of {path} holds a zero byte, so it is not text. Check the file.")
        opened = -1 if delimiter == SPACES or _is_long(delimiter) else _quotes(rest, ord(delimiter), spans, opened)
        if 0 <= opened < len(rest) - MAX_QUOTED_BYTES:
            break
        if opened < 0:
            yield rest, spans, line
            line += rest.count(b"\n")
            rest, spans, opened = b"", Spans(), 0
    if rest:
        number = line + rest.count(b"\n", 0, opened)
        raise unclosed(path, number)


def _quotes(raw: bytes, mark: int, spans: Spans, at: int) -> int:
    """Add the quoted parts from `at` on; return the position of a quote that is not closed, or -1."""
    first = raw.find(b'"', at)
    if first < 0:
        return -1
    edge = max(raw.rfind(bytes([letter]), 0, first) for letter in (mark, _NEWLINE))
    for found in _quoted(mark).finditer(raw, max(edge, 0)):
        start, end = found.span(1)
        if not found[3]:
            return start - 1
        spans.append((start - 1, found.end(2), found.end(2) > end))
    return -1


@cache
def _quoted(mark: int) -> re.Pattern[bytes]:
    """A quoted field: up to the first doubled quote, up to the end, and the quote that closes it."""
    blanks, edge = (re.escape(bytes(letters)) for letters in (set(BLANKS) - {mark}, {mark, _NEWLINE}))
    return re.compile(rb'(?:\A|[%s])[%s]*+"([^"]*+)((?:""[^"]*+)*+)("?)' % (edge, blanks))


def _fields(raw: bytes, delimiter: str, spans: Spans) -> tuple[Array, Array, Array, Array]:
    """The text, the starts and ends of its fields, and the line, from 0, where the record of each field begins."""
    text = np.frombuffer(raw, np.uint8)
    if delimiter == SPACES:
        return text, *_words(text)
    parts = np.array(spans, np.int64).reshape(-1, 3).T
    starts, ends, owner = _delimited(text, MARK if _is_long(delimiter) else ord(delimiter), parts)
    return (*_unquoted(raw, starts, ends, parts), owner) if spans else (text, starts, ends, owner)


def _delimited(text: Array, mark: int, quoted: Array) -> tuple[Array, Array, Array]:
    ends = np.flatnonzero((text == mark) | (text == _NEWLINE))
    if quoted.size:
        opened, closed, _ = quoted
        part = np.searchsorted(opened, ends) - 1
        ends = ends[(part < 0) | (ends > closed[part])]
    starts = np.empty_like(ends)
    starts[:1] = 0
    starts[1:] = ends[:-1] + 1
    last = text[ends] == _NEWLINE
    owner = np.cumsum(last) - last
    if quoted.size:  # with quotes a record may take several lines
        begun = np.flatnonzero(np.diff(owner, prepend=-1))
        owner = np.searchsorted(np.flatnonzero(text == _NEWLINE), starts[begun])[owner]
    starts, ends = _trimmed(text, starts, ends)
    single = last.copy()
    single[1:] &= last[:-1]
    blank = single & (starts == ends)
    return (starts[~blank], ends[~blank], owner[~blank]) if blank.any() else (starts, ends, owner)


def _words(text: Array) -> tuple[Array, Array, Array]:
    gap = _blank(text) | (text == _NEWLINE)
    before = np.concatenate([[True], gap[:-1]])
    starts, ends = np.flatnonzero(~gap & before), np.flatnonzero(gap & ~before)
    return starts, ends, np.searchsorted(np.flatnonzero(text == _NEWLINE), starts)


def _trimmed(text: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """Strip blanks at both ends."""
    last, first = _blank(text[np.maximum(ends - 1, 0)]), _blank(text[starts])
    some = np.flatnonzero((first | last) & (starts < ends))
    if some.size == 0:
        return starts, ends
    # Mostly there is one blank: two steps are faster than a search.
    ends[some] -= last[some]
    starts[some] += first[some] & (starts[some] < ends[some])
    inside = starts[some] < ends[some]
    some = some[inside & (_blank(text[starts[some]]) | _blank(text[np.maximum(ends[some] - 1, 0)]))]
    if some.size:
        letters = np.flatnonzero(~_blank(text))
        before, after = np.searchsorted(letters, starts[some]), np.searchsorted(letters, ends[some])
        none = before == after
        starts[some] = np.where(none, starts[some], letters[np.minimum(before, letters.size - 1)])
        ends[some] = np.where(none, starts[some], letters[after - 1] + 1)
    return starts, ends


def _blank(letters: Array) -> Array:
    space, tab, end = BLANKS
    return (letters == space) | (letters == tab) | (letters == end)


def _unquoted(raw: bytes, starts: Array, ends: Array, parts: Array) -> tuple[Array, Array, Array]:
    """The text, with fields that had to be rewritten at its end, and the starts and ends of fields without quotes."""
    text, (opened, closed, doubled) = np.frombuffer(raw, np.uint8), parts
    part = np.minimum(np.searchsorted(opened, starts), opened.size - 1)
    quoted = (opened[part] == starts) & (starts < ends)
    plain = quoted & (closed[part] == ends - 1) & (doubled[part] == 0)
    starts[plain], ends[plain] = _trimmed(text, starts[plain] + 1, ends[plain] - 1)
    added, size = [], len(raw)
    for field in np.flatnonzero(quoted & ~plain).tolist():
        start, end, closing = int(starts[field]), int(ends[field]), int(closed[part[field]])
        word = (raw[start + 1 : closing].replace(b'""', b'"') + raw[closing + 1 : end]).strip(BLANKS)
        starts[field], ends[field] = size, size + len(word)
        added.append(word)
        size += len(word)
    return np.frombuffer(raw + b"".join(added) + b"\n", np.uint8), starts, ends


def ragged(path: Path, line: int, count: int, width: int) -> FileError:
    return FileError(
        f"Line {line} of {path} has {count} field{'s' if count != 1 else ''}, but the first has {width}. "
        "Check that line, and the delimiter."
    )


# Files as streams of bytes, plain or gzipped, with errors as one sentence.

BLOCK = 1 << 22
"""Bytes per chunk that is read."""

MAX_LINE_BYTES = 1 << 28
"""Most bytes of a line; tables have shorter ones."""

LARGEST = 1 << 30
"""Most bytes of a file that is read as a whole."""

LOOK, LINES = 1 << 16, 5
"""Fewest bytes and lines from which the layout of a file is inferred."""

Progress = Callable[[int, int], None]
"""Called with the number of bytes read so far, and with the size of the file."""


def silent(done: int, total: int) -> None:
    """Show nothing."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors in reading `path` into `FileError`."""
    try:
        yield
    except FileError:
        raise
    except FileNotFoundError:
        raise FileError(f"There is no file {path}. Check its name.") from None
    except PermissionError:
        raise FileError(f"{path} cannot be read: permission denied. Check its permissions.") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise FileError(f"{path} is a damaged or truncated gzip file. Download or compress it again.") from None
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}. Check the file.") from None


def require_file(path: Path) -> None:
    """Raise `FileError` unless `path` is a regular file that is not empty."""
    with reading(path):
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FileError(f"{path} is a folder. Pass the name of a file.")
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{path} is not a regular file, but it has to be read twice. Save it to a file first.")
        if status.st_size == 0:
            raise FileError(f"{path} is empty. Pass a file with data.")
        path.open("rb").close()


def checksum(path: Path) -> str:
    """The SHA-256 of a file on disk, as `sha256sum` prints it."""
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def chunks(path: Path, progress: Progress = silent, size: int | None = None) -> Iterator[bytes]:
    """The content of a file, decompressed if it is gzipped, without a byte order mark.

    If lines end in carriage returns alone, as on old Macs, these become line feeds.
    """
    with reading(path), path.open("rb") as raw:
        total = path.stat().st_size
        gzipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if gzipped else raw
        old_mac: bool | None = None
        while chunk := stream.read(BLOCK if size is None else size):
            if old_mac is None:
                chunk = chunk.removeprefix(b"\xef\xbb\xbf")
                old_mac = b"\r" in chunk[:LOOK] and b"\n" not in chunk[:LOOK]
            yield chunk.replace(b"\r", b"\n") if old_mac else chunk
            progress(raw.tell(), total)


def line_blocks(path: Path, progress: Progress = silent) -> Iterator[bytes]:
    """The content of a file in blocks of whole lines."""
    rest = b""
    for chunk in chunks(path, progress):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
        if len(rest) > MAX_LINE_BYTES:
            raise FileError(
                f"{path} has a line of more than {MAX_LINE_BYTES} bytes, so it is not a table. Check the file."
            )
    if rest:
        yield rest + b"\n"


def head(path: Path, advice: str = "Pass csv, or parquet, npz or mtx by its name.") -> list[str]:
    """The first lines of a text file; `advice` ends the message for files that are not text.

    Bytes that are not UTF-8 become surrogates.
    """
    start, whole = _start(path)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f"{path} is text in UTF-16. Save it as UTF-8.")
    if b"\0" in start:
        raise FileError(f"{path} is not text. {advice}")
    lines = start.decode("utf-8", errors="surrogateescape").split("\n")
    if not any(line.strip() for line in lines):
        raise FileError(f"{path} holds only blank lines. Pass a file with at least one entry.")
    return lines if whole else lines[:-1]


def _start(path: Path) -> tuple[bytes, bool]:
    """The beginning of a file with at least a few lines, and whether that is all of it."""
    parts, size, lines = [], 0, 0
    for chunk in chunks(path, size=LOOK):
        parts.append(chunk)
        size += len(chunk)
        lines += sum(1 for line in chunk.split(b"\n")[:-1] if line.strip())
        if size >= LOOK and lines >= LINES:
            return b"".join(parts), False
        if size > MAX_LINE_BYTES:
            raise FileError(f"{path} has {lines} lines in {size} bytes, so it is not a table. Check the file.")
    return b"".join(parts), True


def content(path: Path, progress: Progress = silent) -> bytes:
    """The whole content of a file; raise `FileError` if it is too large for a table of text."""
    parts, size = [], 0
    for chunk in chunks(path, progress):
        parts.append(chunk)
        size += len(chunk)
        if size > LARGEST:
            raise FileError(f"{path} holds more than {LARGEST >> 20} MiB of text. Pass a smaller file.")
    return b"".join(parts)


# Converts fields of text to numbers, many at a time.

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
"""Words for missing values, in lower case."""

_DIGITS = 18
"""Most digits of an integer that always fits in 64 bits."""

_EXACT = 15
"""Digits that a double holds exactly, so that dividing by a power of ten rounds only once."""

_MINUS, _ZERO = 45, 48


def integers(text: Array, starts: Array, ends: Array) -> tuple[Array, Array]:
    """The integers, and where the text is an integer in its shortest form: 7 is; 007, +7, -0 and 7.0 are names."""
    negative = text[np.minimum(starts, text.size - 1)] == _MINUS
    first = starts + negative
    count = ends - first
    value, good = np.zeros(starts.shape, np.int64), (count >= 1) & (count <= _DIGITS)
    for k in range(min(int(count.max(initial=0)), _DIGITS)):
        inside = k < count
        digit = text[np.minimum(first + k, text.size - 1)] - np.uint8(_ZERO)
        good &= ~inside | (digit <= 9)
        value = np.where(inside, value * 10 + digit, value)
        if k == 0:
            good &= (digit != 0) | ((count == 1) & ~negative)
    return np.where(negative, -value, value), good


def decimals(block: RecordBlock, column: int, path: Path, what: str, point: str = ".") -> Array:
    """The numbers in a column, with NaN for missing ones; raise `FileError` with the line of any other word."""
    starts, ends = block.starts[:, column], block.ends[:, column]
    value, simple = _plain(block.text, starts, ends, ord(point))
    for record in np.flatnonzero(~simple).tolist():
        word = block.word(record, column)
        number = number_of(word, point)
        if number is None:
            raise FileError(
                f"Line {block.lines[record]} of {path}: the {what} {word[:40]!r} is not a finite number. "
                "Correct it, or leave it empty if it is missing."
            )
        value[record] = number
    return value


def number_of(word: str, point: str = ".") -> float | None:
    """A number, NaN for a word that means a missing value, None for any other word."""
    word = word.strip()
    if point != ".":
        word = word.replace(".", "_").replace(point, ".")  # a point is then not part of a number
    if word.lower() in MISSING:
        return float("nan")
    try:
        number = float(word)
    except ValueError:
        return None
    return number if np.isfinite(number) and "_" not in word else None


def _plain(text: Array, starts: Array, ends: Array, point: int) -> tuple[Array, Array]:
    """Numbers with few digits, with or without a point, and where the text is such a number."""
    negative = text[np.minimum(starts, text.size - 1)] == _MINUS
    first = starts + negative
    count = ends - first
    mantissa, places = np.zeros(starts.shape, np.int64), np.zeros(starts.shape, np.int64)
    dotted, digits = np.zeros(starts.shape, bool), np.zeros(starts.shape, np.int64)
    good = (count >= 1) & (count <= _EXACT + 1)
    for k in range(min(int(count.max(initial=0)), _EXACT + 1)):
        inside = k < count
        letter = text[np.minimum(first + k, text.size - 1)]
        digit = letter - np.uint8(_ZERO)
        dot, figure = inside & (letter == point), inside & (digit <= 9)
        good &= ~inside | figure | (dot & ~dotted)
        dotted |= dot
        mantissa = np.where(figure, mantissa * 10 + digit, mantissa)
        digits += figure
        places += figure & dotted
    good &= (digits >= 1) & (digits <= _EXACT)
    value = np.where(good, mantissa, 0) / 10.0 ** np.where(good, places, 0)
    return np.where(negative, -value, value), good
