"""Solvers with stages: what they rescue, what they add and what they leave out, and that they can be interrupted."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm
from bifactor.errors import InputError
from bifactor.penalties import Ridge
from bifactor.solvers import BFGD, PCG, AltMin, Newton, Race, RankContinuation, RidgeHomotopy, ScaledGD, Solver
from bifactor.solvers.default import default_solver
from bifactor.solvers.growth import add_columns
from bifactor.solvers.race import Racing


def completion(size, rank, oversampling, condition, seed):
    """Entries of a matrix of this condition number, noiseless; its factors are `problem.truth`."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(1, 1 / condition, rank) ** 0.5 * size**0.5
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] * sizes for _ in range(2))
    seen = rng.choice(size * size, int(oversampling * rank * (2 * size - rank)), replace=False)
    rows, cols = np.divmod(seen, size)
    problem = bf.Problem(
        bf.losses.Squared(), bf.operators.Entries(rows, cols, (size, size)), np.sum(U[rows] * V[cols], axis=1)
    )
    problem.truth = (U, V)
    return problem


def error(result, problem):
    return bf.metrics.relative_error(result.U, result.V, *problem.truth)


def run(problem, rank, solver, **options):
    """All states after the first."""
    states = []
    bf.solve(problem, rank, solver, rng=0, callback=lambda t, s: states.append(s), **options)
    return states


def successes(solver, problems, rank, below, max_iter):
    results = [bf.solve(problem, rank, solver, rng=0, max_iter=max_iter) for problem in problems]
    return sum(error(*pair) < below for pair in zip(results, problems, strict=True))


@pytest.mark.parametrize(("oversampling", "condition"), [(2.5, 100.0), (3.0, 1000.0)])
def test_rank_continuation_rescues_ill_conditioned_completion(oversampling, condition):
    problems = [completion(200, 5, oversampling, condition, seed) for seed in range(4)]
    below = 0.01 / condition  # so that the faintest direction counts
    assert successes(PCG(), problems, 5, below, 150) <= 1
    assert successes(RankContinuation(), problems, 5, below, 150) == 4
    assert successes(None, problems, 5, below, 150) == 4


def test_ridge_homotopy_rescues_barely_sampled_completion():
    problems = [completion(100, 5, 1.6, 1.0, seed) for seed in range(4)]
    few = successes(RankContinuation(), problems, 5, 1e-3, 250)
    assert successes(RidgeHomotopy(), problems, 5, 1e-3, 300) > few
    assert successes(None, problems, 5, 1e-3, 500) == 4  # a race of the two


@pytest.mark.parametrize("solver", [RankContinuation(), Race(), RankContinuation(Newton())], ids=["rank", "race", "n"])
def test_no_more_columns_than_the_data_ask_for(make_problem, solver):
    problem = make_problem(40, 30, noiseless=True, observed=0.7)
    for rank in (3, 8, 20):
        result = bf.solve(problem, rank, solver, rng=0, tol=1e-10)
        assert error(result, problem) < 1e-9
        assert result.rank == rank
        # A stage that ends a little early may bring one column too many, of hardly any length; no others follow.
        assert not result.U[:, 3:].any()
        assert not result.V[:, 3:].any()
        assert np.linalg.norm(result.U[:, 2:]) * np.linalg.norm(result.V[:, 2:]) < 1e-8 * np.linalg.norm(problem.y)


def test_states_have_the_columns_in_use_and_answers_those_asked_for(make_problem):
    problem = make_problem(40, 30, rank=4)
    solver = RankContinuation(stage_iterations=5)
    x = problem.kind.pair(*(np.random.default_rng(0).standard_normal((k, 4)) for k in problem.shape))
    state = solver.init(problem, x, 4)
    counts = []
    for _ in range(40):
        state = solver.step(problem, state)
        k = state.own.columns
        counts.append(k)
        for pair in (state.point.x, state.point.gradient):
            assert (pair.left.shape, pair.right.shape) == ((40, k), (30, k))
            assert all(a.any(axis=0).all() for a in pair.arrays)
        assert state.phase.staged == (k < 4)
    assert sorted(set(counts)) == [1, 2, 3, 4]
    assert counts == sorted(counts)
    for limit in (1, 3, 5):
        used = []
        result = bf.solve(
            problem, 4, solver, rng=0, max_iter=limit, callback=lambda t, s, used=used: used.append(s.own.columns)
        )
        assert used[-1] < 4
        for factor, rows in ((result.U, 40), (result.V, 30)):
            assert factor.shape == (rows, 4)
            assert list(factor.any(axis=0)) == [k < used[-1] for k in range(4)]


