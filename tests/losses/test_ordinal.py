"""Grades: the likelihood by its definition, thresholds by an independent minimiser, and fits that find both."""

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

import bifactor as bf
from bifactor.errors import InputError
from bifactor.losses import Ordinal
from bifactor.losses.ordinal import best_thresholds

LEVELS, B = (1.0, 2.0, 4.0, 5.0), (-1.5, -0.2, 0.9)


def drawn(z, rng, thresholds=B):
    return (z[..., None] + rng.logistic(size=(*z.shape, 1)) > np.array(thresholds)).sum(axis=-1).astype(float)


def test_it_is_the_log_probability_of_each_level():
    loss, z = Ordinal(LEVELS, B), np.linspace(-6, 6, 49)
    below = expit(np.array(B) - z[:, None])
    wanted = np.diff(np.column_stack([np.zeros(49), below, np.ones(49)]), axis=1)
    np.testing.assert_allclose(loss.probabilities(z), wanted, atol=1e-15)
    for level, p in zip(LEVELS, wanted.T, strict=True):
        np.testing.assert_allclose(loss.value(z, np.full(49, level)), -np.log(p), rtol=1e-9)
    np.testing.assert_allclose(loss.mean(z), wanted @ np.array(LEVELS), rtol=1e-12)
    middle = (np.cumsum(wanted, axis=1) < 0.5).sum(axis=1)
    np.testing.assert_array_equal(loss.median(z), np.array(LEVELS)[middle])
    np.testing.assert_allclose(
        loss.saturated(np.array(LEVELS)),
        [loss.value(np.linspace(-40, 40, 80_001), np.full(80_001, y)).min() for y in LEVELS],
        atol=1e-6,
    )


def test_two_levels_are_the_logistic_loss():
    z, y = np.linspace(-30, 30, 121), np.tile([0.0, 1.0], 61)[:121]
    two, signs = Ordinal(2, [0.4]), 2 * y - 1
    for part in ("value", "gradient", "curvature"):
        wanted = getattr(bf.losses.Shifted(bf.losses.Logistic(), -0.4), part)(z, signs)
        np.testing.assert_allclose(getattr(two, part)(z, y), wanted, rtol=1e-9, atol=1e-15)


def test_refit_finds_the_thresholds_that_another_minimiser_finds():
    rng = np.random.default_rng(0)
    z, w = 2 * rng.standard_normal(3000), rng.random(3000)
    y = drawn(z, rng)

    def cost(gaps):
        b = gaps[0] + np.concatenate([[0.0], np.cumsum(np.exp(gaps[1:]))])
        added = Ordinal(4, b).value(np.full(4, np.average(z, weights=w)), np.arange(4.0))
        return w @ Ordinal(4, b).value(z, y) + 0.5 * w.mean() * added.sum()

    found = optimize.minimize(cost, np.zeros(3), method="BFGS", tol=1e-10).x
    wanted = found[0] + np.concatenate([[0.0], np.cumsum(np.exp(found[1:]))])
    np.testing.assert_allclose(Ordinal(4).refit(z, y, w).thresholds, wanted, atol=1e-4)
    np.testing.assert_allclose(wanted, B, atol=0.25)


@pytest.mark.parametrize("only", [0.0, 2.0, 3.0])
def test_levels_without_observations_keep_finite_thresholds_in_order(only):
    found = Ordinal(4).refit(np.zeros(500), np.full(500, only), None)
    assert np.all(np.isfinite(found.thresholds))
    assert np.all(np.diff(found.thresholds) > 0)
    assert found.median(np.zeros(1)) == only


def test_levels_are_those_of_the_data_unless_they_are_given():
    y = np.array([1, 1, 2, 5, 5, 5.0])
    found = Ordinal().with_data_parameters(y)
    assert found.levels == (1.0, 2.0, 5.0)
    shares = found.probabilities(np.zeros(1))[0]
    np.testing.assert_allclose(shares, [2.5 / 7.5, 1.5 / 7.5, 3.5 / 7.5])
    assert Ordinal(5).with_data_parameters(y) == Ordinal(5)
    operator = bf.operators.Entries(np.arange(6), np.zeros(6, int), (6, 2))
    assert bf.Problem("ordinal", operator, y).loss == found
    float32 = bf.Problem(Ordinal([0.1, 0.2]), operator, np.float32([0.1, 0.2, 0.1, 0.2, 0.1, 0.2]))
    assert float32.loss.levels == (0.1, 0.2)


def test_thresholds_and_factors_are_fitted_together_by_groups():
    rng = np.random.default_rng(1)
    z = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 12))
    true = np.where(np.arange(12)[:, None] % 2, [-1.0, 0.0, 1.5], [-0.5, 0.8, 2.0])
    y = np.column_stack([drawn(z[:, j], rng, true[j]) for j in range(12)])
    rows, cols = np.divmod(np.arange(y.size), 12)
    operator = bf.operators.Entries(rows, cols, y.shape)
    problem = bf.Problem([Ordinal(4)] * 12, operator, y.ravel(), group=cols, penalty=bf.penalties.Ridge(3.0))
    result = bf.solve(problem, 2, bf.solvers.Refitted(), rng=0, max_iter=300)
    found = np.array([loss.thresholds for loss in result.problem.f.fit.each_loss])
    assert np.corrcoef(found.ravel(), true.ravel())[0, 1] > 0.97
    again = result.problem.f.fit.refit(operator.forward(result.U, result.V)).loss.fitted
    np.testing.assert_allclose(
        again, result.problem.f.parameters.values, rtol=5e-3
    )  # settled, up to `tol` and later steps


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([3, 2, 1],), "not a scale"),
        ((1,), "not a scale"),
        ((2**64,), "not a scale"),  # a list of that many numbers would not fit into memory
        (([0, np.nan],), "finite numbers"),
        (("abc",), "finite numbers"),
        ((3, [0.0]), "do not separate 3 levels"),
        ((3, [1.0, 0.0]), "do not separate"),
        ((None, [0.0]), "without levels"),
    ],
)
def test_what_is_no_scale_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Ordinal(*arguments)


def test_fitted_parameters_make_the_same_loss_again():
    rng = np.random.default_rng(0)
    for _ in range(50):
        loss = Ordinal(6, np.sort(10 * rng.standard_normal(5)))
        assert loss.with_fitted(loss.fitted) == loss
        other = Ordinal(6).with_fitted(loss.fitted)
        np.testing.assert_allclose(other.thresholds, loss.thresholds, rtol=1e-12, atol=1e-14)


def test_data_off_the_scale_are_refused():
    operator = bf.operators.Entries([0, 1], [0, 1], (2, 2))
    with pytest.raises(InputError, match="one of the levels 0, 1, 2, got 7"):
        bf.Problem(Ordinal(3), operator, [1, 7])
    with pytest.raises(InputError, match="found 1 levels"):
        bf.Problem("ordinal", operator, [2, 2])
    with pytest.raises(InputError, match="does not know its levels"):
        Ordinal().mean(np.zeros(3))


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_weights_does_not_matter_to_thresholds(unit):
    """Neither where a level does not occur."""
    rng = np.random.default_rng(0)
    z, level, weights = rng.standard_normal(60), rng.integers(0, 3, 60), rng.random(60)
    one, other = (best_thresholds((-1.0, 0.0, 1.0), z, level, w) for w in (weights, unit * weights))
    np.testing.assert_allclose(one, other, rtol=1e-6)
