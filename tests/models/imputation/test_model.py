"""Tables of all kinds: holes are filled better than by constants, draws are as wide as errors, nothing else changes."""

from dataclasses import replace

import numpy as np
import pytest

from bifactor.models.imputation.encoding import Schema
from bifactor.models.imputation.forests import Forests
from bifactor.models.imputation.model import FAST, FULL, TableModel
from bifactor.models.imputation.stacking import FOLDS, HeldOut, Stack

N = 300
KINDS = ("number", "number", "ordinal", "boolean", "category", "number")
SCHEMA = Schema(KINDS, (0, 0, 4, 2, 3, 0))


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    u, noise = rng.standard_normal((2, N)), lambda: 0.3 * rng.standard_normal(N)
    return np.column_stack(
        [
            u[0] + noise(),
            np.exp(u[1] + noise()),
            np.digitize(u[0] + noise(), [-1, 0, 1]),
            u[1] + noise() > 0,
            np.digitize(u[0] - u[1] + noise(), [-0.7, 0.7]),
            100 + 10 * u[1] + 10 * noise(),
        ]
    ).astype(float)


@pytest.fixture(scope="module")
def table(truth):
    return np.where(np.random.default_rng(1).random(truth.shape) < 0.8, truth, np.nan)


@pytest.fixture(scope="module")
def model(table):
    return TableModel.fit(table, SCHEMA, seed=0)


@pytest.mark.parametrize("effort", [FAST, FULL])
def test_holes_are_filled_and_nothing_else(truth, table, effort):
    full = TableModel.fit(table, SCHEMA, effort, seed=0).fill(table)
    known = ~np.isnan(table)
    np.testing.assert_array_equal(full[known], table[known])
    for j, kind in enumerate(KINDS):
        hole = np.isnan(table[:, j])
        x, told, seen = truth[hole, j], full[hole, j], table[~hole, j]
        if kind == "number":
            assert np.sqrt(np.mean((told - x) ** 2)) < 0.8 * x.std()
            assert seen.min() <= told.min()
            assert told.max() <= seen.max()
        else:
            assert set(told) <= set(seen)
            usual = np.median(seen) if kind == "ordinal" else np.bincount(seen.astype(int)).argmax()
            assert np.mean(np.abs(told - x) if kind == "ordinal" else told != x) < 0.7 * np.mean(
                np.abs(usual - x) if kind == "ordinal" else usual != x
            )


def test_new_rows_are_filled_one_by_one_as_together(model, truth):
    new = truth[:6].copy()
    new[np.arange(6), np.arange(6)] = np.nan
    together = model.fill(new)
    assert not np.isnan(together).any()
    np.testing.assert_allclose(np.vstack([model.fill(row[None]) for row in new]), together)


def test_scores_are_near_the_errors_of_holes(model, truth, table):
    full = model.fill(table)
    for j in (0, 5):
        hole = np.isnan(table[:, j])
        error = np.sqrt(np.mean((full - truth)[hole, j] ** 2))
        assert model.scores[j].error == pytest.approx(error, rel=0.4)
        assert model.scores[j].error < 0.8 * model.scores[j].baseline


@pytest.mark.parametrize("column", [2, 3, 4])
def test_probabilities_add_up_and_are_calibrated(model, truth, column):
    P = model.probabilities(truth, column)
    assert P.shape == (N, SCHEMA.sizes[column])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    shares = np.bincount(truth[:, column].astype(int)) / N
    np.testing.assert_allclose(P.mean(axis=0), shares, atol=0.06)
    hidden = truth.copy()
    hidden[:, column] = np.nan
    np.testing.assert_array_equal(model.probabilities(hidden, column), P)


def test_draws_vary_as_much_as_errors_and_keep_what_is_known(model, truth, table):
    draws = np.array(list(model.draws(table, 60, seed=0)))
    known = ~np.isnan(table)
    assert np.all(draws[:, known] == table[known])
    for j in (0, 1, 5):
        hole = np.isnan(table[:, j])
        low, high = np.quantile(draws[:, hole, j], [0.05, 0.95], axis=0)
        assert 0.75 < np.mean((low <= truth[hole, j]) & (truth[hole, j] <= high)) <= 1
    for j in (2, 3, 4):
        hole = np.isnan(table[:, j])
        drawn = np.bincount(draws[:, hole, j].astype(int).ravel(), minlength=SCHEMA.sizes[j]) / draws[:, hole, j].size
        np.testing.assert_allclose(drawn, model.probabilities(table[hole], j).mean(axis=0), atol=0.06)