@pytest.mark.parametrize(("rank", "stages", "first"), [(4, 10, 1), (12, 10, 2), (12, 1, 12), (7, 3, 3)])
def test_columns_come_in_as_few_stages_as_allowed(make_problem, rank, stages, first):
    problem = make_problem(40, 30, rank=3)
    states = run(problem, rank, RankContinuation(stages=stages, stage_iterations=1), max_iter=40)
    seen = {s.own.columns for s in states}
    assert min(seen) == first
    assert len(seen) <= stages
    assert max(seen) == rank


@pytest.mark.parametrize("name", ["Squared", "Huber", "Logistic", "Probit"])
def test_rank_continuation_always_descends(make_problem, name):
    for penalty in (None, bf.penalties.Ridge(0.3)):
        problem = make_problem(loss=getattr(bf.losses, name)()).penalized(penalty)
        result = bf.solve(problem, 5, RankContinuation(stage_iterations=6), rng=0, max_iter=60, tol=0)
        objective = result.history.objective
        assert np.all(np.diff(objective) <= 1e-12 * np.abs(objective[1:]))


def test_ridge_homotopy_ends_at_the_problem_itself(make_problem, loss):
    for penalty in (None, bf.penalties.Ridge((0.4, 0.9))):
        problem = make_problem(loss=loss).penalized(penalty)
        states = run(problem, 3, RidgeHomotopy(), max_iter=400, objective_tol=1e-6)
        lam = np.array([s.own.lam for s in states])
        assert np.all(np.diff(lam) <= 0)
        assert lam[-1] == 0
        assert [s.phase.staged for s in states] == list(lam > 0)
        for state in states:  # whatever ridge a stage has, what is reported is the objective of the problem
            x = state.point.x
            h = 0.0 if penalty is None else penalty.evaluate(x)[0]
            assert state.value == pytest.approx(problem.f.value(x) + h, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_new_columns_are_those_of_the_gradient(make_problem, symmetric, dtype):
    # With every entry observed, f curves alike in all directions and so their lengths are known too.
    problem = make_problem(12, 12, dtype=dtype, symmetric=symmetric, observed=1.0)
    x = 0.3 * problem.kind.random(np.random.default_rng(0), (12, 12), 2, dtype)
    G = problem.f.gradient(x) @ np.eye(12, dtype=dtype)
    new = add_columns(problem, x, 3)
    assert new.kind == problem.kind
    added = new.left @ herm(new.right) - x.left @ herm(x.right)
    if symmetric:
        values, vectors = np.linalg.eigh(-(G + herm(G)) / 2)
        wanted = (vectors[:, -3:] * np.maximum(values[-3:], 0)) @ herm(vectors[:, -3:])
    else:
        left, s, right = np.linalg.svd(-G)
        wanted = (left[:, :3] * s[:3]) @ right[:3]
    np.testing.assert_allclose(added, wanted / problem.scale, atol=1e-9 * np.linalg.norm(wanted) / problem.scale)
    # Under a ridge as heavy as the gradient nothing is added: the optimality condition of the nuclear norm.
    heavy = problem.penalized(bf.penalties.Ridge(1.01 * np.linalg.norm(G, 2)))
    assert add_columns(heavy, x, 3).width == 2


CHAINS = [
    PCG(),
    Newton(),
    RankContinuation(stage_iterations=6),
    RankContinuation(Newton(), stage_iterations=3),
    RidgeHomotopy(stage_iterations=4),
    Race((RankContinuation(stage_iterations=4), RidgeHomotopy()), patience=3),
]


@pytest.mark.parametrize(("symmetric", "dtype"), [(False, np.float32), (False, np.float64), (True, np.complex128)])
@pytest.mark.parametrize("solver", CHAINS, ids=["pcg", "newton", "rank", "rank-newton", "ridge", "race"])
def test_stopped_after_every_iteration_and_resumed_it_is_the_same_run(make_problem, tmp_path, solver, symmetric, dtype):
    problem, last = make_problem(12, 12, dtype=dtype, symmetric=symmetric), 22
    whole = bf.solve(problem, 3, solver, rng=0, max_iter=last, tol=0)
    for stop in range(1, last + 1):
        part = bf.solve(problem, 3, solver, rng=0, max_iter=stop, tol=0, checkpoint=tmp_path / "run")
    assert part.n_iter == whole.n_iter
    assert part.status is whole.status
    np.testing.assert_array_equal(part.U, whole.U)
    np.testing.assert_array_equal(part.V, whole.V)
    for name in ("objective", "gradient_norm", "relative_change"):
        np.testing.assert_array_equal(getattr(part.history, name), getattr(whole.history, name))


@pytest.mark.parametrize(
    "solver",
    [
        RankContinuation(RankContinuation(), stage_iterations=3),
        RankContinuation(RidgeHomotopy(), stage_iterations=3),
        RankContinuation(Race()),
        RidgeHomotopy(RankContinuation(), stage_iterations=4),
        RidgeHomotopy(RidgeHomotopy()),
        Race((Race(), RankContinuation())),
    ],
    ids=["rank-rank", "rank-ridge", "rank-race", "ridge-rank", "ridge-ridge", "race-race"],
)
def test_stages_within_stages_end(make_problem, solver):
    plain = make_problem(rank=3, noiseless=True, observed=0.6)
    result = bf.solve(plain, 3, solver, rng=0)
    assert result.status.converged
    assert error(result, plain) < 1e-5
    ridge = plain.penalized(Ridge(0.5))
    result = bf.solve(ridge, 3, solver, rng=0)
    assert result.status.converged
    assert result.objective == pytest.approx(bf.solve(ridge, 3, PCG(), rng=0).objective, rel=1e-6)


def test_the_chain_of_the_race_has_seen_every_lane(make_problem):
    states = run(make_problem(12, 12), 3, CHAINS[-1], max_iter=22, tol=0)
    racing = [s for s in states if isinstance(s.own, Racing)]
    assert all(s.phase.staged for s in racing)
    assert {(s.own.lane, s.own.best is not None) for s in racing} == {(0, False), (1, True)}


class Slow(Solver):
    """A solver that comes nowhere."""

    def step(self, problem, state):
        return ScaledGD(bf.steps.Constant(1e-9)).step(problem, state)

    def init(self, problem, x, rank):
        return ScaledGD(bf.steps.Constant(1e-9)).init(problem, x, rank)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_best_of_a_race_wins(make_problem, order):
    problem = make_problem(noiseless=False)
    lanes = [Slow(), Slow(), Slow()]
    lanes[order] = PCG()
    result = bf.solve(problem, 2, Race(lanes, patience=8), rng=0)
    best = bf.solve(problem, 2, PCG(), rng=0)
    assert result.objective == pytest.approx(best.objective, rel=1e-6)
    assert result.status.converged


def test_a_race_is_over_where_the_data_are_explained(make_problem):
    problem = make_problem(noiseless=True)
    a = bf.solve(problem, 2, Race((PCG(), Slow())), rng=0)
    b = bf.solve(problem, 2, PCG(), rng=0)
    assert a.n_iter == b.n_iter
    np.testing.assert_array_equal(a.U, b.U)


@pytest.mark.parametrize("penalty", [None, Ridge(0.5)])
def test_a_solver_whose_stages_are_just_over_has_not_come_to_rest(make_problem, penalty):
    problem = make_problem(rank=3).penalized(penalty)
    for first in (RidgeHomotopy(), RankContinuation()):
        states = run(problem, 3, Race((first, Slow())), max_iter=400, tol=0)
        best = next(s.own.best for s in states if s.own.lane == 1)
        finished = bf.solve(problem, 3, first, rng=0, tol=1e-9)
        assert best.state.own.count > 0
        assert best.value == pytest.approx(finished.objective, rel=1e-3)


def test_a_race_of_one_is_that_solver(make_problem):
    for solver in (PCG(), RankContinuation()):
        a, b = (bf.solve(make_problem(), 2, s, rng=0) for s in (Race((solver,)), solver))
        assert a.objective == pytest.approx(b.objective, rel=1e-9)


SOLVERS = [RankContinuation(), RidgeHomotopy(), Race(), RankContinuation(Newton()), RidgeHomotopy(ScaledGD())]
NAMES = ["rank", "ridge", "race", "rank-newton", "ridge-scaled"]


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2), (5, 3), (3, 5)])
def test_one_row_one_column_and_full_rank(solver, shape):
    X = np.random.default_rng(0).standard_normal(shape)
    for problem in (
        bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X),
        bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(X)),
    ):
        result = bf.solve(problem, min(shape), solver, rng=0)
        assert result.status.converged
        np.testing.assert_allclose(result.matrix(), X, atol=1e-4)


