"""Rank-one steps in a ball, beside their formulas on dense matrices."""

from dataclasses import replace

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import herm
from bifactor.problems.state import Settled
from bifactor.solvers import SPG, SparseApproxSDP
from bifactor.solvers.sparse_approx_sdp import LOOSE, TIGHT
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def inner(A, B):
    return np.vdot(A, B).real


def nuclear(X):
    return float(np.linalg.norm(X, "nuc"))


def corner(G, radius, symmetric=False):
    """argmin ⟨G, S⟩ over the ball, or over semidefinite S with trace τ."""
    if symmetric:
        v = np.linalg.eigh(-(G + herm(G)) / 2)[1][:, -1:]
        return radius * v @ herm(v)
    A, _, Bh = np.linalg.svd(G)
    return -radius * A[:, :1] @ Bh[:1]


def naive(gradient, X, radius, bend=None, symmetric=False):
    """X ← X + a(S − X) with S the corner that ∇f points to, a = min(1, 2/k), or the best a for a quadratic f."""
    k = 1
    while True:
        D = corner(gradient(X), radius, symmetric) - X
        a = min(1.0, 2 / k)
        if bend is not None:
            a = min(1.0, max(-inner(gradient(X), D) / bend(D), 0.0))
        X, k = X + a * D, k + 1
        yield X


def bend_of(f, gradient):
    """D ↦ ‖A(D)‖² of least squares."""
    return lambda D: 2 * (f(D) - f(0 * D) - inner(gradient(0 * D), D))


def states(problem, rank, solver, init=None, **settings):
    """All X of a run but the start."""
    seen = []
    result = bf.solve(
        problem, rank, solver, init, rng=0, callback=lambda _, s: seen.append(s.U @ herm(s.V)), **settings
    )
    return result, seen


@pytest.mark.parametrize("line_search", [False, True])
def test_iterates_of_sensing(sensing, dense, follow, line_search):
    problem = sensing(noise=0.1)
    f, gradient = dense(problem)
    theirs = naive(gradient, np.zeros(problem.shape), 12.0, bend_of(f, gradient) if line_search else None)
    follow(problem, 10, SparseApproxSDP(12.0, line_search), theirs, steps=20)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("line_search", [False, True])
def test_iterates_of_completion(make_problem, dense, follow, dtype, line_search):
    for shape in ((14, 11), (11, 14)):
        problem = make_problem(*shape, observed=0.7, dtype=dtype)
        f, gradient = dense(problem)
        bend = bend_of(f, gradient) if line_search else None
        theirs = naive(gradient, np.zeros(shape, dtype), 20.0, bend)
        follow(problem, 11, SparseApproxSDP(20.0, line_search), theirs, steps=20)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("line_search", [False, True])
def test_iterates_of_semidefinite_matrices(make_problem, dense, follow, dtype, line_search):
    problem = make_problem(12, symmetric=True, observed=0.8, dtype=dtype)
    f, gradient = dense(problem)
    bend = bend_of(f, gradient) if line_search else None
    zero = np.zeros((12, 12), dtype)
    solver = SparseApproxSDP(25.0, line_search)
    follow(problem, 12, solver, naive(gradient, corner(gradient(zero), 25.0, True), 25.0, bend, True), steps=20)


def test_iterates_from_a_start(make_problem, dense, follow):
    problem = make_problem(14, 11)
    U, V = (np.hstack([F, np.zeros((F.shape[0], 9))]) for F in problem.truth)
    f, gradient = dense(problem)
    X = U @ V.T
    for radius in (5.0, 500.0):  # outside of the first ball: scaled, and outside of no other
        inside = X * min(1.0, radius / nuclear(X))
        start = bf.inits.Given(U, V)
        follow(
            problem,
            11,
            SparseApproxSDP(radius, line_search=True),
            naive(gradient, inside, radius, bend_of(f, gradient)),
            start,
        )


