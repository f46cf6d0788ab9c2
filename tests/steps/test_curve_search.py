"""The search along the curve: the best step where that can be known, and a good one everywhere."""

from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.penalties.balance import BalanceTerm, Frobenius
from bifactor.problems.curve import FactorCurve
from bifactor.problems.state import Moving, Stalled
from bifactor.steps.line_search import Searched
from bifactor.steps.quartic import minimiser

SEARCH = bf.steps.CurveSearch()
SIGNED = st.floats(1e-4, 1e4).flatmap(lambda size: st.sampled_from([-size, 0.0, size]))


def rise(c, a):
    """φ(a) − φ(0), exactly."""
    return sum(Decimal(float(c[k])) * a**k for k in range(1, 5))


def least_rise(c):
    """The least of φ(a) − φ(0) over a > 0 by bisection between the turning points of φ′, in two hundred digits."""
    p = [k * Decimal(float(c[k])) for k in range(1, 5)]
    while p[-1] == 0:
        p.pop()
    far = 1 + max(abs(k / p[-1]) for k in p)  # Cauchy's bound on the roots
    C, B, A = ([k * p[k] for k in range(1, len(p))] + [Decimal(0)] * 3)[:3]
    turns = [-C / B] if A == 0 and B != 0 else []
    if A != 0 and B * B > 4 * A * C:
        root = (B * B - 4 * A * C).sqrt()
        turns = [(-B - root) / (2 * A), (-B + root) / (2 * A)]
    cuts = sorted({Decimal(0), far, *(t for t in turns if 0 < t < far)})
    lowest = Decimal(0)
    for low, high in pairwise(cuts):
        if slope(p, low) < 0 <= slope(p, high):
            while high - low > high * Decimal(10) ** -40:
                middle = (low + high) / 2 if low > 0 else high / 1024
                low, high = (middle, high) if slope(p, middle) < 0 else (low, middle)
            lowest = min(lowest, rise(c, high))
    return lowest


def slope(p, a):
    total = Decimal(0)
    for k in reversed(p):
        total = total * a + k
    return total


def is_the_best(c):
    with localcontext(prec=200, Emin=-(10**6), Emax=10**6):
        a, best = minimiser([float(k) for k in c]), least_rise(c)
        assert a == minimiser(np.asarray(c, float))  # any sequence of numbers will do
        assert a is not None
        assert type(a) is float
        assert abs(rise(c, Decimal(a)) - best) <= Decimal("1e-12") * abs(best)


@settings(deadline=None, max_examples=150)
@example(0.0, [-1.0, 0.0, 0.0, 1.0], 1.0, 1.0)
@example(1.0, [-1.0, 0.0, 1.0, 0.0], 1e30, 1e-30)
@example(0.0, [-3.0, 5.0, 0.0, 0.0], 1e-30, 1e30)
@example(0.0, [-1.0, -1.0, -1.0, 1.0], 1.0, 1.0)
@given(
    st.floats(-1e4, 1e4),
    st.tuples(st.floats(-1e4, -1e-4), SIGNED, SIGNED, st.just(0.0) | st.floats(1e-4, 1e4)),
    st.floats(-30, 30).map(lambda e: 10.0**e),
    st.floats(-30, 30).map(lambda e: 10.0**e),
)
def test_the_minimiser_of_a_quartic_in_any_units(first, rest, length, height):
    c = [height * first, *(height * k / length**power for power, k in enumerate(rest, 1))]
    last = [k for k in c[1:] if k != 0][-1]
    if last > 0:
        is_the_best(c)
    elif not any(k > 0 for k in c[2:]):
        assert minimiser(np.array(c)) is None  # it falls without end


@settings(deadline=None, max_examples=80)
@given(st.lists(st.floats(-5, 5), min_size=4, max_size=4), st.lists(st.sampled_from([-1, 1]), min_size=2, max_size=2))
def test_quartics_whose_coefficients_have_little_in_common(exponents, signs):
    size = [10.0**e for e in exponents]
    is_the_best([0.0, -size[0], signs[0] * size[1], signs[1] * size[2], size[3]])


@settings(deadline=None, max_examples=80)
@given(st.floats(0.01, 1.0), st.floats(1.05, 20.0), st.floats(1.05, 20.0))
def test_the_better_of_two_wells(near, first, second):
    # φ′ vanishes at three places; which of the outer two is the better minimum depends on their distances.
    roots = near, near * first, near * first * second
    p = np.poly(roots)[::-1]
    is_the_best([0.0, *(p / np.arange(1, 5))])


