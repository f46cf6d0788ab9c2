"""Files as they come: every kind, every layout, and what is wrong with them."""

import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.data import read, text
from bifactor.data.text import SPACES, decimals, integers, number_of, records
from bifactor.errors import BifactorError, FileError, InputError

LONG = "user,item,rating\nann,x,1\nbob,y,2.5\nann,y,-3e1\n"
TRIPLES = {("ann", "x"): 1.0, ("bob", "y"): 2.5, ("ann", "y"): -30.0}


@pytest.fixture
def small_blocks(monkeypatch):
    """So that a short file has many."""
    monkeypatch.setattr(text, "BLOCK", 5000)


def entries(data):
    """Names to values."""
    rows, cols = data.row_names[data.rows].tolist(), data.column_names[data.cols].tolist()
    assert data.shape == (len(set(rows)), len(set(cols))) or data.origin.wide
    return dict(zip(zip(rows, cols, strict=True), data.values.tolist(), strict=True))


@pytest.fixture
def write(tmp_path):
    def make(content, name="data.csv"):
        path = tmp_path / name
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return make


@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz", "data", "data.tsv"])
@pytest.mark.parametrize(
    "text",
    [
        LONG,
        LONG.replace(",", "\t"),
        LONG.replace(",", ";"),
        LONG.replace(",", " | "),
        LONG.replace(",", "::"),
        LONG.replace(",", "  "),
        LONG.replace("\n", "\r\n"),
        LONG.rstrip("\n"),
        "\ufeff" + LONG,
        LONG.replace("\n", "\n\n"),
        LONG.replace("ann", '"ann"'),
        LONG.split("\n", 1)[1],
        "rating,item,user,time\n1,x,ann,7\n2.5,y,bob,8\n-3e1,y,ann,9\n",
        LONG + "ann,z,\ncarl,x,NA\n",
    ],
)
def test_text_in_any_dress_is_the_same_table(write, text, name):
    assert entries(read(write(text, name))) == TRIPLES


def test_columns_can_be_named_and_numbered(write):
    path = write("a,b,c,d,e\n9,ann,x,1,0\n9,bob,y,2.5,0\n9,ann,y,-30,0\n")
    assert entries(read(path, row="b", col="c", value="d")) == TRIPLES
    assert entries(read(path, row="2", col="3", value="4")) == TRIPLES


def test_integers_stay_integers_until_a_name_is_none(write, small_blocks):
    whole = read(write("10,7,1\n-2,7,2\n1000000000,5,3\n"))
    assert list(whole.row_names) == [-2, 10, 10**9]
    assert entries(whole) == {(10, 7): 1, (-2, 7): 2, (10**9, 5): 3}
    lines = "".join(f"{k},{k % 7},1\n" for k in range(1, 3000))
    mixed = read(write(lines + "007,0,5\n"))
    assert entries(mixed)["007", 0] == 5
    assert entries(mixed)["7", 0] == 1
    assert mixed.shape == (3000, 7)


def test_quotes_may_come_late_and_hold_anything(write, small_blocks):
    plain = "".join(f"u{k},i{k % 11},1\n" for k in range(4000))
    text = plain + '"a, ""b""\nc",i0,4.5\nlast,i1,2\n'
    found = entries(read(write(text)))
    assert found['a, "b"\nc', "i0"] == 4.5
    assert found["last", "i1"] == 2
    assert len(found) == 4002


def test_one_long_name_does_not_make_all_long(write):
    name = "n" * 100_000
    found = entries(read(write("".join(f"u{k},i,1\n" for k in range(20_000)) + f"{name},i,2\n")))
    assert found[name, "i"] == 2


WIDE = "name,a,b,c,kind\nann,1,,3,x\nbob,,2.5,NA,y\n"
CELLS = {("ann", "a"): 1, ("ann", "c"): 3, ("bob", "b"): 2.5}


