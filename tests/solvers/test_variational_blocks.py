"""The variational posterior over data in blocks: that of the same data in memory, by one pass for each sweep."""

import pickle
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import InputError
from bifactor.executors import BlockData, Streamed
from bifactor.kernels.entry_layout import arrange
from bifactor.operators import Entries, Partitioned
from bifactor.running.checkpoint import pack_value
from bifactor.solvers import Variational
from bifactor.testing import check_solver

SHAPES = [(40, 25), (25, 40)]


@dataclass(eq=False)
class Block:
    """Entries of some rows of the longer side, which are copied when they are asked for."""

    start: int
    stop: int
    outer: np.ndarray
    inner: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    columns: int

    @property
    def size(self):
        return self.outer.size

    @property
    def fingerprint(self):
        return f"{self.start} {self.stop} {self.columns} {self.y.sum()}"

    def load(self, workspace=None):
        layout, order = arrange(self.outer, self.inner, self.stop - self.start, self.columns)
        y, w = (a if order is None or a is None else a[order] for a in (self.y, self.weights))
        return BlockData(layout, y, w)


@dataclass(eq=False)
class Store:
    shape: tuple[int, int]
    dtype: np.dtype
    flipped: bool
    parts: list


class Counting(Streamed):
    """Counts passes."""

    passes = 0

    def run_pass(self, *arguments, **options):
        self.passes += 1
        return super().run_pass(*arguments, **options)


def stored(i, j, y, shape, weights=None, blocks=3):
    flipped = shape[0] < shape[1]
    outer, inner = (j, i) if flipped else (i, j)
    cuts = np.linspace(0, max(shape), blocks + 1).astype(int)
    parts = []
    for start, stop in pairwise(cuts):
        here = (outer >= start) & (outer < stop)
        w = None if weights is None else weights[here]
        parts.append(Block(int(start), int(stop), outer[here] - start, inner[here], y[here], w, min(shape)))
    return Store(shape, y.dtype, flipped, parts)


def data(shape, seed=0, rank=3, noise=0.5, share=0.5, weighted=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))
    seen = rng.random(shape) < share
    seen[3] = seen[:, 5] = False  # nothing is known of these
    i, j = np.nonzero(seen)
    y = (X[i, j] + noise * rng.standard_normal(i.size)).astype(dtype)
    weights = ((rng.random(i.size) + 0.5) * (rng.random(i.size) < 0.9)).astype(dtype) if weighted else None
    return i, j, y, shape, weights


def both(shape, kind="plain", blocks=3, loss="squared", executor=None, **options):
    """The same problem in memory and in blocks, and a start."""
    i, j, y, shape, w = data(shape, weighted=kind == "weights", **options)
    rng = np.random.default_rng(7)
    more = {"offsets": kind == "offsets"}
    if kind == "fixed":
        more["fixed"] = rng.standard_normal((shape[0], 1)), rng.standard_normal((shape[1], 2))
    held = bf.Problem(loss, Entries(i, j, shape), y, w, **more)
    bound = Partitioned(loss, stored(i, j, y, shape, w, blocks), executor)
    return held, bf.Objective(bound, **more)


def run(problem, noise="one", prior="separate", sweeps=12, rank=3):
    return bf.solve(problem, rank, Variational(noise, prior, tol=0), bf.inits.Random(), 0, max_iter=sweeps, tol=0)


# The same posterior as in memory


def warm(means, cold):
    """Means without those of a row without measurements, which is found from the other factor of the same state."""
    return np.delete(means, cold, axis=0)


@pytest.mark.parametrize("noise", ["one", "columns", "rows", "both"])
@pytest.mark.parametrize("prior", ["separate", "shared"])
@pytest.mark.parametrize("kind", ["plain", "weights", "offsets", "fixed"])
@pytest.mark.parametrize("blocks", [1, 4])
def test_sweep_by_sweep_it_is_the_posterior_in_memory(noise, prior, kind, blocks):
    """A state over blocks is half a sweep further: columns are alike, and rows those that come next."""
    held, parted = both((40, 25), kind, blocks)
    a, b = (run(problem, noise, prior).posterior for problem in (held, parted))
    np.testing.assert_allclose(warm(b.cols.means, 5), warm(a.cols.means, 5), atol=1e-9)
    np.testing.assert_allclose(b.cols.covariance, a.cols.covariance, atol=1e-9)
    np.testing.assert_allclose(b.cols.prior, a.cols.prior, rtol=1e-8)
    np.testing.assert_allclose(b.cols.precision, a.cols.precision, rtol=1e-8)
    if noise in ("one", "columns"):
        found, rows = a.fold_in(held), b.rows.take(np.arange(40))
        np.testing.assert_allclose(warm(rows.means, 3), warm(found.means, 3), atol=1e-9)
        np.testing.assert_allclose(warm(rows.covariance, 3), warm(found.covariance, 3), atol=1e-9)


