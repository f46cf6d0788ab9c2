"""χ² of counts: pools, exact moments, degrees of freedom, and what counts as explained."""

import numpy as np
import pytest
from scipy import stats

from bifactor.models.tomography.goodness_of_fit import LEAST, goodness_of_fit, n_parameters, pearson, pools

RARE = np.array([0.6, 0.3, 0.05, 0.03, 0.01, 0.01, 0.0, 0.0])


def expected(shots, rows=4, seed=0):
    p = np.random.default_rng(seed).dirichlet(np.full(8, 0.3), rows)
    return shots * np.concatenate([p, [RARE]])


@pytest.mark.parametrize("shots", [0.5, 3, 10, 1000])
def test_pools_expect_enough_and_keep_everything(shots):
    e = expected(shots)
    pool, count = pools(e)
    for means, own, k in zip(e, pool, count, strict=True):
        sums = np.bincount(own, means, k)
        assert sums.size == k  # numbered without gaps
        np.testing.assert_allclose(sums.sum(), means.sum())
        assert k == 1 or sums.min() >= LEAST
        ordered = own[np.argsort(means, kind="stable")]
        assert np.all(np.diff(ordered) >= 0)  # the rarest go together
    assert np.array_equal(count, np.ones(5)) == (shots < 2 * LEAST)


def test_nothing_is_pooled_that_is_seen_often():
    e = 1000 * np.full((3, 4), 0.25)
    y = np.random.default_rng(0).multinomial(1000, np.full(4, 0.25), 3)
    chi2, free, variance = pearson(y, e)
    np.testing.assert_allclose(chi2, sum(stats.chisquare(row).statistic for row in y))
    assert free == 9
    np.testing.assert_allclose(variance, 2 * 9, rtol=0.01)


@pytest.mark.parametrize("shots", [5, 10, 60])
def test_mean_and_variance_are_exact(shots):
    """Haldane's, against ten thousand draws: five standard errors of either."""
    e = expected(shots)
    rng = np.random.default_rng(1)
    draws = np.array([[rng.multinomial(shots, row / row.sum()) for row in e] for _ in range(10_000)])
    chi2 = np.array([pearson(y, e)[0] for y in draws])
    _, free, variance = pearson(draws[0], e)
    assert abs(chi2.mean() - free) < 5 * chi2.std() / 100
    spread = (chi2 - chi2.mean()) ** 2
    assert abs(spread.mean() - variance) < 5 * spread.std() / 100


def test_the_order_of_settings_and_outcomes_does_not_matter():
    rng, e = np.random.default_rng(0), expected(30)
    y = rng.poisson(e)
    rows, columns = rng.permutation(len(e)), rng.permutation(6)
    columns = np.append(columns, [6, 7])  # equal means are pooled as they come
    np.testing.assert_allclose(pearson(y[rows], e[rows]), pearson(y, e))
    unequal = np.delete(e, 4, axis=0), np.delete(y, 4, axis=0)
    np.testing.assert_allclose(pearson(unequal[1][:, columns], unequal[0][:, columns]), pearson(*unequal[::-1]))


def test_settings_of_one_pool_say_nothing():
    assert pearson(np.array([[0.3, 0.1]]), np.array([[0.2, 0.2]])) == (0.0, 0, 0.0)
    fit = goodness_of_fit(0.0, 0, 3, 0.0)
    assert (fit.chi2, fit.dof, fit.p_value, fit.explained) == (0.0, -3, None, True)


@pytest.mark.parametrize(("dimension", "rank", "wanted"), [(2, 1, 2), (2, 2, 3), (4, 1, 6), (16, 16, 255), (8, 2, 27)])
def test_parameters_are_counted_like_dimensions(dimension, rank, wanted):
    """The rank of the derivative of U ↦ UUᴴ/‖U‖² at a random U."""
    rng = np.random.default_rng(0)
    U, *moves = (
        rng.standard_normal((dimension, rank)) + 1j * rng.standard_normal((dimension, rank))
        for _ in range(2 * dimension * rank + 2)
    )
    U = U / np.linalg.norm(U)
    assert n_parameters(U) == wanted
    assert n_parameters(np.hstack([U, 1e-4 * moves[0] / np.linalg.norm(moves[0])])) == wanted  # as good as nothing
    tangents = [D @ U.conj().T + U @ D.conj().T - 2 * np.vdot(U, D).real * U @ U.conj().T for D in moves]
    real = np.array([np.concatenate([T.real.ravel(), T.imag.ravel()]) for T in tangents])
    assert np.linalg.matrix_rank(real) == wanted


@pytest.mark.parametrize(("chi2", "explained"), [(90.0, True), (149.0, True), (150.0, False), (1e5, False)])
def test_what_chance_allows_is_explained(chi2, explained):
    fit = goodness_of_fit(chi2, 100, 20, 200.0)
    assert fit.dof == 80
    assert fit.p_value == stats.chi2.sf(chi2, 80)
    assert str(fit) == f"χ² = {chi2:,.1f} on 80 degrees of freedom, p = {fit.p_value:.2g}"
    assert fit.explained == explained == (stats.chi2.sf(chi2, 100) >= 1e-3)