def test_wide_tables_are_told_by_their_holes(write):
    found = read(write(WIDE))
    assert entries(found) == CELLS
    assert "4 columns" not in found.origin.layout
    assert "wide" in found.origin.layout
    assert "kind" in found.origin.layout
    assert entries(read(write("1,2,3\n4,,6\n", "x.csv"), wide=True)) == {
        (1, 1): 1,
        (1, 2): 2,
        (1, 3): 3,
        (2, 1): 4,
        (2, 3): 6,
    }


def test_wide_headers_of_numbers(write):
    found = entries(read(write(",2001,2002,2003\nann,1,,3\nbob,4,5,\n")))
    assert found == {("ann", 2001): 1, ("ann", 2003): 3, ("bob", 2001): 4, ("bob", 2002): 5}


def test_pairs_need_no_value(write):
    asked = {"values": False, "hints": ("who", "what")}
    pairs = read(write("what,who\nx,ann\ny,bob\n"), **asked)
    assert list(pairs.row_names) == ["ann", "bob"]
    assert pairs.values.size == 0
    assert list(read(write("ann,x\nbob,y\n"), **asked).row_names) == ["ann", "bob"]


def test_repeated_pairs_are_kept(write):
    found = read(write("1,1,1\n1,1,2\n1,2,3\n1,1,2\n"))
    assert found.values.tolist() == [1, 2, 3, 2]
    assert found.shape == (1, 2)


def test_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, user=[3, 10**15, 3], item=["x", "y", "y"], rating=[1, 2, np.nan], other=np.zeros(5))
    assert entries(read(path)) == {(3, "x"): 1, (10**15, "y"): 2}
    assert entries(read(path, row="item", col="user", value="rating")) == {("x", 3): 1, ("y", 10**15): 2}
    np.savez(path, table=np.array([[1, np.nan], [np.nan, 4]]))
    assert entries(read(path)) == {(0, 0): 1, (1, 1): 4}
    sparse.save_npz(path, sparse.coo_array(([5.0, 0.0], ([2, 10**9], [1, 0])), shape=(2 * 10**9, 3)))
    assert entries(read(path)) == {(2, 1): 5, (10**9, 0): 0}


def test_matrix_market_calls_entries_by_their_numbers(write):
    head = "%%MatrixMarket matrix coordinate real general\n% a comment\n"
    found = read(write(head + "2000000000 3 2\n1999999999 1 5\n1 3 -1e-1\n", "x.mtx.gz"))
    assert entries(found) == {(1999999999, 1): 5, (1, 3): -0.1}
    symmetric = head.replace("general", "symmetric") + "2 2 2\n1 1 5\n2 1 7\n"
    assert entries(read(write(symmetric, "x.mtx"))) == {(1, 1): 5, (2, 1): 7, (1, 2): 7}


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow reads parquet files")
    from pyarrow import parquet as pq

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"user": ["ann", "bob", "ann"], "item": [7, 8, 8], "rating": [1.0, 2.0, None]}), path)
    assert entries(read(path)) == {("ann", 7): 1, ("bob", 8): 2}
    pq.write_table(pa.table({"name": ["ann", "bob"], "a": [1, None], "b": [2.5, 3.5], "c": [None, 1.0]}), path)
    assert entries(read(path)) == {("ann", "a"): 1, ("ann", "b"): 2.5, ("bob", "b"): 3.5, ("bob", "c"): 1}


