"""Several losses in one problem, by group of measurement."""

import pickle

import numpy as np
import pytest
from tests.conftest import LOSSES, targets

import bifactor as bf
from bifactor.errors import InputError, SmoothnessError
from bifactor.factors import Free
from bifactor.losses import DataFit, Huber, Logistic, Loss, Poisson, Shifted, Squared
from bifactor.losses.composite import Grouped
from bifactor.models.fold_in import fold_in

SHAPE = (14, 11)


class Own(Loss):
    """A loss without a compiled form."""

    targets, smoothness, least = Squared.targets, 1.0, 0.0

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def gradient(self, z, y):
        return z - y

    def curvature(self, z, y):
        return np.ones_like(z)

    def mean(self, z):
        return z


def data(losses, rng, dtype=np.float64, shape=SHAPE):
    """Entries in no order, each with a loss of its own."""
    rows, cols = np.nonzero(rng.random(shape) < 0.8)
    order = rng.permutation(rows.size)
    rows, cols = rows[order], cols[order]
    group = rng.integers(len(losses), size=rows.size)
    z, y = rng.standard_normal(rows.size), np.empty(rows.size, dtype)
    for g, loss in enumerate(losses):
        y[group == g] = targets(loss, z[group == g].astype(dtype), rng)
    return rows, cols, y, group


def apart(losses, rows, cols, y, group, weights=None, shape=SHAPE):
    """The same as a sum of problems."""
    total = None
    for g, loss in enumerate(losses):
        part = group == g
        w = None if weights is None else weights[part]
        one = bf.Problem(loss, bf.operators.Entries(rows[part], cols[part], shape), y[part], w)
        total = one if total is None else total + one
    return total


