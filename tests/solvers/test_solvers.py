"""Laws of every exported solver, and exact recovery."""

import inspect
from dataclasses import replace

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import CheckError, InputError
from bifactor.problems.state import Nothing, State
from bifactor.solvers import Solver
from bifactor.testing import check_solver

SOLVERS = {
    "BFGD": [
        bf.solvers.BFGD(),
        bf.solvers.BFGD(bf.steps.Smooth(), balance=None),
        bf.solvers.BFGD(bf.steps.Backtracking()),
        bf.solvers.BFGD(bf.steps.CurveSearch()),
        bf.solvers.BFGD(bf.steps.StronglyConvex(every_step=True)),
        bf.solvers.BFGD(balance=bf.penalties.balance.Elementwise(np.square, lambda d: 2 * d, 2.0, 2.0)),
    ],
    "FGD": [
        bf.solvers.FGD(),
        bf.solvers.FGD(bf.steps.Semidefinite(every_step=True)),
        bf.solvers.FGD(bf.steps.Backtracking()),
    ],
    "Newton": [bf.solvers.Newton(), bf.solvers.Newton(full=False)],
    "PCG": [bf.solvers.PCG(), bf.solvers.PCG(damping=0.0)],
    "ScaledGD": [
        bf.solvers.ScaledGD(),
        bf.solvers.ScaledGD(bf.steps.Backtracking()),
        bf.solvers.ScaledGD(bf.steps.Constant(0.5)),
    ],
    "SVP": [bf.solvers.SVP(0.3), bf.solvers.SVP(normalized=True)],
    "ProcrustesFlow": [bf.solvers.ProcrustesFlow(), bf.solvers.ProcrustesFlow(unit=1.0, condition=2.0)],
    "SparseApproxSDP": [bf.solvers.SparseApproxSDP(40.0), bf.solvers.SparseApproxSDP(40.0, line_search=True)],
    "GuaranteedMC": [
        bf.solvers.GuaranteedMC(),
        bf.solvers.GuaranteedMC(alternating=True),
        bf.solvers.GuaranteedMC(sigma_max=20.0, sigma_min=5.0, incoherence=2.0),
    ],
    "SPG": [bf.solvers.SPG(40.0), bf.solvers.SPG(40.0, memory=1), bf.solvers.SPG(40.0, bound=3.0)],
    "NuclearNorm": [bf.solvers.NuclearNorm(), bf.solvers.NuclearNorm(0.7)],
    "AltMin": [bf.solvers.AltMin(), bf.solvers.AltMin(incoherence=5.0)],
    "SoftImpute": [bf.solvers.SoftImpute()],
    "MiFGD": [bf.solvers.MiFGD(), bf.solvers.MiFGD(0.25)],
    "RankContinuation": [
        bf.solvers.RankContinuation(),
        bf.solvers.RankContinuation(bf.solvers.BFGD(bf.steps.Backtracking()), stages=1),
    ],
    "RidgeHomotopy": [bf.solvers.RidgeHomotopy(), bf.solvers.RidgeHomotopy(bf.solvers.BFGD(bf.steps.Backtracking()))],
    "Race": [bf.solvers.Race(), bf.solvers.Race([bf.solvers.PCG()])],
    "Variational": [bf.solvers.Variational(), bf.solvers.Variational("both"), bf.solvers.Variational("student")],
}
ONE_FACTOR = ("FGD",)
"""For X = UUᴴ only."""
TWO_FACTORS = ("AltMin", "GuaranteedMC", "SPG", "SoftImpute", "Variational")
"""For X = UVᴴ only."""
REAL = ("Variational",)
ALL = [pytest.param(s, id=f"{name}-{i}") for name, group in SOLVERS.items() for i, s in enumerate(group)]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def test_every_exported_solver_is_tested():
    concrete = {name for name in bf.solvers.__all__ if not inspect.isabstract(getattr(bf.solvers, name))}
    assert concrete - {"Refitted"} == set(SOLVERS)  # that one asks for losses with parameters


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("solver", ALL)
def test_laws(make_problem, solver, symmetric, dtype):
    penalty = bf.penalties.Ridge(1.0) if isinstance(solver, bf.solvers.NuclearNorm) else None
    rank = 15 if isinstance(solver, bf.solvers.SPG) and solver.bound is not None else 2
    problem = make_problem(15, 15, dtype=dtype, symmetric=symmetric, penalty=penalty)
    complex_data = np.dtype(dtype).kind == "c"
    if type(solver).__name__ in (TWO_FACTORS if symmetric else ONE_FACTOR) + (REAL if complex_data else ()):
        with pytest.raises(InputError, match=type(solver).__name__):
            bf.solve(problem, rank, solver)
    else:
        check_solver(solver, problem, rank)


