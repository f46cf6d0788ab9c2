"""Fields of text: one rule, with quotes or without."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bifactor.data import read, text
from bifactor.data.text import SPACES, cells, records
from bifactor.errors import FileError

LETTERS = "abé1.-+ \t\r\xa0\u2028\x0b\x1c🙂'"
PLAIN = st.text(LETTERS, min_size=1, max_size=5).filter(lambda word: word.strip(" \t\r"))
ANY = st.text(LETTERS + '",\n', min_size=1, max_size=6)


def words(raw, delimiter=",", width=3, size=None):
    """The fields of a text, read in blocks of so many lines."""
    lines = raw.splitlines(keepends=True)
    blocks = [b"".join(lines[k : k + size]) for k in range(0, len(lines), size)] if size else [raw]
    found = records([block for block in blocks if block], delimiter, width, "file")
    return [[block.word(t, c) for c in range(width)] for block in found for t in range(block.lines.size)]


def quoted(word):
    return '"' + word.replace('"', '""') + '"'


def entries(path):
    data = read(path, header=False, delimiter=",")
    rows, cols = data.row_names[data.rows].tolist(), data.column_names[data.cols].tolist()
    return list(zip(rows, cols, data.values.tolist(), strict=True))


@settings(max_examples=300, deadline=None)
@given(table=st.lists(st.tuples(PLAIN, PLAIN, st.integers(-9, 9)), min_size=1, max_size=6), data=st.data())
def test_an_irrelevant_quote_changes_nothing(tmp_path_factory, table, data):
    folder = tmp_path_factory.mktemp("quotes")
    plain, dressed = folder / "plain.csv", folder / "dressed.csv"
    plain.write_text("".join(f"{a},{b},{c}\n" for a, b, c in table), newline="")
    chosen = [[data.draw(st.booleans()) for _ in line] for line in table]
    lines = (
        ",".join(quoted(str(word)) if quote else str(word) for word, quote in zip(line, which, strict=True)) + "\n"
        for line, which in zip(table, chosen, strict=True)
    )
    dressed.write_text("".join(lines), newline="")
    assert entries(plain) == entries(dressed)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(ANY, ANY, ANY), min_size=1, max_size=6), st.sampled_from([None, 1, 2]))
def test_quotes_hold_anything(table, size):
    raw = "".join(",".join(map(quoted, line)) + "\n" for line in table).encode()
    expected = [[word.strip(" \t\r") for word in line] for line in table]
    assert words(raw, size=size) == expected
    assert [list(line) for line in cells(raw.decode().split("\n"), ",")] == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.text('ab,"é', max_size=6), min_size=2, max_size=3), min_size=1, max_size=5))
def test_what_python_writes_is_read(table):
    width = len(table[0])
    table = [line[:width] + [""] * (width - len(line)) for line in table]
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(table)
    assert words(file.getvalue().encode(), width=width) == table


def test_blanks_around_a_field_do_not_count():
    raw = b'  a b \t, "c" ,\t"d ""e"" "\r\n\t\r\n'
    assert words(raw) == [["a b", "c", 'd "e"']]
    assert cells(raw.decode().split("\n"), ",") == [["a b", "c", 'd "e"']]


def test_quotes_within_a_field_are_letters():
    assert words(b'5" disk,a"b"c,"x"y"z"\n') == [['5" disk', 'a"b"c', 'xy"z"']]


def test_records_know_their_lines():
    raw = b'a,b,c\n"x\ny\n",b,c\n\na,"b",c\n'
    (block,) = records([raw], ",", 3, "file")
    assert block.lines.tolist() == [1, 2, 6]
    with pytest.raises(FileError, match="Line 5 of file has 2 fields, but the first has 3"):
        list(records([b'a,b,c\n"x\ny\n",b,c\na,b\n'], ",", 3, "file"))


def test_a_quote_that_is_not_closed():
    lines = [b"a,b,c\n"] * 5
    with pytest.raises(FileError, match="Line 3 of file has a quote that is not closed"):
        list(records([b"a,b,c\na,b,c\n", b'a,"b,c\n', *lines], ",", 3, "file"))


def test_a_quote_that_is_not_closed_does_not_swallow_the_file(monkeypatch):
    monkeypatch.setattr(text, "MAX_QUOTED_BYTES", 100)

    def endless():
        yield b'a,"b,c\n'
        for _ in range(30):
            yield b"a,b,c\n"
        raise AssertionError("all of it was read")

    with pytest.raises(FileError, match="Line 1 of file has a quote that is not closed"):
        list(records(endless(), ",", 3, "file"))


@pytest.mark.parametrize("delimiter", [",", "::", SPACES, "§"])
def test_a_zero_byte_is_no_text_anywhere(delimiter):
    line = delimiter.join("abc").encode() + b"\n"
    with pytest.raises(FileError, match="Line 3 of file holds a zero byte"):
        list(records([line, line + line.replace(b"a", b"a\0")], delimiter, 3, "file"))


def test_delimiters_of_several_bytes():
    assert words("a§b§ç\n".encode(), "§") == [["a", "b", "ç"]]
    assert words(b"a::b\x1fb::c\n", "::") == [["a", "b\x1fb", "c"]]
    with pytest.raises(FileError, match="is not UTF-8"):
        words(b"a::b\xff::c\n", "::")
    with pytest.raises(FileError, match="cannot be combined"):
        words(b'a::"b"::c\n', "::")


def test_names_that_differ_by_a_space_of_another_kind(tmp_path):
    text = "a,x,1\na\xa0,x,2\na\u2028,x,3\na \t,x,4\n"
    for dress in (text, text + '"b",x,5\n'):
        (tmp_path / "x.csv").write_text(dress)
        names = [row for row, _, _ in entries(tmp_path / "x.csv")]
        assert names[:4] == ["a", "a\xa0", "a\u2028", "a"]


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("columns", [5000, 20_000])
def test_wide_tables_with_long_lines(tmp_path, columns, quote):
    path = tmp_path / "wide.csv"
    header = ",".join(["name", *(f"{quote}column number {k}{quote}" for k in range(columns))])
    rows = [
        ",".join([f"row {i}", *("" if (i + k) % 3 == 0 else f"{i}.{k:04}" for k in range(columns))]) for i in range(7)
    ]
    path.write_text("\n".join([header, *rows]) + "\n")
    found = read(path)
    assert found.shape == (7, columns)
    assert found.origin.wide
    assert list(found.column_names)[-1] == f"column number {columns - 1}"


def test_a_line_without_end_is_no_table(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_LINE_BYTES", 1 << 18)
    (tmp_path / "x.csv").write_bytes(b"a,b,c\n" + b"x" * (1 << 20))
    with pytest.raises(FileError, match="so it is not a table"):
        read(tmp_path / "x.csv")


def test_long_runs_of_blanks_are_passed_at_once(tmp_path):
    raw = b"a" + b" " * 1_000_000 + b",b,c\n" + b"a,b,c\n" * 20_000
    assert words(raw)[0] == ["a", "b", "c"]


def test_blocks_may_end_anywhere_between_lines():
    rng = np.random.default_rng(0)
    parts = ["a", '"b,\n"', '" c"', '"""d"""', "e f"]
    lines = [",".join(parts[k] for k in rng.integers(len(parts), size=3)) + "\n" for _ in range(200)]
    raw = "".join(lines).encode()
    assert words(raw) == words(raw, size=1) == words(raw, size=3)
