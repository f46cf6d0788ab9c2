"""Rough effects of columns and rows are near the best ones, which steps over every cell find."""

import numpy as np
import pytest
from scipy import sparse

from bifactor.operators import full_table
from bifactor.operators.full_table import FullTable, _effects, rough_effects


def made(loss, holes, weighted, dtype):
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 1, 60)[:, None] / 2 + rng.normal(-2, 1, 40)
    counts = rng.poisson(np.exp(z)).astype(dtype)
    Y = counts if loss == "poisson" else np.where(counts > 0, dtype(1), dtype(-1))
    if holes:
        Y[rng.random(Y.shape) < 0.2] = np.nan
    weights = rng.random(60) + 0.5 if weighted else None
    return FullTable(loss, Y, 0.0 if loss == "poisson" else -1.0, weights, np.linspace(-0.5, 0.5, 60))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_they_are_near_the_best(loss, holes, weighted, dtype):
    table = made(loss, holes, weighted, dtype)
    columns = table.best_effects(1, np.zeros(40), 0.1, tol=1e-10)
    near = rough_effects(table.loss, table.sheet, 1, table.offset, 0.1)
    np.testing.assert_allclose(near, columns, atol=0.5 if holes else 0.02)  # holes may lie in rows of any offset
    rows = table.best_effects(0, columns, 0.1, tol=1e-10)
    near = rough_effects(table.loss, table.sheet, 0, columns, 0.1) - table.offset
    some = np.abs(rows) < 3  # the ridge is on effects alone, and here also on offsets
    np.testing.assert_allclose(near[some], rows[some], atol=0.5)


def test_the_best_do_not_depend_on_where_they_begin():
    """At the best effects slopes are 0, whatever the start."""
    table = made("logistic", True, True, np.float64)
    effects = table.best_effects(1, np.zeros(40), 0.1, tol=1e-10)
    slopes, _ = table.passes.sums(_effects(effects, np.zeros(60), np.float64))
    np.testing.assert_allclose(slopes[1] + 0.1 * effects, 0, atol=1e-8)


def test_columns_without_any_count_are_held_by_the_ridge():
    table = FullTable("poisson", sparse.csr_array((50, 3)), 0.0)
    effects = table.best_effects(1, np.zeros(3), 0.01, tol=1e-9)
    np.testing.assert_allclose(50 * np.exp(effects) + 0.01 * effects, 0, atol=1e-8)


@pytest.mark.parametrize("by", [2.0**20, 2.0**-20])
@pytest.mark.parametrize("cells", [False, True])
def test_the_unit_of_weights_makes_no_difference(cells, by):
    rng = np.random.default_rng(1)
    Y, weights = rng.poisson(1.0, (60, 40)).astype(float), rng.random((60, 40) if cells else 60) + 0.5
    one, other = (FullTable("poisson", Y, 0.0, factor * weights) for factor in (1.0, by))
    for side, count in ((1, 40), (0, 60)):
        found = one.best_effects(side, np.zeros(40), 0.1)
        np.testing.assert_allclose(other.best_effects(side, np.zeros(40), 0.1 * by), found, rtol=0, atol=1e-14)
        assert found.size == count


@pytest.mark.parametrize("side", [0, 1])
def test_looking_at_some_stored_cells_at_a_time_changes_nothing(monkeypatch, side):
    table = made("poisson", True, True, np.float64)
    others = table.offset if side else np.linspace(-3, -1, 40)
    whole = rough_effects(table.loss, table.sheet, side, others, 0.1)
    monkeypatch.setattr(full_table, "STORED", 37)
    np.testing.assert_allclose(rough_effects(table.loss, table.sheet, side, others, 0.1), whole, atol=1e-9)
