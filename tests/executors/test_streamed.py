"""Blocks one after the other: the budget changes what is read, and no bit of what is found."""

import tracemalloc

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import InputError
from bifactor.executors.executor import bytes_of
from bifactor.kernels import blas
from bifactor.operators import Partitioned


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Few observations make several blocks."""
    monkeypatch.setattr("bifactor.data.store.partition.SMALL", 200)


@pytest.fixture
def store(tmp_path):
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 300, 4000), rng.integers(0, 50, 4000)
    y = rng.standard_normal(4000).astype(np.float32)
    found = bf.data.partition((rows, cols, y), tmp_path / "blocks")
    assert len(found.parts) > 2
    return found


def test_any_budget_finds_the_same_bits(store):
    ends = []
    for memory in (1, 30_000, "1GB"):
        f = Partitioned("squared", store, bf.executors.Streamed(memory))
        ends.append(bf.solve(bf.Objective(f, bf.penalties.Ridge(0.5)), 3, rng=0, max_iter=15))
    for end in ends[1:]:
        assert np.array_equal(end.U, ends[0].U)
        assert np.array_equal(end.V, ends[0].V)


def test_blocks_that_stay_are_read_once(store, monkeypatch):
    loads, own = [], {part.path for part in store.parts}
    kind = type(store.parts[0])
    load = kind.load

    def count(self, workspace=None):
        if self.path in own:  # workers of other tests may still read theirs
            loads.append(self.start)
        return load(self, workspace)

    monkeypatch.setattr(kind, "load", count)
    for memory, times in ((1, 3), ("1GB", 1)):
        loads.clear()
        f = Partitioned("squared", store, bf.executors.Streamed(memory))
        for _ in range(3):
            f.value(f_zero(f))
        assert len(loads) == times * len(store.parts)


def f_zero(f):
    return bf.Objective(f).zero(2)


def test_a_problem_tells_what_it_takes_of_memory(store):
    small, large = (bf.Objective(Partitioned("squared", store, bf.executors.Streamed(m))) for m in (1, "1GB"))
    assert small.memory(2).total <= large.memory(2).total


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("1.5 MiB", 3 * 2**19), ("300", 300), (7, 7), ("64k", 64_000)]
)
def test_sizes(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("wrong", ["", "two", "-1GB", 0, None, np.nan, "0GB"])
def test_what_is_no_amount_of_memory(wrong):
    with pytest.raises(InputError, match="memory="):
        bf.executors.Streamed(wrong)


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_pcg_has_five_pairs_of_factors_at_most(tmp_path, monkeypatch, loss, offsets):
    monkeypatch.setattr(blas, "AT_A_TIME", 1 << 14)
    rng, shape, rank = np.random.default_rng(0), (250_000, 50), 10
    rows, cols = rng.integers(0, shape[0], 4000), rng.integers(0, shape[1], 4000)
    rows[0], cols[0] = shape[0] - 1, shape[1] - 1
    y = np.sign(rng.standard_normal(4000))
    store = bf.data.partition((rows, cols, y), tmp_path / "blocks", dtype=np.float64)
    f = bf.operators.Partitioned(loss, store)
    problem = bf.Objective(f, bf.penalties.Ridge(0.5), offsets=offsets)
    start = bf.inits.Given(*(0.1 * rng.standard_normal((k, rank)) for k in shape))
    pair = sum(shape) * (rank + 2 * offsets) * 8
    peaks = []

    def callback(iteration, state):
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()

    bf.solve(problem, rank, bf.solvers.PCG(), start, max_iter=2, tol=0)  # what is compiled and kept for later
    tracemalloc.start()
    bf.solve(problem, rank, bf.solvers.PCG(), start, max_iter=6, tol=0, callback=callback)
    tracemalloc.stop()
    vectors = 6 * shape[0] * 8
    assert max(peaks[1:]) <= 5 * pair + vectors