def test_the_line_search_finds_the_best_step_of_any_loss(make_problem, loss):
    problem = make_problem(14, 11, loss=loss)
    rows, cols = problem.operator.rows, problem.operator.cols
    U, V = (0.3 * F for F in problem.truth)
    solver = SparseApproxSDP(8.0, line_search=True)
    state = solver.init(problem, problem.kind.pair(U, V), 5)
    X = U @ V.T
    G = np.zeros((14, 11))
    G[rows, cols] = loss.gradient(X[rows, cols], problem.y)
    D = corner(G, 8.0) - X
    values = [np.sum(loss.value((X + a * D)[rows, cols], problem.y)) for a in np.linspace(0, 1, 2001)]
    best = np.linspace(0, 1, 2001)[int(np.argmin(values))]
    new = solver.step(problem, state)
    np.testing.assert_allclose(new.U @ new.V.T, X + best * D, atol=1e-3 * np.linalg.norm(D))
    assert new.value <= min(values) + 1e-9 * abs(min(values))
    assert new.value < state.value


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("line_search", [False, True])
def test_every_iterate_is_feasible_and_of_low_rank(make_problem, symmetric, line_search):
    problem = make_problem(20, 15, symmetric=symmetric)
    for radius in (3.0, 100.0):
        for start in (None, bf.inits.Random(50.0)):
            for rank in (2, 15):
                solver = SparseApproxSDP(radius, line_search)
                result, seen = states(problem, rank, solver, start, max_iter=40, tol=0)
                # An optimum of rank one is reached.
                assert len(seen) == 40 or (radius == 3.0 and result.status is bf.Status.SETTLED)
                for t, X in enumerate(seen, start=1):
                    if symmetric:
                        assert np.trace(X) == pytest.approx(radius, rel=1e-10)
                        assert np.linalg.eigvalsh(X)[0] >= -1e-12 * radius
                    assert nuclear(X) <= radius * (1 + 1e-10)
                    if start is None:
                        # Where X = UUᴴ the start, which is a corner too, counts.
                        assert np.linalg.matrix_rank(X, tol=1e-8 * radius) <= min(rank, t + symmetric)
                    assert np.linalg.matrix_rank(X, tol=1e-8 * radius) <= rank


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("line_search", [False, True])
def test_a_step_adds_one_column_until_there_are_enough(make_problem, symmetric, line_search):
    widths = []
    result = bf.solve(
        make_problem(20, 15, symmetric=symmetric),
        6,
        SparseApproxSDP(50.0, line_search),
        max_iter=12,
        tol=0,
        callback=lambda _, state: widths.append(state.point.x.width),
    )
    # The first two of the fixed lengths are 1, which leaves the corner alone. Where X = UUᴴ the start is a corner too.
    before = int(symmetric) if line_search else -1
    assert widths == [min(6, max(1, t + before)) for t in range(1, 13)]
    assert result.U.shape[1] == result.V.shape[1] == 6


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_bound_of_the_theory(sensing, symmetric):
    """f(X) − f* ≤ 4C_f/(k + 1) after k steps, with C_f = 2τ²L.

    C_f is the supremum of (f(X + a(S − X)) − f(X) − a⟨∇f(X), S − X⟩)/a², which is at most (L/2)‖S − X‖_F², and no two
    points of the ball are further apart than 2τ. With h = f(X) − f*, a step of length a towards a corner that is within
    ε of the best gives h⁺ ≤ (1 − a)h + aε + a²C_f. Here a = 2/k and ε = C_f/k², so that from h ≤ 4C_f/k it follows that

        h⁺/C_f ≤ (1 − 2/k)·4/k + 2/k³ + 4/k² = (4k² − 4k + 2)/k³ ≤ 4/(k + 1),

    for (4k² − 4k + 2)(k + 1) = 4k³ − 2k + 2 ≤ 4k³. The first two steps have a = 1 and need no h: h⁺ ≤ 2C_f and
    (1 + ¼)C_f, within 4C_f/2 and 4C_f/3.
    """
    problem = sensing(m=45, n=40, size=600, symmetric=symmetric)
    X = problem.truth[0] @ problem.truth[1].T
    radius = nuclear(X)  # so that f* = 0
    result = bf.solve(problem, 40, SparseApproxSDP(radius), max_iter=150, tol=0)
    k = np.arange(1, 151)
    bound = 4 * 2 * radius**2 * problem.smoothness / (k + 1)
    assert np.all(result.history.objective[1:] <= bound)
    # And it is not idle: the error falls like 1/k, and far.
    assert result.objective < 1e-2 * result.history.objective[1]
    assert result.objective > 0


