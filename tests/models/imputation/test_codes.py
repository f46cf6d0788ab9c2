"""Codes of columns: standardised, and back."""

import numpy as np
import pytest

from bifactor.errors import InputError
from bifactor.models.imputation.encoding import (
    MOST_CLASSES,
    ClassCode,
    LevelCode,
    NumberCode,
    Schema,
    TableEncoding,
    code_of,
)

RNG = np.random.default_rng(0)
SKEWED = np.exp(RNG.standard_normal(400))


def test_numbers_and_their_scores_are_standardised_and_come_back():
    code = NumberCode.of(SKEWED, None)
    z, g = code.encode(SKEWED)[:, 0], code.scores(SKEWED)[:, 0]
    for x in (z, g):
        assert x.mean() == pytest.approx(0, abs=1e-12)
        assert x.std() == pytest.approx(1)
    np.testing.assert_allclose(code.decode(z), SKEWED)
    np.testing.assert_allclose(code.undo_scores(g), z, atol=1e-9)
    assert np.all(np.diff(g[np.argsort(SKEWED)]) > 0)


def test_the_expectation_of_a_score_is_that_of_its_draws():
    code = NumberCode.of(SKEWED, None)
    z, variance = np.array([-0.5, 1.0]), np.array([0.3, 0.6])
    draws = z[:, None] + np.sqrt(variance)[:, None] * RNG.standard_normal((2, 200_000))
    np.testing.assert_allclose(code.expected(z, variance), code.undo_scores(draws).mean(axis=1), atol=0.02)


def test_numbers_stay_within_bounds():
    far = np.array([-100.0, 100.0])
    assert code_bounds(None) == (SKEWED.min(), SKEWED.max())
    assert code_bounds((0.0, 5.0)) == (0.0, 5.0)
    assert np.all(NumberCode.of(SKEWED, (0.0, 5.0)).decode(far) == [0.0, 5.0])


def code_bounds(bounds):
    code = NumberCode.of(SKEWED, bounds)
    return code.low, code.high


def test_grades_rise_and_are_standardised():
    x = RNG.choice(4, 300, p=[0.5, 0.3, 0.15, 0.05]).astype(float)
    code = LevelCode.of(x, "ordinal", 5)  # the last was never seen
    assert np.all(np.diff(code.points) > 0)
    z = code.encode(x)[:, 0]
    assert abs(z.mean()) < 0.01
    assert z.std() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("levels", [3, 7])
def test_contrasts_of_classes_are_uncorrelated(levels):
    x = RNG.integers(0, levels, 500).astype(float)
    code = ClassCode.of(x, levels)
    assert code.width == levels - 1
    np.testing.assert_allclose(np.cov(code.encode(x).T, ddof=0), np.eye(levels - 1), atol=0.05)


def test_rare_classes_share_one():
    x = np.minimum(RNG.zipf(1.3, 3000) - 1, 199).astype(float)
    code = ClassCode.of(x, 200)
    assert code.width == MOST_CLASSES - 1
    np.testing.assert_allclose(np.bincount(code.classes, code.within), 1)
    counts = np.bincount(x.astype(int), minlength=200)
    shared = code.classes == MOST_CLASSES - 1
    assert counts[shared].max() <= counts[~shared].min()


def test_what_does_not_vary_has_no_code():
    assert code_of(np.array([0.1, 0.1]), "number", 0, None) is None
    assert code_of(np.empty(0), "category", 3, None) is None
    assert code_of(1e9 + np.array([0.0, 1e-7]), "number", 0, None) is None


def test_sizes_whose_differences_overflow_are_refused():
    with pytest.raises(InputError, match=r"values as large as 1e\+308"):
        NumberCode.of(np.array([1e308, -1e308, 5.0]), None)


def test_places_of_a_table():
    X = np.column_stack([SKEWED, np.ones(400), RNG.integers(0, 3, 400), RNG.integers(0, 2, 400)]).astype(float)
    X[::7, 2] = np.nan
    layout = TableEncoding.of(X, Schema(("number", "number", "category", "boolean"), (0, 0, 3, 2)))
    assert layout.own.tolist() == [0, 2, 2, 3]
    assert layout.kinds() == ["number", "category", "category", "boolean"]
    assert layout.spans[1] == slice(1, 1)
    Y = layout.encode(X)
    assert np.isnan(Y[::7, 1:3]).all()
    assert not np.isnan(Y[:, [0, 3]]).any()
