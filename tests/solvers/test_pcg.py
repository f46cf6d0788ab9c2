"""Preconditioned solvers see X and not its factorisation, and hardly its condition number."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.errors import InputError
from bifactor.operators import bound
from bifactor.solvers import BFGD, PCG, Newton, Race, RankContinuation, RidgeHomotopy, ScaledGD, pcg, preconditioner
from bifactor.steps import line_search


def conditioned(shape, rank, condition, dtype=np.float64, symmetric=False, seed=1):
    """Factors of a matrix of this condition number."""
    rng = np.random.default_rng(seed)
    A, B = (np.linalg.qr(gaussian(rng, (k, rank), dtype))[0] for k in shape)
    sizes = np.geomspace(1, 1 / condition, rank) ** 0.5 * (shape[0] * shape[1]) ** 0.25
    return A * sizes, (A if symmetric else B) * sizes


def sensing(condition=1.0, rank=3, noiselet=True, shape=(32, 32), size=700, **options):
    """Noiseless measurements that see all of X alike; the factors are `problem.truth`."""
    operator = (bf.operators.Noiselet if noiselet else bf.operators.Gaussian)(shape, size, rng=0)
    truth = conditioned(shape, rank, condition, **options)
    problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(*truth))
    problem.truth = truth
    return problem


def iterations_to(problem, solver, rank, error=1e-6, limit=400, **options):
    """Iterations until ‖X − X*‖/‖X*‖ falls below; `limit` where it does not."""

    def arrived(t, state):
        return bf.metrics.relative_error(state.U, state.V, *problem.truth) < error

    return bf.solve(problem, rank, solver, rng=0, tol=0, max_iter=limit, callback=arrived, **options).n_iter


def iterates(problem, solver, U, V, count):
    seen = []
    init = bf.inits.Given(U, V)
    bf.solve(problem, U.shape[1], solver, init, max_iter=count, tol=0, callback=lambda t, s: seen.append(s))
    return seen


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("solver", [PCG(damping=0.0), ScaledGD(damping=0.0)], ids=["PCG", "ScaledGD"])
@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Huber(0.5)])
def test_another_factorisation_gives_the_same_matrices(make_problem, solver, dtype, loss):
    problem = make_problem(loss=loss, dtype=dtype)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        U, V = gaussian(rng, (30, 3), dtype), gaussian(rng, (20, 3), dtype)
        R = gaussian(rng, (3, 3), dtype) + 2 * np.eye(3)
        a, b = (iterates(problem, solver, *pair, 12) for pair in ((U, V), (U @ R, V @ herm(np.linalg.inv(R)))))
        for s, t in zip(a, b, strict=True):
            X = s.U @ herm(s.V)
            np.testing.assert_allclose(t.U @ herm(t.V), X, atol=1e-6 * np.linalg.norm(X))


def test_damping_is_what_breaks_that(make_problem):
    problem = make_problem()
    rng = np.random.default_rng(0)
    U, V, R = (rng.standard_normal(shape) for shape in ((30, 3), (20, 3), (3, 3)))
    a, b = (iterates(problem, PCG(damping=0.3), *pair, 5)[-1] for pair in ((U, V), (U @ R, V @ np.linalg.inv(R).T)))
    assert np.linalg.norm(a.U @ a.V.T - b.U @ b.V.T) > 1e-6 * np.linalg.norm(a.U @ a.V.T)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("symmetric", [False, True])
def test_measurements_that_are_carried_along_are_those_that_would_be_taken(make_problem, dtype, symmetric):
    problem = make_problem(20, 20, dtype=dtype, symmetric=symmetric)
    points = [s.point for s in iterates(problem, PCG(), *(0.1 * F for F in problem.truth), 60)]
    assert len(points) >= 15
    for point in points:
        z, eps = problem.f.measure(point.x), float(np.finfo(dtype).eps)
        np.testing.assert_allclose(point.z, z, atol=1e3 * eps * np.linalg.norm(z))
        same = problem.at(point.x)
        assert point.value == pytest.approx(same.value, rel=1e4 * eps)
        size = np.linalg.norm(problem.y) * np.linalg.norm(point.x.left)
        for got, wanted in zip(point.gradient.arrays, same.gradient.arrays, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e4 * eps * size)


@pytest.mark.parametrize("noiselet", [True, False])
def test_the_condition_number_does_not_matter(noiselet):
    easy, hard = sensing(1.0, noiselet=noiselet), sensing(1000.0, noiselet=noiselet)
    for solver in (PCG(), PCG(damping=0.0), ScaledGD()):
        few = iterations_to(easy, solver, 3)
        assert few < 100
        assert iterations_to(hard, solver, 3) <= 1.5 * few + 3
    assert iterations_to(hard, PCG(), 3) <= 40
    assert iterations_to(easy, BFGD(bf.steps.CurveSearch()), 3) < 100
    assert iterations_to(hard, BFGD(bf.steps.CurveSearch()), 3, limit=300) == 300


def test_scaled_gradient_descent_by_its_own_step():
    constant = ScaledGD(bf.steps.Constant(0.5))
    counts = [iterations_to(sensing(condition), constant, 3) for condition in (1.0, 30.0, 1000.0)]
    assert max(counts) <= 60
    assert max(counts) <= 1.3 * min(counts)


@pytest.mark.parametrize("rule", [bf.steps.StronglyConvex(), bf.steps.Smooth(), bf.steps.Semidefinite()])
def test_rules_of_the_plain_gradient_are_refused_by_scaled_gradient_descent(rule):
    with pytest.raises(InputError, match=f"{type(rule).__name__} is for the plain gradient.*CurveSearch"):
        ScaledGD(rule)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("condition", [1.0, 300.0])
def test_symmetric_matrices_are_found(dtype, condition):
    shape = (24, 24)
    truth = conditioned(shape, 2, condition, dtype, symmetric=True)
    operator = bf.operators.Gaussian(shape, 300, rng=0)
    problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(*truth), symmetric=True)
    for solver in (PCG(), ScaledGD()):
        result = bf.solve(problem, 2, solver, rng=0, tol=1e-9, max_iter=300)
        assert bf.metrics.relative_error(result.U, result.V, *truth) < 1e-6
        np.testing.assert_array_equal(result.U, result.V)


def test_quantum_states_are_found():
    rho = conditioned((16, 16), 2, 3.0, np.complex128, symmetric=True)[0]
    rho = rho / np.linalg.norm(rho)
    operator = bf.operators.Pauli(4, 160, rng=0)
    problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(rho, rho), symmetric=True)
    result = bf.solve(problem, 2, PCG(), rng=0, tol=1e-10)
    assert bf.metrics.relative_error(result.U, result.V, rho, rho) < 1e-7


@pytest.mark.parametrize("rank", [3, 5, 8])
@pytest.mark.parametrize("condition", [1.0, 1000.0])
def test_more_columns_than_needed_do_no_harm_in_sensing(rank, condition):
    problem = sensing(condition, rank=2, size=900)
    for solver in (PCG(), PCG(damping=0.1)):
        assert iterations_to(problem, solver, rank, error=1e-6, limit=200) < 200


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(make_problem, dtype):
    problem = make_problem(40, 30, dtype=dtype, noiseless=True)
    result = bf.solve(problem, 2, PCG(), rng=0)
    assert result.U.dtype == result.V.dtype == dtype
    assert result.status.converged
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-4


@pytest.mark.parametrize("symmetric", [False, True], ids=["UV", "UU"])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_renewal_changes_no_matrix(make_problem, monkeypatch, symmetric, dtype):
    problem, solver = make_problem(20, 20, dtype=dtype, symmetric=symmetric), PCG(damping=0.0)
    start = [0.3 * F for F in problem.truth]
    start[1] = start[0] if symmetric else start[1] * 5  # not balanced
    monkeypatch.setattr(pcg, "RENEW", 10**9)
    never = iterates(problem, solver, *start, 14)
    monkeypatch.setattr(pcg, "RENEW", 3)
    often = iterates(problem, solver, *start, 14)
    for s, t in zip(never, often, strict=True):
        X = s.U @ herm(s.V)
        np.testing.assert_allclose(t.U @ herm(t.V), X, atol=1e-7 * np.linalg.norm(X))
    ages = [s.own.age for s in often]
    assert max(ages) == 3
    assert 1 in ages[4:]


def test_renewal_balances_where_no_penalty_has_a_say(make_problem):
    problem = make_problem()
    U, V = problem.truth
    for penalty in (None, bf.penalties.Ridge(1e-3)):
        solver = PCG()
        part = problem.penalized(penalty)
        state = solver.init(part, part.kind.pair(0.02 * U, 5 * V), 2)
        for _ in range(26):
            state = solver.step(part, state)
        before = (state.U.T @ state.U, state.V.T @ state.V)
        imbalance = np.linalg.norm(before[0] - before[1]) / np.linalg.norm(before[0])
        assert (imbalance < 0.1) == (penalty is None)


def test_every_loss_descends_to_rest(make_problem, loss):
    for weights in (None, 3.0):
        problem = make_problem(loss=loss, weights=weights).penalized(bf.penalties.Ridge(0.5))
        result = bf.solve(problem, 2, PCG(), rng=0, tol=1e-8)
        objective = result.history.objective
        assert np.all(np.diff(objective) <= 1e-13 * np.abs(objective[1:]))
        assert result.status.converged
        assert result.history.gradient_norm[-1] <= 1e-3 * result.history.gradient_norm[0]


def test_scaling_f_changes_nothing(make_problem):
    # Up to powers of two rounding is the same too.
    a, b = (iterates(make_problem(weights=w), PCG(), np.ones((30, 2)), np.eye(20, 2), 20) for w in (1.0, 2.0**20))
    for s, t in zip(a, b, strict=True):
        np.testing.assert_allclose(s.U, t.U, rtol=1e-9, atol=1e-12)


def test_rows_and_columns_observed_unevenly(make_problem):
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((60, 2)), rng.standard_normal((50, 2))
    chance = np.linspace(0.15, 1, 60)[:, None] * np.linspace(0.3, 1, 50)
    rows, cols = np.nonzero(rng.random((60, 50)) < chance)
    problem = bf.Problem(
        bf.losses.Squared(), bf.operators.Entries(rows, cols, (60, 50)), np.sum(U[rows] * V[cols], axis=1)
    )
    problem.truth = (U, V)
    assert iterations_to(problem, PCG(), 2) <= 0.5 * iterations_to(problem, BFGD(bf.steps.CurveSearch()), 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PCG(damping=-0.1),
        lambda: PCG(damping=np.nan),
        lambda: PCG(damping=np.inf),
        lambda: PCG(damping="0"),
        lambda: PCG(damping=True),
        lambda: ScaledGD(None),
        lambda: ScaledGD(0.5),
        lambda: ScaledGD(bf.steps.CurveSearch),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(InputError):
        make()
    assert PCG(damping=0).damping == 0.0


@pytest.mark.parametrize(
    "solver",
    [PCG(), Newton(), ScaledGD(), bf.solvers.BFGD(bf.steps.CurveSearch()), RankContinuation(), RidgeHomotopy(), Race()],
    ids=lambda s: type(s).__name__,
)
def test_single_precision_stays_single_for_every_loss(make_problem, loss, solver):
    result = bf.solve(make_problem(loss=loss, dtype=np.float32), 2, solver, rng=0, max_iter=20)
    assert result.U.dtype == result.V.dtype == np.float32


def test_black_boxes_in_single_precision_are_asked_in_single_precision():
    T = np.ones((6, 5), np.float32)

    def gradient(X):
        assert X.dtype == np.float32
        return X - T

    box = bf.Function(lambda X: 0.5 * np.sum((X - T) ** 2), gradient, T.shape, dtype=np.float32)
    for solver in (PCG(), bf.solvers.BFGD(bf.steps.CurveSearch())):
        assert bf.solve(box, 1, solver, rng=0).U.dtype == np.float32


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_curve_by_differences_leaves_no_trace(noise, monkeypatch):
    """Where a forward is dear, one is saved by a difference with the z carried along; what comes out is as exact."""
    rng = np.random.default_rng(0)
    operator = bf.operators.Noiselet((64, 64), 1500, 0)
    U, V = rng.standard_normal((64, 3)), rng.standard_normal((64, 3))
    y = operator.forward(U, V)
    problem = bf.Problem(bf.losses.Squared(), operator, y + noise * rng.standard_normal(y.size))
    assert not problem.f.quick
    fits, states = [], []
    for trusted, about in ((bound.TRUSTED, line_search.ABOUT), ((1.0, 0.0), 0.0)):
        monkeypatch.setattr(bound, "TRUSTED", trusted)  # the second time every step is searched on the exact curve
        monkeypatch.setattr(line_search, "ABOUT", about)
        fits.append(bf.solve(problem, 3, PCG(), rng=0, tol=1e-10, callback=lambda t, s: states.append(s)))
        objective = fits[-1].history.objective
        assert np.all(np.diff(objective) <= 1e-13 * objective[0])  # measurements taken anew round differently
        last = states[-1]
        np.testing.assert_allclose(last.point.z, problem.f.measure(last.point.x), atol=1e-10)
    np.testing.assert_allclose(fits[0].matrix(), fits[1].matrix(), atol=1e-6)
    assert abs(fits[0].n_iter - fits[1].n_iter) <= 5  # where rounding ends it, at this tol, is a matter of luck


def test_one_triangle_of_a_symmetric_matrix_is_as_good_as_both():
    rng = np.random.default_rng(0)
    U = rng.standard_normal((100, 3))
    X = U @ U.T
    iterations = []
    for mask in (rng.random(X.shape) < 0.3, np.tril(rng.random(X.shape) < 0.6), np.triu(rng.random(X.shape) < 0.6)):
        operator, y = bf.operators.Entries.from_dense(X, mask)
        result = bf.solve(bf.Problem(bf.losses.Squared(), operator, y, symmetric=True), 3, PCG(), rng=0)
        assert bf.metrics.relative_error(result.U, result.V, U, U) < 1e-6
        iterations.append(result.n_iter)
    assert max(iterations) <= 1.5 * min(iterations)  # by counts of rows alone, a triangle took four times as many


@pytest.mark.parametrize("loss", [bf.losses.Squared(), bf.losses.Poisson()])
def test_measurements_are_taken_once_and_carried_along(make_problem, loss, monkeypatch):
    """Also where f is negative, as likelihoods can be."""
    problem = make_problem(loss=loss)
    taken = []
    measure = problem.f.measure
    monkeypatch.setattr(problem.f, "measure", lambda x: taken.append(1) or measure(x))
    state = PCG().init(problem, bf.inits.Random()(problem, 2, np.random.default_rng(0)), 2)
    for _ in range(10):
        state = PCG().step(problem, state)
    assert isinstance(loss, bf.losses.Squared) or state.value < 0
    assert len(taken) == 1


DEAR = {
    "Full": lambda shape, rng: bf.operators.Full(shape),
    "DCT": lambda shape, rng: bf.operators.DCT(shape, 400, rng),
    "Hadamard": lambda shape, rng: bf.operators.Hadamard(shape, 400, rng, signs=True),
    "Noiselet": lambda shape, rng: bf.operators.Noiselet(shape, 400, rng),
    "Gaussian": lambda shape, rng: bf.operators.Gaussian(shape, 400, rng),
}


@pytest.mark.parametrize("operator", DEAR)
def test_measurements_carried_along_do_not_drift(operator, loss, draw_targets):
    """Steps of 50 and more used to blow the rounding of z up, to 1e-2 in a few iterations."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        A = DEAR[operator]((32, 16), seed)
        U, V = 0.5 * rng.standard_normal((32, 2)), 0.5 * rng.standard_normal((16, 2))
        problem = bf.Problem(loss, A, draw_targets(loss, A.forward(U, V), rng))
        states = []
        result = bf.solve(problem, 2, PCG(), rng=seed, max_iter=300, callback=lambda t, s, to=states: to.append(s))
        assert result.status is not bf.Status.STALLED
        assert result.status is not bf.Status.DIVERGED
        for state in states[:: max(1, len(states) // 20)]:
            z, size = problem.f.measure(state.point.x), np.linalg.norm(state.point.z)
            assert np.linalg.norm(state.point.z - z) <= 1e-13 * size
        # The objective of every iteration is compared with F by the fixture `objective_law`.
        assert np.all(np.diff(result.history.objective) <= 1e-13 * np.abs(result.history.objective[0]))


def ratings(ridge, m=1500, n=600, rank=6):
    """Entries of a matrix with offsets and noise; some rows and columns are known in few of them."""
    rng = np.random.default_rng(0)
    busy, popular = rng.lognormal(0, 1, m), rng.lognormal(0, 1.5, n)
    keys = np.unique(rng.choice(m, 60_000, p=busy / busy.sum()) * n + rng.choice(n, 60_000, p=popular / popular.sum()))
    i, j = keys // n, keys % n
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank)) * 0.75 ** np.arange(rank)
    y = 0.4 * np.einsum("tk,tk->t", U[i], V[j]) + 0.5 * rng.standard_normal(n)[j] + 0.8 * rng.standard_normal(i.size)
    return bf.Problem("squared", bf.operators.Entries(i, j, (m, n)), y, penalty=bf.penalties.Ridge(ridge), offsets=True)


