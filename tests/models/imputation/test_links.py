"""Links: gradients against differences, probabilities that add up, and recovery of what made the data."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from bifactor.models.imputation import decoding
from bifactor.models.imputation.decoding import Discriminant, ProportionalOdds

RNG = np.random.default_rng(0)


def grades(n, thresholds, slope):
    z = RNG.standard_normal(n)
    return z, (slope * z + RNG.logistic(size=n) > np.array(thresholds)[:, None]).sum(axis=0)


def test_gradient_and_hessian_of_the_loss():
    z, y = grades(50, [-1.0, 0.5, 1.5], 1.7)
    w, at = RNG.random(50), np.array([-0.8, 0.3, 1.9, 1.2])
    value = lambda v: decoding._loss(v[:-1], v[-1], z, y, w)  # noqa: E731
    slope = lambda v: decoding._quadratic(v[:-1], v[-1], z, y, w)[1]  # noqa: E731
    H, g = decoding._quadratic(at[:-1], at[-1], z, y, w)
    np.testing.assert_allclose(g, approx_fprime(at, value, 1e-7), atol=1e-4)
    np.testing.assert_allclose(H, approx_fprime(at, slope, 1e-7), atol=1e-3)


def test_thresholds_and_slope_are_found():
    z, y = grades(20_000, [-1.0, 0.5, 2.0], 1.7)
    link = ProportionalOdds.of(z, y, 4)
    np.testing.assert_allclose(link.thresholds, [-1.0, 0.5, 2.0], atol=0.1)
    assert link.slope == pytest.approx(1.7, abs=0.1)


@pytest.mark.parametrize(
    ("z", "y", "size"),
    [
        ([-1.0, 1.0], [0, 1], 2),
        ([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1], 2),  # which can be separated
        ([0.0, 0.0, 0.0], [2, 2, 0], 5),  # with levels that were not seen
        ([1.0], [0], 3),
        ([], [], 4),
    ],
)
def test_few_observations(z, y, size):
    link = ProportionalOdds.of(np.array(z, float), np.array(y, np.int64), size)
    P = link.probabilities(np.linspace(-3, 3, 7))
    assert np.all(np.diff(link.thresholds) > 0)
    assert np.all(P >= 0)
    np.testing.assert_allclose(P.sum(axis=1), 1)


def test_probabilities_of_classes_are_calibrated():
    y = RNG.choice(3, 6000, p=[0.6, 0.3, 0.1])
    means = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]])
    Z = means[y] + RNG.standard_normal((6000, 2))
    P = Discriminant.of(Z, y, 3).probabilities(Z)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_allclose(P.mean(axis=0), [0.6, 0.3, 0.1], atol=0.02)
    sure = P.max(axis=1) > 0.9
    assert np.mean(P.argmax(axis=1)[sure] == y[sure]) == pytest.approx(P.max(axis=1)[sure].mean(), abs=0.03)


def test_a_class_that_was_not_seen_is_improbable():
    Z, y = RNG.standard_normal((40, 2)), np.zeros(40, np.int64)
    P = Discriminant.of(Z, y, 3).probabilities(Z)
    assert np.all(P[:, 0] > 0.9)
