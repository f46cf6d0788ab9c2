"""Procrustes Flow, beside its formulas on dense matrices, by laws of its theory and by a table of the BFGD paper."""

import math

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.errors import InputError
from bifactor.solvers import SVP
from bifactor.solvers.procrustes_flow import Flow, Near, ProcrustesFlow
from bifactor.testing import check_solver

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def svd(X, rank, symmetric=False):
    if symmetric:
        w, Q = np.linalg.eigh((X + herm(X)) / 2)
        w, Q = np.maximum(w[::-1][:rank], 0), Q[:, ::-1][:, :rank]
        return Q, w, Q
    A, s, Bh = np.linalg.svd(X)
    return A[:, :rank], s[:rank], herm(Bh[:rank])


def project(f, gradient, shape, rank, unit, enough, symmetric=False):
    """X ← P_r(X − ∇f(X)/unit) from X = 0, until enough(t, X, σ_r), or f would rise."""
    X, t = np.zeros(shape), 0
    while True:
        A, s, B = svd(X - gradient(X) / unit, rank, symmetric)
        new = (A * s) @ herm(B)
        rises = t > 0 and f(new) >= f(X)
        X, t = X if rises else new, t + 1
        yield X
        if rises or enough(t, X, s[-1]):
            return


def flow(gradient, U, V, unit, mu):
    """Gradient descent on f + (unit/16)‖UᴴU − VᴴV‖²_F."""
    steps = [mu / (unit * np.linalg.norm(F, 2) ** 2) for F in (U, V)]
    while True:
        G, D = gradient(U @ herm(V)), herm(U) @ U - herm(V) @ V
        U, V = U - steps[0] * (G @ V + unit / 4 * U @ D), V - steps[1] * (herm(G) @ U - unit / 4 * V @ D)
        yield U @ herm(V)


def flow_symmetric(gradient, U, unit, mu):
    """Gradient descent on f(UUᴴ)/2."""
    eta = mu / (unit * np.linalg.norm(U, 2) ** 2)
    while True:
        G = gradient(U @ herm(U))
        U = U - eta * (G + herm(G)) / 2 @ U
        yield U @ herm(U)


def both(f, gradient, shape, rank, unit, enough, mu, symmetric=False):
    for X in project(f, gradient, shape, rank, unit, enough, symmetric):
        yield X
    A, s, B = svd(X, rank, symmetric)
    U, V = A * s**0.5, B * s**0.5
    yield from flow_symmetric(gradient, U, unit, mu) if symmetric else flow(gradient, U, V, unit, mu)


def by_residual(f, unit, c):
    return lambda t, X, s: math.sqrt(2 * f(X) / unit) <= c * s


def projecting(state):
    """Whether the first phase goes on: that stages are still to come, and the solver's own state, must agree."""
    assert isinstance(state.own, Near if state.phase.staged else Flow)
    return state.phase.staged


@pytest.mark.parametrize(("mu", "unit", "size"), [(None, None, 900), (0.1, 2.0, 250), (0.1, None, 250)])
def test_iterates_of_sensing(sensing, dense, follow, mu, unit, size):
    problem = sensing(size=size)
    (f, gradient), c = dense(problem), problem.scale if unit is None else unit
    naive = both(f, gradient, problem.shape, 2, c, by_residual(f, c, 0.1), 2 / 187 if mu is None else mu)
    follow(problem, 2, ProcrustesFlow(mu, unit=unit), naive, steps=25)
    phases = []
    bf.solve(problem, 2, ProcrustesFlow(mu, unit=unit), max_iter=25, callback=lambda t, s: phases.append(s))
    assert 0 < sum(projecting(state) for state in phases) < 20  # both phases were there


def test_iterates_of_completion_with_a_known_condition(make_problem, dense, follow):
    problem = make_problem(14, 11, observed=0.9)
    f, gradient = dense(problem)
    needed = math.ceil(3 * math.log(2**0.5 * 1.7) + 5)
    naive = both(f, gradient, problem.shape, 2, problem.scale, lambda t, X, s: t == needed, 2 / 187)
    follow(problem, 2, ProcrustesFlow(condition=1.7), naive, steps=needed + 6)