def test_a_ridge_takes_the_place_of_damping(monkeypatch):
    def iterations(ridge):
        return bf.solve(ratings(ridge), 6, rng=0, tol=0, objective_tol=1e-5, max_iter=300)

    new, weak = iterations(8.0), iterations(1e-3)
    monkeypatch.setattr(preconditioner, "SMOOTH", np.inf)
    old = iterations(8.0)
    assert new.n_iter < 0.9 * old.n_iter
    assert new.objective < (1 + 1e-5) * old.objective
    assert weak.n_iter == iterations(1e-3).n_iter  # too little of a ridge to count on


def test_rows_and_columns_of_which_nothing_is_known_stay_zero_under_a_ridge():
    rng = np.random.default_rng(0)
    i, j = np.nonzero(rng.random((30, 20)) < 0.6)
    operator = bf.operators.Entries(i, j, (35, 24))
    problem = bf.Problem("squared", operator, rng.standard_normal(i.size), penalty=bf.penalties.Ridge(2.0))
    result = bf.solve(problem, 2, PCG(), rng=0, tol=1e-10)
    assert result.status.converged
    assert max(np.abs(result.U[30:]).max(), np.abs(result.V[20:]).max()) < 1e-6


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("symmetric", [False, True])
def test_exact_blocks_lead_to_the_same_place(dtype, symmetric):
    rng = np.random.default_rng(0)
    U, V = conditioned((24, 24), 2, 3.0, dtype, symmetric)
    rows, cols = np.nonzero(rng.random((24, 24)) < 0.7)
    y = np.einsum("tk,tk->t", U[rows], V[cols].conj())
    problem = bf.Problem("squared", bf.operators.Entries(rows, cols, (24, 24)), y, symmetric=symmetric)
    result = bf.solve(problem, 2, PCG(exact=True), rng=0)
    assert result.status.converged
    assert bf.metrics.relative_error(result.U, result.V, U, V) < 1e-4


def test_exact_blocks_where_there_are_none_are_those_to_expect():
    problem = sensing()
    exact, expected = (bf.solve(problem, 3, PCG(exact=flag), rng=0, max_iter=10, tol=0) for flag in (True, False))
    np.testing.assert_array_equal(exact.U, expected.U)
    assert problem.memory(3, PCG(exact=True)).run == problem.memory(3, PCG()).run
    with pytest.raises(InputError, match="exact"):
        PCG(exact="yes")