@pytest.mark.parametrize("solver", [*SOLVERS, None, PCG(), Newton()], ids=[*NAMES, "default", "pcg", "newton"])
def test_nothing_to_find(make_problem, solver):
    operator = make_problem(9, 6).operator
    problem = bf.Problem(bf.losses.Squared(), operator, np.zeros(operator.size))
    for rank in (1, 3, 6):
        result = bf.solve(problem, rank, solver, rng=0)
        assert result.status.converged
        assert result.objective == 0
        assert not result.matrix().any()


@pytest.mark.parametrize("make", [RankContinuation, RidgeHomotopy, lambda s: Race((RankContinuation(s),))])
def test_symmetric_matrices_are_found(make_problem, make):
    problem = make_problem(25, 25, rank=3, dtype=np.complex128, noiseless=True, symmetric=True, observed=0.7)
    result = bf.solve(problem, 3, make(PCG()), rng=0, tol=1e-9)
    np.testing.assert_array_equal(result.U, result.V)
    assert error(result, problem) < 1e-6
    # What is nearest to a negative matrix among these is nothing.
    negative = bf.Problem(bf.losses.Squared(), bf.operators.Full((6, 6)), -np.eye(6), symmetric=True)
    assert np.linalg.norm(bf.solve(negative, 2, make(PCG()), rng=0).matrix()) < 1e-6


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_rank_one(make_problem, solver):
    problem = make_problem(rank=1, noiseless=True)
    result = bf.solve(problem, 1, solver, rng=0, tol=1e-9)
    assert error(result, problem) < 1e-6