@pytest.mark.parametrize("condition", [None, 1.2])
def test_iterates_of_semidefinite_matrices(sensing, dense, follow, condition):
    problem = sensing(12, symmetric=True, size=300)
    f, gradient = dense(problem)
    enough = by_residual(f, problem.scale, 0.15)
    if condition is not None:
        needed = math.ceil(math.log(2**0.5 * condition) + 2)
        enough = lambda t, X, s: t == needed  # noqa: E731
    naive = both(f, gradient, problem.shape, 2, problem.scale, enough, 36 / 425, symmetric=True)
    follow(problem, 2, ProcrustesFlow(condition=condition), naive, steps=20)


def test_the_balance_term_leads_the_flow_and_is_not_in_the_objective(make_problem):
    problem = make_problem(14, 11)
    U, V = gaussian(np.random.default_rng(5), (14, 2), float), 3 * gaussian(np.random.default_rng(6), (11, 2), float)
    state = ProcrustesFlow().init(problem, problem.kind.pair(U, V), 2)
    imbalance = np.sum((U.T @ U - V.T @ V) ** 2)
    assert state.value == pytest.approx(problem.f.value(problem.kind.pair(U, V)), rel=1e-14)
    assert state.own.at.value - state.value == pytest.approx(problem.scale / 16 * imbalance, rel=1e-12)
    # Of balanced factors it is zero.
    x = problem.kind.pair(U, V).balanced()
    state = ProcrustesFlow().init(problem, x, 2)
    assert state.own.at.value == pytest.approx(state.value, rel=1e-14)


def test_other_starts_begin_with_the_flow(make_problem, dense, follow):
    problem = make_problem(14, 11, dtype=np.complex128)
    rng = np.random.default_rng(5)
    U, V = gaussian(rng, (14, 2), complex), 3 * gaussian(rng, (11, 2), complex)  # not balanced
    naive = flow(dense(problem)[1], U, V, problem.scale, 2 / 187)
    follow(problem, 2, ProcrustesFlow(), naive, bf.inits.Given(U, V), steps=20)


def test_the_first_phase_ends_within_the_radius_of_convergence(sensing):
    for seed in range(8):
        problem = sensing(20, 16, size=900, seed=3 * seed)
        seen = []
        bf.solve(problem, 2, ProcrustesFlow(), max_iter=40, callback=lambda t, s, seen=seen: seen.append(s))
        first = [projecting(state) for state in seen].index(False)
        assert 0 < first < 20  # neither at once nor by the limit
        s = np.linalg.svd(problem.truth[0] @ problem.truth[1].T, compute_uv=False)[1]
        assert bf.metrics.distance(seen[first].U, seen[first].V, *problem.truth) <= s**0.5 / 4
        residuals = [math.sqrt(2 * state.value / problem.scale) for state in seen[: first + 1]]
        least = [np.linalg.norm(state.U[:, -1]) ** 2 for state in seen[: first + 1]]
        assert [e <= s / 10 for e, s in zip(residuals, least, strict=True)] == [False] * first + [True]


def test_a_projection_that_raises_f_ends_the_first_phase():
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((64, 3)), rng.standard_normal((64, 3))
    operator = bf.operators.Noiselet((64, 64), 5 * 64 * 3, rng=1)  # too few for projections with this step
    problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(U, V))
    diverged = bf.solve(problem, 3, SVP(1 / problem.scale), max_iter=30, tol=0).history.objective
    assert diverged[-1] > 100 * diverged[0]
    values = []  # of what each phase goes down on: f, and f with the balance term, which is zero where the flow begins

    def look(_, state):
        values.append(state.value if projecting(state) else state.own.at.value)

    result = bf.solve(problem, 3, ProcrustesFlow(), max_iter=1000, tol=0, callback=look)
    assert np.all(np.diff(values) <= 0)
    assert bf.metrics.relative_error(result.U, result.V, U, V) < 0.1


def test_no_least_value_no_residual(make_problem):
    problem = make_problem(20, 15, loss=bf.losses.Poisson())
    assert problem.least is None
    projected = []
    bf.solve(problem, 1, ProcrustesFlow(unit=1e4), max_iter=60, callback=lambda t, s: projected.append(projecting(s)))
    assert sum(projected) == math.ceil(3 * math.log(1e6) + 5) - 1  # the last one is where the flow begins


def test_recovery(sensing, make_problem):
    problems = [sensing(20, 15, size=250), make_problem(40, 40, observed=0.7, noiseless=True)]
    problems += [sensing(20, symmetric=True, size=250), make_problem(40, symmetric=True, observed=0.7, noiseless=True)]
    for problem in problems:
        result = bf.solve(problem, 2, ProcrustesFlow(), max_iter=6000, tol=1e-8)
        assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-5


