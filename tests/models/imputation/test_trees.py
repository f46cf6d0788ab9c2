"""Trees: compiled ones are those of the reference, and each does what a tree should."""

import numpy as np
import pytest

from bifactor.models.imputation import trees_numba, trees_reference
from bifactor.models.imputation.trees_reference import BINS

MODULES = [trees_reference, trees_numba]


def problem(n, q, levels=6, trees=4, seed=0, values=None):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, BINS, (q, n)).astype(np.uint8)
    y = np.rint(65536 * (np.sin(bins[0] / 5) + rng.standard_normal(n))) if values is None else values(bins)
    drawn = rng.permuted(np.tile(np.arange(n), (trees, 1)), axis=1)[:, : max(2, int(0.63 * n))]
    tried = rng.integers(0, q, (trees, levels, max(1, q // 2)))
    return bins, y, np.ascontiguousarray(drawn), tried


@pytest.mark.parametrize(("n", "q", "leaf"), [(300, 9, 2), (60, 4, 5), (5, 2, 2), (3, 1, 1), (80, 3, 1)])
def test_compiled_trees_are_those_of_the_reference(n, q, leaf):
    arguments = problem(n, q)
    mine, theirs = (module.grow(*arguments, leaf) for module in MODULES)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a, b)
    used = np.random.default_rng(1).random((4, n)) < 0.5
    told = [module.descend(arguments[0], mine, used) for module in MODULES]
    np.testing.assert_allclose(*told, rtol=1e-12)


@pytest.mark.parametrize("module", MODULES)
def test_a_step_is_found_and_told_exactly(module):
    bins, y, drawn, _ = problem(200, 3, values=lambda bins: np.where(bins[1] > 11, 65536.0, -65536.0))
    trees = module.grow(bins, y, drawn, np.tile([0, 1, 2], (4, 3, 1)), 2)
    assert np.all(trees.feature[:, 0] == 1)
    assert np.all(np.abs(trees.threshold[:, 0] - 11) <= 1)
    told = module.descend(bins, trees, np.ones((4, 200), bool)) / 4
    assert np.mean(told == y) > 0.95


@pytest.mark.parametrize("module", MODULES)
def test_leaves_are_as_large_as_asked_and_hold_means(module):
    bins, y, drawn, tried = problem(150, 5, levels=10)
    trees = module.grow(bins, y, drawn, tried, 7)
    for t in range(len(drawn)):
        node = np.zeros(drawn.shape[1], int)
        for _ in range(10):
            inner = trees.feature[t, node] >= 0
            right = bins[trees.feature[t, node], drawn[t]] > trees.threshold[t, node]
            node = np.where(inner, trees.left[t, node] + right, node)
        for leaf in np.unique(node):
            assert (node == leaf).sum() >= 7
            assert trees.mean[t, leaf] == pytest.approx(y[drawn[t]][node == leaf].mean())


@pytest.mark.parametrize("module", MODULES)
def test_a_constant_grows_no_branch(module):
    bins, y, drawn, tried = problem(90, 4, values=lambda bins: np.full(90, 12345.0))
    assert np.all(module.grow(bins, y, drawn, tried, 1).feature == -1)