@pytest.mark.parametrize(
    "solver", [s for name in ("PCG", "Newton", "ScaledGD", "BFGD", "Variational") for s in SOLVERS[name][:2]]
)
def test_laws_with_fixed_columns(make_problem, solver):
    plain = make_problem(15, 12, seed=3)
    covariates = np.random.default_rng(0).standard_normal((15, 2))
    for options in ({"offsets": True}, {"fixed": (covariates, None)}, {"fixed": (covariates, np.ones((12, 1)))}):
        problem = bf.Problem(plain.loss, plain.operator, plain.y, **options)
        check_solver(solver, problem, rank=2)


DESCENDING = [
    bf.solvers.PCG(),
    bf.solvers.Newton(),
    bf.solvers.ScaledGD(),
    bf.solvers.BFGD(bf.steps.Backtracking(), balance=None),
    bf.solvers.BFGD(bf.steps.CurveSearch(), balance=None),
    bf.solvers.AltMin(),
    bf.solvers.SoftImpute(),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["sensing", "completion"])
@pytest.mark.parametrize("solver", DESCENDING, ids=lambda s: type(s).__name__)
def test_the_objective_never_rises_where_a_solver_says_so(make_problem, sensing, solver, kind, dtype):
    problem = sensing(noise=0.1, dtype=dtype) if kind == "sensing" else make_problem(dtype=dtype)
    for ridge in (None, bf.penalties.Ridge(0.3)):
        history = bf.solve(problem.penalized(ridge), 3, solver, rng=0, max_iter=60, tol=0).history
        assert np.all(np.diff(history.objective) <= 10 * np.finfo(dtype).eps * history.objective[0])


def recovering(problem):
    """Every exported solver with settings by which it finds the truth of a well-conditioned problem without noise."""
    radius = bf.metrics.nuclear_norm(*problem.truth)
    return {
        "AltMin": bf.solvers.AltMin(),
        "BFGD": bf.solvers.BFGD(bf.steps.Backtracking()),
        "GuaranteedMC": bf.solvers.GuaranteedMC(),
        "MiFGD": bf.solvers.MiFGD(),
        "Newton": bf.solvers.Newton(),
        "NuclearNorm": bf.solvers.NuclearNorm(),
        "PCG": bf.solvers.PCG(),
        "ProcrustesFlow": bf.solvers.ProcrustesFlow(),
        "Race": bf.solvers.Race(),
        "RankContinuation": bf.solvers.RankContinuation(),
        "RidgeHomotopy": bf.solvers.RidgeHomotopy(),
        "SPG": bf.solvers.SPG(radius),
        "SVP": bf.solvers.SVP(),
        "ScaledGD": bf.solvers.ScaledGD(),
        "SoftImpute": bf.solvers.SoftImpute(),
    }


SUBLINEAR = {"SparseApproxSDP"}  # within O(1/k) of the least f, and no faster
SEMIDEFINITE = {"FGD"}  # recovery of X = UUᴴ has a test of its own
NOISY = {"Variational"}  # which never takes data for exact


@pytest.mark.parametrize("kind", ["sensing", "completion"])
@pytest.mark.parametrize("name", sorted(set(SOLVERS) - SUBLINEAR - SEMIDEFINITE - NOISY))
def test_recovery(make_problem, sensing, kind, name):
    problem = sensing(20, 15, size=280) if kind == "sensing" else make_problem(60, 50, noiseless=True, observed=0.6)
    solver = recovering(problem)[name]
    truth = problem.truth
    if name == "NuclearNorm":  # exact in the limit of no ridge
        G = problem.gradient_at_zero() @ np.eye(problem.shape[1])
        problem = problem.penalized(bf.penalties.Ridge(1e-6 * np.linalg.norm(G, 2)))
    result = bf.solve(problem, 2, solver, rng=1, tol=1e-9, max_iter=10_000)
    assert bf.metrics.relative_error(result.U, result.V, *truth) < 1e-5


