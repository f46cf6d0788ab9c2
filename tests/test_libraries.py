"""Any array library: y decides the library, the device and the precision, and what comes out is there again."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.conftest import LOSSES, targets

import bifactor as bf
from bifactor.arrays import backends, dtype_of, is_foreign, to_device_of, to_numpy
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.solvers.preconditioner import Curvature

SHAPE, RANK = (24, 18), 2
RNG = np.random.default_rng(0)
U, V = (RNG.standard_normal((k, RANK)) for k in SHAPE)
ROWS, COLS = (index[RNG.permutation(300)] for index in np.unravel_index(RNG.permutation(24 * 18)[:300], SHAPE))
ENTRIES = bf.operators.Entries(ROWS, COLS, SHAPE)
OPERATORS = {
    "Entries": ENTRIES,
    "Comparisons": bf.operators.Comparisons(ROWS, COLS, (COLS + 1 + ROWS % 5) % SHAPE[1], SHAPE),
    "Full": bf.operators.Full(SHAPE),
    "Linear": bf.operators.Linear(RNG.standard_normal((250, 24 * 18)), SHAPE),
    "Gaussian": bf.operators.Gaussian(SHAPE, 250, rng=0),
    "RankOne": bf.operators.RankOne(RNG.standard_normal((250, 24)), RNG.standard_normal((250, 18))),
    "Stacked": bf.operators.Stacked(ENTRIES, bf.operators.Full(SHAPE)),
    "Scaled": bf.operators.Scaled(ENTRIES, 2.0),
    "Recomputed": bf.operators.Recomputed(ENTRIES),
}
SOLVERS = {
    "PCG": bf.solvers.PCG(),
    "BFGD": bf.solvers.BFGD(bf.steps.Backtracking()),
    "RankContinuation": bf.solvers.RankContinuation(),
    "RidgeHomotopy": bf.solvers.RidgeHomotopy(),
    "Race": bf.solvers.Race(),
    "Newton": bf.solvers.Newton(),
}
To = Callable[[np.ndarray], Any]


@pytest.fixture(params=["numpy", "array_api_strict", "torch"])
def to(request) -> To:
    """Takes an array of NumPy to a library."""
    if request.param == "numpy":
        return lambda a: a
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed here")
    return lambda a: library.asarray(np.ascontiguousarray(a))


def far(got: Any, wanted: Any) -> float:
    got, wanted = to_numpy(got), to_numpy(wanted)
    return float(np.linalg.norm(got - wanted) / (np.linalg.norm(wanted) + 1e-300))


def is_there(array: Any, to: To) -> bool:
    return type(array) is type(to(np.zeros(1)))


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_one_pass(to, operator, loss, dtype):
    A, loss = OPERATORS[operator], LOSSES[loss]
    rng = np.random.default_rng(1)
    y = targets(loss, 0.5 * A.forward(U, V), rng).astype(dtype)
    w = (rng.random(A.size) + 0.5).astype(dtype)
    plain, there = bf.Problem(loss, A, y, w), bf.Problem(loss, A, to(y), to(w))
    x = 0.5 * Free().random(rng, SHAPE, RANK, dtype)
    x_there, tol = Free().pair(to(x.left), to(x.right)), 1e-13 if dtype == np.float64 else 1e-5
    for z in (False, True):
        wanted = plain.f.evaluate(x, plain.f.measure(x) if z else None)
        got = there.f.evaluate(x_there, there.f.measure(x_there) if z else None)
        assert abs(got.f - wanted.f) <= tol * abs(wanted.f)
        assert far(got.GV, wanted.GV) <= tol
        assert far(got.GhU, wanted.GhU) <= tol
        assert is_there(got.GV, to)
        assert dtype_of(got.GhU) == dtype
    assert there.scale == pytest.approx(plain.scale, rel=1e-13)


def problem(to: To, operator: str = "Entries", loss: str = "Squared", **options: Any) -> bf.Problem:
    A = OPERATORS[operator]
    y = targets(LOSSES[loss], A.forward(U, V), np.random.default_rng(2))
    return bf.Problem(LOSSES[loss], A, to(y), **options)


def converged(problem: bf.Problem, solver: bf.solvers.Solver) -> bf.Result:
    """A search ends where rounding hides what is left of F, and X is known to √ε: whole Newton steps do the rest.

    They are damped a little, for the factors of one X have directions in which nothing changes.
    """
    result = bf.solve(problem, RANK, solver, rng=0, tol=1e-11, max_iter=5000)
    x = problem.kind.pair(result.U, result.V)
    for _ in range(4):
        step = Curvature(problem, problem.evaluate_keeping_z(x), 1e-3, full=True).solve(1e-8, 500)
        x = x if step is None else x.plus(1.0, step)
    return replace(result, U=x.left, V=x.right, objective=problem.objective(x))


CASES = [
    *(("Entries", "Squared", solver, {}) for solver in SOLVERS),
    *((operator, "Squared", "PCG", {}) for operator in OPERATORS),
    *(("Entries", loss, "PCG", {"penalty": bf.penalties.Ridge(0.3)}) for loss in LOSSES),
    *(("Entries", "Logistic", solver, {"penalty": bf.penalties.Ridge(0.3)}) for solver in SOLVERS),
    ("Entries", "Squared", "PCG", {"offsets": True}),
    ("Entries", "Squared", "RankContinuation", {"fixed": (np.ones((24, 1)), np.arange(18.0)[:, None])}),
    ("Entries", "Squared", "Newton", {"penalty": bf.penalties.Ridge(0.3, np.arange(1, 25.0), components=(0.1, 1.0))}),
    ("Recomputed", "Logistic", "PCG", {"penalty": bf.penalties.Ridge(0.3)}),
]


def fits(to: To, case: int) -> tuple[bf.Result, bf.Result]:
    """Ten iterations, and a run to the end."""
    operator, loss, name, options = CASES[case]
    there = problem(to, operator, loss, **options)
    return bf.solve(there, RANK, SOLVERS[name], rng=0, max_iter=10, tol=0), converged(there, SOLVERS[name])


@cache
def fits_of_numpy(case: int) -> tuple[bf.Result, bf.Result]:
    return fits(lambda a: a, case)


@pytest.mark.parametrize("case", range(len(CASES)), ids=lambda k: "-".join((*CASES[k][:3], *CASES[k][3])))
def test_fits_agree(to, case):
    plain = fits_of_numpy(case)
    few, whole = zip(plain, plain if is_there(np.zeros(1), to) else fits(to, case), strict=True)
    # The inner iteration of Newton's method ends by a test, on which rounding has a say.
    assert far(few[1].matrix(), few[0].matrix()) <= (1e-6 if CASES[case][2] == "Newton" else 1e-10)
    assert far(whole[1].matrix(), whole[0].matrix()) <= 1e-8
    for array in (whole[1].U, whole[1].V, whole[1].predict([0], [1]), whole[1].matrix()):
        assert is_there(array, to)
    assert whole[1].objective == pytest.approx(whole[0].objective, rel=1e-9, abs=1e-20)
    assert whole[1].certificate.gradient_norm == pytest.approx(whole[0].certificate.gradient_norm, abs=1e-5)


@pytest.mark.parametrize("solver", [bf.solvers.FGD(bf.steps.Backtracking()), bf.solvers.PCG(), bf.solvers.Newton()])
def test_semidefinite_and_complex_matrices(to, solver):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((15, 2)) + 1j * rng.standard_normal((15, 2))
    i, j = np.nonzero(rng.random((15, 15)) < 0.8)
    y = (A @ A.conj().T)[i, j]
    operator = bf.operators.Entries(i, j, (15, 15))
    plain, there = (bf.Problem(bf.losses.Squared(), operator, place(y), symmetric=True) for place in (np.asarray, to))
    results = [bf.solve(p, 2, solver, rng=0, tol=1e-11, max_iter=3000) for p in (plain, there)]
    assert far(results[1].matrix(), results[0].matrix()) <= 1e-7
    assert is_there(results[1].U, to)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_y_decides_the_precision(to, dtype):
    y = ENTRIES.forward(U, V).astype(dtype)
    result = bf.solve(bf.Problem(bf.losses.Squared(), ENTRIES, to(y)), RANK, rng=0)
    assert dtype_of(result.U) == dtype
    assert far(result.matrix(), U @ V.T) < 1e-3


def test_starts_states_and_ranks_are_there_too(to):
    there, seen = problem(to), []
    start = bf.inits.Given(to(U), to(V))
    bf.solve(there, RANK, bf.solvers.PCG(), start, max_iter=3, callback=lambda t, state: seen.append(state))
    assert all(is_there(array, to) for state in seen for array in (state.U, state.V, state.point.z))
    for init in (bf.inits.Spectral(), bf.inits.Random()):
        x = init(there, RANK, np.random.default_rng(0))
        y = init(problem(lambda a: a), RANK, np.random.default_rng(0))
        assert is_there(x.left, to)
        assert far(x.left @ x.right.T, y.left @ y.right.T) < 1e-10
    auto, plain = bf.solve(there, "auto", rng=0), bf.solve(problem(lambda a: a), "auto", rng=0)
    assert auto.rank == plain.rank


def test_a_run_is_resumed_there(to, tmp_path):
    there = problem(to)
    whole = bf.solve(there, RANK, bf.solvers.PCG(), rng=0, max_iter=12, tol=0)
    for iterations in (4, 12):
        resumed = bf.solve(
            there, RANK, bf.solvers.PCG(), rng=0, max_iter=iterations, tol=0, checkpoint=tmp_path / "run"
        )
    np.testing.assert_array_equal(to_numpy(resumed.U), to_numpy(whole.U))
    assert is_there(resumed.U, to)
    whole.save(tmp_path / "result")
    np.testing.assert_array_equal(bf.Result.load(tmp_path / "result").U, to_numpy(whole.U))


def test_integers_become_floating_and_data_are_copied(to):
    y = to(np.arange(300))
    result = bf.solve(bf.Problem(bf.losses.Squared(), ENTRIES, y), 1, rng=0, max_iter=2)
    assert dtype_of(result.U) == np.float64
    data = to(np.ones(300))
    there = bf.Problem(bf.losses.Squared(), bf.operators.Full((20, 15)), data)
    data[0] = 7.0
    assert float(to_numpy(there.y)[0]) == 1.0


def test_libraries_do_not_mix(to):
    if is_there(np.zeros(1), to):
        pytest.skip("there is nothing else to mix with")
    y = ENTRIES.forward(U, V)
    for values, weights in ((y, to(np.ones(300))), (to(y), np.ones(300))):
        with pytest.raises(InputError, match=r"weights is in .*, but y is in .*Pass both in the same library"):
            bf.Problem(bf.losses.Squared(), ENTRIES, values, weights)
    with pytest.raises(InputError, match=r"U is in numpy.*, but y is in"):
        bf.solve(problem(to), RANK, init=bf.inits.Given(U, V))
    with pytest.raises(InputError, match="different array libraries"):
        problem(to) + problem(lambda a: a)
    with pytest.raises(InputError, match="group needs a NumPy array"):
        bf.Problem([bf.losses.Squared(), bf.losses.Huber()], ENTRIES, to(y), group=np.arange(300) % 2)


REFUSING = [
    bf.solvers.AltMin(),
    bf.solvers.SoftImpute(),
    bf.solvers.SPG(1.0),
    bf.solvers.SparseApproxSDP(1.0),
    bf.solvers.GuaranteedMC(),
    bf.solvers.SVP(normalized=True),
    bf.solvers.NuclearNorm(),
]


def test_what_is_made_for_numpy_says_so(to):
    if is_there(np.zeros(1), to):
        pytest.skip("this is NumPy")
    for solver in REFUSING:
        penalty = bf.penalties.Ridge(1.0) if isinstance(solver, bf.solvers.NuclearNorm) else None
        with pytest.raises(InputError, match="works on NumPy arrays, but y is in"):
            bf.solve(problem(to, penalty=penalty), RANK, solver)
    for operator in (bf.operators.Noiselet((4, 4), 8, rng=0), bf.operators.Pauli(2)):
        with pytest.raises(InputError, match="needs a NumPy array"):
            bf.Problem(bf.losses.Squared(), operator, to(np.ones(operator.size)))
    assert str(300) in repr(problem(to))


def test_operators_take_their_own_arguments_from_any_library(to):
    X = np.where(RNG.random(SHAPE) < 0.5, U @ V.T, np.nan)
    A, y = bf.operators.Entries.from_dense(to(X))
    np.testing.assert_array_equal(y, X[A.rows, A.cols])
    B = RNG.standard_normal((30, 24 * 18))
    np.testing.assert_allclose(bf.operators.Linear(to(B), SHAPE).forward(U, V), B @ (U @ V.T).ravel())
    vectors = bf.operators.RankOne(to(RNG.standard_normal((5, 24))), to(RNG.standard_normal((5, 18))))
    assert vectors.forward(U, V).shape == (5,)
    same = bf.operators.Entries(to(ROWS), to(COLS), SHAPE)
    np.testing.assert_array_equal(same.rows, ENTRIES.rows)


def test_everything_of_numpy_is_numpy(tmp_path):
    """Memory maps, matrices and scalars are no other library."""
    y = np.memmap(tmp_path / "y", np.float64, "w+", shape=(300,))
    y[:] = ENTRIES.forward(U, V)
    w = np.memmap(tmp_path / "w", np.float64, "w+", shape=(300,))
    w[:] = 2.0
    wanted = bf.Problem(bf.losses.Squared(), ENTRIES, np.array(y), 2.0).f.value(Free().pair(U, U[:18]))
    for weights in (w, np.float64(2.0), np.float32(2.0), 2, np.full(300, 2), list(np.full(300, 2.0))):
        assert bf.Problem(bf.losses.Squared(), ENTRIES, y, weights).f.value(Free().pair(U, U[:18])) == wanted


def test_a_device_without_kernels_is_refused():
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed here")
    y = strict.asarray(ENTRIES.forward(U, V), device=strict.Device("device1"))
    with pytest.raises(InputError, match="There is no kernel for arrays in array_api_strict on"):
        bf.solve(bf.Problem(bf.losses.Squared(), ENTRIES, y), RANK, rng=0)


@pytest.mark.parametrize("operator", ["Entries", "Recomputed", "Full"])
def test_tensors_on_the_host_are_never_copied_to_numpy_and_back(operator, monkeypatch):
    """In ten iterations of PCG every tall array that crosses over shares its memory, in both directions."""
    torch = pytest.importorskip("torch", reason="torch is not installed here")
    crossed, copies = [0], []

    def watched(function):
        def checked(array, *rest):
            found = function(array, *rest)
            if is_foreign(array) != is_foreign(found) and int(np.prod(array.shape)) >= min(SHAPE):
                crossed[0] += 1
                mine, theirs = (a if isinstance(a, np.ndarray) else a.numpy() for a in (array, found))
                if not np.shares_memory(mine, theirs):
                    copies.append(tuple(array.shape))
            return found

        return checked

    there = problem(torch.asarray, operator)
    state = bf.solvers.PCG().init(there, bf.inits.Random()(there, RANK, np.random.default_rng(0)), RANK)
    for function in (to_numpy, to_device_of):
        for module in [backends, *MODULES_THAT_CROSS]:
            if getattr(module, function.__name__, None) is function:
                monkeypatch.setattr(module, function.__name__, watched(function))
    for _ in range(10):
        state = bf.solvers.PCG().step(there, state)
    assert crossed[0] > 0 or operator == "Full"
    assert copies == []


def modules() -> list[Any]:
    import sys

    return [module for name, module in list(sys.modules.items()) if name.startswith("bifactor.") and module]


MODULES_THAT_CROSS = modules()
