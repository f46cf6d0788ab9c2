"""Spectral projected gradients in a ball (and a box), beside their formulas on dense matrices."""

from dataclasses import replace

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.operators import Curve
from bifactor.solvers import SPG, NuclearNorm
from bifactor.solvers.spg import ProjectionStart, clip_entries, project, project_on_ball, search
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
ONE_BIT = [bf.losses.Logistic(), bf.losses.Probit(0.6)]


def inner(A, B):
    return np.vdot(A, B).real


def nuclear(X):
    return float(np.linalg.norm(X, "nuc"))


def ball(X, radius):
    """The nearest matrix with ‖X‖_* ≤ radius, θ by bisection."""
    A, s, Bh = np.linalg.svd(X, full_matrices=False)
    low, high = 0.0, float(s[0])
    if s.sum() <= radius:
        return X
    for _ in range(200):
        theta = (low + high) / 2
        low, high = (theta, high) if np.maximum(s - theta, 0).sum() > radius else (low, theta)
    return (A * np.maximum(s - high, 0)) @ Bh


def box(X, bound):
    size = np.abs(X)
    return np.where(size > bound, bound * X / np.where(size > 0, size, 1), X)


def dykstra(B, radius, bound, most=100_000):
    """The nearest matrix in both sets by Dykstra's algorithm, which is slow and sure."""
    X, P, Q = B, 0 * B, 0 * B
    for _ in range(most):
        Y = ball(X + P, radius)
        P = X + P - Y
        old, X = X, box(Y + Q, bound)
        Q = Y + Q - X
        if max(np.linalg.norm(X - Y), np.linalg.norm(X - old)) <= 1e-12 * np.linalg.norm(X):
            return X
    raise AssertionError("Dykstra's algorithm has not converged")


def naive(f, gradient, onto, X, memory=3):
    """The iterates of the toolbox: max(s, 1), nonmonotone Armijo with interpolation, first Barzilai-Borwein step."""
    s, recent = 1.0, [f(X)]
    while True:
        G = gradient(X)
        D = onto(X - max(s, 1.0) * G) - X
        slope, t = inner(G, D), 1.0
        for _ in range(20):
            value = f(X + t * D)
            if value < max(recent) + 1e-4 * t * slope:
                break
            shorter = -slope * t**2 / (2 * (value - f(X) - t * slope))
            t = shorter if t > 0.1 and 0.1 <= shorter <= 0.9 * t else t / 2
        else:
            raise AssertionError("no step")
        new = X + t * D
        bend = inner(gradient(new) - G, new - X)
        s = min(max(t**2 * inner(D, D) / bend, 1e-4), 1e9) if bend > 0 else 1e9
        X, recent = new, [*recent, f(new)][-memory:]
        yield X


def of_entries(problem):
    """(f, ∇f) of observed entries with any loss, as functions of a dense X."""
    seen = problem.operator.rows, problem.operator.cols
    w = 1.0 if problem.weights is None else problem.weights

    def gradient(X):
        G = np.zeros_like(X)
        G[seen] = w * problem.loss.gradient(X[seen], problem.y)
        return G

    return lambda X: float(np.sum(w * problem.loss.value(X[seen], problem.y))), gradient