def test_draws_of_a_row_are_joint():
    """Two columns that are the same but for little noise: where one is drawn high, so is the other."""
    rng = np.random.default_rng(2)
    u = rng.standard_normal(200)
    X = np.column_stack([u + 0.05 * rng.standard_normal(200) for _ in range(3)])
    X[:40, :2] = np.nan
    X[:40, 2] = np.nan
    draws = np.array(list(TableModel.fit(X, Schema(("number",) * 3, (0,) * 3), FAST).draws(X, 20, seed=1)))
    assert np.corrcoef(draws[:, :40, 0].ravel(), draws[:, :40, 1].ravel())[0, 1] > 0.9


def test_one_seed_one_answer(table):
    first, again = (TableModel.fit(table, SCHEMA, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.fill(table), again.fill(table))
    for a, b in zip(first.draws(table, 2, seed=5), again.draws(table, 2, seed=5), strict=True):
        np.testing.assert_array_equal(a, b)


def test_forests_find_steps_that_factors_miss():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (600, 4))
    X[:, 3] = np.floor(4 * X[:, 0]) % 2 + 0.05 * rng.standard_normal(600)
    holes = rng.random(600) < 0.2
    shown = X.copy()
    shown[holes, 3] = np.nan
    schema = Schema(("number",) * 4, (0,) * 4)
    errors = [np.std((TableModel.fit(shown, schema, effort).fill(shown) - X)[holes, 3]) for effort in (FAST, FULL)]
    assert errors[1] < 0.5 * errors[0]


def test_columns_without_relation_get_no_correction():
    X = np.random.default_rng(0).standard_normal((200, 5))
    X[::5, 0] = np.nan
    model = TableModel.fit(X, Schema(("number",) * 5, (0,) * 5))
    assert np.abs(model.predictor.stack.weights).max() < 0.3
    assert np.abs(model.fill(X)[::5, 0] - np.nanmean(X[:, 0])).max() < 0.5


def test_each_known_cell_is_hidden_once(table, model):
    factors = model.predictor.factors
    held_out = HeldOut.of(factors, table, np.random.default_rng(0))
    np.testing.assert_array_equal(held_out.mask, ~np.isnan(factors.layout.encode(table)))
    assert set(np.unique(held_out.fold[held_out.mask])) == set(range(FOLDS))
    cells = ~np.isnan(held_out.completed)
    assert cells.all()
    k, (rows, places) = 2, np.nonzero(held_out.fold == 2)
    np.testing.assert_array_equal(held_out.completed[k][rows, places], held_out.middle[rows, places])


def test_a_correction_that_is_the_truth_is_taken_and_noise_is_not(table, model):
    factors = model.predictor.factors
    rng = np.random.default_rng(0)
    held_out = HeldOut.of(factors, table, rng)
    rest = np.where(held_out.mask, held_out.known - held_out.middle, 0)
    useless = np.zeros_like(rest)
    good = np.stack([useless, rest], axis=2)
    stack, told = Stack.of(factors.layout, held_out, good, rng)
    assert np.all(stack.weights[:, 1] > 0.5)
    assert np.mean((told - held_out.known)[held_out.mask] ** 2) < 0.2 * np.mean(rest[held_out.mask] ** 2)
    noise = np.stack([useless, rng.standard_normal(rest.shape)], axis=2)
    assert np.abs(Stack.of(factors.layout, held_out, noise, rng)[0].weights).max() < 0.1


def test_trees_tell_known_cells_that_they_have_not_seen(table, model):
    """Of noise they know nothing, though each tree fits what it sees; most of them do not even grow."""
    factors = model.predictor.factors
    held_out = HeldOut.of(factors, table, np.random.default_rng(0))
    noise = np.where(held_out.mask, np.random.default_rng(1).standard_normal(held_out.mask.shape), np.nan)
    forests, told = Forests.of(factors.layout, replace(held_out, known=noise, middle=0 * held_out.middle), 0)
    assert sum(forest is None for forest in forests.forests) >= 4
    assert np.abs(np.mean((noise[:, :, None] * told)[held_out.mask], axis=0)).max() < 0.05
    clear = replace(held_out, known=np.where(held_out.mask, np.sign(held_out.completed[0]), np.nan))
    forests, told = Forests.of(factors.layout, clear, 0)
    assert None not in forests.forests
    assert np.mean((clear.known - clear.middle - told[:, :, 0])[held_out.mask] ** 2) < 0.5


