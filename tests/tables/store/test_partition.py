"""A block store holds what `tables.read` reads, in the order that `arrange` gives."""

import numpy as np
import pandas as pd
import pytest

import bifactor as bf
from bifactor.kernels.layout import arrange
from bifactor.tables.store import plan, sources


@pytest.fixture
def small_pieces(monkeypatch):
    """Many pieces and blocks of few observations."""
    monkeypatch.setattr(sources, "PIECE", 300)
    monkeypatch.setattr("bifactor.tables.store.parquet_source.PIECE", 300)
    monkeypatch.setattr(plan, "SMALL", 100)


def require_same(store, data):
    """The store holds these observations, with the same numbering."""
    assert store.shape == data.shape
    assert store.size == data.rows.size == sum(part.size for part in store.parts)
    assert store.flipped == (data.shape[0] < data.shape[1])
    for found, wanted in ((store.row_names, data.row_names), (store.column_names, data.column_names)):
        assert (found is None) == (wanted is None)
        if found is not None:
            assert list(found) == list(wanted)
    outer, inner = (data.cols, data.rows) if store.flipped else (data.rows, data.cols)
    assert (store.parts[0].start, store.parts[-1].stop) == (0, max(data.shape))
    for before, after in zip(store.parts, store.parts[1:], strict=False):
        assert before.stop == after.start
    for part in store.parts:
        mine = (outer >= part.start) & (outer < part.stop)
        layout, y, weights = part.load()
        wanted, order = arrange(outer[mine] - part.start, inner[mine], part.stop - part.start, min(data.shape))
        order = slice(None) if order is None else order
        for name in ("outer", "inner", "tiles"):
            np.testing.assert_array_equal(getattr(layout, name), getattr(wanted, name))
            assert getattr(layout, name).dtype == getattr(wanted, name).dtype
        for found, counts in zip(layout.counts, wanted.counts, strict=True):
            np.testing.assert_array_equal(found, counts)
        assert y.dtype == store.dtype
        np.testing.assert_array_equal(y, data.values[mine][order].astype(store.dtype))
        assert (weights is None) == (data.weights is None)
        if weights is not None:
            np.testing.assert_array_equal(weights, data.weights[mine][order].astype(store.dtype))
    np.testing.assert_array_equal(store.marginals[0], np.bincount(data.rows, minlength=data.shape[0]))
    np.testing.assert_array_equal(store.marginals[1], np.bincount(data.cols, minlength=data.shape[1]))
    assert store.mean == pytest.approx(data.values.mean(), rel=1e-12)
    assert (store.least, store.largest) == (data.values.min(), data.values.max())
    assert store.whole == bool(np.all(data.values % 1 == 0))


def ratings(kind="integers", size=2000, seed=0, m=60, n=40):
    rng = np.random.default_rng(seed)
    users, items = rng.integers(m, size=size), rng.integers(n, size=size)
    kinds = {
        "integers": lambda k: k + 1,
        "sparse": lambda k: (k * 982_451_653_000_001) % (1 << 62) - (1 << 61),
        "text": lambda k: np.array([f"name {j}é" for j in k], object),
        "mixed": lambda k: np.array([str(j) if j < 30 else f"x{j}" for j in k], object),
        "fractions": lambda k: k - 20.5,
        "whole floats": lambda k: k.astype(np.float64),
        "unsigned": lambda k: k.astype(np.uint64) + np.uint64(1 << 63),
        "booleans": lambda k: k % 2 == 0,
        "dates": lambda k: np.datetime64("2020-01-01") + k,
    }
    return pd.DataFrame(
        {"user": kinds[kind](users), "item": items, "rating": rng.integers(1, 11, size=size) / 2, "w": rng.random(size)}
    )


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    "kind",
    ["integers", "sparse", "text", "mixed", "fractions", "whole floats", "unsigned", "booleans", "dates"],
)
def test_parquet_is_numbered_as_in_memory(kind, tmp_path):
    frame = ratings(kind)
    frame.to_parquet(tmp_path / "ratings.parquet", row_group_size=700)
    store = bf.tables.partition(
        tmp_path / "ratings.parquet", tmp_path / "blocks", row="user", col="item", value="rating"
    )
    require_same(store, bf.tables.read(tmp_path / "ratings.parquet", row="user", col="item", value="rating"))
    assert store.origin.header == ("user", "item", "rating")


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("kind", ["integers", "sparse", "text", "mixed", "fractions"])
def test_text_is_numbered_as_in_memory(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("bifactor.tables.source.BLOCK", 5000)
    path = tmp_path / "ratings.csv"
    ratings(kind)[["user", "item", "rating"]].to_csv(path, index=False)
    store = bf.tables.partition(path, tmp_path / "blocks")
    data = bf.tables.read(path)
    require_same(store, data)
    assert store.origin == data.origin
