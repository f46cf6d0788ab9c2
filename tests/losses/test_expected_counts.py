"""Counts with the mean itself for a predictor."""

import numpy as np
import pytest
from scipy import special, stats

from bifactor import solve
from bifactor.errors import InputError, SmoothnessError
from bifactor.losses.counts import ExpectedCounts
from bifactor.operators import Full
from bifactor.problems.objective import Problem
from bifactor.solvers import BFGD
from bifactor.testing import check_gradient, check_loss


@pytest.mark.parametrize("floor", [1e-6, 1e-3, 0.5, 2.0])
def test_laws(floor):
    check_loss(ExpectedCounts(floor), [0.0, 1.0, 2.5, 40.0])


def test_is_the_poisson_likelihood():
    y = np.arange(50.0)
    z = np.linspace(0.01, 60, 50)
    value = ExpectedCounts().value(z, y) + special.gammaln(y + 1)
    np.testing.assert_allclose(value, -stats.poisson.logpmf(y, z), rtol=1e-12)


def test_is_least_where_the_mean_is_the_count():
    y = np.array([0.5, 1.0, 300.0])
    np.testing.assert_allclose(ExpectedCounts().gradient(y, y), 0, atol=1e-15)


def test_without_counts_it_is_linear_and_stops_falling_below_zero():
    z = np.array([0.0, 1e-9, 3.0])
    np.testing.assert_array_equal(ExpectedCounts().value(z, np.zeros(3)), z)
    below = ExpectedCounts(0.1).value(np.array([-0.1, -0.2, -5.0]), np.zeros(3))
    np.testing.assert_allclose(below, [-0.05, 0.0, 120.0], atol=1e-12)


def test_is_twice_continuously_differentiable_at_the_floor():
    loss, y = ExpectedCounts(0.1), np.array([0.0, 1.0, 7.0])
    for part in (loss.value, loss.gradient, loss.curvature):
        below, above = (part(np.full(3, 0.1 * s), y) for s in (1 - 1e-12, 1 + 1e-12))
        np.testing.assert_allclose(below, above, rtol=1e-9, atol=1e-9)


def test_is_convex_over_the_whole_line():
    loss = ExpectedCounts(0.1)
    slopes = loss.gradient(np.linspace(-3, 3, 601), np.full(601, 4.0))
    assert np.all(np.diff(slopes) > 0)


def test_does_not_depend_on_the_floor_above_it():
    z, y = np.array([0.5, 2.0]), np.array([3.0, 0.0])
    np.testing.assert_array_equal(ExpectedCounts(1e-8).value(z, y), ExpectedCounts(0.4).value(z, y))


def test_gradient_of_a_problem():
    y = np.random.default_rng(0).poisson(3.0, (5, 4)).astype(float)
    check_gradient(Problem(ExpectedCounts(0.5), Full((5, 4)), y))


def test_has_no_global_smoothness():
    problem = Problem(ExpectedCounts(), Full((2, 2)), np.ones((2, 2)))
    with pytest.raises(SmoothnessError, match=r"steps\.Backtracking"):
        solve(problem, 1, BFGD())


@pytest.mark.parametrize("floor", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_bad_floors_are_refused(floor):
    with pytest.raises(InputError, match="finite number > 0"):
        ExpectedCounts(floor)


def test_negative_counts_are_refused():
    with pytest.raises(InputError, match="negative"):
        Problem(ExpectedCounts(), Full((1, 2)), [[1.0, -1.0]])
