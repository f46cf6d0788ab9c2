"""New rows for factors that are held: each is the minimiser of its own convex problem."""

from functools import cache

import numpy as np
import pytest
from tests.conftest import LOSSES, targets

import bifactor as bf
from bifactor import kernels
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.losses import Loss
from bifactor.models.fold_in import fold_in


@pytest.fixture(autouse=True, params=["compiled", "reference"])
def compiled(request, monkeypatch):
    """Whether rows are found by compiled kernels: the laws are those of both."""
    monkeypatch.setattr(kernels, "SMALL", 0 if request.param == "compiled" else 1 << 62)
    return request.param == "compiled"


class OwnLoss(Loss):
    """A loss of a user, without a compiled form."""

    targets, smoothness = bf.losses.Logistic.targets, 0.25

    def __init__(self):
        self.base = bf.losses.Logistic()

    def value(self, z, y):
        return self.base.value(z, y)

    def gradient(self, z, y):
        return self.base.gradient(z, y)

    def curvature(self, z, y):
        return self.base.curvature(z, y)

    def mean(self, z):
        return self.base.mean(z)


def new_rows(loss, rng, shape=(15, 40), rank=3, dtype=np.float64, **options):
    U, V = rng.standard_normal((shape[0], rank)), rng.standard_normal((shape[1], rank))
    i, j = np.nonzero(rng.random(shape) < 0.6)
    order = rng.permutation(i.size)
    i, j = i[order], j[order]
    y = targets(loss, np.einsum("tk,tk->t", U[i], V[j]) / 2, rng).astype(dtype)
    return bf.Problem(loss, bf.operators.Entries(i, j, shape), y, **options), V.astype(dtype)


def slopes(problem, U, V, first, ridge):
    """The gradient in the unknown columns, row by row, in double precision."""
    exact = bf.Problem(problem.loss, problem.operator, problem.y.astype(float), problem.weights)
    x = Free().pair(U.astype(float), V.astype(float))
    return exact.f.evaluate(x).GV[:, first:] + ridge * x.left[:, first:]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LOSSES)
def test_rows_are_stationary_whatever_the_loss(name, dtype):
    problem, V = new_rows(LOSSES[name], np.random.default_rng(0), dtype=dtype)
    U = fold_in(problem, V, 0.1)
    assert U.dtype == dtype
    size = np.abs(slopes(problem, 0 * U, V, 0, 0.1)).max()
    assert np.abs(slopes(problem, U, V, 0, 0.1)).max() <= (1e-9 if dtype == np.float64 else 1e-5) * size


@pytest.mark.parametrize("compiled", ["compiled"], indirect=True)
@pytest.mark.parametrize("name", ["Squared", "Logistic", "Poisson", "Huber"])
def test_compiled_rows_are_those_of_the_reference(name, monkeypatch):
    from bifactor.kernels import threading

    problem, V = new_rows(LOSSES[name], np.random.default_rng(1), weights=2.0, offsets=True)
    rng = np.random.default_rng(2)
    V = np.hstack([rng.standard_normal((len(V), 1)), np.ones((len(V), 1)), V])
    rows = fold_in(problem, V, 0.2)
    monkeypatch.setattr(threading, "SMALL", 1)
    np.testing.assert_array_equal(rows, fold_in(problem, V, 0.2))
    monkeypatch.setattr(type(problem.loss), "pointwise", None)
    np.testing.assert_allclose(rows, fold_in(problem, V, 0.2), atol=1e-8)
    np.testing.assert_array_equal(rows[:, 0], 1.0)


def test_a_loss_without_a_compiled_form():
    problem, V = new_rows(bf.losses.Logistic(), np.random.default_rng(3))
    own = bf.Problem(OwnLoss(), problem.operator, problem.y)
    np.testing.assert_allclose(fold_in(own, V, 0.1), fold_in(problem, V, 0.1), atol=1e-8)


def test_rows_do_not_hold_each_other_up(compiled):
    """A row that cannot improve has nothing to say about the others: each comes out as if it were alone."""
    rng = np.random.default_rng(4)
    problem, V = new_rows(bf.losses.Logistic(), rng)
    together = fold_in(problem, V, 1e-3)
    rows = problem.operator.rows
    for i in range(problem.shape[0]):
        part = rows == i
        operator = bf.operators.Entries(0 * rows[part], problem.operator.cols[part], (1, problem.shape[1]))
        alone = fold_in(bf.Problem(problem.loss, operator, problem.y[part]), V, 1e-3)
        if compiled:
            np.testing.assert_array_equal(alone[0], together[i])
        else:  # sums over all rows at once round otherwise
            np.testing.assert_allclose(alone[0], together[i], rtol=1e-12)


def test_columns_may_have_ridges_of_their_own():
    problem, V = new_rows(bf.losses.Squared(), np.random.default_rng(5))
    ridge = np.array([0.1, 3.0, 50.0])
    U = fold_in(problem, V, ridge)
    assert np.abs(slopes(problem, U, V, 0, ridge)).max() < 1e-8


