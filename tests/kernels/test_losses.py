"""Passes over measurements, at a point and along a curve: compiled against reference, and both against their laws."""

from types import SimpleNamespace

import numba
import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.kernels import losses_numba, losses_reference, threading

both_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])
bent_or_straight = pytest.mark.parametrize("bent", [True, False])


@pytest.fixture(autouse=True)
def threads_for_small_work(monkeypatch):
    monkeypatch.setattr(threading, "SMALL", 0)


@pytest.fixture
def curve_of(make_problem):
    """(z, z₁, z₂, y, weights) with targets of the loss; straight: z₂ is empty, not weighted: the weights are."""

    def make(loss, dtype, weighted, bent):
        y = make_problem(loss=loss, dtype=dtype).y
        rng = np.random.default_rng(0)
        z, z1, z2 = (gaussian(rng, y.shape, dtype) for _ in range(3))
        weights = rng.random(y.size).astype(y.real.dtype)
        return z, z1, z2 if bent else z2[:0], y, weights if weighted else weights[:0]

    return make


def tolerance(dtype):
    return 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-12


@both_precisions
@weighted_or_not
def test_loss_pass(loss, dtype, weighted, curve_of):
    z, _, _, y, weights = curve_of(loss, dtype, weighted, True)
    value, slope = losses_numba.evaluate(loss, z, y, weights)
    w, tol = weights if weighted else 1, tolerance(dtype)
    assert value == pytest.approx(float(np.sum(w * loss.value(z, y))), rel=tol)
    np.testing.assert_allclose(slope, w * loss.gradient(z, y), rtol=tol, atol=tol)
    assert slope.dtype == dtype


@both_precisions
@weighted_or_not
@bent_or_straight
@pytest.mark.parametrize("a", [0.0, 0.3, -2.0])
def test_compiled_line_equals_reference(loss, dtype, weighted, bent, a, curve_of):
    curve = curve_of(loss, dtype, weighted, bent)
    got = losses_numba.line(loss, *curve, a)
    wanted = losses_reference.line(loss, *curve, a)
    np.testing.assert_allclose(got, wanted, rtol=tolerance(dtype))
    assert all(type(number) is float for number in (*got, *wanted))


@both_precisions
@weighted_or_not
@bent_or_straight
def test_advance_is_evaluate_of_the_moved_measurements(loss, dtype, weighted, bent, curve_of):
    z, z1, z2, y, weights = curve = curve_of(loss, dtype, weighted, bent)
    value, slopes, moved = losses_numba.advance(loss, *curve, 0.3)
    there, slopes_there = losses_numba.evaluate(loss, moved, y, weights)
    tol = tolerance(dtype)
    assert value == pytest.approx(there, rel=1e-14)
    np.testing.assert_allclose(slopes, slopes_there, rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_allclose(moved, z + 0.3 * z1 + (0.09 * z2 if bent else 0), rtol=tol, atol=tol)
    reference = losses_reference.advance(loss, *curve, 0.3)
    for got, wanted in zip((value, slopes, moved), reference, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=tol, atol=tol)
    assert slopes.dtype == moved.dtype == dtype


@weighted_or_not
@bent_or_straight
@pytest.mark.parametrize("a", [0.0, 0.4, -1.3])
def test_line_gives_the_derivatives(loss, weighted, bent, a, curve_of):
    curve = curve_of(loss, np.float64, weighted, bent)
    _check_derivatives(lambda a: losses_numba.line(loss, *curve, a), a)


@weighted_or_not
@bent_or_straight
@pytest.mark.parametrize("each", [bf.losses.Squared(), bf.losses.Huber(0.7)], ids=lambda loss: type(loss).__name__)
def test_line_of_complex_measurements(each, weighted, bent, curve_of):
    curve = curve_of(each, np.complex128, weighted, bent)
    exact = isinstance(each, bf.losses.Squared)
    _check_derivatives(lambda a: losses_reference.line(each, *curve, a), 0.4, second=exact)


@both_precisions
def test_a_chord_leads_back_to_the_curve(dtype):
    rng = np.random.default_rng(0)
    z, z1, z2 = (rng.standard_normal(300).astype(dtype) for _ in range(3))
    there = z + dtype(0.7) * z1 + dtype(0.49) * z2
    tol = 20 * float(np.finfo(dtype).eps)
    for kernel in (losses_numba, losses_reference):
        found = kernel.chord(z, there, z2, 0.7)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, z1, rtol=tol, atol=tol)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="plain Python rounds NumPy scalars by other rules")
