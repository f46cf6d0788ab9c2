"""f along a curve of measurements is f at the measurements there."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, inner
from bifactor.line import LossLine

STEPS = (0.0, 1e-3, 0.3, -0.2, 2.0)


def moving(problem, rank=2, seed=1, size=0.7):
    """Factors, a direction, and the three parts of the measurements along it."""
    rng = np.random.default_rng(seed)
    m, n = problem.shape
    U, D = (size * gaussian(rng, (m, rank), problem.dtype) for _ in range(2))
    V, E = (size * gaussian(rng, (n, rank), problem.dtype) for _ in range(2))
    z = problem.measure(U, V)
    x, d = problem.kind.pair(U, V), problem.kind.pair(D, E)
    return (U, V, D, E), problem.line(x, d, z).curve


def is_f_along(problem, bends=True, tol=1e-12):
    """at, to and quartic are those of f(z(a)), and z(a) are the measurements at (U + aD, V + aE)."""
    (U, V, D, E), (z, z1, z2) = moving(problem)
    line = problem.along(z, z1, z2)
    for a in STEPS:
        point, speed = z + a * z1 + a * a * z2, z1 + 2 * a * z2
        f, slopes = problem.evaluate(point)
        size = abs(f) + 1
        value, slope, bend = line.at(a)
        assert abs(value - f) <= tol * size
        assert value == pytest.approx(problem.value(U + a * D, V + a * E), rel=100 * tol, abs=100 * tol * size)
        assert abs(slope - inner(slopes, speed)) <= tol * (1 + np.linalg.norm(slopes) * np.linalg.norm(speed))
        there, at_slopes, moved = line.to(a)
        assert abs(there - f) <= tol * size
        np.testing.assert_allclose(moved, point, rtol=10 * tol, atol=10 * tol)
        np.testing.assert_allclose(moved, problem.measure(U + a * D, V + a * E), rtol=100 * tol, atol=100 * tol)
        np.testing.assert_allclose(at_slopes, slopes, rtol=100 * tol, atol=100 * tol)
        assert at_slopes.dtype == moved.dtype == z.dtype
        if bends:
            h = 1e-6
            ahead, behind = line.at(a + h), line.at(a - h)
            assert slope == pytest.approx((ahead[0] - behind[0]) / (2 * h), rel=1e-5, abs=1e-6 * size)
            assert bend == pytest.approx((ahead[1] - behind[1]) / (2 * h), rel=1e-4, abs=1e-5 * size)
    return line


@pytest.mark.parametrize("weights", [None, "some"])
@pytest.mark.parametrize("shape", [(14, 9), (9, 14)])
def test_every_loss(make_problem, loss, weights, shape):
    if weights is not None:
        plain = make_problem(*shape, loss=loss)
        weights = np.random.default_rng(5).random(plain.y.size) * (np.arange(plain.y.size) % 3 > 0)
    line = is_f_along(make_problem(*shape, loss=loss, weights=weights))
    assert (line.quartic is not None) == isinstance(loss, bf.losses.Squared)


def test_single_precision_stays_single(make_problem, loss):
    is_f_along(make_problem(14, 9, loss=loss, dtype=np.float32), bends=False, tol=1e-5)


@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.7)])
@pytest.mark.parametrize("weights", [None, 0.3])
def test_complex_measurements(make_problem, loss, weights):
    problem = make_problem(14, 9, loss=loss, weights=weights, dtype=np.complex128)
    line = is_f_along(problem, bends=loss.quadratic)
    for a in STEPS:  # the slope of Huber's too, which bends in a way of its own
        h = 1e-6
        difference = (line.at(a + h)[0] - line.at(a - h)[0]) / (2 * h)
        assert line.at(a)[1] == pytest.approx(difference, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("weights", [None, 0.3])
def test_the_quartic_is_the_squared_loss(make_problem, dtype, weights):
    problem = make_problem(14, 9, dtype=dtype, weights=weights)
    _, curve = moving(problem)
    line = problem.along(*curve)
    c = line.quartic
    assert c.shape == (5,)
    assert c[4] >= 0
    for a in STEPS:
        value, slope, bend = line.at(a)
        p = np.polynomial.Polynomial(c)
        tol = 200 * float(np.finfo(dtype).eps)
        size = np.polynomial.Polynomial(np.abs(c))
        assert abs(value - p(a)) <= tol * size(abs(a))
        assert abs(slope - p.deriv()(a)) <= tol * size.deriv()(abs(a))
        assert abs(bend - p.deriv(2)(a)) <= tol * size.deriv(2)(abs(a))


@pytest.mark.parametrize(
    "operator",
    [
        bf.operators.Gaussian((8, 6), 30, rng=0),
        bf.operators.Noiselet((8, 4), 20, rng=0),
        bf.operators.Full((7, 5)),
        bf.operators.Stacked(bf.operators.Full((8, 6)), bf.operators.Gaussian((8, 6), 5, rng=0)),
    ],
    ids=lambda op: type(op).__name__,
)
@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.5)])
def test_other_operators(operator, loss):
    y = np.random.default_rng(0).standard_normal(operator.size)
    is_f_along(bf.Problem(loss, operator, y))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_black_box(dtype):
    target = gaussian(np.random.default_rng(0), (7, 5), dtype)

    def value(X):
        return float(np.sum(np.sqrt(1 + np.abs(X - target) ** 2)))

    def gradient(X):
        return (X - target) / np.sqrt(1 + np.abs(X - target) ** 2)

    line = is_f_along(bf.Function(value, gradient, (7, 5), dtype=dtype), bends=False)
    assert line.quartic is None
    for a in STEPS:
        h = 1e-6
        _, slope, bend = line.at(a)
        assert bend is None
        assert slope == pytest.approx((line.at(a + h)[0] - line.at(a - h)[0]) / (2 * h), rel=1e-6, abs=1e-6)


def test_a_line_may_be_straight(make_problem, loss):
    # An empty z₂ stands for zeros.
    problem = make_problem(14, 9, loss=loss)
    _, (z, z1, _) = moving(problem)
    straight = LossLine(loss, problem.y, None, z, z1, z1[:0])
    bent = problem.along(z, z1, np.zeros_like(z1))
    for a in STEPS:
        np.testing.assert_allclose(straight.at(a), bent.at(a), rtol=1e-12)
        for got, wanted in zip(straight.to(a), bent.to(a), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
    if bent.quartic is not None:
        np.testing.assert_allclose(straight.quartic, bent.quartic, rtol=1e-12)


def test_a_loss_of_ones_own_without_a_compiled_form(make_problem):
    class Fair(bf.losses.Loss):  # ℓ = |d| − log(1 + |d|)
        targets = bf.losses.Squared.targets
        smoothness = 1.0

        def value(self, z, y):
            return np.abs(z - y) - np.log1p(np.abs(z - y))

        def gradient(self, z, y):
            return (z - y) / (1 + np.abs(z - y))

        def curvature(self, z, y):
            return (1 + np.abs(z - y)) ** -2.0

        def mean(self, z):
            return z

    for weights in (None, 0.4):
        line = is_f_along(make_problem(14, 9, loss=Fair(), weights=weights))
        assert line.quartic is None