def test_a_row_of_which_nothing_is_known_is_zero_and_few_entries_are_fitted(compiled):
    rng = np.random.default_rng(6)
    V = rng.standard_normal((9, 4))
    operator = bf.operators.Entries([1, 1], [3, 5], (3, 9))
    U = fold_in(bf.Problem(bf.losses.Squared(), operator, np.array([2.0, -1.0])), V, 0.0)
    np.testing.assert_array_equal(U[[0, 2]], 0.0)
    np.testing.assert_allclose(U[1] @ V[[3, 5]].T, [2.0, -1.0], atol=1e-6)
    np.testing.assert_allclose(U[1], np.linalg.lstsq(V[[3, 5]], [2.0, -1.0], rcond=None)[0], atol=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_new_rows_of_a_fit_are_the_rows_of_the_fit(name):
    """At convergence of a whole fit with a ridge, each row is the best for its own entries."""
    problem, _ = new_rows(LOSSES[name], np.random.default_rng(7), shape=(25, 30), rank=2)
    whole = problem.penalized(bf.penalties.Ridge(0.5))
    result = bf.solve(whole, 2, bf.solvers.Newton(), rng=0, tol=1e-12, max_iter=200)
    result = bf.solve(whole, 2, bf.solvers.Newton(), bf.inits.Given(result.U, result.V), tol=0, max_iter=5)
    np.testing.assert_allclose(fold_in(problem, result.V, 0.5), result.U, atol=1e-6)


def test_only_entries_can_be_folded_in():
    A = bf.operators.Full((4, 3))
    with pytest.raises(InputError, match=r"Entries"):
        fold_in(bf.Problem(bf.losses.Squared(), A, np.ones(12)), np.ones((3, 1)), 0.0)


def with_all_cells(shape=(40, 30), dtype=np.float64, weighted=False, offsets=False, seed=3):
    """Clicks, all cells and a ridge by frequency; with weights that differ, and offsets with a ridge of their own."""
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random(shape) < 0.2)
    s, t = (0.5 + rng.random(k) if weighted else np.ones(k) for k in shape)
    a = np.bincount(i, minlength=shape[0]) + 0.3 * t.sum() * s
    b = np.bincount(j, minlength=shape[1]) + 0.3 * s.sum() * t
    components = (4.0, 4.0, 1.0) if offsets else None
    y = gaussian(rng, i.shape, dtype) if np.dtype(dtype).kind == "c" else np.ones(i.size, dtype)
    plain = bf.Problem("squared", bf.operators.Entries(i, j, shape), y, offsets=offsets)
    problem = plain.penalized(bf.penalties.Ridge(0.02, a, b, components)) + bf.all_cells(0.3, s, t)
    return problem, (i, j, y), (a, s, t)


@cache
def whole_fit(weighted, offsets, dtype):
    problem, *data = with_all_cells(weighted=weighted, offsets=offsets, dtype=dtype)
    return *data, bf.solve(problem, 5, bf.solvers.Newton(), rng=0, tol=1e-12, max_iter=500)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_all_cells_rows_are_those_of_a_whole_fit(weighted, offsets, dtype):
    """The rows of a converged fit, found again from their entries alone, some of them at a time."""
    (i, j, y), (a, s, t), fit = whole_fit(weighted, offsets, dtype)
    gradient = fit.history.gradient_norm
    assert gradient[-1] <= 1e-8 * gradient[0]
    rows = np.array([3, 17, 0, 39])
    place = np.full(40, -1)
    place[rows] = np.arange(4)
    some = place[i] >= 0
    operator = bf.operators.Entries(place[i[some]], j[some], (4, 30))
    new = bf.Problem("squared", operator, y[some], offsets=offsets) + bf.all_cells(0.3, s[rows], t)
    components = np.array([4.0, 1, 1, 1, 1, 1] if offsets else [1.0] * 5)
    found = fold_in(new, fit.V, 0.02 * np.multiply.outer(a[rows], components))
    np.testing.assert_allclose(found, fit.U[rows], atol=1e-5 * np.abs(fit.U).max())


def test_with_all_cells_any_loss_has_its_rows():
    problem, V = new_rows(LOSSES["Logistic"], np.random.default_rng(0))
    total = problem + bf.all_cells(0.2, rows=np.arange(15) + 1.0) + bf.all_cells(0.1)
    U = fold_in(total, V, 0.1)
    slope = total.f.evaluate(Free().pair(U, V)).GV + 0.1 * U
    assert np.abs(slope).max() <= 1e-9 * np.abs(total.f.evaluate(Free().pair(0 * U, V)).GV).max()


def test_a_row_without_entries_follows_all_cells():
    """With fixed columns there is something to pull to 0; without, the row is 0."""
    operator = bf.operators.Entries([1], [0], (3, 4))
    V = np.random.default_rng(0).standard_normal((4, 3))
    U = fold_in(bf.Problem("squared", operator, np.ones(1)) + bf.all_cells(0.2), V, 0.1)
    np.testing.assert_array_equal(U[[0, 2]], 0)
    fixed = bf.Problem("squared", operator, np.ones(1), fixed=(np.ones((3, 1)), None)) + bf.all_cells(0.2)
    U = fold_in(fixed, V, 0.1)
    M = 0.2 * V.T @ V
    np.testing.assert_allclose(U[0, 1:], -np.linalg.solve(M[1:, 1:] + 0.1 * np.eye(2), M[1:, 0]))


def test_each_row_may_have_a_ridge_of_its_own():
    problem, V = new_rows(LOSSES["Squared"], np.random.default_rng(0))
    ridges = np.random.default_rng(1).random((15, 1))
    whole = fold_in(problem, V, ridges)
    np.testing.assert_allclose(whole, fold_in(problem, V, np.repeat(ridges, 3, axis=1)))
    for row in (0, 7):
        np.testing.assert_allclose(whole[row], fold_in(problem, V, float(ridges[row, 0]))[row], rtol=1e-10)
    with pytest.raises(InputError, match="there are 15 rows and 3 unknown columns"):
        fold_in(problem, V, np.ones(4))