def test_it_comes_as_low_as_another_solver_of_the_same_problem(make_problem, loss):
    problem = make_problem(20, 15, loss=loss)
    best = bf.solve(problem, 15, SPG(6.0), tol=0, max_iter=2000).objective
    start = bf.solve(problem, 15, SparseApproxSDP(6.0, line_search=True), max_iter=0).objective
    result = bf.solve(problem, 15, SparseApproxSDP(6.0, line_search=True), tol=0, max_iter=600)
    assert -1e-8 * (start - best) <= result.objective - best <= 1e-2 * (start - best)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("line_search", [False, True])
def test_the_accuracy_is_kept(make_problem, line_search, symmetric):
    plain = make_problem(90, 80, rank=3, observed=0.2, symmetric=symmetric)
    rng = np.random.default_rng(100)
    y = plain.y + 3 * rng.standard_normal(plain.y.shape)  # the largest singular values of ∇f are then close
    problem = bf.Problem(plain.loss, plain.operator, y, symmetric=symmetric)
    radius = 0.2 * nuclear(plain.truth[0] @ plain.truth[1].T)
    free = bf.Problem(plain.loss, plain.operator, y)
    least = bf.solve(free, 80, SPG(radius), tol=1e-7, max_iter=500).objective
    for share in (0.25, 0.1, 0.05):
        accuracy = share * float(np.sum(y**2))
        # With so large a C_f all pairs are as loose as can be, but not the last.
        solver = SparseApproxSDP(radius, line_search, curvature=1e12, accuracy=accuracy)
        last = []
        result = bf.solve(problem, 80, solver, tol=0, max_iter=2000, callback=lambda _, s: last.append(s))  # noqa: B023
        assert result.status is bf.Status.SETTLED
        X = last[-1].U @ last[-1].V.T
        G = problem.f.gradient(last[-1].point.x) @ np.eye(X.shape[1])
        assert inner(G, X) - inner(G, corner(G, radius, symmetric)) <= accuracy * (1 + 1e-9)
        assert result.objective <= last[-1].value * (1 + 1e-12)  # the objective is taken anew, from the factors alone
        assert symmetric or result.objective <= least + accuracy


def test_a_loose_pair_is_not_trusted_with_the_end(make_problem):
    plain = make_problem(120, 100, rank=3, observed=0.2)
    y = plain.y + 3 * np.random.default_rng(100).standard_normal(plain.y.shape)
    problem = bf.Problem(plain.loss, plain.operator, y)
    seen = []
    solver = SparseApproxSDP(60.0, line_search=True, curvature=1e12)
    bf.solve(problem, 100, solver, tol=0, max_iter=40, callback=lambda _, state: seen.append(state))
    states = [(solver._next(problem, s, LOOSE).gap / solver._next(problem, s, TIGHT).gap, s) for s in seen]
    share, state = min(states, key=lambda pair: pair[0])
    assert share < 0.8
    gap = solver._next(problem, state, TIGHT).gap
    for accuracy, settled in (((1 + share) / 2 * gap, False), (1.01 * gap, True)):
        phase = replace(solver, accuracy=accuracy).step(problem, state).phase
        assert isinstance(phase, Settled) == settled


def test_pairs_are_as_exact_as_the_articles_ask(make_problem):
    problem = make_problem(14, 11)
    solver = SparseApproxSDP(3.0)
    own = solver.init(problem, problem.zero(2), 2).own
    assert solver._tol(problem, own) == TIGHT  # nothing is known of the gradient yet
    for k in (50, 100):
        at = replace(own, k=k, steep=2.0)
        # C_f/k² = 2τ²L/k² in f, of which τ·‖∇f‖₂ is the whole.
        assert solver._tol(problem, at) == pytest.approx(2 * 3.0**2 * problem.smoothness / k**2 / (3.0 * 2.0))
    assert replace(solver, curvature=1e9)._tol(problem, at) == LOOSE


def test_the_line_search_never_rises(make_problem, loss):
    problem = make_problem(20, 15, loss=loss)
    values = bf.solve(problem, 15, SparseApproxSDP(6.0, line_search=True), max_iter=100, tol=0).history.objective
    assert np.all(np.diff(values) <= 1e-9 * np.abs(values[:-1]))
    square = make_problem(15, loss=loss, symmetric=True)
    values = bf.solve(square, 15, SparseApproxSDP(6.0, True), max_iter=100, tol=0).history.objective
    assert np.all(np.diff(values) <= 1e-9 * np.abs(values[:-1]))


