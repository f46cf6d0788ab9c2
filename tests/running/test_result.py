"""What a Result can do without forming X, and what survives on disk."""

import os

import numpy as np
import pytest
from safetensors.numpy import save

import bifactor as bf
from bifactor.errors import FileError, InputError
from bifactor.running import files


@pytest.fixture(params=[np.float32, np.float64, np.complex64, np.complex128])
def result(request, make_problem):
    return bf.solve(make_problem(9, 7, dtype=request.param), 2, rng=0, max_iter=5)


def test_products_agree_with_the_matrix(result):
    X = result.matrix()
    assert X.shape == result.shape == (9, 7)
    assert result.rank == 2
    tol = {"rtol": 1e-4, "atol": 1e-5} if np.finfo(X.dtype).eps > 1e-10 else {"rtol": 1e-12}
    rows, cols = np.array([8, 0, 3, 3]), np.array([0, 6, 2, 2])
    np.testing.assert_allclose(result.predict(rows, cols), X[rows, cols], **tol)
    B = np.random.default_rng(0).standard_normal((7, 3))
    np.testing.assert_allclose(result.apply(B), X @ B, **tol)
    np.testing.assert_allclose(result.apply(B[:, 0]), X @ B[:, 0], **tol)
    assert result.predict([], []).shape == (0,)


def test_repr_is_short(result):
    assert "9×7 of rank 2" in repr(result)
    assert len(repr(result)) < 120


def test_save_and_load(result, tmp_path):
    path = tmp_path / "fit.safetensors"
    result.save(path)
    again = bf.Result.load(str(path))
    for name in ("U", "V"):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
        assert getattr(again, name).dtype == getattr(result, name).dtype
    for name, series in vars(result.history).items():
        np.testing.assert_array_equal(getattr(again.history, name), series)
    assert (again.status, again.n_iter, again.objective, again.solver) == (
        result.status,
        result.n_iter,
        result.objective,
        result.solver,
    )
    assert [p.name for p in tmp_path.iterdir()] == ["fit.safetensors"]


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("0 to 8 on that side", lambda r: r.predict([9], [0])),
        ("counted from 0", lambda r: r.predict([0.5], [0])),
        ("rows has 1", lambda r: r.predict([0], [0, 1])),
        ("B has shape", lambda r: r.apply(np.ones(9))),
        ("B has shape", lambda r: r.apply(np.ones((7, 1, 1)))),
        ("B has dtype", lambda r: r.apply(np.array(["a"] * 7))),
    ],
)
def test_mistakes_get_one_clear_error(result, message, call):
    with pytest.raises(InputError, match=message):
        call(result)


