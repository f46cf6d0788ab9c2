"""Files as they come: every kind, every layout, and what is wrong with them."""

import gzip
import zipfile

import numpy as np
import pytest
from scipy import sparse

from bifactor.errors import BifactorError, FileError
from bifactor.tables import Asked, read, source
from bifactor.tables.fields import SPACES, records
from bifactor.tables.numbers import decimals, integers, number_of

LONG = "user,item,rating\nann,x,1\nbob,y,2.5\nann,y,-3e1\n"
TRIPLES = {("ann", "x"): 1.0, ("bob", "y"): 2.5, ("ann", "y"): -30.0}


@pytest.fixture
def small_blocks(monkeypatch):
    """So that a short file has many."""
    monkeypatch.setattr(source, "BLOCK", 5000)


def entries(triples):
    """Names to values."""
    rows, cols = triples.rows.names[triples.i].tolist(), triples.cols.names[triples.j].tolist()
    assert triples.shape == (len(set(rows)), len(set(cols))) or triples.width is not None
    return dict(zip(zip(rows, cols, strict=True), triples.values.tolist(), strict=True))


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
    assert entries(read(path, Asked(row="b", col="c", value="d"))) == TRIPLES
    assert entries(read(path, Asked(row="2", col="3", value="4"))) == TRIPLES


def test_integers_stay_integers_until_a_name_is_none(write, small_blocks):
    whole = read(write("10,7,1\n-2,7,2\n1000000000,5,3\n"))
    assert whole.rows.names.tolist() == [-2, 10, 10**9]
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
    assert "4 columns" not in found.layout
    assert "wide" in found.layout
    assert "kind" in found.layout
    assert entries(read(write("1,2,3\n4,,6\n", "x.csv"), Asked(wide=True))) == {
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
    asked = Asked(values=False, hints=("who", "what"))
    pairs = read(write("what,who\nx,ann\ny,bob\n"), asked)
    assert pairs.rows.names.tolist() == ["ann", "bob"]
    assert pairs.values.size == 0
    assert read(write("ann,x\nbob,y\n"), asked).rows.names.tolist() == ["ann", "bob"]


def test_repeated_pairs_are_kept(write):
    found = read(write("1,1,1\n1,1,2\n1,2,3\n1,1,2\n"))
    assert found.values.tolist() == [1, 2, 3, 2]
    assert found.shape == (1, 2)


def test_npz(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, user=[3, 10**15, 3], item=["x", "y", "y"], rating=[1, 2, np.nan], other=np.zeros(5))
    assert entries(read(path)) == {(3, "x"): 1, (10**15, "y"): 2}
    assert entries(read(path, Asked(row="item", col="user", value="rating"))) == {("x", 3): 1, ("y", 10**15): 2}
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
        ("user,item,rating\n", "x.csv", "nothing below"),
        ("user#item#rating\n1#2#3\n", "x.csv", "--delimiter"),
        ("user,item\n1,2\n", "x.csv", "3 are needed: row, column, value"),
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
        ("PK", "x.xlsx", "not read"),
        ("nonsense", "x.npz", "no npz file"),
        ("nonsense", "x.mtx", "MatrixMarket"),
        (MARKET + "2 2 3\n1 1 1\n", "x.mtx", "has 1 entries, but says 3"),
        (MARKET + "2 2 1000000000000000\n1 1 1\n", "x.mtx", "cut short"),
        (MARKET + "2 2 1\n3 1 1\n", "x.mtx", "outside the 2×2"),
        (MARKET.replace("real", "pattern") + "2 2 1\n1 1\n", "x.mtx", "pattern"),
    ],
)
def test_bad_files_get_one_sentence(write, content, name, message):
    with pytest.raises(BifactorError, match=message):
        read(write(content, name))


def test_truncated_gzip(write):
    path = write("".join(f"{k},{k % 9},1\n" for k in range(100_000)), "x.csv.gz")
    path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(FileError, match="damaged or cut short"):
        read(path)


def test_npz_that_promises_more_than_it_holds(tmp_path):
    path = tmp_path / "x.npz"
    header = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)}
    with zipfile.ZipFile(path, "w") as archive, archive.open("table.npy", "w") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(80))
    with pytest.raises(FileError, match="says that it holds an array"):
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
    with pytest.raises(FileError, match="may not be read"):
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
