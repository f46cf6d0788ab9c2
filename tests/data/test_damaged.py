"""Files that went wrong, and matrices in memory: each is refused in one sentence, and none ends the process."""

import gzip
import io
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.arrays.sparse import coordinates, require_sound
from bifactor.data import read, read_counts
from bifactor.data.observations import from_matrix
from bifactor.errors import BifactorError, FileError, InputError
from bifactor.models.tomography.states import target_state

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are not installed with the library

from benchmarks.fuzz import fuzz_readers

DENSE = np.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 4]])
CSR = {"data": [1.0, 2, 3], "indices": np.int32([0, 2, 1]), "indptr": np.int32([0, 2, 2, 3])}
KINDS = ("csr", "csc", "bsr", "coo", "dia")


def refused(path, match=None, reader=read, **asked):
    with pytest.raises(BifactorError, match=match) as caught:
        reader(path, **asked)
    said = str(caught.value)
    assert "\n" not in said
    assert said.endswith((".", "?"))
    assert len(said) < 1000
    return True


# Sparse matrices


def stored(tmp_path, kind="csr", shape=(3, 3), **changed):
    path = tmp_path / "x.npz"
    form = np.bytes_(kind) if isinstance(kind, str) else np.array(kind)
    arrays = {"format": form, "shape": np.array(shape), **CSR, **changed}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compressed", [True, False])
def test_sparse_matrices_of_every_kind(tmp_path, kind, compressed):
    path = tmp_path / "x.npz"
    sparse.save_npz(path, getattr(sparse, f"{kind}_array")(DENSE), compressed=compressed)
    found = read(path)
    dense = np.zeros((3, 3))
    dense[found.row_names[found.rows], found.column_names[found.cols]] = found.values
    np.testing.assert_array_equal(dense, DENSE)


POINTERS = {
    "beyond the end": [0, 10**9, 2, 3],
    "falling": [0, 10, 2, 3],
    "negative": [0, -5, 2, 3],
    "beginning late": [1, 2, 2, 3],
    "ending early": [0, 1, 1, 2],
    "ending late": [0, 2, 2, 4],
    "too few": [0, 2, 3],
    "too many": [0, 2, 2, 3, 3],
    "none": [],
    "wrapping around": [0, 2**31 - 1, -(2**31), 3],
}


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("pointers", POINTERS)
def test_pointers(tmp_path, kind, pointers):
    for dtype in (np.int32, np.int64):
        assert refused(
            stored(tmp_path, kind, indptr=np.array(POINTERS[pointers], dtype)), "x.npz is not a sparse matrix"
        )


@pytest.mark.parametrize(
    "changed",
    [
        {"indices": np.int32([0, 3, 1])},
        {"indices": np.int32([0, -1, 1])},
        {"indices": np.int64([0, 2**62, 1])},
        {"indices": np.array([0.0, 2, 1])},
        {"indices": np.int32([[0, 2, 1]])},
        {"indices": np.int32([0, 2])},
        {"indptr": np.array([0.0, 2, 2, 3])},
        {"indptr": np.int32([[0, 2, 2, 3]])},
        {"data": np.array([1, 2, 3j])},
        {"data": np.array(["a", "b", "c"])},
        {"data": np.array([[1.0, 2, 3]])},
        {"data": np.array([1.0, np.inf, 3])},
        {"shape": (3,)},
        {"shape": (3, 3, 3)},
        {"shape": (-3, 3)},
        {"shape": (3.5, 3)},
        {"shape": (2**63 - 1, 3)},
        {"shape": ("a", "b")},
        {"shape": np.uint32([0x110000, 65]).view("U1")},
        {"shape": np.array([2.0, 3.0])},
        {"kind": np.uint32([0x110000]).view("U1")},
        {"kind": np.array(["csr", "csc"])},
        {"kind": 7},
        {"kind": "lil"},
        {"kind": "xyz"},
        {"kind": "bsr"},
        {"kind": "coo"},
        {"kind": "dia"},
        {"indptr": None},
        {"indices": None},
        {"kind": "coo", "row": np.int32([0, 1, 3]), "col": np.int32([0, 1, 2])},
        {"kind": "coo", "row": np.int32([0, 1, -1]), "col": np.int32([0, 1, 2])},
        {"kind": "coo", "row": np.int32([0, 1]), "col": np.int32([0, 1, 2])},
        {"kind": "coo", "row": np.array([0.0, 1, 2]), "col": np.int32([0, 1, 2])},
        {"kind": "coo", "coords": np.int32([[0, 1, 2]])},
        {"kind": "dia", "offsets": np.int32([0, 0]), "data": np.ones((2, 3))},
        {"kind": "dia", "offsets": np.int64([2**62]), "data": np.ones((1, 3))},
        {"kind": "dia", "offsets": np.int32([0]), "data": np.ones(3)},
        {"kind": "bsr", "data": np.ones((3, 0, 1))},
        {"kind": "bsr", "data": np.ones((3, 2, 2))},
        {"kind": "bsr", "data": np.ones((3, 1, 1)), "indices": np.int32([0, 7, 1])},
    ],
)
def test_other_arrays(tmp_path, changed):
    assert refused(stored(tmp_path, **changed), "x.npz")