@pytest.mark.parametrize("noise", ["one", "columns", "rows"])
@pytest.mark.parametrize("prior", ["separate", "shared"])
def test_where_blocks_are_of_columns_it_is_that_of_the_transposed_matrix(noise, prior):
    i, j, y, shape, _ = data((25, 40))
    U, V = (np.random.default_rng(k).standard_normal((rows, 3)) for k, rows in enumerate(shape))
    other = {"columns": "rows", "rows": "columns"}.get(noise, noise)
    turned = bf.Problem("squared", Entries(j, i, shape[::-1]), y)
    parted = bf.Objective(Partitioned("squared", stored(i, j, y, shape)))
    options = {"max_iter": 12, "tol": 0}
    a = bf.solve(turned, 3, Variational(other, prior, tol=0), bf.inits.Given(V, U), **options).posterior
    b = bf.solve(parted, 3, Variational(noise, prior, tol=0), bf.inits.Given(U, V), **options).posterior
    np.testing.assert_allclose(warm(b.rows.means, 3), warm(a.cols.means, 3), atol=1e-9)
    np.testing.assert_allclose(b.rows.covariance, a.cols.covariance, atol=1e-9)
    np.testing.assert_allclose(b.rows.precision, a.cols.precision, rtol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("prior", ["separate", "shared"])
def test_both_end_at_the_same_place(shape, prior):
    held, parted = both(shape, "weights")
    solver = Variational(prior=prior, tol=0)
    a, b = (bf.solve(problem, 3, solver, rng=0, max_iter=250, tol=1e-8) for problem in (held, parted))
    assert b.objective == pytest.approx(a.objective, rel=1e-8)
    assert b.posterior.variance == pytest.approx(a.posterior.variance, rel=1e-6)
    np.testing.assert_allclose(b.matrix(), a.matrix(), atol=1e-6 * np.abs(a.matrix()).max())
    for ours, theirs in ((b.posterior.rows, a.posterior.rows), (b.posterior.cols, a.posterior.cols)):
        np.testing.assert_allclose(ours.prior, theirs.prior, rtol=1e-6)
    i, j = (k.ravel() for k in np.indices(shape))
    np.testing.assert_allclose(b.posterior.std(i, j), a.posterior.std(i, j), rtol=1e-6)
    told = [one.posterior.rows.means @ one.posterior.cols.means.T for one in (a, b)]  # rows without entries included
    np.testing.assert_allclose(told[1], told[0], atol=1e-5 * np.abs(told[0]).max())
    z, y, w = b.predict(held.operator.rows, held.operator.cols), held.y, held.weights
    assert b.misfit == pytest.approx((np.sum(w * (z - y) ** 2) / np.sum(w * y**2)) ** 0.5, rel=1e-10)


# Laws


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("noise", ["one", "columns", "both"])
@pytest.mark.parametrize("kind", ["plain", "weights", "offsets", "fixed"])
def test_the_bound_never_falls(shape, noise, kind):
    result = run(both(shape, kind)[1], noise, "shared" if kind == "offsets" else "separate", sweeps=40, rank=4)
    values = result.history.objective
    assert np.all(np.diff(values) <= 1e-10 * np.abs(values).max())
    assert result.objective == pytest.approx(values[-1], rel=1e-10)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("noise", "kind"), [("one", "offsets"), ("both", "weights"), ("columns", "fixed")])
def test_it_is_a_solver(shape, noise, kind):
    """Gradients are those of the bound, among others, and a run goes on where it was left."""
    check_solver(Variational(noise, tol=0), both(shape, kind)[1], 3)


def test_a_sweep_is_one_pass():
    executor = Counting()
    parted = both((40, 25), "offsets", executor=executor)[1]
    solver = Variational("columns", tol=0)
    state = solver.init(parted, bf.inits.Random()(parted, 3, np.random.default_rng(0)), 3)
    before = executor.passes
    for _ in range(12):
        state = solver.step(parted, state)
    assert executor.passes == before + 12


@pytest.mark.parametrize("noise", ["one", "both"])
def test_no_state_has_covariances_of_the_longer_side(noise):
    parted = both((40, 25), "offsets")[1]
    solver = Variational(noise, tol=0)
    state = solver.init(parted, bf.inits.Random()(parted, 3, np.random.default_rng(0)), 3)
    arrays = {}
    pack_value(solver.step(parted, state), arrays, {})
    tall = [a.shape for a in arrays.values() if a.shape[:1] == (40,)]
    assert tall
    assert all(shape[1:] in ((), (5,)) for shape in tall)


