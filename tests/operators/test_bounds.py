"""Functions bound to data: every way to the same f gives the same numbers and the same iterations."""

import importlib
import inspect
import tracemalloc
from itertools import product

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.kernels import entries_numba, entries_reference, threading
from bifactor.losses import DataFit
from bifactor.operators import Comparisons, Entries, Full, Gaussian, Noiselet, Recomputed, Scaled, Stacked
from bifactor.operators.entries import EntriesBound, SymbolicEntries
from bifactor.penalties import Ridge
from bifactor.solvers import BFGD, PCG, SPG, Newton, NuclearNorm, SparseApproxSDP
from bifactor.testing import check_gradient, check_solver

TALL, WIDE = (40, 25), (25, 40)
SQUARED = bf.losses.Squared()
STEPS = (0.0, 0.3, -0.2, 2.0)
both_shapes = pytest.mark.parametrize("shape", [TALL, WIDE], ids=["tall", "wide"])
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


@pytest.fixture(scope="session")
def observed(draw_targets):
    """Entries of a planted matrix, in no order and some of them twice, and targets of a loss."""

    def make(loss=SQUARED, shape=TALL, dtype=np.float64, fraction=0.5, rank=2, seed=0):
        rng = np.random.default_rng(seed)
        U, V = (gaussian(rng, (k, rank), dtype) for k in shape)
        where = rng.choice(shape[0] * shape[1], int(fraction * shape[0] * shape[1]))
        rows, cols = np.unravel_index(where, shape)
        return Entries(rows, cols, shape), draw_targets(loss, np.einsum("ik,ik->i", U[rows], V[cols].conj()), rng)

    return make


def moving(f, rank=3, seed=1, size=0.7):
    """Factors and a direction."""
    rng = np.random.default_rng(seed)
    return tuple(size * Free().random(rng, f.shape, rank, f.dtype) for _ in range(2))


def close(got, wanted, tol=1e-12):
    """Equal up to a relative error, number by number or array by array; None is equal to None."""
    for a, b in zip(got, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert np.shape(a) == np.shape(b)
            assert np.linalg.norm(np.asarray(a) - b) <= tol * np.linalg.norm(b)


# Kernels.


@both_shapes
@weighted_or_not
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "loss",
    [SQUARED, bf.losses.Logistic(), bf.losses.Shifted(bf.losses.Probit(0.6), -0.4)],
    ids=lambda loss: type(loss).__name__,
)
def test_compiled_passes_equal_the_reference(observed, loss, dtype, weighted, shape, monkeypatch):
    monkeypatch.setattr(threading, "SMALL", 0)  # threads however small the problem,
    monkeypatch.setattr(entries_reference, "PASS_BLOCK", 97)  # and many blocks
    rng = np.random.default_rng(2)
    operator, y = observed(loss, shape, dtype)
    f = operator.bind(DataFit.of(loss, y, rng.random(y.size) if weighted else None))
    assert f.flipped == (shape == WIDE)
    x, d = moving(f)
    (P, Q), (D, E) = f.sides(x.left, x.right), f.sides(d.left, d.right)
    A, B = f.sides(*(gaussian(rng, (k, 5), dtype) for k in shape))
    data = f.fit.arrays()
    assert all(part.dtype == dtype for part in data)

    def same(one, *arguments):
        got = getattr(entries_numba, one)(f.layout, *arguments)
        wanted = getattr(entries_reference, one)(f.layout, *arguments)
        close(got, wanted, 1e-4 if dtype == np.float32 else 1e-12)
        for array in got:
            assert isinstance(array, float) or array.dtype in (dtype, np.float64)
        return got

    _, SQ, SP = same("fused", loss, *data, P, Q)
    assert SQ.dtype == SP.dtype == dtype
    for left, right in ((A, B), (A[:, :0], B), (A, B[:, :0])):
        SB, SA = same("slopes", loss, *data, P, Q, left, right)
        assert SB.shape == (P.shape[0], right.shape[1])
        assert SA.shape == (Q.shape[0], left.shape[1])
        assert SB.dtype == SA.dtype == dtype
    close(entries_numba.slopes(f.layout, loss, *data, P, Q, P, Q), (SQ, SP), 1e-5 if dtype == np.float32 else 1e-14)
    SQ, SP = same("bent", loss, *data, P, Q, D, E)
    assert SQ.dtype == SP.dtype == dtype
    for a in STEPS:
        same("along", loss, *data, P, Q, D, E, a)
    if loss.quadratic:
        same("quartic", *data, P, Q, D, E)