def test_parquet_without_pyarrow_names_the_extra(write, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(BifactorError, match=r"bifactor\[parquet\]"):
        read(write("x", "x.parquet"))


MARKET = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("", "x.csv", "is empty"),
        ("\n \n", "x.csv", "blank lines"),
        ("user,item,rating\n", "x.csv", "no lines below"),
        ("user#item#rating\n1#2#3\n", "x.csv", "Pass the delimiter"),
        ("user,item\n1,2\n", "x.csv", "has two columns and no values"),
        ("1,2,3\n1,2,good\n", "x.csv", "Line 2 of .*: the value 'good' is not a finite number"),
        ("1,2,3\n1,2,inf\n", "x.csv", "Line 2 of .*'inf'"),
        ("user,item,rating\n1,2,x\n", "x.csv", "Line 2 of .*'x'"),
        ("1,2,3\n\n1,,3\n", "x.csv", "Line 3 of .*: the column has no name"),
        ("1,2,3\n1,2,3,4\n", "x.csv", "Line 2 of .* has 4 fields, but the first has 3"),
        ("1,2,3\n1,2\n", "x.csv", "Line 2 of .* has 2 fields"),
        ("a,b,c,d,e\n1,2,3,4,5\n", "x.csv", "not clear which"),
        ("1,2,\n", "x.csv", "no entry with a value"),
        (b"\xff\xfe1\0,\0", "x.csv", "UTF-16"),
        (b"1,\xe9,3\n2,\xe9,3\n", "x.csv", "Line 1 of .* is not UTF-8"),
        (b"\x00\x01\x02", "x.csv", "not text"),
        ("PK", "x.xlsx", "unsupported format"),
        ("nonsense", "x.npz", "not an npz file"),
        ("nonsense", "x.mtx", "MatrixMarket"),
        (MARKET + "2 2 3\n1 1 1\n", "x.mtx", "has 1 entries, but its header says 3"),
        (MARKET + "2 2 1000000000000000\n1 1 1\n", "x.mtx", "its header says 1000000000000000"),
        (MARKET + "2 2 1\n3 1 1\n", "x.mtx", "outside its 2×2"),
        (MARKET.replace("real", "pattern") + "2 2 1\n1 1\n", "x.mtx", "pattern"),
    ],
)
def test_bad_files_get_one_sentence(write, content, name, message):
    with pytest.raises(BifactorError, match=message):
        read(write(content, name))


def test_truncated_gzip(write):
    path = write("".join(f"{k},{k % 9},1\n" for k in range(100_000)), "x.csv.gz")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(FileError, match="damaged or truncated"):
        read(path)