def test_broken_files_get_one_clear_error(make_problem, tmp_path):
    path = tmp_path / "fit.safetensors"
    result = bf.solve(make_problem(9, 7), 2, rng=0, max_iter=5)
    result.save(path)
    whole = path.read_bytes()
    for cut in (0, 1, 7, 8, 20, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(FileError, match="truncated"):
            bf.Result.load(path)
    path.write_bytes(b"\xff" * 100)
    with pytest.raises(FileError, match="Cannot read"):
        bf.Result.load(path)
    with pytest.raises(FileError, match="missing"):
        bf.Result.load(tmp_path / "nowhere")
    with pytest.raises(FileError):
        bf.Result.load(tmp_path)
    files.write(path, "result", {"U": np.eye(2)}, {"status": "GRADIENT"})
    with pytest.raises(FileError, match="another version"):
        bf.Result.load(path)
    files.write(path, "checkpoint", {}, {})
    with pytest.raises(FileError, match="not a bifactor result"):
        bf.Result.load(path)
    with pytest.raises(FileError, match="Cannot write"):
        result.save(tmp_path / "no" / "folder")


def test_files_can_be_read_by_whom_the_umask_says(make_problem, tmp_path):
    path = tmp_path / "fit.safetensors"
    before = os.umask(0o022)
    try:
        bf.solve(make_problem(9, 7), 2, rng=0, max_iter=2).save(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644


def test_a_failed_write_leaves_the_old_file(make_problem, tmp_path, monkeypatch):
    path = tmp_path / "fit.safetensors"
    result = bf.solve(make_problem(9, 7), 2, rng=0, max_iter=5)
    result.save(path)
    before = path.read_bytes()

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full_disk)
    with pytest.raises(FileError, match="No space left"):
        result.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def _tol(result):
    return 1e-4 if np.finfo(result.U.dtype).eps > 1e-10 else 1e-10


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_truncated_is_the_nearest_matrix_of_its_rank(make_problem, dtype):
    for shape in ((9, 7), (7, 9), (5, 1)):
        problem = make_problem(*shape, dtype=dtype)
        whole = bf.solve(problem, min(shape), rng=0, max_iter=5)
        A, s, Bh = np.linalg.svd(whole.matrix(), full_matrices=False)
        for rank in range(1, min(shape) + 1):
            cut = whole.truncated(rank)
            tol = _tol(whole) * float(s[0])
            assert cut.rank == rank
            assert cut.U.dtype == cut.V.dtype == dtype
            np.testing.assert_allclose(cut.matrix(), (A[:, :rank] * s[:rank]) @ Bh[:rank], atol=tol)
            # Eckart and Young: what is missing is the tail.
            missing = np.linalg.norm(whole.matrix() - cut.matrix())
            assert missing == pytest.approx(np.linalg.norm(s[rank:]), abs=tol)
            np.testing.assert_allclose(cut.U.conj().T @ cut.U, cut.V.conj().T @ cut.V, atol=tol)
            assert cut.objective == pytest.approx(problem.f.value(problem.kind.pair(cut.U, cut.V)), rel=_tol(whole))
            assert (cut.status, cut.n_iter, cut.solver) == (whole.status, whole.n_iter, whole.solver)
        assert whole.rank == min(shape)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_truncated_stays_semidefinite(make_problem, dtype):
    problem = make_problem(12, symmetric=True, dtype=dtype)
    whole = bf.solve(problem, 5, bf.solvers.PCG(), rng=0, max_iter=5)
    cut = whole.truncated(np.int64(2))
    np.testing.assert_array_equal(cut.U, cut.V)
    assert cut.U.dtype == dtype
    w, Q = np.linalg.eigh(whole.matrix())
    np.testing.assert_allclose(cut.matrix(), (Q[:, -2:] * w[-2:]) @ Q[:, -2:].conj().T, atol=_tol(whole) * w[-1])
    assert cut.objective == pytest.approx(problem.f.value(problem.kind.pair(cut.U, cut.V)), rel=1e-6)
    assert cut.certificate.dual_norm >= 0


def test_truncated_counts_the_penalty_at_its_least(make_problem):
    problem = make_problem(9, 7, penalty=bf.penalties.Ridge((0.5, 2.0)))
    cut = bf.solve(problem, 4, rng=0, max_iter=5).truncated(2)
    assert np.linalg.norm(cut.U) == pytest.approx(2 * np.linalg.norm(cut.V))
    nuclear = np.linalg.norm(cut.matrix(), "nuc")
    assert cut.objective == pytest.approx(problem.f.value(problem.kind.pair(cut.U, cut.V)) + nuclear)


def test_truncated_of_nothing_is_nothing():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    cut = bf.solve(problem, 3, bf.solvers.SVP(), rng=0).truncated(2)
    assert not cut.matrix().any()
    assert cut.objective == 0


def test_what_cannot_be_truncated(make_problem, tmp_path):
    problem = make_problem(9, 7)
    result = bf.solve(problem, 3, rng=0, max_iter=3)
    for rank in (0, -1, 4, 1.5, "2", None):
        with pytest.raises(InputError, match="is not possible"):
            result.truncated(rank)
    with_offsets = bf.Problem(problem.loss, problem.operator, problem.y, offsets=True)
    with pytest.raises(InputError, match="fixed columns cannot be truncated"):
        bf.solve(with_offsets, 2, rng=0, max_iter=3).truncated(1)
    result.save(tmp_path / "fit")
    with pytest.raises(InputError, match="read from a file"):
        bf.Result.load(tmp_path / "fit").truncated(1)
    np.testing.assert_array_equal(result.truncated(2).balanced().U.shape, (9, 2))


def put(array, place, value):
    array = array.copy()
    array[place] = value
    return array


ARRAYS = {
    "U of NaN": lambda arrays: {"U": put(arrays["U"], (0, 0), np.nan)},
    "V of infinity": lambda arrays: {"V": put(arrays["V"], (0, 0), -np.inf)},
    "U of integers": lambda arrays: {"U": np.ones((9, 2), np.int64)},
    "V of booleans": lambda arrays: {"V": np.ones((7, 2), bool)},
    "half precision": lambda arrays: {"U": np.ones((9, 2), np.float16), "V": np.ones((7, 2), np.float16)},
    "two precisions": lambda arrays: {"U": arrays["U"].astype(np.float32)},
    "a vector": lambda arrays: {"U": arrays["U"][:, 0]},
    "three dimensions": lambda arrays: {"V": arrays["V"][None]},
    "two ranks": lambda arrays: {"V": arrays["V"][:, :1]},
    "no rows": lambda arrays: {"U": arrays["U"][:0]},
    "no U": lambda arrays: {"U": None},
    "a short history": lambda arrays: {"objective": arrays["objective"][:-1]},
    "a history of NaN": lambda arrays: {"seconds": put(arrays["seconds"], 0, np.nan)},
    "a history in two dimensions": lambda arrays: {"seconds": arrays["seconds"][None]},
    "a history of labels": lambda arrays: {"seconds": arrays["seconds"] > 0},
    "no history": lambda arrays: {"gradient_norm": None},
    "half a path of ranks": lambda arrays: {"rank_path:rank": np.arange(3)},
    "a path of other ranks": lambda arrays: {"rank_path:rank": np.arange(3), "rank_path:guess": np.arange(3)},
    "a path of different lengths": lambda arrays: {
        f"rank_path:{name}": np.ones(k) for k, name in enumerate(("rank", "train", "held_out", "error"))
    },
}
METADATA = {
    "no status": {"status": None},
    "another status": {"status": "HAPPY"},
    "a list for a status": {"status": ["SETTLED"]},
    "no iterations": {"n_iter": None},
    "iterations in words": {"n_iter": "five"},
    "fewer iterations": {"n_iter": 1},
    "negative iterations": {"n_iter": -1},
    "iterations that are true": {"n_iter": True},
    "a fraction of iterations": {"n_iter": 5.0},
    "no objective": {"objective": None},
    "objective NaN": {"objective": float("nan")},
    "objective infinite": {"objective": float("inf")},
    "objective beyond all numbers": {"objective": 10**400},
    "objective true": {"objective": True},
    "objective in words": {"objective": "small"},
    "no solver": {"solver": None},
    "a list for a solver": {"solver": []},
}


@pytest.fixture
def stored(make_problem, tmp_path):
    path = tmp_path / "x.safetensors"
    bf.solve(make_problem(9, 7), 2, rng=0, max_iter=5, tol=0).save(path)
    return path, *files.read(path, "result")


@pytest.mark.parametrize("change", [*ARRAYS, *METADATA])
def test_what_is_damaged_is_refused_in_a_sentence(stored, change):
    path, arrays, metadata = stored
    changed = {**arrays, **ARRAYS[change](arrays)} if change in ARRAYS else arrays
    told = {**metadata, **METADATA.get(change, {})}
    files.write(path, "result", {name: array for name, array in changed.items() if array is not None}, told)
    with pytest.raises(FileError, match=r"x\.safetensors (is damaged|lacks)") as caught:
        bf.Result.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["status", "n_iter", "objective", "solver"])