def test_a_far_well_is_taken_where_it_is_deeper_and_a_near_one_where_that_is():
    for roots in ((1.0, 2.0, 10.0), (1.0, 9.0, 10.0)):
        p = np.poly(roots)[::-1]
        a = minimiser(np.array([0.0, *(p / np.arange(1, 5))]))
        assert a == pytest.approx(10.0 if roots[1] < 5 else 1.0, rel=1e-12)


@pytest.mark.parametrize(
    "c",
    [
        [0, 0, 1, 0, 1],
        [0, 1, 1, 0, 1],
        [0, -1, 0, 0, 0],
        [0, -1, -1, 0, 0],
        [0, -1, 0, -1, -1],
        [0, np.nan, 1, 0, 1],
        [0, -1, np.nan, 0, 1],
        [0, -1, np.inf, 0, 1],
        [0, -np.inf, 1, 0, 1],
        [0, -1, 0, 0, np.inf],
    ],
)
def test_where_there_is_no_minimum_to_walk_to(c):
    assert minimiser(np.array(c, float)) is None


def ridged(problem, rho=0.3):
    return problem.penalized(bf.penalties.Ridge((rho, 2 * rho)))


def paths(problem, rng, balance=True, count=4):
    """Descending paths, in random directions and so with one or two wells, of f + ridge and perhaps a balance term."""
    if balance:
        problem = problem.plus(BalanceTerm(Frobenius(0.7), 0.25, 1.0))
    for _ in range(count):
        x, d = (problem.kind.random(rng, problem.shape, 2, problem.dtype) for _ in range(2))
        path = FactorCurve(problem, problem.at(x), d)
        yield path if path.slope < 0 else FactorCurve(problem, path.point, -d)


def search(path):
    return SEARCH.next(path, Searched())


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("weights", [None, 2.5])
def test_for_least_squares_no_step_is_better(make_problem, dtype, symmetric, weights):
    rng = np.random.default_rng(1)
    problem = ridged(make_problem(12, 12 if symmetric else 9, dtype=dtype, symmetric=symmetric, weights=weights))
    for path in paths(problem, rng, balance=not symmetric):
        new, memory, phase = search(path)
        assert phase == Moving()
        assert new.x.dtype == dtype
        a = memory.eta
        grid = np.concatenate([np.geomspace(1e-4, 1e4, 80), np.linspace(0.9, 1.1, 41), np.linspace(0, 6, 61)[1:]]) * a
        others = [path.to(float(b)).value for b in grid]
        assert new.value <= min(others) * (1 + 20 * np.finfo(dtype).eps)
        assert new.value == pytest.approx(path.to(a).value, rel=100 * float(np.finfo(dtype).eps))


def test_bfgd_takes_the_best_step_on_what_it_descends_on(make_problem):
    problem = ridged(make_problem())
    solver = bf.solvers.BFGD(SEARCH, Frobenius(3.0), lam=0.4)
    state = solver.init(problem, 0.3 * problem.kind.pair(*problem.truth), 2)
    for _ in range(5):
        new = solver.step(problem, state)
        old, at, a = state.own.at, new.own.at, new.own.memory.eta
        for b in np.concatenate([np.linspace(0, 3, 60)[1:], np.geomspace(1e-3, 1e3, 40), [0.999, 1.001]]) * a:
            other = solver.init(problem, old.x.plus(-b, old.gradient), 2)
            assert at.value <= other.own.at.value * (1 + 1e-14)
        np.testing.assert_allclose(new.U, state.U - a * old.gradient.left)
        assert abs(at.gradient.inner(old.gradient)) <= 1e-8 * old.gradient.inner(old.gradient)
        state = new


def descends(solver, problem, state, steps=15):
    """What the solver descends on, terms of its own included, falls and loses its slope."""
    for _ in range(steps):
        new = solver.step(problem, state)
        assert new.phase == Moving()
        before, after = (getattr(s.own, "at", s.point) for s in (state, new))
        assert after.value < before.value
        moved = after.x - before.x
        first, last = (point.gradient.inner(moved) for point in (before, after))
        assert first < 0
        assert abs(last) <= 0.101 * abs(first)
        state = new


@pytest.mark.parametrize("weights", [None, 0.2])
def test_every_loss_goes_down_and_leaves_little_slope(make_problem, loss, weights):
    problem = make_problem(loss=loss, weights=weights)
    for part in (problem, ridged(problem)):
        for balance in (None, Frobenius(2.0)):
            solver = bf.solvers.BFGD(SEARCH, balance)
            for start in (0.01, 0.5, 2.0):
                x = start * part.kind.pair(*problem.truth)
                descends(solver, part, solver.init(part, x, 2), steps=6)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.3)])