ALL = list(LOSSES.values())
MIXED = [Squared(), Own(), Logistic()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("losses", [ALL, MIXED], ids=["compiled", "reference"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("wrap", [lambda A: A, bf.operators.Recomputed, lambda A: bf.operators.Scaled(A, 2.0)])
@pytest.mark.parametrize("shape", [SHAPE, SHAPE[::-1]])
def test_it_is_the_sum_over_the_groups(losses, dtype, weighted, wrap, shape):
    rng = np.random.default_rng(0)
    rows, cols, y, group = data(losses, rng, dtype, shape)
    weights = (rng.random(y.size) + 0.1).astype(dtype) if weighted else None
    A = bf.operators.Entries(rows, cols, shape)
    problem = bf.Problem(losses, wrap(A), y, weights, group=group)
    factor = 2.0 if isinstance(problem.operator, bf.operators.Scaled) else 1.0
    assert (problem.f.fit.loop_size == 0) == (losses is MIXED)
    total = apart(losses, rows, cols, y, group, weights, shape)
    x, d = (0.5 * Free().random(rng, shape, 2, dtype) for _ in range(2))
    tol = 1e4 * float(np.finfo(dtype).eps)

    def close(got, wanted):
        assert np.linalg.norm(got - wanted) <= tol * (np.linalg.norm(wanted) + 1)

    def scaled(v):
        return Free().pair(factor * v.left, v.right)

    got, wanted = problem.f.evaluate(x), total.f.evaluate(scaled(x))
    close(got.f, wanted.f)
    close(got.GV, factor * wanted.GV)
    close(got.GhU, wanted.GhU)
    curves = problem.f.curve(x, d, problem.f.measure(x)), total.f.curve(scaled(x), scaled(d))
    for a in (0.0, 0.7):
        close(*(np.array(curve.at(a)) for curve in curves))
    assert curves[0].quartic is None
    close(problem.scale, factor**2 * total.scale)
    for side in (0, 1):
        close(problem.f.marginals[side], factor**2 * total.f.marginals[side])
        close(problem.f.exact(x, side).packed, (1 if side else factor**2) * total.f.exact(scaled(x), side).packed)
    images = problem.f.hessian(x)(d)[1], total.f.hessian(scaled(x))(scaled(d))[1]
    close(*images)
    assert problem.f.seen == y.size


def test_it_is_solved_as_the_sum_is():
    rng = np.random.default_rng(1)
    losses = [Squared(), Logistic(), Huber(0.3), Shifted(Poisson(), -0.5)]
    rows, cols, y, group = data(losses, rng, shape=(40, 30))
    problem = bf.Problem(
        losses, bf.operators.Entries(rows, cols, (40, 30)), y, group=group, penalty=bf.penalties.Ridge(1.0)
    )
    total = apart(losses, rows, cols, y, group, shape=(40, 30)).penalized(bf.penalties.Ridge(1.0))
    results = [bf.solve(p, 2, bf.solvers.PCG(), rng=0, tol=1e-9) for p in (problem, total)]
    np.testing.assert_allclose(results[0].matrix(), results[1].matrix(), atol=1e-6)
    assert abs(results[0].n_iter - results[1].n_iter) <= 5  # down to rounding, which decides the last ones
    auto = bf.solve(problem, "auto", rng=0)
    assert 1 <= auto.rank <= 30
    U = fold_in(problem, results[0].V, 1.0)
    np.testing.assert_allclose(U, results[0].U, atol=1e-5)


def test_smoothness_is_that_of_the_groups():
    operator = bf.operators.Entries([0, 0, 1], [0, 0, 1], (2, 2))
    problem = bf.Problem([Squared(), Logistic()], operator, np.ones(3), group=[0, 1, 1])
    assert problem.smoothness == pytest.approx(1.25)
    with pytest.raises(SmoothnessError, match="Poisson"):
        _ = bf.Problem([Squared(), Poisson()], operator, np.ones(3), group=[0, 1, 1]).smoothness


def test_one_loss_for_each_part_of_a_stack():
    rng = np.random.default_rng(2)
    losses = [Squared(), Logistic()]
    rows, cols, y, group = data(losses, rng)
    parts = [group == g for g in (0, 1)]
    A = bf.operators.Stacked(*(bf.operators.Entries(rows[part], cols[part], SHAPE) for part in parts))
    stacked = bf.Problem(losses, A, np.concatenate([y[part] for part in parts]))
    x = Free().random(rng, SHAPE, 2, np.float64)
    assert stacked.f.value(x) == pytest.approx(apart(losses, rows, cols, y, group).f.value(x))
    assert sorted(stacked.group) == sorted(group)
    np.testing.assert_array_equal(stacked.y[stacked.group == 1] ** 2, 1.0)
    stacked.f.fit.losses(stacked.operator.forward(x.left, x.right))
    assert stacked.smoothness > 0
    with pytest.raises(InputError, match="3 losses but 2 operators"):
        bf.Problem([*losses, Huber()], A, y)
    with pytest.raises(InputError, match=r"Logistic needs each y to be -1 or \+1"):
        bf.Problem(losses, A, np.full(y.size, 2.0))


def test_losses_that_are_the_same_are_one():
    problem = bf.Problem([Squared(), Squared()], bf.operators.Full((2, 3)), np.ones((2, 3)), group=np.ones((2, 3), int))
    assert problem.loss == Squared()
    assert problem.f.quadratic
    assert problem.group is None


def test_groups_travel_with_their_measurements():
    rng = np.random.default_rng(3)
    losses = [Squared(), Huber(0.2)]
    rows, cols, y, group = data(losses, rng)
    problem = bf.Problem(losses, bf.operators.Entries(rows, cols, SHAPE), y, group=group)
    where = {(i, j): (v, g) for i, j, v, g in zip(rows, cols, y, group, strict=True)}
    found = zip(problem.operator.rows, problem.operator.cols, problem.y, problem.group, strict=True)
    assert all(where[i, j] == (v, g) for i, j, v, g in found)
    copy = pickle.loads(pickle.dumps(problem))
    x = Free().random(rng, SHAPE, 2, np.float64)
    assert copy.f.value(x) == problem.f.value(x)
    assert copy.fingerprint == problem.fingerprint
    other = bf.Problem(losses, bf.operators.Entries(rows, cols, SHAPE), y, group=1 - group)
    assert other.fingerprint != problem.fingerprint
    half = problem.reweighted(np.where(problem.group == 0, 1.0, 0.0))
    only = bf.Problem(Squared(), bf.operators.Entries(*(a[group == 0] for a in (rows, cols)), SHAPE), y[group == 0])
    assert half.f.value(x) == pytest.approx(only.f.value(x))


def test_complex_measurements_may_have_groups():
    rng = np.random.default_rng(4)
    losses = [Squared(), Huber(0.3)]
    for shape in (SHAPE, SHAPE[::-1]):
        rows, cols, y, group = data(losses, rng, shape=shape)
        y = y + 1j * rng.standard_normal(y.size)
        A = bf.operators.Entries(rows, cols, shape)
        x = Free().random(rng, shape, 2, np.complex128)
        wanted = apart(losses, rows, cols, y, group, shape=shape).f.evaluate(x)
        for operator in (A, bf.operators.Recomputed(A)):
            got = bf.Problem(losses, operator, y, group=group).f.evaluate(x)
            np.testing.assert_allclose(got.GV, wanted.GV)
            np.testing.assert_allclose(got.GhU, wanted.GhU)


@pytest.mark.parametrize(
    ("losses", "group", "match"),
    [
        ([Squared(), Logistic()], None, "several losses"),
        ([Squared(), Logistic()], [0, 1], "one integer for each y"),
        ([Squared(), Logistic()], [0.0, 1.0, 0.0], "one integer for each y"),
        ([Squared(), Logistic()], [0, 1, 2], "from 0 to 2, but there are 2 losses"),
        ([Squared(), Logistic()], [0, -1, 1], "from -1 to 1"),
        ([Squared(), "Logistic"], [0, 1, 1], "loss='Logistic' is neither one of squared, .* nor a Loss"),
        ([Squared(), Logistic()], [0, 0, 1], "Logistic needs each y"),
        (Squared(), [0, 1, 0], "there are 1 losses"),
    ],
)
def test_bad_groups_are_refused(losses, group, match):
    operator = bf.operators.Entries([0, 1, 1], [0, 0, 1], (2, 2))
    with pytest.raises(InputError, match=match):
        bf.Problem(losses, operator, np.array([1.0, -1.0, 3.0]), group=group)


def test_several_means_are_none():
    with pytest.raises(InputError, match="no common mean"):
        Grouped((Squared(), Logistic())).mean(np.zeros(3))


def test_no_group_at_all_is_possible():
    fit = DataFit.of([Squared(), Logistic()], np.ones(4), group=np.zeros(4, int))
    assert fit.value(np.zeros(4)) == 2.0
    assert fit.typical[0] == 1.0