@pytest.mark.parametrize("solver", SOLVERS["BFGD"][:4])
def test_bfgd_on_every_loss(make_problem, loss, solver):
    if loss.smoothness is None and not isinstance(solver.step_size, bf.steps.Backtracking):
        return
    check_solver(solver, make_problem(12, 17, loss=loss), rank=2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_bfgd_recovers_exactly(make_problem, dtype):
    problem = make_problem(40, 30, rank=2, dtype=dtype, noiseless=True)
    result = bf.solve(problem, 2, rng=0, tol=1e-10)
    limit = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-7
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < limit


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("step", [bf.steps.Semidefinite(), bf.steps.Backtracking()])
def test_fgd_recovers_exactly(make_problem, dtype, step):
    problem = make_problem(30, 30, rank=2, dtype=dtype, symmetric=True, noiseless=True, observed=0.7)
    result = bf.solve(problem, 2, bf.solvers.FGD(step), rng=0, tol=1e-9, max_iter=20000)
    limit = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-5
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < limit
    np.testing.assert_array_equal(result.U, result.V)


def test_one_triangle_is_enough_for_a_semidefinite_matrix():
    U = np.random.default_rng(0).standard_normal((12, 1))
    rows, cols = np.triu_indices(12)
    X = U @ U.T
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, X.shape), X[rows, cols], symmetric=True)
    result = bf.solve(problem, 1, bf.solvers.FGD(bf.steps.Backtracking()), rng=0, tol=1e-10)
    np.testing.assert_allclose(result.matrix(), X, atol=1e-6)


def test_what_is_symmetric_is_square_and_fgd_wants_it(make_problem):
    problem = make_problem(6, 5)
    with pytest.raises(InputError, match="square"):
        bf.Problem(problem.loss, problem.operator, problem.y, symmetric=True)
    with pytest.raises(InputError, match="FGD is for X = UUᴴ"):
        bf.solve(problem, 2, bf.solvers.FGD())


def test_scaling_f_changes_nothing(make_problem):
    for solver in SOLVERS["BFGD"][:3]:
        a = bf.solve(make_problem(weights=1.0), 2, solver, rng=0, max_iter=20, tol=0)
        b = bf.solve(make_problem(weights=1e4), 2, solver, rng=0, max_iter=20, tol=0)
        np.testing.assert_allclose(a.matrix(), b.matrix(), rtol=1e-6, atol=1e-9)


def test_the_transposed_problem_has_the_transposed_answer(make_problem):
    problem = make_problem(14, 9)
    op = problem.operator
    flipped = bf.Problem(bf.losses.Squared(), bf.operators.Entries(op.cols, op.rows, (9, 14)), problem.y)
    U, V = np.random.default_rng(0).standard_normal((14, 2)), np.random.default_rng(1).standard_normal((9, 2))
    solver = bf.solvers.BFGD(bf.steps.Backtracking(), bf.penalties.balance.Frobenius(0.5))
    a = bf.solve(problem, 2, solver, bf.inits.Given(U, V), max_iter=30, tol=0)
    b = bf.solve(flipped, 2, solver, bf.inits.Given(V, U), max_iter=30, tol=0)
    np.testing.assert_allclose(a.matrix(), b.matrix().T, rtol=1e-8, atol=1e-10)


class Broken(Solver):
    def init(self, problem, x, rank):
        return State(problem.at(x), Nothing())


class Ascends(Broken):
    def step(self, problem, state):
        return State(problem.at(state.point.x.plus(1e-2, state.point.gradient)), Nothing())


class ChangesItsState(Broken):
    def step(self, problem, state):
        x = state.point.x
        x.left[...] -= 1e-2 * state.point.gradient.left
        return State(problem.at(problem.kind.pair(x.left.copy(), x.right)), Nothing())


class Lies(Broken):
    def step(self, problem, state):
        point = problem.at(state.point.x.plus(-1e-2, state.point.gradient))
        return State(replace(point, gradient=0.5 * point.gradient), Nothing())


@pytest.mark.parametrize(
    ("solver", "law"), [(Ascends(), "lower"), (ChangesItsState(), "state"), (Lies(), "gradient of a point")]
)
def test_check_solver_finds_what_is_broken(make_problem, solver, law):
    with pytest.raises(CheckError, match=law):
        check_solver(solver, make_problem(15, 12), rank=2)