def test_npz_that_promises_more_than_it_holds(tmp_path):
    path = tmp_path / "x.npz"
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    with zipfile.ZipFile(path, "w") as archive, archive.open("table.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(80))
    with pytest.raises(FileError, match="declares an array of shape"):
        read(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(FileError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(FileError, match="no file"):
        read(tmp_path / "none.csv")


def test_no_permission(write, monkeypatch):
    path = write(LONG)

    def refused(*arguments):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refused)
    with pytest.raises(FileError, match="permission denied"):
        read(path)


def test_progress_counts_the_bytes_of_the_file(write, small_blocks):
    path = write("".join(f"{k},{k % 9},{k / 7}\n" for k in range(4000)), "x.csv.gz")
    seen = []
    read(path, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) >= 2
    assert seen[-1][0] == seen[-1][1] == path.stat().st_size
    assert seen == sorted(seen)


def test_numbers_are_those_of_python(tmp_path):
    rng = np.random.default_rng(0)
    words = [repr(x) for x in (rng.standard_normal(500) * 10.0 ** rng.integers(-20, 20, 500)).tolist()]
    words += [f"{x:.{k}f}" for x in rng.standard_normal(300) * 1e4 for k in (0, 1, 3, 12)]
    words += ["1", "-1", ".5", "5.", "-.25", "+3", "0.1", "123456789012345", "1234567890123456789", "1e5", "", "nan"]
    block = next(records(["\n".join(f"{word},0" for word in words).encode() + b"\n"], ",", 2, tmp_path))
    found = decimals(block, 0, tmp_path, "value")
    assert np.array_equal(found, [number_of(word) for word in words], equal_nan=True)


def test_integers_in_shortest_form_only():
    words = ["0", "7", "-7", "123456789012345678", "007", "+7", "-0", "7.0", "1234567890123456789", "", "-", "a1"]
    text = np.frombuffer(",".join(words).encode() + b",", np.uint8)
    ends = np.flatnonzero(text == ord(","))
    values, good = integers(text, np.concatenate([[0], ends[:-1] + 1]), ends)
    assert good.tolist() == [True] * 4 + [False] * 8
    assert values[:4].tolist() == [0, 7, -7, 123456789012345678]


@pytest.mark.parametrize("delimiter", [",", "\t", "::", SPACES])
def test_blocks_of_any_size_are_the_same(tmp_path, delimiter):
    lines = [delimiter.join([f"u{k}", str(k), "1"]) + "\n" for k in range(100)]
    for size in (1, 7, 100):
        parts = ["".join(lines[k : k + size]).encode() for k in range(0, 100, size)]
        blocks = list(records(parts, delimiter, 3, tmp_path, skip=2))
        words = [block.word(t, 0) for block in blocks for t in range(block.lines.size)]
        assert words == [f"u{k}" for k in range(2, 100)]
        assert np.concatenate([block.lines for block in blocks]).tolist() == list(range(3, 101))


# JSON lines

RECORDS = (
    '{"user": "ann", "item": "x", "rating": 1, "time": 5}\n'
    '{"user": "bob", "item": "y", "rating": 2.5}\n'
    "\n"
    '{"rating": -3e1, "item": "y", "user": "ann", "note": null}\n'
)


@pytest.mark.parametrize("name", ["data.jsonl", "data.ndjson", "data.jsonl.gz", "DATA.NDJSON.GZ"])
@pytest.mark.parametrize(
    "text",
    [
        RECORDS,
        RECORDS.replace("\n", "\r\n"),
        RECORDS.rstrip("\n"),
        "\ufeff" + RECORDS,
        RECORDS + '{"user": "carl", "item": "x", "rating": null}\n{"user": "dora", "item": "z"}\n{"note": 1}\n',
        RECORDS + '{"user": "carl", "item": "x", "rating": NaN}\n',
    ],
    ids=["plain", "CRLF", "no end", "mark", "missing keys", "NaN"],
)
def test_json_lines_are_the_same_table(write, text, name):
    assert entries(read(write(text.encode(), name.lower()))) == TRIPLES


def test_json_lines_with_columns_that_are_told(write):
    text = '{"a": 9, "b": "ann", "c": "x", "d": 1, "w": 2}\n{"a": 9, "b": "bob", "c": "y", "d": 2.5, "w": 0}\n'
    with pytest.raises(InputError, match="has 5 columns, and it is not clear which are row, column, value"):
        read(write(text, "x.jsonl"))
    found = read(write(text, "x.jsonl"), row="b", col="c", value="d", weight="w")
    assert entries(found) == {("ann", "x"): 1}
    assert found.weights.tolist() == [2]
    assert found.origin.missing == 1
    with pytest.raises(InputError, match=r"no column 'z' for the row\. Pass one of a, b, c, d, w"):
        read(write(text, "x.jsonl"), row="z", col="c", value="d")


def test_json_lines_may_be_wide(write):
    found = read(write('{"name": "ann", "a": 1, "b": null, "c": 3}\n{"name": "bob", "b": 2.5}\n', "x.jsonl"))
    assert found.origin.wide
    assert entries(found) == CELLS


def test_names_in_json_lines(write):
    def names(*users):
        lines = "".join(f'{{"user": {user}, "item": 1, "rating": 1}}\n' for user in users)
        found = read(write(lines, "x.jsonl"))
        return found.row_names[found.rows].tolist()

    assert names(12, 7, 12) == [12, 7, 12]
    assert names(12, '"7"', 7) == ["12", "7", "7"]
    assert names(0.5, 7) == [0.5, 7]
    assert names("true", "false") == [True, False]
    assert names('"ä, \\"b\\"\\n"', '""') == ['ä, "b"\n', ""]


@pytest.mark.parametrize("first", [2**53, 2**62, 2**63, 2**64])
def test_long_integers_in_json_lines_stay_apart(write, first):
    lines = "".join(f'{{"user": {first + k}, "item": 1, "rating": 1}}\n' for k in range(3))
    found = read(write(lines, "x.jsonl"))
    assert found.shape == (3, 1)
    assert sorted(str(name) for name in found.row_names) == [str(first + k) for k in range(3)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n \n", "has no records"),
        (RECORDS + '{"user": "ann"\n', "Line 5 of .* is not a JSON object"),
        ('[1, 2, 3]\n{"user": 1}\n', "Line 1 of .* is not a JSON object"),
        (RECORDS + "7\n", "Line 5 of .* is not a JSON object"),
        (RECORDS + "[" * 100_000 + "\n", "Line 5 of .* is not a JSON object"),
        (RECORDS.encode() + b'{"user": "\xe9"}\n', "Line 5 of .* is not a JSON object"),
        (RECORDS + '{"user": ["ann"], "item": "x", "rating": 1}\n', "'user' holds lists or objects"),
        (RECORDS + '{"user": "ann", "item": "x", "rating": {"stars": 1}}\n', "'rating' holds lists or objects"),
        (RECORDS + '{"user": "ann", "item": "x", "rating": "1"}\n', "'rating' of .* does not hold numbers"),
        (RECORDS + '{"user": "ann", "item": "x", "rating": Infinity}\n', "'rating' of .* holds infinite values"),
        (RECORDS + '{"item": "x", "rating": 1}\n', "row names are missing in 'user'"),
        ('{"user": 1, "item": 2}\n', "has two columns and no values"),
        ('{"user": 1, "item": 2, "rating": null}\n', "no entry with a value"),
        ("{}\n", "3 are needed"),
    ],
)
def test_bad_json_lines_get_one_sentence(write, text, message):
    for name in ("x.jsonl", "x.jsonl.gz"):
        if text or name == "x.jsonl":
            with pytest.raises(BifactorError, match=message):
                read(write(text, name))


def test_json_itself_is_not_read(write):
    with pytest.raises(FileError, match="JSON lines"):
        read(write('[{"user": 1, "item": 2, "rating": 3}]', "x.json"))


# Decimal commas

COMMAS = "user;item;rating\nann;x;1\nbob;y;2,5\nann;y;-3,0e1\n"


@pytest.mark.parametrize(
    "text",
    [
        COMMAS,
        COMMAS.replace(";", "\t"),
        COMMAS.replace(";", "  "),
        COMMAS.replace(";", "|"),
        COMMAS.replace(";", "::"),
        COMMAS.split("\n", 1)[1],
        COMMAS.replace("ann", '"ann"'),
        COMMAS + "ann;z;\ncarl;x;NA\n",
    ],
)
@pytest.mark.parametrize("told", [{}, {"decimal": ","}])
def test_decimal_commas(write, text, told):
    assert entries(read(write(text), **told)) == TRIPLES


def test_decimal_commas_in_wide_tables(write):
    text = WIDE.replace(",", ";").replace("2.5", "2,5")
    assert entries(read(write(text))) == CELLS
    assert entries(read(write(text.replace(";", "\t")))) == CELLS
    assert entries(read(write(text), decimal=",", wide=True)) == CELLS


def test_decimal_commas_of_weights(write):
    found = read(write("user;item;rating;w\nann;x;1;0,5\nbob;y;2;1,5\n"), weight="w")
    assert found.weights.tolist() == [0.5, 1.5]


def test_names_with_commas_and_points_are_names(write):
    found = entries(read(write("user;item;rating\nann;1,5;3\nbob;2,5;4\n")))
    assert found == {("ann", "1,5"): 3, ("bob", "2,5"): 4}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("user;item;rating\nann;x;1,5\nbob;y;2.5\n", 2),
        ("user;item;rating\nann;x;1.5\nbob;y;2,5\n", 3),
        ("ann;x;1.5\nbob;y;2,5\n", 2),
        ("ann;x;1,5\nbob;y;2.5\n", 1),
        ("user;item;rating\n" + "ann;x;1,5\n" * 500 + "bob;y;2.5\n", 502),
        ("user;item;rating\n" + "ann;x;1.5\n" * 500 + "bob;y;2,5\n", 502),
    ],
    ids=["comma first", "point first", "no header, point first", "no header, comma first", "late point", "late comma"],
)
def test_points_and_commas_in_one_file_are_refused(write, text, line):
    with pytest.raises(FileError, match=f"Line {line} of .*is not a finite number"):
        read(write(text))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("user;item;rating\nann;x;2,5\nann;y;1.234,5\n", {}),
        ("ann;x;2,5\nann;y;1.234,5\n", {}),
        ("ann;y;1.234,5\nann;x;2,5\n", {}),
        ("ann\tx\t2.5\nann\ty\t1,234.5\n", {}),
        ("ann\ty\t1,234.5\nann\tx\t2.5\n", {}),
        ("ann;x;1,5\nann;y;1,234,567\n", {}),
        ("ann;x;5\nann;y;1.234\n", {"decimal": ","}),
        ('ann,x,5\nann,y,"1,234"\n', {}),
        ("ann;x;5\nann;y;1'234\n", {}),
    ],
)
def test_thousands_separators_are_refused(write, text, told):
    with pytest.raises(FileError, match=r"Line [123] of .*is not a finite number"):
        read(write(text), **told)