def test_losses_of_ones_own_pass_in_blocks(observed, monkeypatch):
    """The same f where there is nothing compiled, by blocks that need not divide the data."""
    operator, y = observed()
    plain = operator.bind(DataFit.of(bf.losses.Huber(0.7), y))
    x, d = moving(plain)
    wanted = list(every_way(plain, x, d))

    class Uncompiled(bf.losses.Huber):
        pointwise = None

    f = Recomputed(operator).bind(DataFit.of(Uncompiled(0.7), y))
    for block in (13, 97, y.size, 1 << 16):
        monkeypatch.setattr(entries_reference, "PASS_BLOCK", block)
        for got, want in zip(every_way(f, x, d), wanted, strict=True):
            close(got, want)


# Measurements that are not stored.


def every_way(f, x, d):
    """All that a bound tells of f at x and along d; what it keeps of z is its own affair."""
    yield (f.value(x),)
    yield f.evaluate(x)[:3]
    G = f.gradient(x)
    wide = Free().pair(np.hstack([d.left, x.left]), np.hstack([d.right, x.right]))
    yield G.products(x.left, x.right)
    yield G.products(wide.left, wide.right)
    yield G @ wide.right, G.H @ wide.left, G.matmul(d.right), G.rmatmul(d.left)
    yield f.hessian(x)(d)
    curve = f.curve(x, d)
    yield (curve.quartic,)
    for a in STEPS:
        yield curve.at(a)
        yield curve.to(a, x.plus(a, d))[:3]
    for line in (f.straight(x, wide), f.straight(None, wide)):
        yield (line.quartic[:3] if line.quartic is not None else None,)
        yield from (line.at(a) for a in STEPS)


@both_shapes
@weighted_or_not
def test_recomputed_entries_are_the_same_function(observed, loss, shape, weighted):
    operator, y = observed(loss, shape)
    weights = np.random.default_rng(2).random(y.size) if weighted else None
    fit = DataFit.of(loss, y, weights)
    plain, f = operator.bind(fit), Recomputed(operator).bind(fit)
    assert isinstance(plain, EntriesBound)
    assert isinstance(f, SymbolicEntries)
    x, d = moving(f)
    for got, wanted in zip(every_way(f, x, d), every_way(plain, x, d), strict=True):
        close(got, wanted)


@both_shapes
@weighted_or_not
@pytest.mark.parametrize("loss", [SQUARED, bf.losses.Huber(0.7)], ids=lambda loss: type(loss).__name__)
def test_recomputed_entries_of_complex_data(observed, loss, shape, weighted):
    operator, y = observed(loss, shape, np.complex128)
    y = y + 0.2j * np.random.default_rng(3).standard_normal(y.size)
    fit = DataFit.of(loss, y, np.random.default_rng(2).random(y.size) if weighted else None)
    plain, f = operator.bind(fit), Recomputed(operator).bind(fit)
    x, d = moving(f)
    assert x.dtype == np.complex128
    for got, wanted in zip(every_way(f, x, d), every_way(plain, x, d), strict=True):
        close(got, wanted)


@pytest.mark.parametrize(
    "operator",
    [
        Gaussian((8, 6), 30, rng=0),
        Noiselet((8, 4), 20, rng=0),
        Full((7, 5)),
        Scaled(Entries([3, 0, 1, 0], [1, 2, 0, 2], (4, 3)), -0.6),
        Stacked(Entries([3, 0, 1, 0], [1, 2, 0, 2], (4, 3)), Gaussian((4, 3), 10, rng=1)),
    ],
    ids=lambda operator: type(operator).__name__,
)
def test_any_recomputed_operator_is_the_same_function(operator):
    fit = DataFit.of(bf.losses.Huber(0.7), np.random.default_rng(0).standard_normal(operator.size))
    plain, f = operator.bind(fit), Recomputed(operator).bind(fit)
    x, d = moving(f, rank=2)
    for got, wanted in zip(every_way(f, x, d), every_way(plain, x, d), strict=True):
        close(got, wanted)