def test_rows_may_be_found_a_few_at_a_time(monkeypatch):
    parted = both((40, 25), "offsets")[1]
    whole = run(parted, "both")
    monkeypatch.setattr("bifactor.solvers.variational.block_pass.NUMBERS", 1)
    few = run(parted, "both")
    np.testing.assert_allclose(few.matrix(), whole.matrix(), atol=1e-10)
    assert few.objective == pytest.approx(whole.objective, rel=1e-12)
    rows = np.array([30, 2, 30, 3])
    ours, theirs = (one.posterior.rows.take(rows).covariance for one in (few, whole))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


# Edges


def test_an_intercept_is_taken_from_the_data():
    i, j, y, shape, _ = data((40, 25))
    plain = bf.Objective(Partitioned("squared", stored(i, j, y, shape)))
    shifted = bf.losses.Shifted(bf.losses.Squared(), 3.0)
    moved = bf.Objective(Partitioned(shifted, stored(i, j, y + 3.0, shape)))
    a, b = (run(problem) for problem in (plain, moved))
    np.testing.assert_allclose(b.matrix(), a.matrix(), atol=1e-9)
    assert b.objective == pytest.approx(a.objective, rel=1e-10)


def test_a_block_may_be_empty():
    i, j, y, shape, _ = data((40, 25))
    some = (i < 14) | (i >= 26)
    held = bf.Problem("squared", Entries(i[some], j[some], shape), y[some])
    parted = bf.Objective(Partitioned("squared", stored(i[some], j[some], y[some], shape)))
    a, b = (run(problem, "both") for problem in (held, parted))
    np.testing.assert_allclose(warm(b.posterior.cols.means, 5), warm(a.posterior.cols.means, 5), atol=1e-9)
    assert np.all(b.U[14:26] == 0)


def test_single_precision_is_close_to_double():
    single, double = (run(both((40, 25), "offsets", dtype=dtype)[1], "both") for dtype in (np.float32, np.float64))
    assert single.U.dtype == single.V.dtype == np.float32
    assert np.linalg.norm(single.matrix() - double.matrix()) <= 1e-3 * np.linalg.norm(double.matrix())


@pytest.mark.parametrize("noise", ["one", "columns", "rows", "both"])
@pytest.mark.parametrize("unit", [1e-15, 1e6])
@pytest.mark.parametrize("weight", [1.0, 1e6])
def test_the_answer_does_not_depend_on_units(noise, unit, weight):
    i, j, y, shape, _ = data((40, 25))
    a, b = (
        bf.solve(
            bf.Objective(Partitioned("squared", stored(i, j, c * y, shape, w * np.ones_like(y))), offsets=True),
            3, Variational(noise), rng=0, max_iter=15, tol=0,
        )
        for c, w in ((1.0, 1.0), (unit, weight))
    )  # fmt: skip
    np.testing.assert_allclose(b.matrix() / unit, a.matrix(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(b.posterior.std(i, j) / unit, a.posterior.std(i, j), rtol=1e-7)


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (6, 1), (3, 3)])
@pytest.mark.parametrize("rank", [0, 1])
def test_little_data(shape, rank):
    i, j = (k.ravel() for k in np.indices(shape))
    parted = bf.Objective(Partitioned("squared", stored(i, j, np.ones(i.size), shape, blocks=1)), offsets=True)
    result = bf.solve(parted, rank, Variational("both"), rng=0, max_iter=30)
    assert np.isfinite(result.objective)
    assert np.all(np.isfinite(result.posterior.std(i, j)))


def test_it_ends_when_predictions_rest():
    parted = both((40, 25), "offsets")[1]
    result = bf.solve(parted, 3, Variational(), rng=0)
    assert result.status is bf.Status.SETTLED
    assert result.n_iter < 200


# Error bars