def test_the_decimal_comma_must_split_no_columns(write):
    for told in ({"decimal": ","}, {"decimal": ";"}, {"decimal": ""}, {"decimal": ",", "delimiter": ","}):
        with pytest.raises(InputError, match=r"is not possible\. Pass '\.' or ','"):
            read(write(LONG), **told)


# Weights


def test_weights_of_text(write):
    path = write("user,item,rating,trust\nann,x,1,2\nbob,y,2.5,0\nann,y,-3e1,.5\ncarl,z,,1\n")
    for weight in ("trust", "4"):
        found = read(path, weight=weight)
        assert entries(found) == {("ann", "x"): 1, ("ann", "y"): -30}
        assert found.weights.tolist() == [2, 0.5]
        assert found.shape == (1, 2)
        assert found.origin.missing == 2
    assert read(path).weights is None
    with pytest.raises(InputError, match=r"no column 'faith' for the weight\. Pass one of user, item, rating, trust"):
        read(path, weight="faith")


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ("-1", "negative"),
        ("", "NaN"),
        ("heavy", "Line 3 of .*: the weight 'heavy' is not a finite number"),
        ("inf", "Line 3 of .*'inf'"),
    ],
)
def test_bad_weights_of_text(write, last, message):
    with pytest.raises(BifactorError, match=message):
        read(write(f"user,item,rating,trust\nann,x,1,2\nbob,y,2.5,{last}\n"), weight="trust")