@pytest.mark.parametrize("solver", SOLVERS[:3], ids=NAMES[:3])
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_black_boxes_have_stages_too(solver, dtype):
    rng = np.random.default_rng(0)
    T = gaussian(rng, (9, 3), dtype) @ gaussian(rng, (3, 7), dtype)
    box = bf.Function(lambda X: 0.5 * np.sum(np.abs(X - T) ** 2), lambda X: X - T, T.shape, dtype=dtype)
    result = bf.solve(box, 3, solver, rng=0, tol=1e-9)
    np.testing.assert_allclose(result.matrix(), T, atol=1e-5)


def test_limits_hold_in_every_stage(make_problem):
    for solver in SOLVERS[:3]:
        for limit in (0, 1, 5, 13):
            result = bf.solve(make_problem(), 5, solver, rng=0, max_iter=limit, tol=0)
            assert result.n_iter == limit
            assert result.status is bf.Status.MAX_ITER
        assert bf.solve(make_problem(), 5, solver, rng=0, tol=0, time_limit=1e-6).status is bf.Status.TIME_LIMIT
        stopped = bf.solve(make_problem(), 5, solver, rng=0, callback=lambda t, s: t == 3)
        assert stopped.status is bf.Status.CALLBACK
        assert stopped.n_iter == 3


def test_a_wide_tolerance_does_not_end_a_solver_that_has_stages_to_come(make_problem):
    problem = make_problem(rank=4, m=60, n=50, noiseless=True)
    result = bf.solve(problem, 4, RankContinuation(), rng=0, tol=1e-2, gradient_tol=0.5, objective_tol=0.5)
    assert np.linalg.matrix_rank(result.matrix(), tol=1e-3 * np.linalg.norm(result.matrix())) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: RankContinuation("PCG"),
        lambda: RankContinuation(PCG),
        lambda: RankContinuation(stages=0),
        lambda: RankContinuation(stages=2.0),
        lambda: RankContinuation(stages=True),
        lambda: RankContinuation(stage_iterations=0),
        lambda: RankContinuation(stage_decrease=0),
        lambda: RankContinuation(stage_decrease=-1.0),
        lambda: RankContinuation(stage_decrease=np.nan),
        lambda: RidgeHomotopy(None),
        lambda: RidgeHomotopy(factor=1.0),
        lambda: RidgeHomotopy(factor=2.0),
        lambda: RidgeHomotopy(factor=0.0),
        lambda: RidgeHomotopy(factor="0.5"),
        lambda: RidgeHomotopy(stage_iterations=-1),
        lambda: RidgeHomotopy(stage_decrease=np.inf),
        lambda: Race(()),
        lambda: Race((PCG(), "PCG")),
        lambda: Race(patience=0),
        lambda: Race(patience=1.5),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize(
    "make",
    [RankContinuation, RidgeHomotopy, lambda s: Race((PCG(), RankContinuation(s)))],
    ids=["rank", "ridge", "race"],
)
def test_what_the_inner_solver_refuses_is_refused(make_problem, make):
    for inner, problem, reason in (
        (BFGD(), make_problem(loss=bf.losses.Poisson()), "Poisson has no global"),
        (AltMin(), make_problem(symmetric=True), "finds X = UVᴴ"),
    ):
        with pytest.raises(InputError, match=f"cannot run {type(inner).__name__} here.*{reason}"):
            bf.solve(problem, 2, make(inner), rng=0)