@pytest.mark.parametrize("effort", [FAST, FULL])
@pytest.mark.parametrize(
    ("X", "kinds", "sizes"),
    [
        (np.array([[1.0, np.nan, 0.0]]), ("number", "number", "boolean"), (0, 0, 2)),
        (np.array([[1.0], [np.nan], [3.0]]), ("number",), (0,)),
        (np.array([[np.nan, 0.0], [2.0, np.nan], [np.nan, 1.0]]), ("number", "category"), (0, 2)),
        (np.array([[0.0, 1.0], [1.0, np.nan], [2.0, 0.0], [np.nan, 1.0]]), ("category", "ordinal"), (3, 2)),
        (np.full((4, 2), 7.0), ("number", "number"), (0, 0)),
    ],
    ids=["one row", "one column", "few", "square", "constant"],
)
def test_small_tables(X, kinds, sizes, effort):
    model = TableModel.fit(X, Schema(kinds, sizes), effort)
    full = model.fill(X)
    known = ~np.isnan(X).all(axis=0)
    assert not np.isnan(full[:, known]).any()
    assert np.isnan(full[:, ~known]).sum() == np.isnan(X[:, ~known]).sum()
    empty = model.fill(np.full((2, X.shape[1]), np.nan))
    assert not np.isnan(empty[:, known]).any()
    for draw in model.draws(X, 2, seed=0):
        assert not np.isnan(draw[:, known]).any()


def rare_and_noisy(seed, n=400):
    """Columns that follow two factors, and with them columns of rare levels and of noise, which follow nothing."""
    rng = np.random.default_rng(seed)
    u = rng.standard_normal((2, n))
    related = [u[k % 2] + 0.4 * rng.standard_normal(n) for k in range(6)]
    rare = [rng.choice(5, n, p=[1 - 4 * p, p, p, p, p]) for p in (0.003, 0.005, 0.01, 0.02, 0.03)]
    rest = [rng.choice(6, n), rng.integers(0, 5, n), rng.standard_normal(n), rng.exponential(size=n)]
    kinds = ["number"] * 6 + ["category"] * 6 + ["ordinal", "number", "number"]
    truth = np.column_stack([*related, *rare, *rest]).astype(float)
    return truth, Schema(tuple(kinds), (0,) * 6 + (5,) * 5 + (6, 5, 0, 0))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("effort", [FAST, FULL])
def test_no_column_is_filled_worse_than_by_its_most_frequent_level(seed, effort):
    truth, schema = rare_and_noisy(seed)
    rng = np.random.default_rng(seed + 100)
    table = np.where(rng.random(truth.shape) < 0.7, truth, np.nan)
    model = TableModel.fit(table, schema, effort, seed=0)
    full, holes = model.fill(table), np.isnan(table)
    assert all(score.error <= score.baseline for score in model.scores.values())
    for j in np.flatnonzero(np.array(schema.kinds) == "category"):
        known, hidden = table[~holes[:, j], j].astype(int), truth[holes[:, j], j]
        wrong = np.count_nonzero(full[holes[:, j], j] != hidden)
        often = np.bincount(known).max() / known.size  # of noise with equal levels, any level is as good
        assert wrong <= np.count_nonzero(hidden != np.bincount(known).argmax()) * (1 if often > 0.8 else 1.15)
    assert all(model.scores[j].error < 0.8 * model.scores[j].baseline for j in range(6))


def test_columns_that_nothing_tells_are_drawn_by_their_frequencies():
    truth, schema = rare_and_noisy(0)
    table = np.where(np.random.default_rng(1).random(truth.shape) < 0.7, truth, np.nan)
    model = TableModel.fit(table, schema, seed=0)
    alone = [j for j, score in model.scores.items() if score.error == score.baseline]
    levels = [j for j in alone if schema.sizes[j]]
    assert set(levels) >= {6, 7}
    drawn = np.stack(list(model.draws(table, 100, 0)))
    for j in levels:
        known = table[~np.isnan(table[:, j]), j].astype(int)
        shares = np.bincount(known, minlength=schema.sizes[j]) / known.size
        found = model.probabilities(table, j)
        assert np.ptp(found, axis=0).max() == 0
        np.testing.assert_allclose(found[0], shares, atol=0.01)  # half an observation for each level
        cells = drawn[:, np.isnan(table[:, j]), j].astype(int)
        told = np.bincount(cells.ravel(), minlength=schema.sizes[j]) / cells.size
        np.testing.assert_allclose(told, shares, atol=0.02)
    for j in set(alone) - set(levels):
        cells = drawn[:, np.isnan(table[:, j]), j]
        np.testing.assert_allclose(
            np.quantile(cells, [0.1, 0.5, 0.9]), np.nanquantile(table[:, j], [0.1, 0.5, 0.9]), atol=0.25
        )
        assert set(cells.ravel()) <= set(np.clip(cells.ravel(), np.nanmin(table[:, j]), np.nanmax(table[:, j])))