def test_what_is_missing_is_named(stored, name):
    path, arrays, metadata = stored
    metadata.pop(name)
    files.write(path, "result", arrays, metadata)
    with pytest.raises(FileError, match=f"lacks '{name}'"):
        bf.Result.load(path)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"bifactor": "result"},
        {"bifactor": "result", "json": "[" * 100_000},
        {"bifactor": "result", "json": "[]"},
        {"bifactor": "result", "json": "7"},
        {"bifactor": "result", "json": "{"},
        {"bifactor": "result", "json": "{}", "format": "one"},
        {"bifactor": "result", "json": "{}", "format": "99"},
        {"bifactor": "result", "json": "{}", "checksum": "0"},
        {"bifactor": "ids", "json": "{}"},
    ],
    ids=str,
)
def test_headers_that_are_damaged(tmp_path, header):
    (tmp_path / "x").write_bytes(save({"complex:U": np.ones((3, 3))}, metadata=header))
    with pytest.raises(FileError, match="x") as caught:
        bf.Result.load(tmp_path / "x")
    assert len(str(caught.value)) < 500
    with pytest.raises(FileError, match="x"):
        files.read(tmp_path / "x", "result")


@pytest.mark.parametrize("array", [np.ones((3, 3)), np.ones((2, 2), np.int64), np.ones(()), np.ones((2, 0))], ids=str)
def test_complex_numbers_that_are_no_pairs(tmp_path, array):
    (tmp_path / "x").write_bytes(save({"complex:U": array}, metadata={"bifactor": "result", "json": "{}"}))
    with pytest.raises(FileError, match="not an array of complex numbers"):
        files.read(tmp_path / "x", "result")
