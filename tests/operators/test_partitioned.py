"""f over blocks on disk is f over the same entries in memory."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import FileError, InputError
from bifactor.factors import Free
from bifactor.operators import Entries, Partitioned

SHAPES = [(90, 40), (40, 90)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Few observations make several blocks."""
    monkeypatch.setattr("bifactor.data.store.partition.SMALL", 200)


def entries(shape, rng, count=1500):
    rows, cols = rng.integers(0, shape[0], count), rng.integers(0, shape[1], count)
    rows[:2], cols[:2] = (0, shape[0] - 1), (0, shape[1] - 1)
    return rows, cols


def both(tmp_path, loss, shape, draw_targets, weights=False, budget=20_000):
    """A bound over blocks, and that of the same data in memory."""
    rng = np.random.default_rng(3)
    rows, cols = entries(shape, rng)
    z = 0.5 * np.sum(rng.standard_normal((2, rows.size)), axis=0)
    y = draw_targets(loss, z, rng)
    w = rng.uniform(0.5, 2.0, y.size) if weights else None
    given = (rows, cols, y) if w is None else (rows, cols, y, w)
    store = bf.data.partition(given, tmp_path / "blocks", dtype=np.float64)
    assert store.shape == shape
    assert len(store.parts) > 3
    here = bf.Problem(loss, Entries(rows, cols, shape), y, w).f
    return Partitioned(loss, store, bf.executors.Streamed(budget)), here


def pair(shape, rng, width=3):
    return Free().pair(*(0.3 * rng.standard_normal((k, width)) for k in shape))


def close(a, b, tol=1e-11):
    np.testing.assert_allclose(a, b, rtol=tol, atol=tol * max(float(np.max(np.abs(b), initial=0.0)), 1e-300))


@pytest.mark.parametrize("shape", SHAPES)
def test_f_and_its_derivatives_are_those_in_memory(tmp_path, loss, shape, draw_targets):
    f, here = both(tmp_path, loss, shape, draw_targets, weights=True)
    rng = np.random.default_rng(0)
    x, d = pair(shape, rng), pair(shape, rng)
    one, other = f.evaluate(x), here.evaluate(x)
    close(one.f, other.f)
    close(one.GV, other.GV)
    close(one.GhU, other.GhU)
    close(f.value(x), here.value(x))
    G, H = f.gradient(x), here.gradient(x)
    A, B = rng.standard_normal((shape[0], 2)), rng.standard_normal((shape[1], 2))
    close(G @ B, H @ B)
    close(G.H @ A, H.H @ A)
    close(G.normal(B), H.H @ (H @ B))
    w = rng.uniform(0.5, 2.0, (shape[0], 1))
    close(G.normal(B, w), H.H @ (w**2 * (H @ B)))
    for mine, theirs in zip(G.products(A, B), H.products(A, B), strict=True):
        close(mine, theirs)
    for mine, theirs in zip(f.hessian(x)(d), here.hessian(x)(d), strict=True):
        close(mine, theirs)
    for side in (0, 1):
        close(f.exact(x, side).packed, here.exact(x, side).packed)
    line, known = f.curve(x, d), here.curve(x, d)
    assert (line.quartic is None) == (not f.quadratic)
    for a in (0.0, 0.4):
        close(line.at(a)[:2], known.at(a)[:2], 1e-9)
    close(line.to(0.4, x.plus(0.4, d)).GV, here.evaluate(x.plus(0.4, d)).GV)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_known_without_factors(tmp_path, shape, draw_targets):
    f, here = both(tmp_path, bf.losses.Squared(), shape, draw_targets, weights=True)
    for mine, theirs in zip(f.marginals, here.marginals, strict=True):
        close(mine, theirs)
    close(f.scale, here.scale)
    assert f.seen == here.seen
    assert f.least == here.least
    close(f.smoothness, here.smoothness)


