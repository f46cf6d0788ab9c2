"""Answers must not depend on the unit, zero, order, names or form of the data: a quick part of the table of laws.

`benchmarks/accuracy/invariance.py` has all estimators, all changes and more seeds.
"""

import pytest
from benchmarks.accuracy import invariance
from benchmarks.accuracy.invariance import ESTIMATORS, compared, holds, state_rows

QUICK = {
    "MatrixCompletion": "scale shift order",
    "MatrixCompletion, solver given": "scale weights order blocks",
    "MatrixCompletion, features": "scale features",
    "MatrixCompletion, ridge=1": "scale weights order blocks names sparse triples frame file",
    "MatrixCompletion, ridge=1, features": "features order",
    "MatrixCompletion, ridge='auto'": "scale weights order",
    "MatrixCompletion, huber": "scale",
    "MatrixCompletion, ordinal": "weights",
    "OneBitCompletion, ridge=1": "scale order blocks",
    "OneBitCompletion": "order file",
    "Recommender, settings given": "weights order names frame",
    "Recommender, features": "features",
    "Recommender, no item_share": "blocks",
    "LogisticPCA, ridge=1": "scale order",
    "LogisticPCA": "weights sparse",
    "PoissonPCA, ridge=1": "weights order",
    "FactorAnalysis": "scale shift order",
    "TableImputer": "scale shift order",
    "ImageCompletion": "scale",
}
LAWS = [(name, change) for name, changes in QUICK.items() for change in changes.split()]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "change"), LAWS)
def test_answers_do_not_depend_on(name, change):
    case, by = ESTIMATORS[name], {"scale": 1e-6, "weights": 1e6}.get(change)
    found = compared(case, change, seed=0, by=by)
    assert holds(case, found), f"{found.largest:.1e} of the spread, losses {found.losses} ± {found.error:.1e}"


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_state_does_not_depend_on_how_its_counts_are_written(monkeypatch):
    monkeypatch.setattr(invariance, "SEEDS", 1)
    assert all(row["holds"] for row in state_rows())
