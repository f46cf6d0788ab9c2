"""Every wrapper around every solver: it runs and resumes bit for bit, or is refused at the door by name."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.solvers import PCG, Race, RankContinuation, RidgeHomotopy

RANK = 3
INNER = {
    "AltMin": bf.solvers.AltMin(),
    "BFGD": bf.solvers.BFGD(bf.steps.Backtracking()),
    "FGD": bf.solvers.FGD(bf.steps.Backtracking()),
    "GuaranteedMC": bf.solvers.GuaranteedMC(alternating=True),
    "MiFGD": bf.solvers.MiFGD(),
    "Newton": bf.solvers.Newton(),
    "NuclearNorm": bf.solvers.NuclearNorm(),
    "PCG": PCG(),
    "ProcrustesFlow": bf.solvers.ProcrustesFlow(),
    "Race": Race(),
    "RankContinuation": RankContinuation(),
    "RidgeHomotopy": RidgeHomotopy(),
    "SPG": bf.solvers.SPG(20.0),
    "SVP": bf.solvers.SVP(normalized=True),
    "ScaledGD": bf.solvers.ScaledGD(),
    "SoftImpute": bf.solvers.SoftImpute(),
    "SparseApproxSDP": bf.solvers.SparseApproxSDP(20.0),
}
WRAPPERS = {
    "RankContinuation": RankContinuation,
    "RidgeHomotopy": RidgeHomotopy,
    "Race, first": lambda inner: Race((inner, PCG()), patience=3),
    "Race, second": lambda inner: Race((PCG(), inner), patience=3),
    "RankContinuation of Race": lambda inner: RankContinuation(Race((inner, PCG()), patience=2)),
    "RidgeHomotopy of RankContinuation": lambda inner: RidgeHomotopy(RankContinuation(inner)),
}


def operator(name):
    if name == "Pauli":
        return bf.operators.Pauli(3, 50, rng=0)
    if name == "Entries":
        rows, cols = np.nonzero(np.random.default_rng(0).random((8, 8)) < 0.8)
        return bf.operators.Entries(rows, cols, (8, 8))
    return bf.operators.Full((8, 8)) if name == "Full" else bf.operators.Noiselet((8, 8), 50, rng=0)


@pytest.fixture(scope="module", params=[(o, loss) for o in ("Entries", "Noiselet", "Full", "Pauli") for loss in "SL"])
def problem(request):
    name, loss = request.param
    A, rng = operator(name), np.random.default_rng(1)
    symmetric = name == "Pauli"
    U = gaussian(rng, (8, RANK), np.complex128 if symmetric else np.float64)
    z = A.forward(U, U if symmetric else gaussian(rng, (8, RANK), np.float64))
    z = z + 0.1 * rng.standard_normal(z.shape)
    if loss == "S":
        return bf.Problem(bf.losses.Squared(), A, z, symmetric=symmetric)
    labels = np.where(rng.random(z.shape) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    return bf.Problem(bf.losses.Logistic(), A, labels, symmetric=symmetric)


def test_every_solver_is_wrapped():
    concrete = set(bf.solvers.__all__) - {"Solver", "Refitted", "Variational"}  # which none may wrap
    assert concrete == set(INNER)


def refused(solver, problem):
    """What the solver has against the problem, or None."""
    try:
        solver.check(problem, RANK)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", INNER)
def test_every_wrapper_around_every_solver(problem, wrapper, name, tmp_path):
    solver, options = WRAPPERS[wrapper](INNER[name]), {"rng": 0, "tol": 0}
    refusal = refused(solver, problem)
    if refusal is not None:
        assert name in refusal
        assert type(solver).__name__ in refusal
        with pytest.raises(InputError):
            bf.solve(problem, RANK, solver, **options)
        return
    whole = bf.solve(problem, RANK, solver, max_iter=12, **options)
    assert whole.objective <= whole.history.objective[0] * (1 + 1e-12)
    for iterations in (5, 12):
        parts = bf.solve(problem, RANK, solver, max_iter=iterations, checkpoint=tmp_path / "run", **options)
    np.testing.assert_array_equal(whole.U, parts.U)
    np.testing.assert_array_equal(whole.V, parts.V)
    np.testing.assert_array_equal(whole.history.objective, parts.history.objective)


def test_most_are_not_refused(problem):
    """Those that cannot run name a reason of their own; PCG and the wrappers themselves run everywhere."""
    for wrapper in WRAPPERS.values():
        for name in ("PCG", "Newton", "BFGD", "ScaledGD", "Race", "RankContinuation", "RidgeHomotopy"):
            wrapper(INNER[name]).check(problem, RANK)


def test_a_stage_with_a_ridge_is_no_place_for_a_solver_without(make_problem):
    with pytest.raises(
        InputError, match="RidgeHomotopy, whose stages have a ridge, cannot run SVP here: SVP minimises f alone"
    ):
        bf.solve(make_problem(), 2, RidgeHomotopy(bf.solvers.SVP()))


def test_the_objective_of_a_homotopy_has_no_ridge(make_problem):
    problem = make_problem(20, 15)
    result = bf.solve(problem, 2, RidgeHomotopy(), rng=0, max_iter=3)
    assert result.status is bf.Status.MAX_ITER
    assert result.objective == pytest.approx(problem.f.value(problem.kind.pair(result.U, result.V)), rel=1e-12)
    state = RidgeHomotopy().init(problem, problem.zero(0), 2)
    assert state.phase.staged
    assert state.value < state.own.inner.value


def test_a_race_without_brackets():
    with pytest.raises(InputError, match="not a tuple of solvers"):
        bf.solvers.Race(bf.solvers.PCG(), bf.solvers.RidgeHomotopy())
