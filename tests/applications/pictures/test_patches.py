"""Groups of similar patches: compiled kernels against the reference, and against a fold-in."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.applications.pictures import patches_numba, patches_reference
from bifactor.applications.pictures.patches import model_of, references
from bifactor.applications.pictures.patches_reference import PartialPicture
from bifactor.models.fold_in import fold_in


def scene(shape=(40, 36), planes=3, share=0.5, seed=0):
    rng = np.random.default_rng(seed)
    x, y = np.arange(shape[1]), np.arange(shape[0])[:, None]
    picture = np.stack([120 + 60 * np.sin(0.4 * x + k) * np.cos(0.3 * y) for k in range(planes)])
    picture = (picture + 8 * rng.standard_normal(picture.shape)).astype(np.float32)
    return picture, rng.random(shape) < share


def sums(kernels, picture, known, corners, model, data=None, progress=None):
    """What all bands tell, as one, and that none overlaps another."""
    guide = np.ascontiguousarray(picture.sum(axis=0))
    whole = np.zeros_like(picture), np.zeros_like(guide), np.zeros_like(guide)
    bottom = 0
    scene = PartialPicture(guide, picture, picture if data is None else data, known)
    for band in kernels.aggregate(scene, corners, model, progress):
        assert band.top >= bottom
        bottom = band.top + len(band.weights)
        for all_rows, rows in zip(whole, band[1:], strict=True):
            all_rows[..., band.top : bottom, :] = rows
    return whole


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.95])
@pytest.mark.parametrize("planes", [1, 3])
@pytest.mark.parametrize("shape", [(40, 36), (9, 30), (8, 8), (5, 7)])
def test_compiled_kernels_agree_with_the_reference(shape, planes, share):
    picture, known = scene(shape, planes, share)
    model = model_of(shape, 4.0, 0.01, 6)
    corners = references(known, model.patch, 5)[:12]
    ours = sums(patches_numba, picture, known, corners, model)
    theirs = sums(patches_reference, picture, known, corners, model)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4 * np.abs(other).max())


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("planes", [1, 3])
def test_compiled_kernels_agree_where_known_pixels_have_noise(planes, share):
    picture, known = scene((30, 25), planes, share)
    data = picture + np.random.default_rng(1).standard_normal(picture.shape).astype(np.float32)
    for excess in (0.0, 64.0):
        model = model_of(known.shape, 64.0, 0.01, 6, noise=8.0)._replace(excess=excess, solved=7)
        corners = references(np.zeros_like(known), model.patch, 6)
        ours = sums(patches_numba, picture, known, corners, model, data)
        theirs = sums(patches_reference, picture, known, corners, model, data)
        assert np.all(ours[1] > 0)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-3 * np.abs(other).max())


def test_rows_that_were_told_may_be_changed():
    picture, known = scene((400, 40))
    model = model_of(known.shape, 4.0, 0.01, 6)
    corners, guide = references(known, model.patch, 5), np.ascontiguousarray(picture.sum(axis=0))
    expected = sums(patches_numba, picture, known, corners, model)
    changed, bands = picture.copy(), 0
    for band in patches_numba.aggregate(PartialPicture(guide, changed, changed, known), corners, model):
        rows = slice(band.top, band.top + len(band.weights))
        np.testing.assert_array_equal(band.values, expected[0][:, rows])
        changed[:, rows], bands = np.nan, bands + 1
    assert bands > 3


def test_the_answer_does_not_depend_on_threads():
    picture, known = scene((300, 60))
    model = model_of(known.shape, 4.0, 0.01, 6)
    corners = references(known, model.patch, 5)
    answers = []
    for count in (1, 2, 5):
        with bf.threads(count):
            answers.append(sums(patches_numba, picture, known, corners, model))
    for other in answers[1:]:
        for one, two in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_no_more_threads_are_used_than_allowed(monkeypatch):
    picture, known = scene((300, 60))
    model, used, run = model_of(known.shape, 4.0, 0.01, 6), [], patches_numba.run
    monkeypatch.setattr(
        patches_numba, "run", lambda function, calls: (used.append(len(calls)), run(function, calls))[1]
    )
    for count in (1, 2):
        with bf.threads(count):
            sums(patches_numba, picture, known, references(known, model.patch, 5), model)
        assert max(used) == count


def test_progress_ends_at_one():
    picture, known = scene((120, 40))
    model = model_of(known.shape, 4.0, 0.01, 6)
    corners = references(known, model.patch, 8)
    for kernels in (patches_numba, patches_reference):
        told = []
        sums(kernels, picture, known, corners, model, progress=told.append)
        assert told == sorted(told)
        assert told[-1] == 1


def test_a_patch_is_a_row_folded_in():
    """x = μ + Ab with the b that minimises ‖y_o − μ_o − A_o b‖² + ρ‖b‖², where AAᵀ is the covariance of the others."""
    picture, known = scene((24, 24), 1, 0.6)
    model = model_of(known.shape, 4.0, 0.0, 1)._replace(similar=500, window=30)
    corner, p = np.array([[8, 9]]), model.patch
    values, weights, doubts = sums(patches_reference, picture, known, corner, model)
    patches = np.lib.stride_tricks.sliding_window_view(picture[0], (p, p)).reshape(-1, p * p).astype(float)
    mine = picture[0, 8 : 8 + p, 9 : 9 + p].ravel().astype(float)
    k = len(patches)
    centred = patches - patches.mean(axis=0)
    size = np.mean(centred**2) + 1
    others = (patches.sum(axis=0) - mine) / (k - 1)
    C = centred.T @ centred + model.strength * size * model.correlation
    z = mine - patches.mean(axis=0)
    C = (C - k / (k - 1) * np.outer(z, z)) / (k + model.strength)
    A = np.linalg.cholesky(C)
    o = known[8 : 8 + p, 9 : 9 + p].ravel()
    at = np.flatnonzero(o)
    problem = bf.Problem("squared", bf.operators.Entries(np.zeros_like(at), at, (1, p * p)), (mine - others)[o])
    x = others + A @ fold_in(problem, A, model.variance)[0]
    told = (values[0] / np.maximum(weights, 1e-30))[8 : 8 + p, 9 : 9 + p].ravel()
    np.testing.assert_allclose(told[~o], x[~o], rtol=1e-4)
    assert np.all(doubts[weights > 0] > 0)


def test_references_have_holes_and_reach_the_borders():
    known = np.ones((30, 41), bool)
    assert len(references(known, 8, 5)) == 0
    known[29, 40] = known[3, 3] = False
    corners = references(known, 8, 5).tolist()
    assert [22, 33] in corners
    assert all(not known[i : i + 8, j : j + 8].all() for i, j in corners)