def test_line_in_double_precision_whatever_the_arrays_hold(loss, curve_of):
    single = curve_of(loss, np.float32, True, True)
    double = [part.astype(np.float64) for part in single]
    parameter = np.float32(loss.parameter(np.float32)).astype(np.float64)
    rounded = SimpleNamespace(pointwise=loss.pointwise, parameter=lambda dtype: parameter)
    got, wanted = (losses_numba.line(rounded, *curve, 0.3) for curve in (single, double))
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@weighted_or_not
@bent_or_straight
def test_quartic_is_the_squared_loss_on_the_curve(dtype, weighted, bent, curve_of):
    squared = bf.losses.Squared()
    curve = curve_of(squared, dtype, weighted, bent)
    c = losses_reference.quartic(*curve)
    assert c.shape == (5,)
    assert c.dtype == np.float64
    for a in (0.0, 0.3, -2.0, 10.0):
        value, first, second = losses_reference.line(squared, *curve, a)
        p = np.polynomial.Polynomial(c)
        wanted = [p(a), p.deriv()(a), p.deriv(2)(a)]
        np.testing.assert_allclose([value, first, second], wanted, rtol=tolerance(dtype))
    if np.dtype(dtype).kind == "f":
        np.testing.assert_allclose(losses_numba.quartic(*curve), c, rtol=tolerance(dtype))


def test_one_measurement(loss, curve_of):
    curve = [part[:1] for part in curve_of(loss, np.float64, True, True)]
    got = losses_numba.line(loss, *curve, 0.3)
    np.testing.assert_allclose(got, losses_reference.line(loss, *curve, 0.3), rtol=1e-12)
    np.testing.assert_allclose(losses_numba.quartic(*curve), losses_reference.quartic(*curve), rtol=1e-12)


def _check_derivatives(line, a, second=True):
    h = 1e-6
    (ahead, slope_ahead, _), (behind, slope_behind, _) = line(a + h), line(a - h)
    value, slope, bend = line(a)
    assert slope == pytest.approx((ahead - behind) / (2 * h), rel=1e-6, abs=1e-7 * abs(value))
    if second:
        assert bend == pytest.approx((slope_ahead - slope_behind) / (2 * h), rel=1e-6, abs=1e-7 * abs(value))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="about compiled passes")
@pytest.mark.parametrize("size", [7, 20, 50, 1030])
def test_where_arrays_lie_does_not_matter(size):
    """The same sums to the last bit, however close to each other the arrays are in memory."""
    rng = np.random.default_rng(0)
    loss, parts = bf.losses.Huber(0.5), [rng.standard_normal(size) for _ in range(4)]
    values = {"evaluate": set(), "advance": set()}
    for gap in range(3):
        for seed in range(40):
            places = np.random.default_rng(seed).permutation(6)
            memory = np.zeros(6 * (size + gap))
            lying = [memory[k * (size + gap) :][:size] for k in places]
            for array, part in zip(lying, parts, strict=False):
                array[:] = part
            z, z1, z2, y, slope, moved = lying
            settings = loss.parameter(z.dtype)
            values["evaluate"].add(losses_numba._evaluate(loss.pointwise)(z, y, y[:0], slope, settings))
            values["advance"].add(
                losses_numba._advance(loss.pointwise)(z, z1, z2, y, y[:0], slope, moved, settings, 0.7)
            )
    assert {name: len(found) for name, found in values.items()} == {"evaluate": 1, "advance": 1}


def test_a_pointwise_defined_without_a_module():
    """Code that runs by exec, as in some notebooks and templates, has no module."""
    space = {}
    exec(
        "from numba.extending import register_jitable\n"
        "@register_jitable\n"
        "def half(z, y, parameter):\n"
        "    return 0.5 * (z - y) ** 2, z - y, 1.0\n",
        space,
    )
    assert space["half"].__module__ is None
    half = SimpleNamespace(pointwise=space["half"], parameter=lambda dtype: 0.0)
    z, y = np.linspace(-1, 1, 50), np.zeros(50)
    value, slope = losses_numba.evaluate(half, z, y, np.empty(0))
    assert value == pytest.approx(0.5 * np.sum(z**2))
    np.testing.assert_allclose(slope, z)