@pytest.mark.parametrize("shape", SHAPES)
def test_error_bars_are_found_when_they_are_asked_for(shape):
    executor = Counting(memory=1)
    held, parted = both(shape, "offsets", executor=executor)
    posterior = run(parted, "columns").posterior
    tall = posterior.cols if shape[0] < shape[1] else posterior.rows
    whole = tall.take(np.arange(40))
    assert tall.covariance is None
    known = replace(posterior, cols=whole) if shape[0] < shape[1] else replace(posterior, rows=whole)
    rng = np.random.default_rng(0)
    i, j = (rng.integers(0, k, 50) for k in shape)
    before = executor.passes
    np.testing.assert_allclose(posterior.std(i, j), known.std(i, j), rtol=1e-12)
    assert executor.passes == before + 1
    assert posterior.std([], []).size == 0
    for ours, theirs in zip(posterior.interval(i, j), known.interval(i, j), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    for ours, theirs in zip(posterior.sample(3), known.sample(3), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(tall.moments, whole.moments, rtol=1e-12)
    stay = np.array([True, True, True, False, True])
    some = np.array([4, 1])
    np.testing.assert_allclose(tall.columns(stay).take(some).covariance, whole.columns(stay).take(some).covariance)
    for change in (lambda part: part.padded(43), lambda part: part.replaced(some, whole.take(np.array([7, 8])))):
        ours, theirs, asked = change(tall), change(whole), np.array([39, 4, 1, 0, 1])
        assert ours.covariance is None
        np.testing.assert_allclose(ours.means, theirs.means)
        np.testing.assert_allclose(ours.take(asked).covariance, theirs.take(asked).covariance)
        last = np.array([len(ours) - 1])
        np.testing.assert_allclose(ours.take(last).covariance, theirs.take(last).covariance)
    side = int(shape[0] < shape[1])
    assert posterior.fold_in(held, side).means.shape == (40, 5)


def test_a_posterior_that_was_pickled_has_no_blocks_to_read():
    posterior = pickle.loads(pickle.dumps(run(both((40, 25))[1]).posterior))
    assert posterior.cols.covariance is not None
    with pytest.raises(InputError, match="Only the means"):
        posterior.std([0], [0])


# Mistakes


def test_mistakes():
    i, j, y, shape, _ = data((40, 25))
    parted = both(shape)[1]
    for solver, words in (
        (Variational("student"), "not support noise='student' for data in blocks"),
        (Variational(row_features=np.ones((40, 2))), "not support row_features for data in blocks"),
        (Variational(column_features=np.ones((25, 2))), "not support column_features for data in blocks"),
        (Variational(implicit=True), "not support implicit for data in blocks"),
    ):
        with pytest.raises(InputError, match=words):
            bf.solve(parted, 2, solver)
    grouped = Partitioned(["squared", bf.losses.Huber(1.0)], stored(i, j, y, shape), group=np.arange(25) % 2)
    labels = Partitioned("logistic", stored(i, j, np.sign(y), shape))
    tiny = Partitioned("squared", stored(i, j, 1e-160 * y, shape))
    for problem, words in (
        (bf.Objective(grouped), "squared errors of real observed entries"),
        (bf.Objective(labels), "squared errors of real observed entries"),
        (parted.penalized(bf.penalties.Ridge(1.0)), "fits its own priors"),
        (parted + bf.all_cells(0.1), "not support all_cells|squared errors of real observed entries"),
        (bf.Objective(tiny), "Rescale y"),
    ):
        with pytest.raises(InputError, match=words):
            bf.solve(problem, 2, Variational())


# What it stands on


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["plain", "weights"])
def test_weights_of_rows_and_columns(shape, kind):
    held, parted = both(shape, kind)
    rng = np.random.default_rng(1)
    a, b = rng.random(shape[0]), rng.random(shape[1])
    more = a[held.operator.rows] * b[held.operator.cols] * (1 if held.weights is None else held.weights)
    x = held.kind.random(rng, shape, 2, np.dtype(float), held.f.like)
    weighted = parted.f.reweighted(a).reweighted(cols=b)
    ours, theirs = weighted.evaluate(x), held.reweighted(more).f.evaluate(x)
    assert ours.f == pytest.approx(theirs.f, rel=1e-12)
    np.testing.assert_allclose(ours.GV, theirs.GV, atol=1e-12)
    np.testing.assert_allclose(ours.GhU, theirs.GhU, atol=1e-12)
    assert weighted.fingerprint not in (parted.f.fingerprint, parted.f.reweighted(a).fingerprint)
    assert weighted.parameters.replace(()).value(x) == ours.f


def test_blocks_that_stay_in_memory_keep_to_the_budget():
    i, j, y, shape, _ = data((40, 25))
    store = stored(i, j, y, shape, blocks=8)
    sizes = [16 * part.size for part in store.parts]
    executor = Streamed(memory=2 * max(sizes) + sizes[0] + sizes[1])
    first = Partitioned("squared", store, executor)
    x = first.reweighted(2.0)
    for bound in (first, x, first):
        bound.value(bf.Objective(bound).zero(1))
    for part in store.parts:  # some blocks alone are no reason to keep them
        executor.run_pass([part], first.recipe, _nothing)
    assert sum(size for held in executor._kept.values() for size, _ in held.values()) <= executor.memory


def _nothing(block, tall, shared):
    return bf.executors.BlockResult()