def test_ridge_homotopy_knows_ridges_only(make_problem):
    class Other(bf.penalties.Ridge.__base__):
        def evaluate(self, x):
            return 0.0, 0 * x

        def polynomial(self, x, d):
            return np.zeros(5)

        def hessian(self, x, d):
            return 0 * d

    problem = make_problem().penalized(Other())
    with pytest.raises(InputError, match=r"needs a nuclear norm.*PCG"):
        bf.solve(problem, 2, RidgeHomotopy(), rng=0)
    assert bf.solve(problem, 2, rng=0, max_iter=3).n_iter == 3


def test_what_is_recommended(make_problem):
    plenty, scarce = make_problem(60, 50, observed=0.9), make_problem(60, 50, observed=0.15)
    assert plenty.oversampling(2) > 2.5 > scarce.oversampling(2)
    assert default_solver(plenty, 2) == RankContinuation()
    assert default_solver(scarce, 2) == Race()
    assert default_solver(plenty, 40) == Race()  # with more columns, the same entries are fewer per unknown
    ridge = bf.penalties.Ridge(1.0)
    sensing = bf.Problem(bf.losses.Squared(), bf.operators.Gaussian((6, 5), 20, rng=0), np.ones(20))
    full = bf.Problem(bf.losses.Squared(), bf.operators.Full((3, 3)), np.eye(3))
    box = bf.Objective(bf.Function(lambda X: 0.5 * np.sum(X**2), lambda X: X, (3, 3)))
    for problem in (plenty.penalized(ridge), scarce.penalized(ridge), sensing, full, box):
        assert default_solver(problem, 2) == PCG()


def test_weights_of_zero_are_no_measurements(make_problem):
    problem = make_problem(60, 50, observed=0.9)
    weights = (np.random.default_rng(0).random(problem.y.size) < 0.15).astype(float)
    assert problem.reweighted(weights).oversampling(2) == pytest.approx(weights.sum() / (2 * (60 + 50 - 2)))
    assert default_solver(problem.reweighted(weights), 2) == Race()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_the_answer_of_the_default_is_balanced(make_problem, dtype):
    for observed, rank in ((0.9, 2), (0.15, 2), (0.5, 5)):
        result = bf.solve(make_problem(60, 50, dtype=dtype, observed=observed), rank, rng=0, max_iter=60)
        UU, VV = (F.conj().T @ F for F in (result.U, result.V))
        np.testing.assert_allclose(UU, VV, atol=30 * np.finfo(dtype).eps * np.linalg.norm(UU))
        assert result.U.dtype == dtype
    problem = make_problem(60, 50, dtype=dtype)
    result = bf.solve(problem, 2, rng=0, max_iter=60)
    value = problem.f.value(problem.kind.pair(result.U, result.V))
    assert value == pytest.approx(result.objective, rel=1e3 * float(np.finfo(dtype).eps))


def test_a_start_that_is_given_is_the_start(make_problem):
    problem = make_problem(observed=0.15)
    U, V = np.random.default_rng(0).standard_normal((30, 2)), np.random.default_rng(1).standard_normal((20, 2))
    result = bf.solve(problem, 2, init=bf.inits.Given(U, V), max_iter=10, tol=0)
    assert result.solver.startswith("PCG(")
    assert result.history.objective[0] == pytest.approx(problem.f.value(problem.kind.pair(U, V)), rel=1e-12)
    wanted = bf.solve(problem, 2, PCG(), bf.inits.Given(U, V), max_iter=10, tol=0)
    np.testing.assert_array_equal(result.history.objective, wanted.history.objective)
    np.testing.assert_allclose(result.matrix(), wanted.matrix(), atol=1e-10)
    first = bf.solve(problem, 2, init=bf.inits.Given(U, V), max_iter=0)
    np.testing.assert_allclose(first.matrix(), U @ V.T, atol=1e-12)


