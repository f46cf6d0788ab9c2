"""Sums of second moments: compiled loops against their definition."""

import numpy as np
import pytest

from bifactor import kernels
from bifactor.kernels import moments_reference as reference
from bifactor.kernels.entry_layout import arrange

compiled = kernels.get("moments", np.empty(0), np.inf)

WIDTH = 3


def entries(p, m=60, n=40, dtype=np.float64, weighted=True, seed=0):
    rng = np.random.default_rng(seed)
    layout, order = arrange(rng.integers(0, m, p), rng.integers(0, n, p), m, n)
    y, w = rng.standard_normal(p).astype(dtype), (rng.random(p) * (rng.random(p) < 0.8)).astype(dtype)
    y, w = (a if order is None else a[order] for a in (y, w))
    return layout, y, w if weighted else None


def tables(rows, seed=1):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, WIDTH * (WIDTH + 1) // 2)), rng.standard_normal((rows, WIDTH)), rng.random(rows)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("span", [(0, 60), (7, 31), (5, 6)])
@pytest.mark.parametrize("p", [0, 2000, 40000])
def test_compiled_sums_are_those_of_the_definition(dtype, weighted, span, p):
    layout, y, w = entries(p, dtype=dtype, weighted=weighted)
    close = {"rtol": 1e-10, "atol": 1e-10 * (1 + p)}
    for a, b in zip(*(way.gathered(layout, y, w, tables(40), span) for way in (compiled, reference)), strict=True):
        np.testing.assert_allclose(a, b, **close)
    sums = []
    for way in (compiled, reference):
        found = way.private(layout, WIDTH)
        for _ in range(2):  # it adds
            way.scatter(layout, y, w, tables(span[1] - span[0]), span, found)
        sums.append(way.collected(found))
    for a, b in zip(*sums, strict=True):
        np.testing.assert_allclose(a, b, **close)


def test_sums_are_what_their_words_say():
    layout, y, w = entries(30, m=5, n=4)
    M, m, q = tables(4)
    found = reference.gathered(layout, y, w, (M, m, q), (1, 4))
    for row in range(1, 4):
        at = np.flatnonzero(layout.outer == row)
        j, wy = layout.inner[at], w[at] * y[at]
        for ours, direct in zip(found, (w[at] @ M[j], wy @ m[j], (wy * y[at]) @ q[j]), strict=True):
            np.testing.assert_allclose(ours[row - 1], direct, atol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("p", [0, 40000])
def test_how_far_predictions_move(weighted, p):
    layout, _, w = entries(p, weighted=weighted)
    rng = np.random.default_rng(2)
    before, after = ((rng.standard_normal((60, 3)), rng.standard_normal((40, 3))) for _ in range(2))
    z, new = ((P @ Q.T)[layout.outer, layout.inner] for P, Q in (before, after))
    direct = np.sum((1 if w is None else w) * (new - z) ** 2)
    for way in (compiled, reference):
        assert way.moved(layout, w, before, after) == pytest.approx(direct, rel=1e-10)
    assert compiled.moved(layout, w, before, before) <= 1e-20 * (1 + direct)