@pytest.mark.parametrize("inner", [Entries([3, 0, 1, 0], [1, 2, 0, 2], (4, 3)), Gaussian((4, 3), 4, rng=1)])
@pytest.mark.parametrize("wrap", [lambda A: A, lambda A: Scaled(A, 2.0), lambda A: Stacked(A, A)])
def test_what_is_recomputed_is_not_explicit(inner, wrap):
    y = np.random.default_rng(0).standard_normal(wrap(inner).size)
    plain, *others = (
        op.bind(DataFit.of(SQUARED, y)) for op in (wrap(inner), Recomputed(wrap(inner)), wrap(Recomputed(inner)))
    )
    x, d = moving(plain, rank=2)
    assert plain.explicit
    assert plain.measure(x).shape == y.shape
    for f in others:
        assert not f.explicit
        assert f.measure(x) is None
        assert f.evaluate(x).z is None
        assert f.curve(x, d).to(0.3, x.plus(0.3, d)).z is None
        # What solvers ask of f beside its values.
        assert (f.quick, f.quadratic, f.seen, f.least) == (plain.quick, plain.quadratic, plain.seen, plain.least)
        assert (f.scale, f.smoothness) == pytest.approx((plain.scale, plain.smoothness), rel=1e-12)
        assert (f.marginals is None) == (plain.marginals is None)
        if f.marginals is not None:
            close(f.marginals, plain.marginals)


@pytest.mark.parametrize("side", [0, 1])
def test_what_is_recomputed_has_the_same_typical_curvature(side):
    """That of comparisons is of deviations from the mean of columns, which `marginals` do not tell."""
    operator = Comparisons([0, 1, 3, 3], [1, 2, 0, 0], [0, 0, 1, 2], (4, 3))
    plain, other = (op.bind(DataFit.of(SQUARED, np.ones(4))) for op in (operator, Recomputed(operator)))
    x, d = moving(plain, rank=2)
    rows = (d.left, d.right)[side]
    close(other.expected(x, side).times(rows), plain.expected(x, side).times(rows))


@pytest.mark.parametrize("inner", [Entries([3, 0, 1, 0], [1, 2, 0, 2], (4, 3)), Gaussian((4, 3), 4, rng=1)])
@pytest.mark.parametrize("wrap", [lambda A: A, lambda A: Scaled(A, 2.0)])
def test_what_needs_measurements_says_that_there_are_none(inner, wrap):
    f, z = wrap(Recomputed(inner)).bind(DataFit.of(SQUARED, np.ones(4))), np.ones(4)
    for use in (f.slopes, f.hessian_z, f.adjoint_z, lambda z: f.line(z, z)):
        with pytest.raises(TypeError, match="stores no measurements"):
            use(z)


@pytest.mark.parametrize("inner", [Entries([3, 0, 1, 0], [1, 2, 0, 2], (4, 3)), Gaussian((4, 3), 4, rng=1)])
def test_recomputed_once_is_enough(inner):
    fit = DataFit.of(SQUARED, np.ones(4))
    once, twice = Recomputed(inner).bind(fit), Recomputed(Recomputed(inner)).bind(fit)
    assert type(once) is type(twice)
    assert type(once.bound) is type(twice.bound) is type(inner.bind(fit))


# Iterations.


def solved(loss, operator, y, penalty=None, solver=None, **settings):
    problem = bf.Problem(loss, operator, y, penalty=penalty)
    return bf.solve(problem, 2, solver or PCG(), rng=0, **settings)