def test_a_matrix_of_many_rows_takes_no_more_than_its_entries(tmp_path):
    side = 10**18
    for kind, more in (
        ("dia", {"offsets": np.int64([-(10**17)]), "data": np.ones((1, 3))}),
        ("coo", {"row": np.int64([side - 1]), "col": np.int64([0]), "data": np.ones(1)}),
    ):
        assert read(stored(tmp_path, kind, (side, side), **more)).values.size in (1, 3)


def broken(kind):
    """A matrix in memory that SciPy takes for a sound one."""
    matrix = getattr(sparse, f"{kind}_array")(DENSE)
    if kind == "lil":
        matrix.rows[0][0] = 7
    elif kind == "coo":
        matrix.row[0] = 10**6
    elif kind == "dia":
        matrix.offsets = matrix.offsets[:1]
    elif kind == "bsr":
        matrix.indices[0] = 10**6
    else:
        matrix.indptr[1] = 10**9
    return matrix


@pytest.mark.parametrize("kind", [*KINDS, "lil"])
@pytest.mark.parametrize(
    "use",
    [
        bf.operators.Entries.from_sparse,
        from_matrix,
        lambda X: bf.MatrixCompletion(n_components=1).fit(X),
        lambda X: bf.OneBitCompletion(n_components=1).fit(X),
    ],
    ids=["Entries", "from_matrix", "MatrixCompletion", "OneBitCompletion"],
)
def test_damaged_matrices_in_memory(use, kind):
    with pytest.raises((InputError, ValueError)):
        use(broken(kind))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr"])
@pytest.mark.parametrize(
    "use",
    [
        lambda X: bf.operators.Linear(X, (3, 1)),
        lambda X: bf.LogisticPCA(n_components=1).fit(X),
        lambda X: from_matrix(np.ones((3, 3)), X),
        lambda X: bf.solve(bf.Function(lambda Y: 0.0, lambda Y: X, (3, 3)), 1, bf.solvers.BFGD(), rng=0),
    ],
    ids=["Linear", "LogisticPCA", "weights", "Function"],
)
def test_damaged_matrices_in_other_places(use, kind):
    with pytest.raises(InputError, match="is a damaged sparse matrix"):
        use(broken(kind))


def test_lists_of_different_lengths():
    matrix = sparse.lil_array(DENSE)
    matrix.data[0].append(9.0)
    with pytest.raises(InputError, match="different numbers of indices and entries"):
        coordinates(matrix, "X")


@pytest.mark.parametrize("kind", [*KINDS, "lil", "dok"])
def test_sound_matrices_in_memory(kind):
    matrix = getattr(sparse, f"{kind}_array")(DENSE)
    require_sound(matrix, "X")
    np.testing.assert_array_equal(coordinates(matrix, "X").toarray(), DENSE)
    np.testing.assert_array_equal(matrix.toarray(), DENSE)


def test_diagonals_that_stick_out():
    matrix = sparse.dia_array((np.arange(12.0).reshape(3, 4), [-2, 0, 3]), shape=(3, 3))
    np.testing.assert_array_equal(coordinates(matrix, "X").toarray(), matrix.toarray())


# Other arrays


def npy(array=None, header=None):
    out = io.BytesIO()
    if header is None:
        np.save(out, array)
    else:
        np.lib.format.write_array_header_1_0(out, {"fortran_order": False, **header})
        out.write(bytes(80))
    return out.getvalue()


def archive(path, packed=zipfile.ZIP_STORED, **members):
    with zipfile.ZipFile(path, "w", packed) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


@pytest.mark.parametrize(
    "header",
    [
        {"descr": "<f8", "shape": (10**9, 10**9)},
        {"descr": "<U0", "shape": (10**12,)},
        {"descr": "|V0", "shape": (10**12,)},
        {"descr": "<f8", "shape": (-1, -10)},
        {"descr": "<f8", "shape": (True, True)},
        {"descr": "|O", "shape": (1,)},
        {"descr": "<f8", "shape": (100,)},
    ],
    ids=str,
)
def test_headers_that_promise_too_much(tmp_path, header):
    for packed in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        assert refused(archive(tmp_path / "x.npz", packed, table=npy(header=header)), "x.npz")
    (tmp_path / "x.npy").write_bytes(npy(header=header))
    assert refused(tmp_path / "x.npy", "x.npy", target_state, n=2)


