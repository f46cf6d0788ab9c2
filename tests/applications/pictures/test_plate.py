"""Compiled kernels for pictures against their NumPy references, and the laws of a bent plate."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.applications.pictures import plate_numba, plate_reference
from bifactor.kernels import threading

KERNELS = [plate_reference, plate_numba]
SHAPES = [(1, 1), (1, 9), (8, 1), (2, 2), (3, 3), (5, 4), (17, 30), (70, 65), (150, 140)]
LINEAR = np.array([0, 0.75, 0.25, 0])
CUBIC = np.array([-9, 111, 29, -3]) / 128


@pytest.fixture(autouse=True)
def threads_for_small_work(monkeypatch):
    monkeypatch.setattr(threading, "SMALL", 0)


def picture(shape, share=0.5, channels=2, dtype=np.float32):
    rng = np.random.default_rng(0)
    planes = rng.uniform(0, 255, (channels, *shape)).astype(dtype)
    return planes, rng.random(shape) < share


def energy(plane, tension):
    """‖Δx‖² + tension·⟨x, −Δx⟩ of a picture that goes on as its mirror image."""
    x = np.pad(plane.astype(np.float64), 1, mode="symmetric")
    y = 4 * x[1:-1, 1:-1] - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, :-2] - x[1:-1, 2:]
    return np.sum(y**2) + tension * np.sum(plane * y)


def dense_plate(plane, known, tension):
    """The least energy, by solving the linear equations."""
    m, n = plane.shape
    sides = [np.diag(np.full(k, 2.0)) - np.eye(k, k=1) - np.eye(k, k=-1) for k in (m, n)]
    for side in sides:
        side[0, 0] -= 1
        side[-1, -1] -= 1
    minus_laplacian = np.kron(sides[0], np.eye(n)) + np.kron(np.eye(m), sides[1])
    matrix = minus_laplacian @ minus_laplacian + tension * minus_laplacian
    hidden, x = ~known.ravel(), plane.astype(np.float64).ravel()
    x[hidden] = np.linalg.solve(matrix[np.ix_(hidden, hidden)], -matrix[np.ix_(hidden, ~hidden)] @ x[~hidden])
    return x.reshape(m, n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_halve(shape, dtype):
    planes, known = picture(shape, dtype=dtype)
    planes[:, ~known] = np.nan
    wanted, got = (kernel.halve(planes, known) for kernel in KERNELS)
    assert got[0].dtype == wanted[0].dtype == dtype
    np.testing.assert_array_equal(got[1], wanted[1])
    np.testing.assert_allclose(got[0], wanted[0], rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("taps", [LINEAR, CUBIC], ids=["linear", "cubic"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_double(shape, taps):
    planes, known = picture(shape)
    cells = np.random.default_rng(1).uniform(0, 255, (2, *((side + 1) // 2 for side in shape))).astype(np.float32)
    wanted, got = planes.copy(), planes.copy()
    plate_reference.double(cells, taps, known, wanted)
    plate_numba.double(cells, taps, known, got)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)
    np.testing.assert_array_equal(got[:, known], planes[:, known])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bend(shape, dtype):
    planes, known = picture(shape, dtype=dtype)
    wanted, got = planes.copy(), planes.copy()
    plate_reference.bend(wanted, known, 0.02)
    plate_numba.bend(got, known, 0.02)
    # Both stop when a thousandth of the residual is left, perhaps one step apart.
    np.testing.assert_allclose(got, wanted, atol=255 * 2e-3)
    np.testing.assert_array_equal(got[:, known], planes[:, known])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("shape", [(1, 12), (2, 9), (3, 3), (9, 2), (20, 23)], ids=str)
@pytest.mark.parametrize("tension", [0.02, 0.32])
def test_bend_finds_the_least_energy(kernel, shape, tension):
    planes, known = picture(shape, 0.6, channels=1)
    known[0, 0] = True
    got = planes.copy()
    kernel.bend(got, known, tension)
    np.testing.assert_allclose(got[0], dense_plate(planes[0], known, tension), atol=255 * 5e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.99])
def test_bend_lowers_the_energy(kernel, share):
    planes, known = picture((150, 140), share, channels=1)
    before = energy(planes[0], 0.02)
    for _ in range(2):
        kernel.bend(planes, known, 0.02)
        after = energy(planes[0], 0.02)
        assert after < before
        before = after


def test_tiles_agree_where_they_meet():
    """Around the corner of four tiles a picture is bent as in the middle of one; in noise, which is the worst case."""
    planes, known = picture((150, 140), 0.5, channels=1)
    parts, whole = planes.copy(), np.ascontiguousarray(planes[:, 32:96, 32:96])
    plate_numba.bend(parts, known, 0.02)
    plate_numba.bend(whole, np.ascontiguousarray(known[32:96, 32:96]), 0.02)
    apart = parts[:, 44:84, 44:84] - whole[:, 12:52, 12:52]
    assert np.sqrt(np.mean(apart**2)) < 255 * 1e-3
    assert np.abs(apart).max() < 255 * 1e-2


def test_boxes_of_a_lot_keep_apart_and_all_cover_what_is_unknown():
    known = picture((300, 290), 0.9)[1]
    covered = np.zeros((300, 290), dtype=bool)
    for lot in plate_reference.boxes(known):
        touched = np.zeros((304, 294), dtype=int)
        for top, bottom, left, right in lot:
            touched[top : bottom + 4, left : right + 4] += 1  # with the two pixels around that are read
            covered[top:bottom, left:right] = True
        assert touched.max() == 1
    assert covered[~known].all()
    assert not any(len(lot) for lot in plate_reference.boxes(np.ones((70, 70), dtype=bool)))


def test_boxes_are_as_small_as_the_holes():
    known = np.ones((200, 200), dtype=bool)
    known[100, 50:53] = False
    (box,) = np.concatenate(plate_reference.boxes(known))
    halo = plate_reference.HALO
    np.testing.assert_array_equal(box, [100 - halo, 101 + halo, 50 - halo, 53 + halo])


def test_threads_change_nothing():
    planes, known = picture((300, 290))
    results = []
    for count in (1, 2, 3):
        with bf.threads(count):
            means, some = plate_numba.halve(planes, known)
            out = planes.copy()
            plate_numba.double(means, LINEAR, known, out)
            plate_numba.bend(out, known, 0.02)
            results.append((means, some, out))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