def one_bit(loss, seed, scale, n=40, rank=1):
    """Signs of a matrix of low rank with entries within ±scale, and that matrix."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, rank)) - 0.5) @ (rng.random((rank, n)) - 0.5)
    X *= scale / np.max(np.abs(X))
    rows, cols = np.nonzero(rng.random((n, n)) < 0.5)
    y = np.where(rng.random(rows.size) < loss.mean(X[rows, cols]), 1.0, -1.0)
    return bf.Problem(loss, bf.operators.Entries(rows, cols, (n, n)), y), X


def states(problem, rank, solver, init=None, **settings):
    """All X of a run, the start included."""
    seen = []
    result = bf.solve(
        problem, rank, solver, init, rng=0, callback=lambda _, s: seen.append(s.U @ herm(s.V)), **settings
    )
    return result, seen


@pytest.mark.parametrize("radius", [3.0, 12.0, 1e3])
def test_iterates_of_sensing(sensing, dense, follow, radius):
    problem = sensing(noise=0.3)
    theirs = naive(*dense(problem), lambda M: ball(M, radius), np.zeros(problem.shape))
    follow(problem, 10, SPG(radius), theirs, steps=12)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("memory", [1, 3])
def test_iterates_of_completion(make_problem, dense, follow, dtype, memory):
    for shape in ((14, 11), (11, 14)):
        problem = make_problem(*shape, observed=0.7, dtype=dtype)
        theirs = naive(*dense(problem), lambda M: ball(M, 20.0), np.zeros(shape, dtype), memory)
        follow(problem, 11, SPG(20.0, memory=memory), theirs, steps=12)


def test_iterates_of_every_loss(make_problem, follow, loss):
    problem = make_problem(14, 11, observed=0.7, loss=loss)
    # Counts bend f most where nothing has been fitted yet: a start near the data.
    U, V = (0.3 * F for F in problem.truth)
    zeros = [np.zeros((k, 9)) for k in problem.shape]
    start = bf.inits.Given(*(np.hstack([F, Z]) for F, Z in zip((U, V), zeros, strict=True)))
    theirs = naive(*of_entries(problem), lambda M: ball(M, 10.0), U @ V.T)
    follow(problem, 11, SPG(10.0), theirs, start, steps=12)


def test_iterates_with_bounded_entries(make_problem, follow):
    for loss in ONE_BIT:
        problem = make_problem(9, 8, observed=0.7, loss=loss)
        theirs = naive(*of_entries(problem), lambda M: dykstra(M, 8.0, 1.0), np.zeros((9, 8)))
        follow(problem, 8, SPG(8.0, bound=1.0), theirs, steps=4)


@pytest.mark.parametrize("bound", [None, 0.8])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_every_iterate_is_feasible(make_problem, dtype, bound):
    problem = make_problem(20, 15, dtype=dtype)
    for radius in (5.0, 40.0):
        for start in (None, bf.inits.Random(100.0), bf.inits.Spectral()):
            result, seen = states(problem, 15, SPG(radius, bound=bound), start, max_iter=40, tol=0)
            for X in [*seen, result.matrix()]:
                assert nuclear(X) <= radius * (1 + 1e-8)
                assert bound is None or np.max(np.abs(X)) <= bound * (1 + 1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("weight", [1e-4, 1e5])
def test_long_steps_do_not_leave_the_ball(make_problem, dtype, weight):
    # X − s∇f is then far outside, and what the threshold leaves of it is in the last digits.
    problem = make_problem(50, 60, dtype=dtype, weights=weight)
    for rank in (4, 50):
        _, seen = states(problem, rank, SPG(0.05), max_iter=15, tol=0)
        for X in seen:
            assert nuclear(X) <= 0.05 * (1 + 20 * np.finfo(dtype).eps)


def test_the_gap_of_frank_and_wolfe_is_small_at_the_end(make_problem, sensing, loss):
    problems = [make_problem(20, 15, loss=loss)] + ([sensing(noise=0.3)] if loss.quadratic else [])
    for problem in problems:
        for radius in (4.0, 15.0):
            n = min(problem.shape)
            result = bf.solve(problem, n, SPG(radius), tol=0, max_iter=3000)
            assert result.status.converged
            X = result.matrix()
            G = problem.f.gradient(problem.kind.pair(result.U, result.V)) @ np.eye(problem.shape[1])
            gap = inner(G, X) + radius * np.linalg.norm(G, 2)
            assert -1e-12 * abs(result.objective) <= gap <= 1e-6 * abs(result.objective)


@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.7), *ONE_BIT])
def test_it_agrees_with_the_penalty_that_has_the_same_norm(make_problem, loss):
    problem = make_problem(20, 15, observed=0.6, loss=loss)
    ridge = bf.solve(problem.penalized(bf.penalties.Ridge(1.0)), 15, NuclearNorm(), tol=1e-11, max_iter=10_000)
    X = ridge.matrix()
    assert X.any()
    for rank in (15, 1 + np.linalg.matrix_rank(X, tol=1e-6)):  # all columns, or one that stays free
        ours = bf.solve(problem, int(rank), SPG(nuclear(X)), tol=0, max_iter=3000)
        assert np.linalg.norm(ours.matrix() - X) <= 1e-5 * np.linalg.norm(X)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("scale", [0.01, 1.0, 3.0])
def test_projection_against_dykstra(dtype, scale):
    rng = np.random.default_rng(5)
    active = set()
    for shape in ((8, 6), (5, 9), (1, 6), (6, 1)):
        for radius, bound in ((3.0, 0.3), (6.0, 1.0), (1.0, 2.0), (40.0, 0.5), (1e3, 1e3)):
            B = scale * gaussian(rng, shape, dtype)
            wanted = dykstra(B, radius, bound)
            X, _ = project(B, radius, bound, ProjectionStart(0 * B, 0 * B))
            assert X.dtype == dtype
            assert np.linalg.norm(X - wanted) <= 1e-8 * np.linalg.norm(wanted)
            assert nuclear(X) <= radius * (1 + 1e-12)
            assert np.max(np.abs(X)) <= bound * (1 + 1e-12)
            active.add((nuclear(X) > radius * (1 - 1e-6), np.max(np.abs(X)) > bound * (1 - 1e-6)))
    assert scale < 1 or active == {(False, False), (False, True), (True, False), (True, True)}


def test_projection_from_far_away_and_from_another_start():
    # Dykstra's algorithm takes too long here. B − X = W + N with normals of ball and box says the same: half the
    # squared distance to the nearest matrix is at most τ‖W‖₂ − ⟨W, X⟩ + α‖N‖₁ − ⟨N, X⟩, sums of numbers ≥ 0.
    rng = np.random.default_rng(6)
    other = rng.standard_normal((9, 7))
    for scale in (1e2, 1e4, 1e6):
        B = scale * rng.standard_normal((9, 7))
        found = []
        for known in (ProjectionStart(0 * B, 0 * B), ProjectionStart(other, scale * other)):
            X, split = project(B, 8.0, 0.4, known)
            W = -split.Y
            N = B - X - W
            gap = 8.0 * np.linalg.norm(W, 2) - inner(W, X) + 0.4 * np.abs(N).sum() - inner(N, X)
            assert gap <= 1e-7 * np.linalg.norm(B) * np.linalg.norm(X)
            found.append(X)
        np.testing.assert_allclose(found[1], found[0], atol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_projections_keep_what_is_inside_and_the_precision(dtype):
    rng = np.random.default_rng(7)
    B = gaussian(rng, (6, 5), dtype)
    tol = 100 * np.finfo(dtype).eps
    X, _ = project(B, 1e3, 1e3, ProjectionStart(0 * B, 0 * B))
    np.testing.assert_array_equal(X, B)
    X, _ = project(1e4 * B, 2.0, 0.4, ProjectionStart(0 * B, 0 * B))
    assert X.dtype == dtype
    assert nuclear(X) <= 2.0 * (1 + tol)
    assert np.max(np.abs(X)) <= 0.4 * (1 + tol)
    for scale in (1.0, 1e7):
        Y = project_on_ball(scale * B, 2.0)
        assert Y.dtype == dtype
        np.testing.assert_allclose(Y, ball((scale * B).astype(np.result_type(dtype, np.float64)), 2.0), atol=1e3 * tol)
    assert clip_entries(B, 0.3).dtype == dtype
    np.testing.assert_allclose(clip_entries(B, 0.3), box(B, 0.3), rtol=tol)
    assert not clip_entries(0 * B, 0.3).any()


def test_a_start_outside_is_projected(make_problem):
    problem = make_problem(12, 10)
    U, V = (10 * F for F in problem.truth)
    start = problem.kind.pair(U, V)
    state = SPG(5.0).init(problem, start, 10)
    np.testing.assert_allclose(state.U @ state.V.T, ball(U @ V.T, 5.0), atol=1e-9)
    state = SPG(5.0, bound=0.3).init(problem, start, 10)
    X = state.U @ state.V.T
    np.testing.assert_allclose(X, project(U @ V.T, 5.0, 0.3, ProjectionStart(0 * X, 0 * X))[0], atol=1e-9)
    assert state.value == pytest.approx(problem.f.value(state.point.x))
    inside = SPG(1e4).init(problem, start, 10)
    np.testing.assert_array_equal(inside.U, U)


def test_limited_rank_projects_on_matrices_of_that_rank(make_problem, dense, follow):
    problem = make_problem(14, 11, rank=5, observed=0.9)

    def onto(M):
        A, s, Bh = np.linalg.svd(M, full_matrices=False)
        return ball((A[:, :2] * s[:2]) @ Bh[:2], 9.0)

    f, gradient = dense(problem)
    first = onto(-gradient(np.zeros((14, 11))))  # a step of 1 leads there, and X has rank 2 from then on
    assert f(first) < f(0 * first)
    follow(problem, 2, SPG(9.0), iter([first]), steps=1)
    result, seen = states(problem, 2, SPG(9.0), max_iter=60, tol=0)
    for X in seen:
        assert np.linalg.matrix_rank(X, tol=1e-8) <= 2
        assert nuclear(X) <= 9.0 * (1 + 1e-12)
    assert result.objective < 0.9 * f(0 * first)


@pytest.mark.parametrize(("loss", "scale"), [(bf.losses.Logistic(), 8.0), (bf.losses.Probit(0.25), 1.0)])
def test_cutting_back_brings_one_bit_data_closer_to_the_truth(loss, scale):
    before, after = [], []
    for seed in range(4):
        problem, X = one_bit(loss, seed, scale)
        result = bf.solve(problem, 40, SPG(scale * 40.0), max_iter=200, tol=1e-6)
        for errors, each in ((before, result), (after, result.truncated(1))):
            errors.append(np.linalg.norm(each.matrix() - X) / np.linalg.norm(X))
    assert np.mean(after) < 0.8 * np.mean(before)
    assert np.mean(after) < 0.6


@pytest.mark.parametrize("bound", [None, 1.0])
def test_single_precision(make_problem, bound):
    for loss in (bf.losses.Squared(), *ONE_BIT):
        double = make_problem(20, 15, loss=loss)
        single = bf.Problem(loss, double.operator, double.y.astype(np.float32))
        results = [bf.solve(each, 15, SPG(12.0, bound=bound), max_iter=60) for each in (single, double)]
        assert results[0].U.dtype == results[0].V.dtype == np.float32
        assert results[0].objective == pytest.approx(results[1].objective, rel=1e-4)
        assert nuclear(results[0].matrix()) <= 12.0 * (1 + 1e-5)


class Phi(Curve):
    """Any φ that is given."""

    quartic = None

    def __init__(self, phi):
        self.phi, self.tried = phi, []

    def at(self, a):
        self.tried.append(a)
        return float(self.phi(a)), 0.0, None

    def to(self, a, x):
        raise NotImplementedError


def test_the_search_interpolates_and_gives_up():
    easy = Phi(lambda t: 1 - t + t**2 / 4)
    assert search(easy, -1.0, 1.0) == 1.0
    # The parabola through φ(0), φ′(0) and φ(1) is φ itself: its least is at 1/8.
    assert search(Phi(lambda t: 1 - t + 4 * t**2), -1.0, 1.0) == pytest.approx(1 / 8)
    # Too short to be trusted: halved instead.
    steep = Phi(lambda t: 1 - t + 100 * t**2)
    assert search(steep, -1.0, 1.0) == 2.0**-7
    assert steep.tried[1:5] == [1.0, 0.5, 0.25, 0.125]
    # A higher value of the past lets a rise pass.
    assert search(Phi(lambda t: 1 - t + 4 * t**2), -1.0, 5.0) == 1.0
    hopeless = Phi(lambda t: 1 + t)
    assert search(hopeless, -1.0, 1.0) is None
    assert len(hopeless.tried) == 1 + 20
    assert search(Phi(lambda t: np.inf if t > 0.01 else 1 - t), -1.0, 1.0) == 2.0**-7
    # Nothing to interpolate: φ is what its slope says, but above the ceiling.
    assert search(Phi(lambda t: 1 - t), -1.0, -5.0) is None


def test_where_the_search_fails_it_follows_the_projections(make_problem):
    problem = make_problem(12, 10, weights=1e7)  # needs steps of 1e-7: too short a part of one of length 1
    f, gradient = of_entries(problem)
    solver = SPG(1e6)
    start = solver.init(problem, problem.kind.pair(*problem.truth), 10)
    start = replace(start, own=replace(start.own, length=1e-4))
    new = solver.step(problem, start)
    X, G = start.U @ start.V.T, gradient(start.U @ start.V.T)
    slope = inner(G, ball(X - G, 1e6) - X)
    assert search(problem.f.line(*_line(problem, X, ball(X - G, 1e6))), slope, start.value) is None
    for t in 1e-4 * 0.5 ** np.arange(20):
        wanted = ball(X - t * G, 1e6)
        if f(wanted) < f(X) + 1e-4 * inner(G, wanted - X):
            break
    assert np.linalg.norm(new.U @ new.V.T - wanted) <= 1e-9 * np.linalg.norm(wanted)
    assert new.value < start.value


def test_a_straight_stretch_does_not_end_it():
    # Far from the data the slope is constant, and the spectral step the longest: a billion times too long at the end.
    for y in (9210422.0, 3.3e6, 71077.0):
        problem = bf.Problem(bf.losses.Huber(1.0), bf.operators.Full((1, 1)), [y])
        for bound in (None, 1e8):
            result = bf.solve(problem, 1, SPG(1e8, bound=bound), tol=0, max_iter=500)
            assert result.status.converged
            assert result.objective <= 1e-10


def _line(problem, X, target):
    seen = problem.operator.rows, problem.operator.cols
    dz = (target - X)[seen]
    return X[seen], dz


def test_small_units_are_not_taken_for_an_end(make_problem):
    problem = make_problem(14, 11)
    tiny = bf.Problem(problem.loss, problem.operator, 1e-12 * problem.y)
    one, small = (bf.solve(p, 11, SPG(r), tol=0, max_iter=300) for p, r in ((problem, 9.0), (tiny, 9e-12)))
    assert np.linalg.norm(1e12 * small.matrix() - one.matrix()) <= 1e-5 * np.linalg.norm(one.matrix())


def test_a_saddle_point_of_the_factors_is_not_the_end():
    # One block is fitted, the other has no column: the gradient of both factors is zero, and yet X is not optimal.
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries([0, 1], [0, 1], (2, 2)), np.array([2.0, 5.0]))
    start = bf.inits.Given(np.array([[2.0**0.5, 0], [0, 0]]), np.array([[2.0**0.5, 0], [0, 0]]))
    for solver in (SPG(4.0), SPG(4.0, bound=10.0)):
        result = bf.solve(problem, 2, solver, start, tol=0)
        np.testing.assert_allclose(result.matrix(), np.diag([0.5, 3.5]), atol=1e-6)


def test_it_stops_by_its_own_rule(make_problem):
    problem = make_problem(14, 11)
    loose, tight = (bf.solve(problem, 11, SPG(9.0, tol=tol), tol=0) for tol in (1e-3, 1e-9))
    assert loose.status is tight.status is bf.Status.SETTLED
    assert loose.n_iter < tight.n_iter
    nothing = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    for solver in (SPG(1.0), SPG(1.0, bound=1.0)):
        result = bf.solve(nothing, 4, solver)
        assert result.status is bf.Status.SETTLED
        assert not result.matrix().any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_laws(make_problem, sensing, dtype):
    check_solver(SPG(15.0), sensing(dtype=dtype, noise=0.1), rank=10)
    check_solver(SPG(15.0, bound=2.0, memory=1), make_problem(8, 11, dtype=dtype), rank=8)


@pytest.mark.parametrize("shape", [(1, 6), (7, 1), (1, 1)])
@pytest.mark.parametrize("bound", [None, 100.0])
def test_small_shapes(shape, bound):
    X = np.random.default_rng(4).standard_normal(shape)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X)
    radius = 0.5 * np.linalg.norm(X)
    np.testing.assert_allclose(bf.solve(problem, 1, SPG(radius, bound=bound)).matrix(), 0.5 * X, atol=1e-8)


def test_refusals(make_problem):
    entries = make_problem()
    with pytest.raises(bf.errors.InputError, match="minimises f alone"):
        bf.solve(entries.penalized(bf.penalties.Ridge(1.0)), 2, SPG(1.0))
    with pytest.raises(bf.errors.InputError, match="offsets"):
        bf.solve(bf.Problem(entries.loss, entries.operator, entries.y, offsets=True), 2, SPG(1.0))
    with pytest.raises(bf.errors.InputError, match="finds X = UVᴴ"):
        bf.solve(make_problem(symmetric=True), 2, SPG(1.0))
    with pytest.raises(bf.errors.InputError, match="has full rank"):
        bf.solve(entries, 19, SPG(1.0, bound=1.0))
    large = bf.Problem(entries.loss, bf.operators.Entries([0], [0], (20_000, 5_000)), [1.0])
    with pytest.raises(bf.errors.InputError, match="20000×5000 is more than"):
        bf.solve(large, 5, SPG(1.0, bound=1.0))
    assert bf.solve(large, 5, SPG(0.5), max_iter=2).matrix is not None


@pytest.mark.parametrize(
    "settings",
    [{"radius": 0.0}, {"radius": -1.0}, {"radius": np.inf}, {"radius": "a"}]
    + [{"radius": 1.0, **more} for more in ({"bound": 0.0}, {"memory": 0}, {"memory": 1.5}, {"tol": 0.0})],
)
def test_bad_settings(settings):
    with pytest.raises(bf.errors.InputError):
        SPG(**settings)
