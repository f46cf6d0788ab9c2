"""f along a curve of factors is f at the factors there, and likewise along a curve of measurements."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, inner
from bifactor.factors import Free
from bifactor.losses import DataFit
from bifactor.operators.bound import MeasuredCurve

STEPS = (0.0, 1e-3, 0.3, -0.2, 2.0)


def moving(f, rank=2, seed=1, size=0.7):
    """Factors, a direction, and the three parts of the measurements along it."""
    rng = np.random.default_rng(seed)
    x, d = (size * Free().random(rng, f.shape, rank, f.dtype) for _ in range(2))
    tangent = Free().pair(np.hstack([d.left, x.left]), np.hstack([x.right, d.right]))
    return x, d, tuple(f.measure(at) for at in (x, tangent, d))


def is_f_along(problem, bends=True, tol=1e-12):
    """at, to and quartic are those of f(z(a)), and z(a) are the measurements at x + a·d."""
    f = problem.f
    x, d, (z, z1, z2) = moving(f)
    curve = f.curve(x, d, z)
    for a in STEPS:
        there, point, speed = x.plus(a, d), z + a * z1 + a * a * z2, z1 + 2 * a * z2
        wanted, slopes = f.slopes(point)
        size = abs(wanted) + 1
        value, slope, _ = curve.at(a)
        assert abs(value - wanted) <= tol * size
        assert value == pytest.approx(f.value(there), rel=100 * tol, abs=100 * tol * size)
        assert abs(slope - inner(slopes, speed)) <= tol * (1 + np.linalg.norm(slopes) * np.linalg.norm(speed))
        at = curve.to(a, there)
        assert abs(at.f - wanted) <= tol * size
        np.testing.assert_allclose(at.z, point, rtol=10 * tol, atol=10 * tol)
        np.testing.assert_allclose(at.z, f.measure(there), rtol=100 * tol, atol=100 * tol)
        for got, product in zip(at[1:3], f.adjoint_z(slopes).products(there.left, there.right), strict=True):
            np.testing.assert_allclose(got, product, rtol=100 * tol, atol=100 * tol)
            assert got.dtype == x.dtype
        assert at.z.dtype == z.dtype
        if bends:
            has_derivatives(curve.at, a, size)
    if isinstance(curve, MeasuredCurve):
        is_fit_along(f.fit, (z, z1, z2), tol)
    return curve


def is_fit_along(fit, measurements, tol=1e-12):
    """The sums over the measurements, which no operator has a part in."""
    z, z1, z2 = measurements
    for a in STEPS:
        point = z + a * z1 + a * a * z2
        wanted, slopes = fit.evaluate(point)
        value, at_slopes, moved = fit.advance(measurements, a)
        assert abs(value - wanted) <= tol * (abs(wanted) + 1)
        np.testing.assert_allclose(moved, point, rtol=10 * tol, atol=10 * tol)
        np.testing.assert_allclose(at_slopes, slopes, rtol=100 * tol, atol=100 * tol)
        assert at_slopes.dtype == moved.dtype == z.dtype
        assert abs(fit.along(measurements, a)[0] - wanted) <= tol * (abs(wanted) + 1)


def has_derivatives(phi, a, size, h=1e-6):
    """The second and third number of φ(a), against differences of the one before."""
    (ahead, ahead_slope, _), (behind, behind_slope, _) = phi(a + h), phi(a - h)
    _, slope, bend = phi(a)
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-6 * size)
    assert bend == pytest.approx((ahead_slope - behind_slope) / (2 * h), rel=1e-4, abs=1e-5 * size)


@pytest.mark.parametrize("weights", [None, "some"])
@pytest.mark.parametrize("shape", [(14, 9), (9, 14)])
def test_every_loss(make_problem, loss, weights, shape):
    if weights is not None:
        plain = make_problem(*shape, loss=loss)
        weights = np.random.default_rng(5).random(plain.y.size) * (np.arange(plain.y.size) % 3 > 0)
    curve = is_f_along(make_problem(*shape, loss=loss, weights=weights))
    assert isinstance(curve, MeasuredCurve)
    assert (curve.quartic is not None) == isinstance(loss, bf.losses.Squared)


def test_single_precision_stays_single(make_problem, loss):
    is_f_along(make_problem(14, 9, loss=loss, dtype=np.float32), bends=False, tol=1e-5)


@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.7)])
@pytest.mark.parametrize("weights", [None, 0.3])
def test_complex_measurements(make_problem, loss, weights):
    problem = make_problem(14, 9, loss=loss, weights=weights, dtype=np.complex128)
    curve = is_f_along(problem, bends=loss.quadratic)
    for a in STEPS:  # the slope of Huber's too, which bends in a way of its own
        h = 1e-6
        difference = (curve.at(a + h)[0] - curve.at(a - h)[0]) / (2 * h)
        assert curve.at(a)[1] == pytest.approx(difference, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("weights", [None, 0.3])
def test_the_quartic_is_the_squared_loss(make_problem, dtype, weights):
    problem = make_problem(14, 9, dtype=dtype, weights=weights)
    x, d, measurements = moving(problem.f)
    for curve in (problem.f.curve(x, d), MeasuredCurve(problem.f, measurements)):
        c = curve.quartic
        assert c.shape == (5,)
        assert c[4] >= 0
        for a in STEPS:
            value, slope, bend = curve.at(a)
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
        bf.operators.Scaled(bf.operators.Gaussian((8, 6), 30, rng=0), -0.6),
    ],
    ids=lambda op: type(op).__name__,
)
@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.5)])
def test_other_operators(operator, loss):
    y = np.random.default_rng(0).standard_normal(operator.size)
    is_f_along(bf.Problem(loss, operator, y))


@pytest.mark.parametrize(
    "operator",
    [
        bf.operators.Gaussian((8, 6), 30, rng=0),
        bf.operators.Stacked(bf.operators.Full((8, 6)), bf.operators.Gaussian((8, 6), 5, rng=0)),
        bf.operators.Scaled(bf.operators.Gaussian((8, 6), 30, rng=0), -0.6),
    ],
    ids=lambda op: type(op).__name__,
)
@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.5)])
def test_a_curve_through_measurements_ahead(operator, loss):
    """It is the same curve, and says how far it can be trusted."""
    f = bf.Problem(loss, operator, np.random.default_rng(0).standard_normal(operator.size)).f
    x, d, (z, _, _) = moving(f)
    plain, near = f.curve(x, d, z), f.curve(x, d, z, (0.3, f.measure(x.plus(0.3, d))))
    assert plain.reach == (0.0, np.inf)
    assert 0 < near.reach[0] < 0.3 < near.reach[1] < np.inf
    for a in (near.reach[0], 0.3, near.reach[1]):
        np.testing.assert_allclose(near.at(a), plain.at(a), rtol=1e-11)
        for got, wanted in zip(near.to(a, x.plus(a, d)), plain.to(a, x.plus(a, d)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-11)
    if plain.quartic is not None:
        np.testing.assert_allclose(near.quartic, plain.quartic, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_black_box(dtype):
    target = gaussian(np.random.default_rng(0), (7, 5), dtype)

    def value(X):
        return float(np.sum(np.sqrt(1 + np.abs(X - target) ** 2)))

    def gradient(X):
        return (X - target) / np.sqrt(1 + np.abs(X - target) ** 2)

    function = bf.Function(value, gradient, (7, 5), dtype=dtype)
    curve = is_f_along(bf.Objective(function), bends=False)
    assert curve.quartic is None
    for a in STEPS:
        h = 1e-6
        _, slope, bend = curve.at(a)
        assert bend is None
        assert slope == pytest.approx((curve.at(a + h)[0] - curve.at(a - h)[0]) / (2 * h), rel=1e-6, abs=1e-6)


def test_a_line_may_be_straight(make_problem, loss):
    # An empty z₂ stands for zeros.
    f = make_problem(14, 9, loss=loss).f
    _, _, (z, z1, _) = moving(f)
    straight, bent = (z, z1, z1[:0]), (z, z1, np.zeros_like(z1))
    assert isinstance(f.fit, DataFit)
    for a in STEPS:
        wanted = f.fit.along(bent, a)
        np.testing.assert_allclose(f.fit.along(straight, a), wanted, rtol=1e-12)
        np.testing.assert_allclose(f.line(z, z1).at(a), wanted, rtol=1e-12)
        for got, there in zip(f.fit.advance(straight, a), f.fit.advance(bent, a), strict=True):
            np.testing.assert_allclose(got, there, rtol=1e-12)
    if f.quadratic:
        np.testing.assert_allclose(f.fit.quartic(straight), f.fit.quartic(bent), rtol=1e-12)
        np.testing.assert_allclose(f.line(z, z1).quartic, f.fit.quartic(bent), rtol=1e-12)
    else:
        assert f.fit.quartic(straight) is f.line(z, z1).quartic is None


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
        curve = is_f_along(make_problem(14, 9, loss=Fair(), weights=weights))
        assert curve.quartic is None