@pytest.mark.parametrize("kind", ["ridge", "offsets", "fixed", "cells", "continuation", "newton", "bfgd"])
def test_runs_end_where_those_in_memory_do(tmp_path, kind, draw_targets):
    f, here = both(tmp_path, bf.losses.Squared(), (90, 40), draw_targets)
    solver = {"continuation": bf.solvers.RankContinuation(), "newton": bf.solvers.Newton(), "bfgd": bf.solvers.BFGD()}
    asked = {"penalty": bf.penalties.Ridge(1.0)}
    if kind == "offsets":
        asked["offsets"] = True
    if kind == "fixed":
        asked["fixed"] = (np.linspace(0, 1, 90)[:, None], None)
    ends = []
    for bound in (f, here):
        problem = bf.Objective(bound, **asked)
        problem = problem + bf.all_cells(0.3) if kind == "cells" else problem
        # Of data in blocks the start is a sketch, by default.
        init = None if bound is f else bf.inits.Spectral(sketch=True)
        ends.append(bf.solve(problem, 3, solver.get(kind, bf.solvers.PCG()), init, rng=0, max_iter=60))
    close(ends[0].objective, ends[1].objective, 1e-8)
    close(ends[0].matrix(), ends[1].matrix(), 1e-4)


class Counted(bf.executors.Streamed):
    """Notes the passes."""

    def __init__(self):
        super().__init__()
        self.passes = []

    def run_pass(self, parts, opening, task, *arguments, **more):
        self.passes.append(task.__name__)
        return super().run_pass(parts, opening, task, *arguments, **more)


@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_start_takes_six_passes_and_is_that_in_memory(tmp_path, shape, cells, draw_targets):
    f, here = both(tmp_path, bf.losses.Squared(), shape, draw_targets, weights=True)
    f = Partitioned("squared", f.store, Counted())
    problem, same = (bf.Objective(bound, bf.penalties.Ridge(1.0)) for bound in (f, here))
    problem, same = (one + bf.all_cells(0.3) if cells else one for one in (problem, same))
    x = bf.inits.Spectral()(problem, 3, np.random.default_rng(0))
    # Which rows are observed; Krylov space; the other side; length. What each row has is asked by every solver.
    assert [name for name in f.executor.passes if name != "summarise_block"] == [
        "slope_products",
        "normal",
        "normal",
        "normal",
        "times",
        "quartic",
    ]
    there = bf.inits.Spectral(sketch=True)(same, 3, np.random.default_rng(0))
    close(x.left @ x.right.T, there.left @ there.right.T, 1e-9)


def test_a_start_may_be_as_accurate_as_in_memory(tmp_path, draw_targets):
    f, here = both(tmp_path, bf.losses.Squared(), (90, 40), draw_targets)
    starts = (bf.inits.Spectral(sketch=False)(bf.Objective(one), 3, np.random.default_rng(0)) for one in (f, here))
    one, other = (x.left @ x.right.T for x in starts)
    close(one, other, 1e-9)


def test_groups_of_columns_have_losses_of_their_own(tmp_path):
    rng = np.random.default_rng(1)
    rows, cols = entries((60, 30), rng)
    group = np.arange(30) % 2
    y = np.where(group[cols] == 1, np.sign(rng.standard_normal(rows.size)), rng.standard_normal(rows.size))
    store = bf.data.partition((rows, cols, y), tmp_path / "blocks", dtype=np.float64)
    f = Partitioned(["squared", "logistic"], store, group=group)
    here = bf.Problem(["squared", "logistic"], Entries(rows, cols, (60, 30)), y, group=group[cols]).f
    x = pair((60, 30), rng)
    close(f.evaluate(x).GhU, here.evaluate(x).GhU)
    close(f.value(x), here.value(x))


