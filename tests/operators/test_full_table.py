"""Every cell of a table: the same function as the dense one, in every way that solvers use it."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse, special

import bifactor as bf
from bifactor import kernels
from bifactor.errors import InputError, SmoothnessError
from bifactor.factors import Free
from bifactor.kernels.sparse_table import sparse_table
from bifactor.operators import Full, FullTable
from bifactor.operators.compose import SumBound
from bifactor.penalties import Ridge
from bifactor.solvers import BFGD, PCG, SPG, Newton, RankContinuation, RidgeHomotopy
from bifactor.testing import check_gradient, check_solver
from bifactor.testing.checks import _check_curve

SHAPE, RANK = (40, 30), 2
LOSSES = {"poisson": 0.0, "logistic": -1.0, "squared": 0.0, "probit": -1.0, "huber": 0.0}


def values(loss, shape=SHAPE, seed=0):
    rng = np.random.default_rng(seed)
    z = 0.7 * rng.standard_normal((shape[0], RANK)) @ rng.standard_normal((RANK, shape[1])) - 1
    if loss == "poisson":
        return rng.poisson(np.exp(z)).astype(float)
    if loss in ("logistic", "probit"):
        return np.where(rng.random(shape) < special.expit(z), 1.0, -1.0)
    return np.where(rng.random(shape) < 0.3, z, 0.0)


def stored(Y, rest):
    """As a sparse matrix of what differs from `rest`."""
    rows, cols = np.nonzero(rest != Y)
    return sparse.csr_array((Y[rows, cols], (rows, cols)), shape=Y.shape)


def pairs(count=2, shape=SHAPE, rank=3, dtype=np.float64):
    rng = np.random.default_rng(5)
    return [0.5 * Free().random(rng, shape, rank, dtype) for _ in range(count)]


def both(loss, shape=SHAPE):
    """A table with weights, offsets and a hole, and the dense problem; offsets are one more column there."""
    rng = np.random.default_rng(1)
    Y, w, o = values(loss, shape), rng.random(shape[0]) + 0.5, 0.3 * rng.standard_normal(shape[0])
    weights = np.repeat(w[:, None], shape[1], axis=1)
    weights[3, 4] = 0
    with_hole = Y.copy()
    with_hole[3, 4] = np.nan
    one = bf.losses.Huber(1.0) if loss == "huber" else loss  # whose δ would be that of different cells
    return FullTable(one, with_hole, LOSSES[loss], w, o), bf.Problem(one, Full(shape), Y, weights).f, o


def beside(x, o):
    return Free().pair(np.hstack([x.left, o[:, None]]), np.hstack([x.right, np.ones((len(x.right), 1))]))


@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_the_dense_function(loss):
    table, dense, o = both(loss)
    (x, d), flat = pairs(), np.zeros(SHAPE[0])
    wanted = dense.evaluate(beside(x, o))
    for got in (table.evaluate(x), table.evaluate(x, table.measure(x))):
        assert got.f == pytest.approx(wanted.f, rel=1e-12)
        np.testing.assert_allclose(got.GV, wanted.GV[:, :3], rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(got.GhU, wanted.GhU[:, :3], rtol=1e-9, atol=1e-10)
    assert table.value(x) == pytest.approx(wanted.f, rel=1e-12)
    a, b = (
        table.curve(x, d),
        dense.curve(beside(x, o), Free().pair(*(beside(d, flat).left, beside(0 * d, o).right * 0))),
    )
    assert a.at(0.0)[0] == pytest.approx(b.at(0.0)[0], rel=1e-12)
    check_gradient(table)


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_curves_and_the_hessian_are_derivatives(loss):
    x, d = pairs()
    _check_curve("Table", both(loss)[0], 0.3 * x, 0.3 * d, 1e-9)
    curve, h = both(loss)[0].curve(x, d), 1e-4
    ahead, here, behind = (both(loss)[0].value(x.plus(a, d)) for a in (h, 0.0, -h))
    assert curve.at(0.0)[2] == pytest.approx((ahead - 2 * here + behind) / h**2, rel=1e-4)


@pytest.mark.parametrize("side", [0, 1])
def test_blocks_are_those_of_entries(side):
    Y = values("poisson")
    rows, cols = np.divmod(np.arange(Y.size), SHAPE[1])
    entries = bf.Problem("poisson", bf.operators.Entries(rows, cols, SHAPE), Y.ravel()).f
    (x,) = pairs(1)
    for span in (None, (3, 9)):
        got, wanted = (f.exact(x, side, span).packed for f in (FullTable("poisson", Y), entries))
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-12)


def test_how_the_table_is_stored_makes_no_difference():
    Y, (x,) = values("logistic"), pairs(1)
    wanted = FullTable("logistic", Y, -1.0).evaluate(x)
    for form in (stored(Y, -1.0), stored(Y, -1.0).tocsc(), stored(Y, -1.0).tocoo()):
        np.testing.assert_array_equal(FullTable("logistic", form, -1.0).evaluate(x).GV, wanted.GV)
    np.testing.assert_allclose(FullTable("logistic", Y, 1.0).evaluate(x).GV, wanted.GV, rtol=1e-12)
    np.testing.assert_allclose(FullTable("logistic", Y, -1.0, np.ones(SHAPE)).evaluate(x).GV, wanted.GV, rtol=1e-12)
    twice = sparse.coo_array(([1.0, 2.0, 1.0], ([0, 0, 1], [1, 1, 2])), shape=SHAPE)
    assert FullTable("poisson", twice).sheet.y.tolist() == [3.0, 1.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_the_compiled_kernel_is_the_reference(loss, dtype, monkeypatch):
    shape = (70, 1500)  # more than one block, and columns beyond one tile
    table, _, _ = both(loss, shape)
    (x,) = pairs(1, shape, 3, dtype)
    with monkeypatch.context() as patch:
        patch.setattr(kernels, "SMALL", np.inf)
        f, GV, GhU, _ = table.evaluate(x)
        blocks = table.exact(x, 0).packed
    got = table.evaluate(x)
    tol = 200 * float(np.finfo(dtype).eps)
    assert got.f == pytest.approx(f, rel=tol)
    assert got.GV.dtype == got.GhU.dtype == dtype
    np.testing.assert_allclose(got.GV, GV, rtol=tol, atol=tol * np.abs(GV).max())
    np.testing.assert_allclose(got.GhU, GhU, rtol=tol, atol=tol * np.abs(GhU).max())
    np.testing.assert_allclose(table.exact(x, 0).packed, blocks, rtol=tol, atol=tol * np.abs(blocks).max())


def test_memory_is_taken_for_what_is_stored():
    shape = (4_000, 20_000)  # 320 MB if dense
    table = FullTable(
        "poisson", sparse.random_array(shape, density=1e-4, rng=np.random.default_rng(0), dtype=np.float32)
    )
    (x,) = pairs(1, shape, 3, np.float32)
    tracemalloc.start()
    table.evaluate(x)
    table.exact(x, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8


def test_threads_change_rounding_alone():
    (x,), table = pairs(1, (300, 1200)), FullTable("poisson", values("poisson", (300, 1200)))
    with bf.threads(1):
        one = table.evaluate(x)
    with bf.threads(3):
        three = table.evaluate(x)
    np.testing.assert_allclose(three.GhU, one.GhU, rtol=1e-12, atol=1e-12)


SOLVERS = [PCG(), PCG(exact=True), Newton(), RankContinuation(), RidgeHomotopy(), BFGD(bf.steps.Backtracking())]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
def test_solvers_find_what_they_find_of_the_dense_problem(solver):
    Y, ridge = values("logistic"), Ridge(1.0)
    ours = bf.solve(bf.Objective(FullTable("logistic", stored(Y, -1.0), -1.0), ridge), 2, solver, rng=0, max_iter=2000)
    dense = bf.solve(bf.Problem("logistic", Full(SHAPE), Y, penalty=ridge), 2, PCG(), rng=0, max_iter=2000)
    assert ours.objective == pytest.approx(dense.objective, rel=1e-5)
    np.testing.assert_allclose(ours.U @ ours.V.T, dense.U @ dense.V.T, atol=0.05)


def test_laws_of_solvers_hold_on_it():
    problem = bf.Objective(FullTable("poisson", values("poisson")), Ridge(1.0), fixed=(np.ones((40, 1)), None))
    for solver in (PCG(exact=True), RankContinuation(PCG(exact=True))):
        check_solver(solver, problem, 2)


def test_exact_blocks_save_iterations_where_curvature_differs():
    rng = np.random.default_rng(0)
    z = 0.5 * rng.standard_normal((200, 3)) @ rng.standard_normal((3, 80)) + 2 * rng.standard_normal(80)
    problem = bf.Objective(FullTable("poisson", rng.poisson(np.exp(z)).astype(float)), Ridge(1.0))
    counts = [bf.solve(problem, 4, PCG(exact=exact), rng=0, tol=1e-7).n_iter for exact in (True, False)]
    assert counts[0] < 0.7 * counts[1]


def test_it_adds_to_other_functions():
    Y, (x,) = values("poisson"), pairs(1)
    table, dense = FullTable("poisson", Y), bf.Problem("squared", Full(SHAPE), Y).f
    assert (table + dense).value(x) == pytest.approx(table.value(x) + dense.value(x))
    assert isinstance(table + dense, SumBound)


def test_solvers_that_need_measurements_refuse_it():
    with pytest.raises(InputError):
        bf.solve(bf.Objective(FullTable("logistic", values("logistic"), -1.0)), 2, SPG(1.0), rng=0)


def test_marginals_are_sums_of_curvature_about_the_solution():
    rng = np.random.default_rng(0)
    mean = np.exp(rng.standard_normal((60, 1)) + rng.standard_normal(50))
    Y = rng.poisson(mean).astype(float)
    rows, cols = FullTable("poisson", Y).marginals
    np.testing.assert_allclose(rows, Y.sum(axis=1), rtol=0.1, atol=1.0)
    np.testing.assert_allclose(cols, Y.sum(axis=0), rtol=0.1, atol=1.0)
    assert FullTable("logistic", values("logistic"), -1.0).smoothness == 0.25
    weights = np.random.default_rng(0).random(SHAPE)
    assert FullTable("logistic", values("logistic"), -1.0, 8 * weights).smoothness == 2 * weights.max()
    with pytest.raises(SmoothnessError):
        _ = FullTable("poisson", Y).smoothness


def test_cells_can_be_looked_up_left_out_and_taken():
    Y = values("poisson")
    cells = sparse_table(Y, 0.0)
    rows, cols = np.array([0, 5, 39, 7]), np.array([29, 0, 3, 7])
    y, w = cells.at(rows, cols)
    np.testing.assert_array_equal(y, Y[rows, cols])
    np.testing.assert_array_equal(w, 1)
    less = cells.without(rows, cols)
    assert less.seen == Y.size - 4
    assert less.total == Y.size - 4
    np.testing.assert_array_equal(less.at(rows, cols)[1], 0)
    for part in (less.part(3, 9), less.take(np.arange(3, 9))):
        values_, weights = part.dense()
        np.testing.assert_array_equal(values_, Y[3:9])
        np.testing.assert_array_equal(weights, less.dense()[1][3:9])


@pytest.mark.parametrize(
    ("given", "fact"),
    [
        ({"Y": np.ones((2, 2)) * 1j}, "real numbers"),
        ({"Y": np.ones(3)}, "matrix of real numbers"),
        ({"Y": np.empty((0, 3))}, "matrix of real numbers"),
        ({"Y": -np.ones((2, 2))}, "≥ 0"),
        ({"Y": np.full((2, 2), np.inf)}, "inf"),
        ({"Y": np.ones((2, 3)), "weights": np.ones(3)}, "one weight per row"),
        ({"Y": np.ones((2, 3)), "weights": -np.ones(2)}, "weights"),
        ({"Y": np.ones((2, 3)), "offset": np.ones(3)}, "offset has shape"),
        ({"Y": np.ones((2, 3)), "rest": -1.0}, "≥ 0"),
    ],
)
def test_mistakes_are_refused(given, fact):
    with pytest.raises(InputError, match=fact):
        FullTable("poisson", **given)


def test_one_row_one_column_and_no_stored_cell():
    for shape in ((1, 5), (5, 1), (1, 1)):
        table = FullTable("poisson", np.zeros(shape))
        (x,) = pairs(1, shape, 1)
        assert table.value(x) == pytest.approx(np.exp(x.left @ x.right.T).sum())
        assert np.all(np.isfinite(table.marginals[0]))