def counts(seed, rank=3):
    rng = np.random.default_rng(seed)
    Z = np.clip(rng.standard_normal((60, rank)) @ rng.standard_normal((rank, 40)), -5, 6)
    rows, cols = np.nonzero(rng.random(Z.shape) < 0.6)
    y = rng.poisson(np.exp(Z[rows, cols])).astype(float)
    return bf.Problem(bf.losses.Poisson(), bf.operators.Entries(rows, cols, Z.shape), y)


@pytest.mark.parametrize("seed", range(4))
def test_counts_do_not_diverge_by_default(seed):
    result = bf.solve(counts(seed), 3, rng=0, max_iter=400)
    assert result.status is not bf.Status.DIVERGED
    assert result.objective <= 0.95 * bf.solve(counts(seed), 3, Newton(), rng=0).objective  # they are negative


@pytest.mark.parametrize("name", ["Poisson", "ExpectedCounts"])
def test_rank_continuation_always_descends_on_counts(make_problem, name):
    for penalty in (None, Ridge(0.3)):
        problem = make_problem(loss=getattr(bf.losses, name)()).penalized(penalty)
        result = bf.solve(problem, 5, RankContinuation(stage_iterations=6), rng=0, max_iter=60, tol=0)
        objective = result.history.objective
        assert np.all(np.diff(objective) <= 1e-12 * np.abs(objective[1:]))


def test_a_race_runs_all_its_lanes_where_no_least_is_known():
    lanes = set()
    race = Race((PCG(), PCG(damping=0.1)), patience=5)
    bf.solve(counts(0), 3, race, rng=0, max_iter=60, tol=0, callback=lambda t, s: lanes.add(s.own.lane))
    assert lanes == {0, 1}


def test_directions_on_rows_with_few_entries_are_not_blown_up():
    """Under a ridge by frequency the leading directions live there, where the curvature to expect is far too small."""
    rng = np.random.default_rng(0)
    m, n = 400, 300
    popular = [rng.permutation(k).astype(float) + 1 for k in (m, n)]
    i, j = (rng.choice(k, 12_000, p=w**-1 / np.sum(w**-1)) for k, w in zip((m, n), popular, strict=True))
    i, j = np.unique(np.stack([i, j]), axis=1)
    z = np.einsum("tk,tk->t", rng.standard_normal((m, 3))[i], rng.standard_normal((n, 3))[j])
    a, b = np.bincount(i, minlength=m), np.bincount(j, minlength=n)
    problem = bf.Problem(
        "squared",
        bf.operators.Entries(i, j, (m, n)),
        z + rng.standard_normal(i.size),
        penalty=bf.penalties.Ridge(0.1, rows=np.maximum(a, 1), cols=np.maximum(b, 1)),
        offsets=True,
    )
    offsets = bf.solve(problem, 0, rng=0)
    x = problem.kind.pair(offsets.U, offsets.V)
    assert problem.objective(add_columns(problem, x, 6)) < problem.objective(x)
    least = bf.solve(problem, 6, PCG(), bf.inits.Random(), rng=0, max_iter=400).objective
    assert bf.solve(problem, 6, rng=0, max_iter=400, objective_tol=1e-5).objective < 1.01 * least
    assert least < 0.8 * offsets.objective


@pytest.mark.parametrize("seed", [0, 3])
def test_scarce_entries_of_a_steep_spectrum_are_enough(seed):
    """1.5 entries per degree of freedom, κ = 1000: columns that are cut back to the best length end elsewhere."""
    n, rank = 1000, 10
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((n, rank)))[0] * np.geomspace(1, 1e-3, rank) ** 0.5 for _ in range(2))
    i, j = np.divmod(rng.choice(n * n, int(1.5 * rank * (2 * n - rank)), replace=False), n)
    y = n * np.einsum("tk,tk->t", U[i], V[j])
    problem = bf.Problem("squared", bf.operators.Entries(i, j, (n, n)), y)
    result = bf.solve(problem, rank, RankContinuation(), rng=0, tol=1e-12, max_iter=600)
    assert bf.metrics.relative_error(result.U, result.V, n * U, V) < 1e-9