def test_a_column_with_two_parts(write):
    with pytest.raises(InputError, match="one column cannot be two"):
        read(write(LONG), weight="rating")


def test_weights_that_would_be_passed_over_are_refused(write):
    with pytest.raises(InputError, match="weight"):
        read(write("name,a,b,c,w\nann,1,,3,1\nbob,,2.5,,2\n"), weight="w", wide=True)
    with pytest.raises(InputError, match="weight"):
        read(write(MARKET + "2 2 1\n1 1 5\n", "x.mtx"), weight="w")


def test_weights_of_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, user=[1, 2], item=[1, 2], rating=[1.0, 2.0], w=[3.0, 0.0])
    found = read(path, weight="w")
    assert entries(found) == {(1, 1): 1}
    assert found.weights.tolist() == [3]


# Times

SECONDS = "1,2,881250949\n1,3,891717742\n4,3,878887116\n"


@pytest.mark.parametrize("ending", ["", "000"], ids=["seconds", "milliseconds"])
@pytest.mark.parametrize("head", ["", "user,item,timestamp\n", "a,b,c\n"], ids=["no header", "usual", "other"])
def test_times_are_not_taken_for_values(write, head, ending):
    path = write(head + SECONDS.replace("\n", ending + "\n"))
    name = head.strip().split(",")[-1] or "3"
    with pytest.raises(
        InputError,
        match=rf"holds numbers like 881250949{ending}, which look like times.*values, {name} if these are right",
    ):
        read(path)
    for value in {name, "3"}:
        assert entries(read(path, value=value))[1, 2] == float("881250949" + ending)