def test_tomography():
    U = np.linalg.qr(gaussian(np.random.default_rng(0), (16, 2), complex))[0]
    for operator in (bf.operators.Pauli(4, 200, rng=1), bf.operators.Pauli(4, 200, rng=1, normalize=True)):
        problem = bf.Problem(bf.losses.Squared(), operator, operator.forward(U, U), symmetric=True)
        result = bf.solve(problem, 2, ProcrustesFlow(), tol=1e-9)
        assert bf.metrics.relative_error(result.U, result.V, U, U) < 1e-5


def test_measurements_of_the_hermitian_part_have_twice_the_curvature_there(make_problem):
    operator = bf.operators.Pauli(4, 200, rng=0, normalize=True)
    free, symmetric = (bf.Problem(bf.losses.Squared(), operator, np.ones(200), symmetric=s) for s in (False, True))
    assert symmetric.curvature_of_kind == pytest.approx(1.0)  # `normalize` is about Hermitian X
    assert free.curvature_of_kind == free.scale == symmetric.scale
    entries = make_problem(12, symmetric=True)
    assert entries.curvature_of_kind == entries.scale


def test_a_table_of_the_paper_in_miniature():
    # Table 1, first column, with as many measurements per unknown: 8.7e-3 there, 8e-4 to 1.4e-2 over three seeds here.
    # A step by ‖·‖_F would end at about 0.7.
    n, r = 128, 6
    rng = np.random.default_rng(1)
    U, V = rng.standard_normal((n, r)), rng.standard_normal((n, r))
    operator = bf.operators.Noiselet((n, n), 10 * n * r, rng=11)
    y = operator.forward(U, V) / np.linalg.norm(U @ V.T)
    problem = bf.Problem(bf.losses.Squared(), operator, y)
    result = bf.solve(problem, r, ProcrustesFlow(unit=1), bf.inits.Random(), rng=21, max_iter=4000, tol=0)
    error = np.linalg.norm(result.matrix() - U @ V.T / np.linalg.norm(U @ V.T))
    assert 4e-4 < error < 3e-2


def test_a_run_goes_on_where_it_stopped(sensing, tmp_path):
    problem, solver = sensing(size=900), ProcrustesFlow()
    whole = bf.solve(problem, 2, solver, rng=0, max_iter=30, tol=0)
    for stop in (2, 15, 30):  # in the first phase, in the second, to the end
        parts = bf.solve(problem, 2, solver, rng=0, max_iter=stop, tol=0, checkpoint=tmp_path / "run.npz")
    np.testing.assert_array_equal(parts.U, whole.U)


def test_no_data_no_matrix():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    for condition in (None, 2.0):
        result = bf.solve(problem, 2, ProcrustesFlow(condition=condition))
        assert result.status is bf.Status.GRADIENT
        assert not result.matrix().any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", [False, True])
def test_laws(make_problem, symmetric, dtype):
    data = make_problem(15, dtype=dtype, symmetric=True)
    check_solver(ProcrustesFlow(), bf.Problem(data.loss, data.operator, data.y, symmetric=symmetric), rank=2)


def test_the_precision_is_kept(make_problem):
    for dtype in DTYPES:
        for init in (None, bf.inits.Random()):
            result = bf.solve(make_problem(15, 12, dtype=dtype), 2, ProcrustesFlow(), init, rng=0, max_iter=5)
            assert result.U.dtype == result.V.dtype == dtype


def test_bad_settings_are_refused():
    for settings in ({"mu": 0}, {"condition": 0.5}, {"condition": -1}, {"unit": 0}, {"unit": "1"}):
        with pytest.raises(InputError):
            ProcrustesFlow(**settings)


def test_penalties_and_offsets_are_refused(make_problem):
    entries = make_problem()
    penalized = bf.Problem(entries.loss, entries.operator, entries.y, penalty=bf.penalties.Ridge(1.0))
    with pytest.raises(InputError, match="minimises f alone"):
        bf.solve(penalized, 2, ProcrustesFlow())
    with pytest.raises(InputError, match="offsets"):
        bf.solve(bf.Problem(entries.loss, entries.operator, entries.y, offsets=True), 2, ProcrustesFlow())