def test_complex_data_go_down_and_leave_little_slope(make_problem, loss, symmetric):
    problem = make_problem(15, 15, loss=loss, dtype=np.complex128, symmetric=symmetric)
    x = 0.5 * problem.kind.pair(*problem.truth)
    for solver in (bf.solvers.FGD(SEARCH),) if symmetric else (bf.solvers.BFGD(SEARCH), bf.solvers.ScaledGD()):
        descends(solver, problem, solver.init(problem, x, 2))


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_a_black_box_goes_down_and_leaves_little_slope(dtype):
    rng = np.random.default_rng(0)
    target = gaussian(rng, (9, 2), dtype) @ gaussian(rng, (2, 7), dtype)

    def value(X):
        return float(np.sum(np.sqrt(1 + np.abs(X - target) ** 2)))

    def gradient(X):
        return (X - target) / np.sqrt(1 + np.abs(X - target) ** 2)

    penalty = bf.penalties.Ridge(0.1)
    problem = bf.Objective(bf.Function(value, gradient, target.shape, dtype=dtype), penalty)
    for solver in (bf.solvers.BFGD(SEARCH), bf.solvers.BFGD(SEARCH, Frobenius(2.0)), bf.solvers.ScaledGD()):
        x = problem.kind.random(rng, (9, 7), 2, dtype)
        descends(solver, problem, solver.init(problem, x, 2))


def test_a_black_box_that_is_a_squared_loss_is_searched_as_well():
    T = np.random.default_rng(0).standard_normal((8, 6))
    box = bf.Function(lambda X: 0.5 * np.sum((X - T) ** 2), lambda X: X - T, T.shape, smoothness=1.0)
    known = bf.Problem(bf.losses.Squared(), bf.operators.Full(T.shape), T)
    rng = np.random.default_rng(3)
    for path in paths(bf.Objective(box), rng):
        other = known.plus(path.problem.added[0])
        best, good = search(FactorCurve(other, other.at(path.point.x), path.d)).point, search(path).point
        first = path.point.value
        assert best.value <= good.value + 1e-9 * first
        assert good.value < first


def test_a_balance_term_that_is_no_polynomial_is_searched_all_the_same(make_problem):
    """One that is a polynomial, but does not say so, takes the same steps as one that does."""
    same = bf.penalties.balance.Elementwise(lambda d: 0.5 * d * d, lambda d: d, 1.0, 1.0)
    problem, start = make_problem(), bf.inits.Random()
    results = [
        bf.solve(problem, 2, bf.solvers.BFGD(SEARCH, balance), start, 0, max_iter=20, tol=0)
        for balance in (bf.penalties.balance.Frobenius(1.0), same)
    ]
    assert results[1].objective == pytest.approx(results[0].objective, rel=0.05)
    assert np.all(np.diff(results[1].history.objective) < 0.1 * results[1].history.objective[:-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_where_rounding_hides_all_decrease_is_an_outcome(make_problem, dtype):
    for problem in (make_problem(dtype=dtype), make_problem(dtype=dtype, noiseless=True)):
        result = bf.solve(problem, 2, bf.solvers.PCG(), rng=0, tol=0, max_iter=3000)
        assert result.status in (bf.Status.PRECISION, bf.Status.GRADIENT), result.status
        assert result.n_iter < 3000


def test_a_direction_that_does_not_descend_stalls_and_moves_nothing(make_problem):
    problem = make_problem()
    point = problem.at(problem.kind.pair(*problem.truth))
    for d in (point.gradient, 0.0 * point.x, np.nan * point.x):
        step = SEARCH.next(FactorCurve(problem, point, d), Searched(0.5, 0.5))
        assert step.phase == Stalled(0.0)
        assert step.point is point
        assert step.memory == Searched(0.5, 0.5)


def test_a_wrong_gradient_is_a_stall_and_not_convergence():
    wrong = bf.Function(lambda X: 0.5 * np.sum((X - 1) ** 2), lambda X: -(X - 1), (4, 4))
    result = bf.solve(wrong, 1, bf.solvers.BFGD(SEARCH), init=bf.inits.Random(), rng=0)
    assert result.status is bf.Status.STALLED


@settings(deadline=None, max_examples=150)
@given(st.lists(st.floats(-30, 30), min_size=4, max_size=4), st.lists(st.sampled_from([-1, 1]), min_size=2, max_size=2))
def test_quartics_whose_coefficients_have_nothing_in_common(exponents, signs):
    size = [10.0**e for e in exponents]
    is_the_best([0.0, -size[0], signs[0] * size[1], signs[1] * size[2], size[3]])