def test_a_header_without_end(tmp_path):
    """It says that it has four billion bytes, for which no memory is taken."""
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x02\x00" + b"\xff" * 4 + b"{" * 200)
    assert refused(tmp_path / "x.npy", "x.npy", target_state, n=2)


@pytest.mark.parametrize("packed", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_that_numpy_does_not_write(tmp_path, packed):
    assert refused(archive(tmp_path / "x.npz", packed, table=npy(DENSE)), "not an npz file of plain arrays")


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"user": np.array([b"\xff", b"b"]), "item": [0, 1]}, "row is not Unicode text"),
        ({"user": np.array(["a", "b"]), "item": np.uint32([0x110000, 65]).view("U1")}, "column is not Unicode text"),
        ({"user": np.uint32([0xD800, 65]).view("U1"), "item": [0, 1]}, "row is not Unicode text"),
        ({"user": [0.5, 1], "item": [0, 1]}, "not integers or text"),
        ({"user": [0, 1, 2], "item": [0, 1]}, "different lengths"),
        ({"user": [0, 1], "item": [0, 1], "rating": [1, 2j]}, "not numbers"),
        ({"user": [0, 1], "item": [0, 1], "rating": [1, np.inf]}, "infinite"),
        ({"user": [0, 1], "item": [0, 1], "rating": np.array(["1", "2"])}, "not numbers"),
    ],
)
def test_triples(tmp_path, arrays, match):
    np.savez(tmp_path / "x.npz", **{"rating": [1.0, 2.0], **arrays})
    assert refused(tmp_path / "x.npz", match)


@pytest.mark.parametrize("shape", [(2**40, 0), (0, 2**40), (0, 0)])
def test_tables_without_cells(tmp_path, shape):
    """Their names would not fit into memory."""
    np.savez(tmp_path / "x.npz", table=np.empty(shape))
    assert refused(tmp_path / "x.npz", "without any cell")


@pytest.mark.parametrize("weights", [[1.0], [[1.0, 2.0]], ["a", "b"], [1.0, -1.0], [1.0, np.nan], [0.0, 0.0], [1j, 1j]])
def test_weights_of_triples(tmp_path, weights):
    np.savez(tmp_path / "x.npz", user=[0, 1], item=[0, 1], rating=[1.0, 2.0], w=np.array(weights))
    assert refused(tmp_path / "x.npz", weight="w")


def test_bytes_in_the_other_order(tmp_path):
    np.savez(
        tmp_path / "x.npz",
        user=np.array([3, 5], ">i8"),
        item=np.array(["é", "b"], ">U1"),
        rating=np.array([1, 2], ">f8"),
    )
    found = read(tmp_path / "x.npz")
    assert (found.values.tolist(), list(found.row_names), list(found.column_names)) == ([1, 2], [3, 5], ["é", "b"])


def test_pairs_have_no_weights(tmp_path):
    (tmp_path / "x.csv").write_text("a,b,c\n1,2,3\n")
    with pytest.raises(InputError, match="have no weights"):
        read(tmp_path / "x.csv", values=False, weight="c")


# Text

MARKET = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("sizes", "entry", "match"),
    [
        ("nan 2 1", "1 1 1", "no line with the three sizes"),
        ("-2 2 1", "1 1 1", "no line with the three sizes"),
        ("inf 2 1", "1 1 1", "no line with the three sizes"),
        ("2.5 2 1", "1 1 1", "no line with the three sizes"),
        ("2 2", "1 1 1", "no line with the three sizes"),
        ("1" * 5000 + " 2 1", "1 1 1", "no line with the three sizes"),
        ("² 2 1", "1 1 1", "no line with the three sizes"),
        ("2 2 1", "0 1 1", "outside its 2×2"),
        ("2 2 1", "-1 1 1", "outside its 2×2"),
        ("2 2 1", "1 3 1", "outside its 2×2"),
        ("2 2 1", "1e300 1 1", "outside its 2×2"),
        ("2 2 1", "1.5 1 1", "not an integer"),
        ("2 2 1", "nan 1 1", "not an integer"),
        ("2 2 1", "inf 1 1", "not a finite number"),
        ("2 2 1", "1 1 inf", "not a finite number"),
        ("2 2 1", "1 1", "has 2 fields"),
        ("2 2 nan", "1 1 1", "no line with the three sizes"),
    ],
)
def test_matrix_market(tmp_path, sizes, entry, match):
    (tmp_path / "x.mtx").write_text(f"{MARKET}{sizes}\n{entry}\n")
    assert refused(tmp_path / "x.mtx", match)


