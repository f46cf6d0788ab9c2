"""The check of invariance itself: estimators that obey the laws, and some that break one each."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import bifactor as bf
from bifactor.errors import CheckError, InputError
from bifactor.testing import check_invariance


def table(seed=0, shape=(30, 20), known=0.6):
    rng = np.random.default_rng(seed)
    X = 2 + rng.standard_normal((shape[0], 1)) + rng.standard_normal(shape[1]) + 0.2 * rng.standard_normal(shape)
    kept = rng.random(shape) < known
    kept[np.arange(shape[0]), np.arange(shape[0]) % shape[1]] = True
    return np.where(kept, X, np.nan)


class Means(BaseEstimator):
    """Means of columns, plus means of rows of what is left; each fault breaks one law."""

    def __init__(self, fault=None, ridge=0.0):
        self.fault, self.ridge = fault, ridge

    def fit(self, X, y=None, sample_weight=None):
        w = np.where(np.isnan(X), 0.0, 1.0 if sample_weight is None else sample_weight)
        Y = np.nan_to_num(X)
        centre = 0.0 if self.fault == "shift" else np.sum(w * Y) / w.sum()
        Y = np.where(w > 0, Y - centre, 0)
        least = 0.1 if self.fault == "scale" else 0.0
        Y = np.sign(Y) * np.maximum(np.abs(Y) - least, 0)
        unit = 1.0 if self.fault == "weights" else w.sum() / np.count_nonzero(w)
        c = np.sum(w * Y, axis=0) / (np.sum(w, axis=0) + unit + self.ridge)
        b = np.sum(w * (Y - c), axis=1) / (np.sum(w, axis=1) + unit)
        if self.fault == "order":
            b[0] = 0
        self.table_ = centre + b[:, None] + c
        return self

    def predict(self, rows, cols):
        return self.table_[rows, cols]


@pytest.mark.parametrize("change", ["scale", "shift", "weights", "order"])
@pytest.mark.parametrize("by", [None, 1e-3])
def test_a_fault_is_found_by_its_law_alone(change, by):
    for fault in (None, "scale", "shift", "weights", "order"):
        given = {"by": None if change == "order" else by}
        if fault != change:
            check_invariance(Means(fault), table(), change, **given)
            continue
        if (fault, by) == ("shift", 1e-3):  # hardly a change
            given["tol"] = 1e-9
        with pytest.raises(CheckError, match=f"Means, {change}.*: answers differ by up to .* of their standard"):
            check_invariance(Means(fault), table(), change, **given)


def test_settings_in_the_unit_of_the_data_change_too():
    with pytest.raises(CheckError, match="weights by 100"):
        check_invariance(Means(ridge=1.0), table(), "weights", by=100)
    check_invariance(Means(ridge=1.0), table(), "weights", by=100, settings={"ridge": 100.0})


class Lucky(Means):
    """Means of half of the rows, which are drawn anew for each fit; `worse` is added to the second fit."""

    fits = 0

    def __init__(self, worse=0.0):
        self.worse = worse

    def fit(self, X, y=None):
        Lucky.fits += 1
        used = np.random.default_rng(Lucky.fits).random(len(X)) < 0.5
        self.table_ = np.nanmean(X[used]) + np.zeros(X.shape) + (self.worse if Lucky.fits % 2 == 0 else 0)
        self.table_[0] += 1e-3
        return self


def test_random_choices_may_change_the_answers_and_not_the_losses():
    Lucky.fits = 0
    with pytest.raises(CheckError, match="answers differ"):
        check_invariance(Lucky(), table(), "order")
    check_invariance(Lucky(), table(), "order", exact=False)
    with pytest.raises(CheckError, match=r"mean losses at held-out entries are .* one standard error"):
        check_invariance(Lucky(worse=2.0), table(), "order", exact=False)
    Lucky.fits = 0
    asked = []

    def losses(answers, X, hidden):
        asked.append((answers.shape, int(hidden.sum()), np.isnan(X[hidden]).any()))
        return np.ones(int(hidden.sum()))

    check_invariance(Lucky(worse=2.0), table(), "order", exact=False, losses=losses)
    assert asked[0] == asked[1]
    assert asked[0][0] == (30, 20)
    assert asked[0][1] == pytest.approx(0.1 * np.count_nonzero(~np.isnan(table())), abs=15)
    assert not asked[0][2]


@pytest.mark.parametrize("change", ["names", "sparse", "triples", "frame", "file", "blocks"])
def test_completions_take_all_forms(change):
    check_invariance(bf.MatrixCompletion(n_components=1, ridge=1.0, tol=1e-9), table(), change)


@pytest.mark.parametrize("change", ["names", "triples", "frame", "file", "blocks"])
def test_others_take_tables_only(change):
    with pytest.raises(InputError, match="Means has no fit_long"):
        check_invariance(Means(), table(), change)


def test_features_move():
    features = np.random.default_rng(0).standard_normal((30, 2))
    model = bf.MatrixCompletion(n_components=1, ridge=1.0, tol=1e-9, user_features=features)
    check_invariance(model, table(), "order")
    with pytest.raises(InputError, match="has no features"):
        check_invariance(Means(), table(), "features")


@pytest.mark.parametrize(
    ("X", "change", "message"),
    [
        (table(), "colour", "change='colour' is unknown. Choose from: scale, shift"),
        (np.full((3, 2), np.nan), "scale", "an entry in each row and column"),
        (np.ones(3), "scale", "not a table"),
        (np.ones((3, 2), int), "scale", "not a table"),
    ],
)
def test_mistakes_are_told(X, change, message):
    with pytest.raises(InputError, match=message):
        check_invariance(Means(), X, change)