def test_levels_are_those_of_all_blocks(tmp_path):
    rng = np.random.default_rng(1)
    rows, cols = entries((60, 30), rng)
    y = np.where(rows < 12, 1.0, rng.integers(1, 6, rows.size).astype(float))  # the first block has one level
    store = bf.data.partition((rows, cols, y), tmp_path / "blocks", dtype=np.float64)
    f, here = Partitioned("ordinal", store), bf.Problem("ordinal", Entries(rows, cols, (60, 30)), y).f
    assert f.loss.levels == here.fit.loss.levels
    close(f.parameters.values, here.parameters.values, 1e-2)
    x = pair((60, 30), rng)
    same = here.parameters.replace(f.parameters.values)
    close(f.evaluate(x).GhU, same.evaluate(x).GhU)
    with pytest.raises(InputError, match="levels"):
        Partitioned(["ordinal", "squared"], store, group=np.arange(30) % 2)
    numbers = bf.data.partition((rows, cols, rng.standard_normal(rows.size)), tmp_path / "numbers")
    with pytest.raises(InputError, match="levels"):
        Partitioned("ordinal", numbers)


def test_parameters_of_losses_are_fitted(tmp_path, draw_targets):
    f, here = both(tmp_path, bf.losses.Huber(0.7), (90, 40), draw_targets)
    x = pair((90, 40), np.random.default_rng(0))
    close(f.parameters.refit(x, None), here.parameters.refit(x, None))
    solver = bf.solvers.Refitted(bf.solvers.PCG())
    end = bf.solve(bf.Objective(f, bf.penalties.Ridge(1.0)), 2, solver, rng=0, max_iter=80)
    close(end.problem.f.parameters.values, here.parameters.refit(Free().pair(end.U, end.V), None), 1e-2)


def test_held_out_and_the_rest_are_all(tmp_path, draw_targets):
    f, _ = both(tmp_path, bf.losses.Squared(), (90, 40), draw_targets)
    x = pair((90, 40), np.random.default_rng(0))
    parts = [Partitioned("squared", view) for view in f.store.split(bf.data.RandomCells(0.2, 5))]
    assert sum(part.seen for part in parts) == f.seen
    close(sum(part.value(x) for part in parts), f.value(x))


@pytest.mark.parametrize("solver", [bf.solvers.SPG(3.0), bf.solvers.NuclearNorm()])
def test_solvers_that_need_measurements_refuse(tmp_path, solver, draw_targets):
    f, _ = both(tmp_path, bf.losses.Squared(), (90, 40), draw_targets)
    with pytest.raises(InputError, match="not stored"):
        bf.solve(
            bf.Objective(f, bf.penalties.Ridge(1.0) if isinstance(solver, bf.solvers.NuclearNorm) else None), 2, solver
        )


def test_mistakes(tmp_path, draw_targets):
    f, _ = both(tmp_path, bf.losses.Squared(), (90, 40), draw_targets)
    with pytest.raises(InputError, match="loss of each column"):
        Partitioned(["squared", "huber"], f.store)
    with pytest.raises(InputError, match="one per column"):
        Partitioned(["squared", "huber"], f.store, group=np.zeros(3, int))
    with pytest.raises(InputError, match="there are 2 losses"):
        Partitioned(["squared", "huber"], f.store, group=np.full(40, 2))
    with pytest.raises(InputError, match="executor"):
        Partitioned("squared", f.store, executor="2GB")
    with pytest.raises(InputError, match="Logistic"):
        bf.solve(bf.Objective(Partitioned("logistic", f.store)), 2)
    with pytest.raises(InputError, match="complex"):
        bf.solve(bf.Objective(f), 2, init=bf.inits.Given(*(1j * np.ones((k, 2)) for k in (90, 40))))


def test_a_block_that_is_cut_short_ends_the_run_by_name(tmp_path, draw_targets):
    f, _ = both(tmp_path, bf.losses.Squared(), (90, 40), draw_targets)
    victim = sorted((tmp_path / "blocks").glob("*block*"))[-1]
    victim.write_bytes(victim.read_bytes()[:-9])
    with pytest.raises(FileError, match=victim.name):
        bf.solve(bf.Objective(f, bf.penalties.Ridge(1.0)), 2, rng=0)