def test_lines_end_where_lines_end(tmp_path):
    """Not at the other characters at which Python splits text."""
    (tmp_path / "x.mtx").write_text(f"{MARKET}% a\x0bb\u2028c\x85\n2 2 1\n2 1 5\n")
    assert read(tmp_path / "x.mtx").values.tolist() == [5]


@pytest.mark.parametrize(
    ("content", "name", "match"),
    [
        (b"name,a\xff,b,c\nann,1,,2\n", "x.csv", "Line 1 of .* is not UTF-8"),
        ("name,²,b,c\nann,1,,2\n".encode(), "x.csv", None),
        (b"name," + b"1" * 5000 + b",b,c\nann,1,,2\n", "x.csv", None),
        (b"user,item,rating\na\xff,x,1\n", "x.csv", "Line 2 of .* is not UTF-8"),
        (b"a,b,1\n" * 20_000 + b"a\0,b,1\n", "x.csv", "Line 20001 of .* holds a zero byte"),
        (b'a,b,1\n"a,b,1\n', "x.csv", "Line 2 of .* has a quote that is not closed"),
        (b'{"' + b"u" * 5000 + b'": 1, "item": null, "rating": 1}\n', "x.jsonl", "column names are missing in 'item'"),
        (b'{"user": "\\ud800", "item": 1, "rating": 1}\n', "x.jsonl", "Line 1 of .* is not a JSON object"),
        (b'{"user": 1, "item": 1, "rating": 1' + b"0" * 400 + b"}\n", "x.jsonl", "does not hold numbers"),
        (gzip.compress(b"a,b,1\n" * 1000, mtime=0)[:-5], "x.csv.gz", "damaged or truncated gzip file"),
        (gzip.compress(b"a,b,1\n" * 1000, mtime=0)[:20], "x.csv.gz", "damaged or truncated gzip file"),
        (gzip.compress(b"a,b,1\n" * 1000, mtime=0)[:-8] + bytes(8), "x.csv.gz", "damaged or truncated gzip file"),
        (b"PAR1" + bytes(100) + b"PAR1", "x.parquet", "not a parquet file"),
        (b"PK\x03\x04" + bytes(40), "x.npz", "not an npz file"),
    ],
)
def test_other_files(tmp_path, content, name, match):
    (tmp_path / name).write_bytes(content)
    if match is None:
        assert read(tmp_path / name).values.tolist() == [1, 2]
    else:
        assert refused(tmp_path / name, match)


def test_files_that_are_cut_short(tmp_path):
    for kind in ("long.parquet", "triples.npz", "csr.npz", "long.csv.gz", "market.mtx.gz"):
        whole = fuzz_readers.seed_of(kind)
        for size in range(1, len(whole), max(len(whole) // 25, 1)):
            (tmp_path / kind).write_bytes(whole[:size])
            assert refused(tmp_path / kind)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("[" * 100_000, "x.json"),
        (json.dumps({"XX": {"00": 10**400}}), "x.json"),
        (json.dumps({"X" * 40: {"0" * 40: 1}}), "x.json"),
        (json.dumps({"X" * 5000: {"0": 1}}), "x.json"),
        (json.dumps({"XX": {"00": "1"}}), "x.json"),
        (json.dumps({"XX": {"x" * 5000: 1}}), "x.json"),
        ("setting,outcome,count\n" + "X" * 40 + "," + "0" * 40 + ",1\n", "x.csv"),
        ("setting,outcome,count\nXX," + "7" * 5000 + ",1\n", "x.csv"),
        ("setting,outcome,count\nXX,00,nan\n", "x.csv"),
        ("setting,outcome,count\nXX,00,-1\n", "x.csv"),
        (",,,\n", "x.csv"),
        ("\u2028,\x1c\n", "x.csv"),
    ],
)
def test_counts(tmp_path, content, name):
    (tmp_path / name).write_text(content)
    assert refused(tmp_path / name, reader=read_counts)


# All of them, at random


@pytest.mark.parametrize("kind", fuzz_readers.SEEDS)
def test_changes_at_random(tmp_path, kind):
    """A small share of what `python -m benchmarks fuzz_readers` does, in this process."""
    for seed in range(20):
        assert fuzz_readers.case(kind, seed, tmp_path) in ("read", "refused")


@pytest.mark.parametrize("kind", fuzz_readers.SEEDS)
def test_what_is_sound_is_read(tmp_path, kind):
    (tmp_path / kind).write_bytes(fuzz_readers.seed_of(kind))
    chosen = type("First", (), {"integers": lambda self, n: 0})()
    assert fuzz_readers.sound(fuzz_readers.read(tmp_path / kind, chosen))


def test_damage_is_a_file_error(tmp_path):
    with pytest.raises(FileError):
        read(stored(tmp_path, indptr=np.int32([0, 10, 2, 3])))