@both_shapes
def test_recomputed_entries_take_the_same_iterations(observed, loss, shape):
    operator, y = observed(loss, shape)
    # One start for both: along a line that is no parabola its length is found to six digits only.
    x = bf.inits.Spectral()(bf.Problem(loss, operator, y), 2, np.random.default_rng(0))
    start = bf.inits.Given(x.left, x.right)
    one, two = (solved(loss, op, y, init=start, max_iter=10, tol=0) for op in (operator, Recomputed(operator)))
    assert one.n_iter == two.n_iter == 10
    close((two.U, two.V, two.history.objective), (one.U, one.V, one.history.objective), 1e-10)
    one, two = (solved(loss, op, y, Ridge(1.0), init=start, tol=1e-5) for op in (operator, Recomputed(operator)))
    assert one.status is two.status
    assert one.status.converged
    assert one.n_iter == two.n_iter


@pytest.mark.parametrize("loss", [SQUARED, bf.losses.Logistic()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize(
    "operator",
    [None, Gaussian((12, 10), 200, rng=0), Noiselet((16, 8), 100, rng=0)],
    ids=["Entries", "Gaussian", "Noiselet"],
)
def test_a_trivial_wrapper_changes_no_iteration(observed, draw_targets, loss, operator):
    if operator is None:
        operator, y = observed(loss)
    else:
        rng = np.random.default_rng(0)
        y = draw_targets(loss, operator.forward(*(rng.standard_normal((k, 2)) for k in operator.shape)), rng)
    plain = solved(loss, operator, y, Ridge(0.1), max_iter=60)
    for wrapped in (Scaled(operator, 1), Stacked(operator), Scaled(Stacked(operator), 1.0)):
        result = solved(loss, wrapped, y, Ridge(0.1), max_iter=60)
        assert result.status is plain.status
        np.testing.assert_array_equal(result.history.objective, plain.history.objective)
        np.testing.assert_array_equal(result.U, plain.U)
        np.testing.assert_array_equal(result.V, plain.V)


@both_shapes
@pytest.mark.parametrize("recomputed", [False, True])
@pytest.mark.parametrize(
    "loss", [SQUARED, bf.losses.Huber(0.7), bf.losses.Logistic()], ids=lambda loss: type(loss).__name__
)
def test_entries_in_two_halves_take_the_same_iterations(observed, loss, shape, recomputed):
    operator, y = observed(loss, shape)
    first = np.random.default_rng(4).random(y.size) < 0.5
    halves = [Entries(operator.rows[half], operator.cols[half], shape) for half in (first, ~first)]
    halves = [Recomputed(half) if recomputed else half for half in halves]
    one = solved(loss, operator, y, Ridge(1.0), tol=1e-6)
    two = solved(loss, Stacked(*halves), np.concatenate([y[first], y[~first]]), Ridge(1.0), tol=1e-6)
    assert one.status is two.status
    assert one.status.converged
    assert abs(one.n_iter - two.n_iter) <= 1
    close([two.matrix()], [one.matrix()], 1e-6)


@pytest.mark.parametrize("inner", ["Entries", "Gaussian"])
@pytest.mark.parametrize(
    "solver", [PCG(), BFGD(bf.steps.Backtracking()), Newton()], ids=lambda solver: type(solver).__name__
)
def test_solvers_obey_their_laws_on_recomputed_measurements(observed, inner, solver):
    operator, y = observed(shape=(12, 9), fraction=0.9)
    if inner == "Gaussian":
        operator = Gaussian((12, 9), y.size, rng=0)
    check_solver(solver, bf.Problem(SQUARED, Recomputed(operator), y), 2)


# Sums.


@pytest.fixture
def two(observed):
    """Numbers at some entries, labels at others, of matrices of one shape."""

    def make(shape=TALL, wrap=lambda A: A, **options):
        for loss, seed in ((SQUARED, 0), (bf.losses.Logistic(), 7)):
            operator, y = observed(loss, shape, seed=seed)
            yield bf.Problem(loss, wrap(operator), y, **options)

    return make


def is_sum(total, parts):
    """Values, gradients, Hessians and curves are the sums of those of the parts."""
    x, d = moving(total.f)
    ways = zip(every_way(total.f, x, d), *(every_way(part.f, x, d) for part in parts), strict=True)
    for got, *each in ways:
        for number, *terms in zip(got, *each, strict=True):
            if number is None:
                assert any(term is None for term in terms)
            else:
                wanted = sum(np.asarray(term) for term in terms)
                size = sum(np.linalg.norm(term) for term in terms)
                assert np.linalg.norm(number - wanted) <= 1e-12 * size
    assert total.scale == pytest.approx(sum(part.scale for part in parts))
    assert total.f.value(x) == pytest.approx(sum(part.f.value(x) for part in parts))


@both_shapes
@pytest.mark.parametrize("wrap", [lambda A: A, Recomputed], ids=["stored", "recomputed"])
def test_a_sum_of_problems_is_the_sum_of_their_functions(two, shape, wrap):
    one, other = two(shape=shape, wrap=wrap)
    total = one + other
    assert isinstance(total, bf.Objective)
    assert total.f.explicit == one.f.explicit
    is_sum(total, (one, other))
    check_gradient(total)
    for marginal, *each in zip(total.f.marginals, one.f.marginals, other.f.marginals, strict=True):
        np.testing.assert_allclose(marginal, sum(each))
    assert total.f.seen == one.f.seen + other.f.seen
    assert total.smoothness == pytest.approx(one.smoothness + other.smoothness)
    x = total.kind.pair(*(np.ones((k, 1)) for k in shape))
    assert total.objective(x) == pytest.approx(one.objective(x) + other.objective(x))
    close([total.at(x).gradient.left], [one.at(x).gradient.left + other.at(x).gradient.left])
    is_sum(total + one, (one, other, one))
    is_sum(bf.Objective(one.f + other.f), (one, other))


def test_one_part_may_be_stored_and_the_other_not(two, observed):
    one, other = two()
    operator, y = observed()
    half = bf.Problem(SQUARED, Recomputed(operator), y)
    for total in (half + other, other + half):
        assert not total.f.explicit
        kept = [part is not None for part in total.f.measure(total.zero())]
        assert kept == [part.f.explicit for part in ((half, other) if total.f.parts[0] is half.f else (other, half))]
        is_sum(total, (half, other))
    x, _ = moving(one.f, rank=2)
    start = bf.inits.Given(x.left, x.right)
    fits = [bf.solve(total, 2, PCG(), start, max_iter=10, tol=0) for total in (one + other, half + other)]
    close((fits[1].U, fits[1].V), (fits[0].U, fits[0].V), 1e-10)


def quadratic_function(shape, dtype=np.float64, seed=9):
    target = gaussian(np.random.default_rng(seed), shape, dtype)
    return bf.Function(
        lambda X: 0.05 * float(np.linalg.norm(X - target) ** 2), lambda X: 0.1 * (X - target), shape, dtype=dtype
    )


def test_a_problem_and_a_function(two):
    one, other = two()
    function = quadratic_function(TALL)
    x, d = moving(one.f)
    for total, parts in ((one + function, (one,)), (one + other + function, (one, other))):
        check_gradient(total)
        assert total.f.value(x) == pytest.approx(sum(part.f.value(x) for part in parts) + function.value(x))
        is_sum(total, (*parts, bf.Objective(function)))
        assert total.f.curve(x, d).quartic is None
        result = bf.solve(total, 2, rng=0)
        assert result.status.converged
        assert result.objective < 0.9 * result.history.objective[0]
    # The same by an operator that observes all of X.
    target = -10 * function.gradient(total.zero()).matrix
    entries = one + bf.Problem(SQUARED, Full(TALL), target, 0.1)
    close(
        [bf.solve(entries, 2, rng=0, tol=1e-9).matrix()], [bf.solve(one + function, 2, rng=0, tol=1e-9).matrix()], 1e-5
    )


def test_real_and_complex_parts(observed):
    (A, y), (B, labels) = observed(dtype=np.complex128), observed(bf.losses.Logistic())
    numbers = bf.Problem(SQUARED, A, y)
    reals = bf.Problem(SQUARED, *observed(seed=5))
    for total in (numbers + reals, reals + numbers):
        assert total.dtype == np.complex128
        is_sum(total, (numbers, reals))
    with pytest.raises(InputError, match="needs real measurements"):
        numbers + bf.Problem(bf.losses.Logistic(), B, labels)


@pytest.mark.parametrize("penalty", [None, Ridge(0.5)])
def test_solvers_of_a_sum(two, penalty):
    one, other = two()
    total = (one + other).penalized(penalty)
    fits = {
        type(solver).__name__: bf.solve(total, 2, solver, rng=0, max_iter=iterations, tol=1e-9)
        for solver, iterations in ((PCG(), 500), (Newton(), 100), (BFGD(bf.steps.Backtracking()), 500))
    }
    least = fits["Newton"].objective
    assert fits["Newton"].history.gradient_norm[-1] < 1e-6 * fits["Newton"].history.gradient_norm[0]
    for name, tol in (("PCG", 1e-9), ("BFGD", 1e-3)):
        assert np.all(np.diff(fits[name].history.objective) <= 0)
        assert fits[name].objective == pytest.approx(least, rel=tol)
        assert fits[name].objective < 0.8 * fits[name].history.objective[0]
    # The least of the sum, and of neither part.
    x = total.kind.pair(fits["Newton"].U, fits["Newton"].V)
    slopes = [part.at(x).gradient.norm() for part in (one, other, total)]
    assert slopes[2] < 1e-4 * min(slopes[:2])


def test_problems_that_do_not_go_together_are_refused(two):
    one, other = two(shape=(9, 9))
    wide, _ = two(shape=(9, 12))
    uu, _ = two(shape=(9, 9), symmetric=True)
    offsets, more = two(shape=(9, 9), offsets=True)
    fixed, _ = two(shape=(9, 9), fixed=(np.ones((9, 2)), None))
    ridge, ridge2 = (problem.penalized(Ridge(rho)) for problem, rho in ((one, 1.0), (other, 2.0)))
    for a, b, message in (
        (one, wide, r"shapes \(9, .*\) and \(9, .*\)"),
        (one, quadratic_function((9, 12)), r"shapes \(9, 9\) and \(9, 12\)"),
        (one, uu, "same factors"),
        (one, offsets, "same factors"),
        (uu, offsets, "same factors"),
        (offsets, fixed, "same factors"),
    ):
        for left, right in ((a, b), (b, a)) if isinstance(b, bf.Objective) else ((a, b),):
            with pytest.raises(InputError, match=message):
                left + right
    for wrong in (1.0, None, SQUARED):
        with pytest.raises(TypeError, match="unsupported operand"):
            one + wrong
    assert (ridge + ridge2).penalties == (Ridge(1.0), Ridge(2.0))
    # What does go together.
    assert (ridge + other).penalties == (other + ridge).penalties == ridge.penalties
    assert (uu + uu).kind.same(uu.kind)
    assert (uu + quadratic_function((9, 9))).kind.same(uu.kind)
    total = offsets + more
    assert total.kind.same(offsets.kind)
    result = bf.solve(total, 1, rng=0, max_iter=20)
    assert result.U.shape == (9, 3)
    np.testing.assert_array_equal(result.U[:, 0], np.ones(9))


# Memory.


@pytest.fixture
def unwatched(monkeypatch):
    """The loop without the law of conftest, which measures in every iteration."""
    module = importlib.import_module("bifactor.running.solve")
    monkeypatch.setattr(module, "_iterate", inspect.getclosurevars(module._iterate).nonlocals["plain"])


def peak_of(problem, iterations):
    """The most memory that some iterations hold beside the problem."""
    bf.solve(problem, 2, PCG(), rng=0, max_iter=1)  # kernels are loaded, and what is counted once is
    tracemalloc.start()
    try:
        result = bf.solve(problem, 2, PCG(), rng=0, max_iter=iterations, tol=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.n_iter == iterations
    assert result.objective < result.history.objective[0]
    return peak, result


@pytest.mark.parametrize(
    ("loss", "size", "iterations"),
    [(SQUARED, 2_000_000, 10), (bf.losses.Logistic(), 1_000_000, 3)],  # of which the second takes trial steps
    ids=["Squared", "Logistic"],
)
def test_recomputed_entries_hold_nothing_as_long_as_the_data(unwatched, draw_targets, loss, size, iterations):
    rng, shape = np.random.default_rng(0), (2000, 1000)
    U, V = (rng.standard_normal((k, 2)) for k in shape)
    rows, cols = (rng.integers(k, size=size) for k in shape)
    operator, y = Entries(rows, cols, shape), draw_targets(loss, np.einsum("ik,ik->i", U[rows], V[cols]), rng)
    ways = [bf.Problem(loss, op, y) for op in (operator, Recomputed(operator))]
    (stored, one), (recomputed, two) = (peak_of(problem, iterations) for problem in ways)
    assert recomputed < y.nbytes / 4, f"{recomputed / y.nbytes:.3f} arrays as long as the data"
    assert stored > y.nbytes
    close([two.history.objective], [one.history.objective], 1e-6)


# What else depends on z.


@pytest.mark.parametrize("kind", ["Entries", "Gaussian", "half", "sum"])
def test_a_run_interrupted_and_resumed_ends_with_the_same_bits(observed, two, kind, tmp_path):
    operator, y = observed()
    if kind == "Gaussian":
        operator = Gaussian(TALL, y.size, rng=0)
    if kind == "sum":
        one, other = two(wrap=Recomputed)
        problem = one + other
    elif kind == "half":
        problem = bf.Problem(SQUARED, Stacked(operator, Recomputed(operator)), np.tile(y, 2))
    else:
        problem = bf.Problem(SQUARED, Recomputed(operator), y)
    settings = {"rank": 2, "solver": PCG(), "rng": 0, "tol": 0}
    whole = bf.solve(problem, max_iter=40, **settings)
    path = tmp_path / "run"
    for iterations in (7, 26, 40):  # before and after the factors are balanced
        resumed = bf.solve(problem, max_iter=iterations, checkpoint=path, **settings)
        assert resumed.n_iter == iterations
    np.testing.assert_array_equal(resumed.U, whole.U)
    np.testing.assert_array_equal(resumed.V, whole.V)
    np.testing.assert_array_equal(resumed.history.objective, whole.history.objective)


@pytest.mark.parametrize(
    ("solver", "options"),
    [
        (NuclearNorm(), {"penalty": Ridge(0.5)}),
        (SPG(10.0), {}),
        (SparseApproxSDP(10.0), {"symmetric": True}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_solvers_that_work_on_measurements_refuse_before_any_work(observed, solver, options, monkeypatch):
    def work(*args, **settings):
        raise AssertionError("that was work")

    operator, y = observed(shape=(12, 12))
    entries, dense = Recomputed(operator), Recomputed(Gaussian((12, 12), y.size, rng=0))
    for op in (entries, dense, Stacked(entries), Scaled(dense, 2.0), Recomputed(Stacked(operator))):
        problem = bf.Problem(SQUARED, op, y, **options)
        with monkeypatch.context() as patch:
            for name in ("value", "evaluate", "gradient", "hessian", "curve", "straight", "measure"):
                patch.setattr(type(problem.f), name, work)
            with pytest.raises(InputError, match=f"{type(solver).__name__} works on the measurements.*not stored"):
                bf.solve(problem, 2, solver)
    mixed = bf.Problem(SQUARED, Stacked(operator, entries), np.tile(y, 2), **options)
    both = bf.Problem(SQUARED, operator, y, **options) + bf.Problem(SQUARED, entries, y, **{**options, "penalty": None})
    for problem, rank in product((mixed, both), (1, 2)):
        with pytest.raises(InputError, match="not stored"):
            bf.solve(problem, rank, solver)
    # Where measurements are stored, they serve.
    result = bf.solve(bf.Problem(SQUARED, operator, y, **options), 2, solver, max_iter=3)
    assert np.isfinite(result.objective)