def test_times_are_not_taken_for_values_in_other_files(write):
    lines = '{"user": 1, "item": 2, "at": 881250949}\n{"user": 1, "item": 3, "at": 891717742}\n'
    with pytest.raises(InputError, match="look like times"):
        read(write(lines, "x.jsonl"))
    assert read(write(lines, "x.jsonl"), value="at").values.tolist() == [881250949, 891717742]


@pytest.mark.parametrize(
    "values",
    [("881", "950"), ("881250949", "5"), ("881250949", ""), ("881250949.5", "891717742.5"), ("-881250949", "1")],
)
def test_other_numbers_are_not_taken_for_times(write, values):
    found = read(write("".join(f"1,{k},{value}\n" for k, value in enumerate(values))))
    assert found.values.tolist() == [float(value) for value in values if value]


def test_a_column_that_is_called_rating_may_hold_anything(write):
    assert read(write("user,item,rating\n" + SECONDS)).values.tolist() == [881250949, 891717742, 878887116]


def test_pairs_with_times_are_pairs(write):
    found = read(write(SECONDS), values=False)
    assert found.row_names[found.rows].tolist() == [1, 1, 4]


@pytest.mark.parametrize("name", ["u.data", "u.data.gz"])
@pytest.mark.parametrize("delimiter", ["\t", "::", ","])
def test_movielens_has_times_behind_its_ratings(write, name, delimiter):
    text = "196\t242\t3\t881250949\n186\t302\t3\t891717742\n22\t377\t1\t878887116\n".replace("\t", delimiter)
    wanted = {(196, 242): 3, (186, 302): 3, (22, 377): 1}
    assert entries(read(write(text, name))) == wanted
    head = delimiter.join(["userId", "movieId", "rating", "timestamp"]) + "\n"
    assert entries(read(write(head + text, name))) == wanted


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        ("visitor,page", "anna,home\nbob,shop\n"),
        ("Visitor ID,url", "anna,home\nbob,shop\n"),
        ("customer_id,what", "anna,apple\nbob,pear\n"),
        ("who,what", "v01,/home\nv02,/shop\n"),
        ("who,what", "anna,p1\nbob,p22\n"),
        ("userId,x", "anna,apple\nbob,pear\n"),
    ],
)
def test_headers_of_pairs_are_told_where_they_can_be(write, head, lines):
    path = write(f"{head}\n{lines}")
    found = read(path, values=False)
    assert found.rows.size == 2
    assert found.origin.header == tuple(head.split(","))
    np.testing.assert_array_equal(read(path, values=False, header=True).rows, found.rows)


@pytest.mark.parametrize(
    "lines", ["anna,home\nbob,shop\n", "David,apple\nMadrid,pear\n", "v1,a\nv2,b\n", "anna,b1\nbob,c\n"]
)
def test_pairs_of_words_without_a_header_are_data(write, lines):
    assert read(write(lines), values=False).rows.size == lines.count("\n")


def test_a_pattern_holds_choices(write):
    path = write("%%MatrixMarket matrix coordinate pattern general\n4 5 3\n1 2\n1 5\n4 2\n", "x.mtx")
    found = read(path, values=False)
    assert found.row_names[found.rows].tolist() == [1, 1, 4]
    assert found.column_names[found.cols].tolist() == [2, 5, 2]
    assert np.all(found.values == 1)
    with pytest.raises(InputError, match="--implicit"):
        read(path)
    with pytest.raises(FileError, match="but its header says 3"):
        read(write("%%MatrixMarket matrix coordinate pattern general\n4 5 3\n1 2\n", "y.mtx"), values=False)


