"""What a Result can do without forming X, and what survives on disk."""

import os

import numpy as np
import pytest

import bifactor as bf
from bifactor import files
from bifactor.errors import FileError, InputError


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
