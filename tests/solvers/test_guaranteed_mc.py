"""Descent with incoherent factors, beside its formulas on dense matrices."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.problems.state import State
from bifactor.solvers.guaranteed_mc import GuaranteedMC, Incoherence, shrink_rows
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
BOTH = pytest.mark.parametrize("alternating", [False, True])
SMALL = {"sigma_max": 0.5, "sigma_min": 0.5, "incoherence": 1.0}


def G0(z):
    return max(0.0, z - 1) ** 2


def regulariser(U, V, b1, b2, bT, R):
    """R[Σᵢ G₀(3‖Uᵢ‖²/2b₁²) + …], row by row."""
    rows = sum(G0(3 * np.linalg.norm(u) ** 2 / (2 * b1**2)) for u in U)
    cols = sum(G0(3 * np.linalg.norm(v) ** 2 / (2 * b2**2)) for v in V)
    return R * (rows + cols + sum(G0(3 * np.linalg.norm(F) ** 2 / (2 * bT**2)) for F in (U, V)))


def pull(F, b, bT, R):
    """Its gradient in one factor, row by row."""

    def dG0(z):
        return 2 * max(0.0, z - 1)

    whole = dG0(3 * np.linalg.norm(F) ** 2 / (2 * bT**2)) * 3 / bT**2
    return np.array([R * (dG0(3 * np.linalg.norm(f) ** 2 / (2 * b**2)) * 3 / b**2 + whole) * f for f in F])


def bounds(shape, r, sigma_max, sigma_min, incoherence, scale):
    bT = np.sqrt(5 * r * sigma_max)
    b1, b2 = (bT * np.sqrt(3 * incoherence * r / k) for k in shape)
    return b1, b2, bT, 8 * scale * (sigma_min / 6) ** 2


def naive(gradient, U, V, b, eta, alternating):
    """Descent on F with a constant step, after the rows are cut."""
    U = np.array([u * min(1, np.sqrt(2 / 3) * b[0] / np.linalg.norm(u)) for u in U])
    V = np.array([v * min(1, np.sqrt(2 / 3) * b[1] / np.linalg.norm(v)) for v in V])
    while True:
        new = U - eta * (gradient(U @ herm(V)) @ V + pull(U, b[0], b[2], b[3]))
        other = new if alternating else U
        V = V - eta * (herm(gradient(other @ herm(V))) @ other + pull(V, b[1], b[2], b[3]))
        U = new
        yield U @ herm(V)


@pytest.fixture
def coherent():
    """Entries of a matrix with one row and one column far larger than the others."""
    rng = np.random.default_rng(4)
    U, V = rng.standard_normal((14, 2)), rng.standard_normal((11, 2))
    U[3] *= 5
    V[7] *= 5
    rows, cols = np.nonzero(rng.random((14, 11)) < 0.8)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, (14, 11)), (U @ V.T)[rows, cols])
    problem.truth = (U, V)
    return problem


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
def test_the_regulariser_and_its_gradient(dtype, size):
    rng = np.random.default_rng(0)
    x, d = (Free().random(rng, (9, 7), 3, dtype) for _ in range(2))
    x = size * x
    term = Incoherence(1.5, 2.0, 5.0, 0.7)
    value, gradient = term.evaluate(x)
    assert value == pytest.approx(regulariser(x.left, x.right, 1.5, 2.0, 5.0, 0.7))
    assert (value > 0) == (size >= 1)
    h = 1e-6
    difference = (term.evaluate(x.plus(h, d))[0] - term.evaluate(x.plus(-h, d))[0]) / (2 * h)
    assert gradient.inner(d) == pytest.approx(difference, rel=1e-6, abs=1e-9)


def test_along_a_curve_it_is_no_polynomial():
    x = Free().pair(np.ones((3, 1)), np.ones((3, 1)))
    assert Incoherence(1.0, 1.0, 1.0, 1.0).polynomial(x, x) is None


@BOTH
def test_iterates_of_completion(coherent, dense, follow, alternating):
    b = bounds(coherent.shape, 2, **SMALL, scale=coherent.scale)
    U, V = coherent.truth
    theirs = naive(dense(coherent)[1], U, V, b, 1e-3, alternating)
    solver = GuaranteedMC(**SMALL, alternating=alternating, step_size=bf.steps.Constant(1e-3))
    states = []
    bf.solve(coherent, 2, solver, bf.inits.Given(U, V), max_iter=20, callback=lambda t, s: states.append(s))
    assert regulariser(states[-1].U, states[-1].V, *b) > 0  # or nothing would have been compared
    follow(coherent, 2, solver, theirs, bf.inits.Given(U, V), steps=20)


@BOTH
def test_iterates_of_sensing(sensing, dense, follow, alternating):
    problem = sensing(noise=0.1, dtype=np.complex128)
    rng = np.random.default_rng(3)
    U, V = gaussian(rng, (12, 2), complex), gaussian(rng, (10, 2), complex)
    b = bounds(problem.shape, 2, **SMALL, scale=problem.scale)
    solver = GuaranteedMC(**SMALL, alternating=alternating, step_size=bf.steps.Constant(0.01))
    theirs = naive(dense(problem)[1], U, V, b, 0.01, alternating)
    follow(problem, 2, solver, theirs, bf.inits.Given(U, V), steps=20)


def test_what_is_not_given_is_estimated(make_problem, dense):
    problem = make_problem(14, 11, observed=0.7)
    A, s, Bh = np.linalg.svd(-dense(problem)[1](np.zeros((14, 11))) / problem.scale)
    mu = max(14 / 3 * np.max(np.sum(A[:, :3] ** 2, axis=1)), 11 / 3 * np.max(np.sum(Bh[:3] ** 2, axis=0)))
    guesses = {"sigma_max": s[0], "sigma_min": s[2], "incoherence": mu}
    for given in ({}, {"sigma_max": 30.0}, {"sigma_min": 0.1, "incoherence": 2.0}, SMALL):
        own = GuaranteedMC(**given).init(problem, problem.kind.pair(np.ones((14, 3)), np.ones((11, 3))), 3).own
        wanted = bounds(problem.shape, 3, **{**guesses, **given}, scale=problem.scale)
        np.testing.assert_allclose([own.rows, own.cols, own.whole, own.weight], wanted, rtol=1e-8)


@BOTH
def test_every_step_is_armijos(coherent, alternating):
    b = bounds(coherent.shape, 2, **SMALL, scale=coherent.scale)
    states = []
    solver = GuaranteedMC(**SMALL, alternating=alternating)
    result = bf.solve(coherent, 2, solver, rng=0, max_iter=40, tol=0, callback=lambda t, s: states.append(s))
    # What is reported is f; what goes down is f and the regulariser.
    np.testing.assert_allclose(result.history.objective[1:], [coherent.f.value(s.point.x) for s in states], rtol=1e-10)
    for old, new in pairwise(states):
        before, after = old.own.at, new.own.at
        assert after.value == pytest.approx(coherent.f.value(new.point.x) + regulariser(new.U, new.V, *b))
        assert after.value < before.value
        eta, g = new.own.memory.eta, before.gradient.scaled(1.0, 0.0) if alternating else before.gradient
        np.testing.assert_allclose(new.U, old.U - eta * g.left, rtol=1e-12, atol=1e-12)
        if not alternating:
            np.testing.assert_allclose(new.V, old.V - eta * g.right, rtol=1e-12, atol=1e-12)
        assert after.value <= before.value - 0.5 * eta * g.inner(g)  # all the more after a step in V
        if alternating:  # each block goes on from its own last length, made a little longer
            assert eta <= 1.1 * (1 + 1e-12) * old.own.memory.eta
            assert new.own.right_memory.eta <= 1.1 * (1 + 1e-12) * old.own.right_memory.eta
    assert regulariser(states[-1].U, states[-1].V, *b) > 0


@BOTH
def test_recovery(make_problem, sensing, alternating):
    noiselet = bf.operators.Noiselet((64, 64), 5 * 64 * 3, rng=0)
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((64, 3)), rng.standard_normal((64, 3))
    transform = bf.Problem(bf.losses.Squared(), noiselet, noiselet.forward(*truth))
    transform.truth = truth
    problems = [make_problem(60, 40, noiseless=True), sensing(20, 15, size=250), transform]
    for problem in problems:
        for init in (None, bf.inits.Random()):
            rank = problem.truth[0].shape[1]
            result = bf.solve(problem, rank, GuaranteedMC(alternating=alternating), init, rng=2, tol=1e-9)
            assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-5


def test_both_variants_and_another_solver_end_in_one_place(make_problem):
    # Where no row is long F is f alone.
    problem = make_problem(30, 20, observed=0.8)
    fits = [GuaranteedMC(), GuaranteedMC(alternating=True), bf.solvers.PCG()]
    one, two, three = (bf.solve(problem, 2, solver, rng=0, tol=1e-10).matrix() for solver in fits)
    np.testing.assert_allclose(one, three, atol=1e-6)
    np.testing.assert_allclose(two, three, atol=1e-6)


def test_long_rows_of_a_start_are_cut(coherent):
    U, V = coherent.truth
    solver = GuaranteedMC(**SMALL)
    state = solver.init(coherent, coherent.kind.pair(U, V), 2)
    b1, b2 = state.own.rows, state.own.cols
    assert np.max(np.linalg.norm(state.U, axis=1)) == pytest.approx(np.sqrt(2 / 3) * b1)
    assert np.max(np.linalg.norm(state.V, axis=1)) == pytest.approx(np.sqrt(2 / 3) * b2)
    short = coherent.kind.pair(0.01 * U, 0.01 * V)
    np.testing.assert_allclose(solver.init(coherent, short, 2).U, short.left, rtol=1e-14)
    assert not shrink_rows(np.zeros((3, 2)), 1.0).any()


@BOTH
def test_long_rows_are_pulled_in(alternating):
    rng = np.random.default_rng(4)
    U, V = rng.standard_normal((14, 2)), rng.standard_normal((11, 2))
    seen = rng.random((14, 11)) < 0.8
    seen[3] = False
    operator = bf.operators.Entries(*np.nonzero(seen), (14, 11))
    problem = bf.Problem(bf.losses.Squared(), operator, (U @ V.T)[np.nonzero(seen)])
    solver = GuaranteedMC(incoherence=1.0, alternating=alternating)
    own = solver.init(problem, problem.kind.pair(U, V), 2).own
    U[3] *= 1.5 * own.rows / np.linalg.norm(U[3])  # f does not see this row, and `init` would cut it
    at = problem.plus(own.term).at(problem.kind.pair(U, V))
    state = State(problem.seen(at), replace(own, at=at))
    for _ in range(200):
        state = solver.step(problem, state)
    assert np.linalg.norm(state.U[3]) == pytest.approx(np.sqrt(2 / 3) * own.rows, rel=0.02)
    assert np.linalg.norm((state.U @ state.V.T - U @ V.T)[seen]) < 1e-3 * np.linalg.norm((U @ V.T)[seen])


@BOTH
def test_a_run_goes_on_where_it_stopped(coherent, tmp_path, alternating):
    solver = GuaranteedMC(alternating=alternating)
    whole = bf.solve(coherent, 2, solver, rng=0, max_iter=30, tol=0)
    for stop in (11, 30):
        parts = bf.solve(coherent, 2, solver, rng=0, max_iter=stop, tol=0, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(parts.U, whole.U)
    np.testing.assert_array_equal(parts.history.objective, whole.history.objective)


@BOTH
def test_it_ends_where_rounding_hides_all_decrease(coherent, alternating):
    result = bf.solve(coherent, 2, GuaranteedMC(alternating=alternating), rng=0, max_iter=5000, tol=0)
    assert result.status is bf.Status.PRECISION
    assert bf.metrics.relative_error(result.U, result.V, *coherent.truth) < 1e-5


@BOTH
def test_no_data_no_matrix(alternating):
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    solver = GuaranteedMC(alternating=alternating)
    result = bf.solve(problem, 2, solver, rng=0)
    assert result.status is bf.Status.GRADIENT
    assert not result.matrix().any()
    assert np.linalg.norm(bf.solve(problem, 2, solver, bf.inits.Random(), rng=0).matrix()) < 1e-3


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (5, 4)])
@BOTH
def test_the_smallest_matrices(shape, alternating):
    rng = np.random.default_rng(0)
    rank = min(shape)
    X = rng.standard_normal(shape)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X)
    result = bf.solve(problem, rank, GuaranteedMC(alternating=alternating), rng=0, tol=1e-9)
    np.testing.assert_allclose(result.matrix(), X, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@BOTH
def test_laws(make_problem, alternating, dtype):
    problem, solver = make_problem(15, 15, dtype=dtype), GuaranteedMC(alternating=alternating)
    check_solver(solver, problem, rank=2)
    assert bf.solve(problem, 2, solver, rng=0, max_iter=3).V.dtype == dtype


@BOTH
def test_on_every_loss(make_problem, loss, alternating):
    check_solver(GuaranteedMC(alternating=alternating), make_problem(14, 11, loss=loss), rank=2)


def test_bad_settings_are_refused():
    bad = [{"sigma_max": 0}, {"sigma_min": -1}, {"incoherence": 0.5}, {"sigma_max": 1, "sigma_min": 2}]
    for settings in [*bad, {"alternating": 1}, {"step_size": bf.steps.Backtracking}]:
        with pytest.raises(InputError):
            GuaranteedMC(**settings)


def test_a_gradient_that_is_not_finite_at_zero_is_refused():
    def gradient(X):
        return X / np.linalg.norm(X)  # NaN at 0

    problem = bf.Function(np.linalg.norm, gradient, (4, 3), smoothness=1.0)
    given = bf.inits.Given(np.ones((4, 1)), np.ones((3, 1)))
    with pytest.raises(InputError, match="not finite"):
        bf.solve(problem, 1, GuaranteedMC(), given)
    result = bf.solve(problem, 1, GuaranteedMC(1.0, 1.0, 1.0), given, max_iter=5)
    assert result.objective < result.history.objective[0]


def test_penalties_offsets_and_symmetric_problems_are_refused(make_problem):
    entries = make_problem()
    penalized = bf.Problem(entries.loss, entries.operator, entries.y, penalty=bf.penalties.Ridge(1.0))
    with pytest.raises(InputError, match="minimises f alone"):
        bf.solve(penalized, 2, GuaranteedMC())
    with pytest.raises(InputError, match="offsets"):
        bf.solve(bf.Problem(entries.loss, entries.operator, entries.y, offsets=True), 2, GuaranteedMC())
    with pytest.raises(InputError, match="finds X = UVᴴ"):
        bf.solve(make_problem(symmetric=True), 2, GuaranteedMC())
