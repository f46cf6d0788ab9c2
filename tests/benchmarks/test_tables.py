"""The benchmark of mixed tables: masks hide as much as they say, and every imputer answers in the same codes."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # benchmarks are not installed with the library

from benchmarks.accuracy import draws, tables
from benchmarks.harness.rows import Absent
from benchmarks.harness.table_data import DEVELOPMENT, MASKS, UNSEEN, MixedTable, hide
from benchmarks.rivals.tables import IMPUTERS, Encoded

from bifactor.data.column_types import ColumnSpec


@pytest.fixture(scope="module")
def table():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    u = rng.standard_normal(90)
    frame = pd.DataFrame(
        {
            "x": u + 0.2 * rng.standard_normal(90),
            "grade": np.digitize(u, [-1, 0, 1]).astype(float),
            "flag": u > 0,
            "word": np.array(["a", "b", "c"])[np.digitize(u, [-0.5, 0.5])],
        }
    )
    kinds = {"x": "number", "grade": "ordinal", "flag": "boolean", "word": "category"}
    levels = {"x": (), "grade": (0.0, 1.0, 2.0, 3.0), "flag": (False, True), "word": ("a", "b", "c")}
    forms = [ColumnSpec(name, kind, levels[name]) for name, kind in kinds.items()]
    return MixedTable(frame, forms, MixedTable(frame, forms, np.empty((0, 0))).codes_of(frame))


@pytest.mark.parametrize("how", MASKS)
@pytest.mark.parametrize("share", tables.SHARES)
def test_masks_hide_what_they_say(table, how, share):
    hidden = hide(table, how, share, 0)
    moving = hidden.any(axis=0)
    assert moving.all() or how == "MAR"
    assert hidden[:, moving].mean() == pytest.approx(share, abs=0.12)
    shown = table.codes_of(table.shown(hidden))
    np.testing.assert_array_equal(shown, np.where(hidden, np.nan, table.codes))


def test_errors_are_1_for_the_simple_imputer_and_0_for_the_truth(table):
    hidden = hide(table, "MCAR", 0.3, 0)
    assert table.error(table.codes, hidden) == 0
    assert table.error(IMPUTERS["mean, median, mode"](table, hidden), hidden) == pytest.approx(1, abs=0.1)


def test_codes_come_back_from_what_rivals_get(table):
    encoded = Encoded(table, np.zeros(table.codes.shape, bool))
    np.testing.assert_allclose(encoded.back(encoded.X), table.codes)


@pytest.mark.parametrize("name", IMPUTERS)
def test_every_imputer_fills_in_codes(table, name):
    hidden = hide(table, "MCAR", 0.2, 0)
    try:
        filled = IMPUTERS[name](table, hidden)
    except Absent:
        pytest.skip("not installed")
    assert not np.isnan(filled).any()
    np.testing.assert_allclose(filled[~hidden], table.codes[~hidden])
    assert set(np.unique(filled[:, 3])) <= {0.0, 1.0, 2.0}


def test_the_summary_ranks_and_compares():
    rows = [
        {"objective": "MCAR 10%", "data": "t", "solver": name, "error": error, "seconds": 1.0}
        for error, name in enumerate(tables.RANKED, 1)
    ]
    lines, _ = tables.summary(rows)
    told = {line["imputer"]: line for line in lines}
    assert told["TableImputer"]["rank"] == "1.00"
    assert told["TableImputer"]["error"] == "0.250"
    assert told["IterativeImputer"]["error"] == "1.000"


def test_tables_of_development_are_not_those_of_the_test():
    assert not set(DEVELOPMENT) & set(UNSEEN)
    assert len(UNSEEN) >= 20


def test_rubins_rules():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.standard_normal(60)
    fit = draws.regression(X, y)
    np.testing.assert_allclose(fit.slopes, np.linalg.lstsq(np.column_stack([np.ones(60), X]), y)[0][1:])
    assert draws.pooled([fit]) is fit
    alike = draws.pooled([fit, fit, fit])
    np.testing.assert_allclose(alike.variances, fit.variances)
    np.testing.assert_allclose(alike.freedom, 56 * 57 / 59, rtol=1e-6)
    moved = [fit._replace(slopes=fit.slopes + shift) for shift in (-1, 0, 1)]
    apart = draws.pooled(moved)
    np.testing.assert_allclose(apart.slopes, fit.slopes)
    np.testing.assert_allclose(apart.variances, fit.variances + 4 / 3)
    assert np.all(apart.freedom < 3)
    assert fit.holds(fit.slopes).all()


def test_draws_of_planted_rows_are_told_by_all_methods():
    rows = list(draws.planted(0, "MAR"))
    assert [row["solver"] for row in rows] == [
        "complete data",
        "complete rows",
        "filled in",
        "1 draw",
        "5 draws",
        "20 draws",
    ]
    assert all(0 <= row["cover95"] <= 1 and row["rmse"] < 1 for row in rows)