def test_a_ball_that_is_far_too_large_is_not_divergence(make_problem):
    problem = make_problem(14, 11)
    result = bf.solve(problem, 11, SparseApproxSDP(1e4), max_iter=50, tol=0)
    assert result.status is bf.Status.MAX_ITER
    assert result.history.objective[1] > 1e3 * result.history.objective[0]
    assert result.objective == pytest.approx(result.history.objective[0], rel=1e-14)
    assert bf.solve(problem, 11, SparseApproxSDP(1e4, line_search=True), max_iter=50).objective < result.objective


def test_semidefinite_matrices_have_the_trace_even_if_less_would_be_better(make_problem):
    # The data ask for a negative X: 0 would be the best of the semidefinite ones, but has no trace.
    problem = make_problem(12, symmetric=True)
    problem = bf.Problem(problem.loss, problem.operator, -np.abs(problem.y), symmetric=True)
    for line_search in (False, True):
        for start in (None, bf.inits.Random(1e-3)):
            solver = SparseApproxSDP(2.0, line_search)
            result = bf.solve(problem, 12, solver, start, rng=1, max_iter=100)
            assert np.trace(result.matrix()) == pytest.approx(2.0)
            assert result.n_iter > 3
            np.testing.assert_array_equal(result.U, result.V)


def test_a_saddle_point_of_the_factors_is_not_the_end():
    # One block is fitted, the other has no column: the gradient of both factors is zero, and yet X is not optimal.
    corners = bf.operators.Entries([0, 1], [0, 1], (2, 2))
    for symmetric in (False, True):
        problem = bf.Problem(bf.losses.Squared(), corners, np.array([4.0, 1.0]), symmetric=symmetric)
        for line_search in (False, True):
            result = bf.solve(problem, 2, SparseApproxSDP(4.0, line_search), tol=0, max_iter=400)
            assert min(result.history.gradient_norm[:3]) == 0
            assert result.objective == pytest.approx(0.25, rel=2e-2)  # at diag(3.5, 0.5)


def test_a_single_entry_in_single_precision():
    # Singular pairs of a gradient of rank one once lost their orthogonality, and X left the ball.
    for dtype in DTYPES:
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries([3], [7], (60, 50)), np.array([2.0], dtype))
        result = bf.solve(problem, 20, SparseApproxSDP(1.0, line_search=True), max_iter=5)
        assert nuclear(result.matrix()) <= 1 + 1e-5
        assert result.matrix()[3, 7] == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_laws(make_problem, sensing, dtype):
    for solver in (SparseApproxSDP(10.0), SparseApproxSDP(10.0, line_search=True)):
        check_solver(solver, sensing(dtype=dtype, noise=0.1), rank=4)
        check_solver(solver, make_problem(9, 12, dtype=dtype), rank=9)
    check_solver(SparseApproxSDP(30.0, True), make_problem(12, dtype=dtype, symmetric=True), rank=12)


def test_no_data_no_matrix():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    result = bf.solve(problem, 2, SparseApproxSDP(1.0))
    assert result.status is bf.Status.SETTLED
    assert not result.matrix().any()


@pytest.mark.parametrize("shape", [(1, 6), (7, 1), (1, 1)])
def test_small_shapes(shape):
    X = np.random.default_rng(4).standard_normal(shape)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X)
    radius = 0.5 * np.linalg.norm(X)
    result = bf.solve(problem, 1, SparseApproxSDP(radius, line_search=True), tol=0, max_iter=50)
    np.testing.assert_allclose(result.matrix(), 0.5 * X, atol=1e-8)


def test_refusals(make_problem):
    entries = make_problem()
    with pytest.raises(bf.errors.InputError, match="minimises f alone"):
        bf.solve(entries.penalized(bf.penalties.Ridge(1.0)), 2, SparseApproxSDP(1.0))
    with pytest.raises(bf.errors.InputError, match="offsets"):
        bf.solve(bf.Problem(entries.loss, entries.operator, entries.y, offsets=True), 2, SparseApproxSDP(1.0))


@pytest.mark.parametrize(
    "settings",
    [{"radius": 0.0}, {"radius": -1.0}, {"radius": np.inf}]
    + [{"radius": 1.0, **more} for more in ({"curvature": 0.0}, {"accuracy": -1.0}, {"line_search": 2})],
)
def test_bad_settings(settings):
    with pytest.raises(bf.errors.InputError):
        SparseApproxSDP(**settings)