OLD = {
    "long.csv": b"user,item,rating\na,x,1\nb,y,2.5\n",
    "wide.csv": b"name,a,b,c\nann,1,,3\nbob,,2,4\n",
    "triples.txt": b"1 2 3\n4 5 6\n",
    "lines.jsonl": b'{"user": "a", "item": 7, "rating": 1.5}\n{"user": "b", "item": 7, "rating": 2}\n',
    "quoted.csv": b'user,item,rating\n"a, 1",x,1\nb,"y ""2""",2\n',
    "long.csv.gz": gzip.compress(b"user,item,rating\na,x,1\nb,y,2.5\n"),
}


@pytest.mark.parametrize("name", OLD)
@pytest.mark.parametrize("last", [True, False])
def test_lines_may_end_as_on_old_macs(tmp_path, name, last):
    text = gzip.decompress(OLD[name]) if name.endswith("gz") else OLD[name]
    found = []
    for end in (b"\n", b"\r"):
        changed = (text if last else text[:-1]).replace(b"\n", end)
        (tmp_path / name).write_bytes(gzip.compress(changed) if name.endswith("gz") else changed)
        data = bf.data.read(tmp_path / name)
        found.append((data.rows.tolist(), data.values.tolist(), list(data.row_names), list(data.column_names)))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('user,item,rating\n"a,x,1\nb,y,2\n', 2),
        ('user,item,rating\n\n\n"a,x,1\nb,y,2\n', 4),
        ('user,item,"rating\na,x,1\nb,y,2\n', 1),
        ('user,item,rating\na,x,1\nb,"y,2\nc,x,3\n', 3),
        ('user,item,rating\na,x,1\nb,y,"2', 3),
    ],
)
def test_a_quote_that_is_not_closed_is_named_with_its_line(tmp_path, text, line):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(FileError, match=rf"Line {line} of .* has a quote that is not closed"):
        bf.data.read(path)
    from bifactor.models.imputation.text import TextTable

    with pytest.raises(FileError, match=rf"Line {line} of .* has a quote that is not closed"):
        TextTable.read(path, None, lambda done, total: None)


@pytest.mark.parametrize(
    ("text", "line", "count"),
    [
        ("user,item,rating\na,x,1,\nb,y,2,\n", 2, 4),
        ("user,item,rating\n\na,x\nb,y\n", 3, 2),
        ("user,item,rating\r\na,x,1\rb,y,2\r\n", 2, 5),
    ],
)
def test_lines_that_are_all_longer_or_shorter_than_the_header_are_not_called_missing(tmp_path, text, line, count):
    path = tmp_path / "x.csv"
    path.write_bytes(text.encode())
    with pytest.raises(FileError, match=rf"Line {line} of .* has {count} fields, but the first has 3"):
        bf.data.read(path)


def test_names_may_be_kept_as_text(tmp_path):
    text = "user,item,rating\n10,3,1\n9,4,2\n10,4,3\n"
    (tmp_path / "x.csv").write_text(text)
    frame = pd.read_csv(tmp_path / "x.csv")
    frame.to_parquet(tmp_path / "x.parquet")
    for given in (tmp_path / "x.csv", frame, tmp_path / "x.parquet"):
        data = bf.data.read(given, text_names=True)
        assert sorted(data.row_names) == ["10", "9"]
        assert sorted(data.column_names) == ["3", "4"]
        plain = bf.data.read(given)
        assert [str(plain.row_names[i]) for i in plain.rows] == [data.row_names[i] for i in data.rows]
        store = bf.data.partition(given, tmp_path / "blocks", text_names=True, force=True)
        assert sorted(store.row_names) == ["10", "9"]
        assert store.size == 3
    with pytest.raises(InputError, match="text_names='yes' is not a boolean"):
        bf.data.read(frame, text_names="yes")
