"""Runs whose factors are elsewhere end with the same bits, whatever is lost on the way."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import LostError
from bifactor.executors import Executor, PassResult
from bifactor.executors.deferred import Deferred, ReductionBatch, ResultGroup
from bifactor.executors.executor import add_sums, value_of
from bifactor.executors.row_array import RowArray, RowPlacement, spread
from bifactor.operators import Partitioned
from bifactor.running.recovery import MOST


class Fragile(Executor, RowPlacement):
    """Parts in lists; some of its answers are lost."""

    def __init__(self, parts, lost=()):
        RowPlacement.__init__(self, (*(part.start for part in parts), parts[-1].stop))
        self.lost, self.asked = set(lost), 0

    def _answer(self):
        self.asked += 1
        if self.asked in self.lost:
            raise LostError("A worker is gone.")

    def like(self, parts):
        return RowArray(None, self, np.empty(0))

    def run(self, plan):
        self._answer()
        count = len(self.cuts) - 1
        both = [plan.program.run(plan.each_of(k), [a.handles[k] for a in plan.bundles]) for k in range(count)]
        plan.settle([kept for kept, _ in both], len(plan.kept))
        return [asked for _, asked in both]

    def spread(self, parts):
        return [(part,) for part in parts]

    def run_pass(self, parts, opening, task, tall=(), shared=(), settings=()):
        question = ReductionBatch([spread(a, self).noted for a in tall])
        told, whole = self.run(question.plan), tuple(map(value_of, shared))
        question.set_results(told)
        passed = [
            task(opening(part, part.load()), own[: len(tall)], whole, *settings)
            for part, own in zip(parts, told, strict=True)
        ]
        sums = passed[0].sums
        for one in passed[1:]:
            sums = add_sums(sums, one.sums)
        bundle = ResultGroup(tuple(one.tall for one in passed), len(passed[0].tall))
        found = [RowArray(Deferred.made(bundle, k), self, a[:0]) for k, a in enumerate(passed[0].tall)]
        return PassResult(tuple(found), sums, [one.each for one in passed])


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr("bifactor.data.store.partition.SMALL", 200)
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, 120, 1500), rng.integers(0, 40, 1500)
    U, V = rng.standard_normal((120, 2)), rng.standard_normal((40, 2))
    y = np.sum(U[rows] * V[cols], axis=1) + 0.1 * rng.standard_normal(1500)
    return bf.data.partition((rows, cols, y), tmp_path / "blocks", dtype=np.float64)


def fitted(store, lost=(), **asked):
    executor = Fragile(store.parts, lost)
    asked = {"penalty": bf.penalties.Ridge(0.5), "offsets": False, "solver": None, **asked}
    solver = asked.pop("solver")
    problem = bf.Objective(Partitioned("squared", store, executor), penalty=asked["penalty"], offsets=asked["offsets"])
    return bf.solve(problem, 2, solver, rng=0, max_iter=14, checkpoint_every=4), executor.asked


@pytest.mark.parametrize("solver", [bf.solvers.PCG(), bf.solvers.RankContinuation(), bf.solvers.BFGD(), None])
def test_factors_elsewhere_are_factors_here(store, solver):
    elsewhere, _ = fitted(store, solver=solver, offsets=solver is None)
    problem = bf.Objective(Partitioned("squared", store), bf.penalties.Ridge(0.5), offsets=solver is None)
    here = bf.solve(problem, 2, solver, rng=0, max_iter=14)
    assert isinstance(elsewhere.U, np.ndarray)
    np.testing.assert_allclose(elsewhere.matrix(), here.matrix(), atol=1e-6)
    np.testing.assert_allclose(elsewhere.objective, here.objective, rtol=1e-9)


def test_weights_of_rows_stay_elsewhere(store):
    ridge = bf.penalties.Ridge(0.5, rows=np.linspace(1, 2, 120), cols=np.linspace(1, 3, 40))
    elsewhere, _ = fitted(store, penalty=ridge)
    here = bf.solve(bf.Objective(Partitioned("squared", store), ridge), 2, rng=0, max_iter=14)
    np.testing.assert_allclose(elsewhere.matrix(), here.matrix(), atol=1e-6)


def test_any_loss_leaves_the_bits_as_they_are(store):
    whole, asked = fitted(store)
    rng = np.random.default_rng(1)
    for lost in rng.integers(1, asked, 12):
        again, more = fitted(store, [int(lost)])
        assert more > asked or lost > asked - 3
        assert np.array_equal(again.U, whole.U)
        assert np.array_equal(again.V, whole.V)
        assert again.n_iter == whole.n_iter
        assert np.array_equal(again.history.objective, whole.history.objective)


def test_a_loss_after_the_last_iteration_of_a_posterior_leaves_the_bits_as_they_are(store):
    """Rows without entries are found by a pass after it."""
    solver = bf.solvers.Variational(tol=0)
    whole, asked = fitted(store, penalty=None, offsets=True, solver=solver)
    for lost in range(asked - 2, asked + 1):
        again, _ = fitted(store, [lost], penalty=None, offsets=True, solver=solver)
        assert np.array_equal(again.posterior.rows.means, whole.posterior.rows.means)
        assert np.array_equal(again.posterior.cols.cold, whole.posterior.cols.cold)
        assert np.array_equal(again.posterior.rows.cold, whole.posterior.rows.cold)


def test_losses_without_end_are_told(store):
    with pytest.raises(LostError, match="gone"):
        fitted(store, range(40, 40 + 3 * MOST))


def test_a_checkpoint_of_factors_elsewhere_is_resumed_here(store, tmp_path):
    file = tmp_path / "run.checkpoint"
    ridge = bf.penalties.Ridge(0.5)
    elsewhere = bf.Objective(Partitioned("squared", store, Fragile(store.parts)), ridge)
    whole = bf.solve(elsewhere, 2, bf.solvers.PCG(), rng=0, max_iter=12)
    bf.solve(elsewhere, 2, bf.solvers.PCG(), rng=0, max_iter=7, checkpoint=file)
    again = bf.solve(elsewhere, 2, bf.solvers.PCG(), rng=0, max_iter=12, checkpoint=file)
    assert np.array_equal(again.U, whole.U)
    here = bf.Objective(Partitioned("squared", store), ridge)
    bf.solve(here, 2, bf.solvers.PCG(), rng=0, max_iter=12, checkpoint=file)  # the same problem, whoever computes
