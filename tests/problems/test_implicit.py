"""The objectives of other libraries for implicit feedback, written with `all_cells`: each is F up to a constant."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.factors import Free
from bifactor.operators import Entries
from bifactor.penalties import Ridge

SHAPE, RANK, RIDGE, LAM = (12, 9), 3, 2.5, 0.7


@pytest.fixture
def clicks():
    """Counts r of some pairs, a few of them negative for the libraries that take such."""
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random(SHAPE) < 0.3)
    return i, j, rng.integers(1, 6, i.size).astype(float)


def problem(clicks, c, w0, p=1.0, penalty=None):
    """c(z − p)² over the pairs, w₀z² over the rest: what the page on implicit feedback has."""
    i, j, _ = clicks
    return bf.Problem("squared", Entries(i, j, SHAPE), c * p / (c - w0), c - w0, penalty) + bf.all_cells(w0)


def constant(c, w0, p=1.0):
    return 0.5 * float(np.sum(c * p**2 - (c * p) ** 2 / (c - w0)))


def over_all(clicks, x, observed, rest):
    """Σ over pairs of `observed(z, r)`, and over all other cells of `rest(z)`, one by one."""
    known = {(a, b): r for a, b, r in zip(*clicks, strict=True)}
    total = 0.0
    for a in range(SHAPE[0]):
        for b in range(SHAPE[1]):
            z = float(x.left[a] @ x.right[b])
            total += observed(z, known[a, b]) if (a, b) in known else rest(z)
    return total


def squares(x):
    return float(np.sum(x.left**2)), float(np.sum(x.right**2))


def is_half(objective, const, problem):
    """The library has no ½ in front of its sums."""
    for seed in range(3):
        x = Free().random(np.random.default_rng(seed), SHAPE, RANK, np.float64)
        assert objective(x) / 2 == pytest.approx(problem.objective(x) + const, rel=1e-12)


def test_hu_koren_and_volinsky(clicks):
    c = 1 + RIDGE * clicks[2]

    def objective(x):
        cells = over_all(clicks, x, lambda z, r: (1 + RIDGE * r) * (z - 1) ** 2, lambda z: z**2)
        return cells + LAM * sum(squares(x))

    is_half(objective, constant(c, 1.0), problem(clicks, c, 1.0, penalty=Ridge(LAM)))


def test_implicit(clicks):
    """Its confidence is αr, not 1 + αr; of a negative r the size is, and the preference is 0."""
    clicks[2][::4] *= -1
    c, p = RIDGE * np.abs(clicks[2]), np.where(clicks[2] > 0, 1.0, 0.0)

    def objective(x):
        cells = over_all(clicks, x, lambda z, r: RIDGE * abs(r) * (z - (r > 0)) ** 2, lambda z: z**2)
        return cells + LAM * sum(squares(x))

    is_half(objective, constant(c, 1.0, p), problem(clicks, c, 1.0, p, Ridge(LAM)))


def test_spark(clicks):
    """The ridge of a row is times its number of positive ratings."""
    i, j, r = clicks
    r[::4] *= -1
    c, p = 1 + RIDGE * np.abs(r), np.where(r > 0, 1.0, 0.0)
    a, b = (np.bincount(index[r > 0], minlength=k) for index, k in zip((i, j), SHAPE, strict=True))

    def objective(x):
        cells = over_all(clicks, x, lambda z, r: (1 + RIDGE * abs(r)) * (z - (r > 0)) ** 2, lambda z: z**2)
        return cells + LAM * float(a @ np.sum(x.left**2, axis=1) + b @ np.sum(x.right**2, axis=1))

    is_half(objective, constant(c, 1.0, p), problem(clicks, c, 1.0, p, Ridge(LAM, rows=a, cols=b)))


@pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
def test_rendle_and_irspack(clicks, nu):
    """loss_type="IALSPP": all cells count w₀, positives beside that."""
    i, j, r = clicks
    m, n = SHAPE
    w0, a, b = 0.3, np.bincount(i, minlength=m), np.bincount(j, minlength=n)
    a, b = (a + w0 * n) ** nu, (b + w0 * m) ** nu

    def objective(x):
        cells = over_all(clicks, x, lambda z, r: r * (z - 1) ** 2 + w0 * z**2, lambda z: w0 * z**2)
        return cells + LAM * float(a @ np.sum(x.left**2, axis=1) + b @ np.sum(x.right**2, axis=1))

    plain = bf.Problem("squared", Entries(i, j, SHAPE), np.ones(i.size), r, Ridge(LAM, rows=a, cols=b))
    is_half(objective, 0.0, plain + bf.all_cells(w0))


def test_irspack_original(clicks):
    """loss_type="ORIGINAL": positives count α₀ + r, and other cells α₀."""
    w0 = 0.3

    def objective(x):
        cells = over_all(clicks, x, lambda z, r: (w0 + r) * (z - 1) ** 2, lambda z: w0 * z**2)
        return cells + LAM * sum(squares(x))

    c = w0 + clicks[2]
    is_half(objective, constant(c, w0), problem(clicks, c, w0, penalty=Ridge(LAM)))


def test_popular_negatives(clicks):
    """eALS: a cell that is not observed counts by how popular its column is."""
    i, j, _ = clicks
    popularity = np.bincount(j, minlength=SHAPE[1]) ** 0.5
    t = 0.4 * popularity / popularity.sum()
    c = np.ones(i.size)
    known = {(a, b): k for k, (a, b) in enumerate(zip(i, j, strict=True))}

    def objective(x):
        Z = x.left @ x.right.T
        return sum(
            c[known[a, b]] * (Z[a, b] - 1) ** 2 if (a, b) in known else t[b] * Z[a, b] ** 2
            for a in range(SHAPE[0])
            for b in range(SHAPE[1])
        ) + LAM * sum(squares(x))

    weighted = bf.Problem("squared", Entries(i, j, SHAPE), c / (c - t[j]), c - t[j], Ridge(LAM))
    is_half(objective, constant(c, t[j]), weighted + bf.all_cells(1.0, cols=t))


def test_one_alternating_step_is_the_normal_equations(clicks):
    """Of a fit that has converged, each row solves Σ c vvᵀ + Σ_rest w₀ vvᵀ + λI, as in alternating least squares."""
    i, j, r = clicks
    c = 1 + RIDGE * r
    fit = bf.solve(problem(clicks, c, 1.0, penalty=Ridge(LAM)), RANK, bf.solvers.Newton(), rng=0, tol=1e-12)
    W, P = np.ones(SHAPE), np.zeros(SHAPE)
    W[i, j], P[i, j] = c, 1.0
    for row in range(SHAPE[0]):
        A = fit.V.T @ (W[row][:, None] * fit.V) + LAM * np.eye(RANK)
        np.testing.assert_allclose(fit.U[row], np.linalg.solve(A, fit.V.T @ (W[row] * P[row])), atol=1e-6)
