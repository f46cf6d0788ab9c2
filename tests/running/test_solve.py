"""The loop: how runs stop, what they report, and what they refuse."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import bifactor as bf
from bifactor import kernels
from bifactor.errors import InputError


def finite(result):
    parts = (result.U, result.V, result.objective, *vars(result.history).values())
    return all(np.isfinite(part).all() for part in parts)


def test_the_example_of_the_readme_works():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
    rows, cols = np.nonzero(rng.random(X.shape) < 0.5)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, shape=X.shape), X[rows, cols])
    result = bf.solve(problem, rank=2, rng=0)
    assert result.status.converged
    np.testing.assert_allclose(result.matrix(), X, atol=1e-3)


def test_history_has_one_number_per_iteration(make_problem):
    result = bf.solve(make_problem(), 2, rng=0, max_iter=7, tol=0)
    assert result.n_iter == 7
    assert result.status is bf.Status.MAX_ITER
    for series in vars(result.history).values():
        assert series.shape == (8,)
    assert np.all(np.diff(result.history.seconds) >= 0)
    assert result.objective == pytest.approx(result.history.objective.min(), rel=1e-13)  # it is evaluated anew


def test_relative_change_is_that_of_x(make_problem):
    seen = []
    result = bf.solve(
        make_problem(), 2, rng=0, max_iter=40, tol=0, callback=lambda t, s: seen.append(s.U @ s.V.conj().T)
    )
    changes = [np.linalg.norm(b - a) / np.linalg.norm(b) for a, b in pairwise(seen)]
    np.testing.assert_allclose(result.history.relative_change[2:], changes, rtol=1e-6, atol=1e-15)


def test_a_racer_that_starts_again_is_no_divergence():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((6, 5)), np.outer(np.arange(6.0), np.arange(5.0)))
    race = bf.solvers.Race((bf.solvers.PCG(), bf.solvers.RidgeHomotopy()))
    result = bf.solve(problem.penalized(bf.penalties.Ridge(1e-3)), 2, race, rng=0)
    assert result.status.converged


def test_factors_that_overflow_are_a_status(make_problem):
    class Overflows(bf.solvers.PCG):
        def step(self, problem, state):
            raise np.linalg.LinAlgError("Eigenvalues did not converge")

    assert bf.solve(make_problem(), 2, Overflows(), rng=0).status is bf.Status.DIVERGED


def test_relative_change_is_accurate_far_below_single_precision(make_problem):
    # The Gram form of ‖X′ − X‖ loses half the digits unless it works on differences.
    solver = bf.solvers.BFGD(bf.steps.Constant(1e-14))
    result = bf.solve(make_problem(), 2, solver, rng=0, max_iter=3, tol=0)
    assert np.all(result.history.relative_change[1:] < 1e-10)
    assert np.all(result.history.relative_change[1:] > 0)


def test_gradient_norm_is_that_of_the_objective(make_problem):
    problem = make_problem()
    states = []
    result = bf.solve(problem, 2, rng=0, max_iter=3, tol=0, callback=lambda t, s: states.append(s))
    _, GV, GhU, _ = problem.f.evaluate(states[-1].point.x)
    wanted = np.hypot(np.linalg.norm(GV), np.linalg.norm(GhU))
    assert result.history.gradient_norm[-1] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"tol": 1e-3}, "RELATIVE_CHANGE"),
        ({"tol": 0, "gradient_tol": 1e-2}, "GRADIENT"),
        ({"tol": 0, "objective_tol": 1e-3}, "PLATEAU"),
        ({"tol": 0, "max_iter": 3}, "MAX_ITER"),
        ({"tol": 0, "max_iter": 0}, "MAX_ITER"),
        ({"tol": 0, "max_iter": 10**9, "time_limit": 0.05}, "TIME_LIMIT"),
        ({"tol": 0, "callback": lambda t, s: t == 4}, "CALLBACK"),
    ],
)
def test_every_way_to_stop(make_problem, options, status):
    result = bf.solve(make_problem(), 2, bf.solvers.BFGD(), rng=0, **options)
    assert result.status is bf.Status[status]
    assert finite(result)
    if status == "CALLBACK":
        assert result.n_iter == 4


def test_statuses_are_sentences_and_some_are_convergence():
    assert {s.name for s in bf.Status if s.converged} == {
        "CONVERGED",
        "GRADIENT",
        "SETTLED",
        "PRECISION",
    }
    for status in bf.Status:
        assert len(str(status).split()) > 5
        assert str(status).startswith("converged") is status.converged
    assert "Backtracking" in str(bf.Status.DIVERGED)


@pytest.mark.parametrize("eta", [0.3, 1e3, 1e30, 1e100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_divergence_returns_the_best_iterate(make_problem, loss, eta, dtype):
    solver = bf.solvers.BFGD(bf.steps.Constant(eta))
    result = bf.solve(make_problem(loss=loss, dtype=dtype), 2, solver, rng=0, max_iter=300, tol=0)
    assert finite(result)
    first = result.history.objective[0]
    assert result.objective <= first + 100 * float(np.finfo(dtype).eps) * abs(first)  # it is evaluated anew
    if eta > 1:
        assert result.status is bf.Status.DIVERGED


def test_keyboard_interrupt_returns_the_best_iterate(make_problem):
    def press_ctrl_c(t, state):
        if t == 5:
            raise KeyboardInterrupt

    result = bf.solve(make_problem(), 2, rng=0, tol=0, callback=press_ctrl_c)
    assert result.status is bf.Status.INTERRUPTED
    assert result.n_iter == 5
    assert finite(result)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_a_real_interrupt_signal(make_problem):
    def callback(t, state):
        if t == 1:  # not before the loop runs, however busy the machine is
            threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        time.sleep(1e-4)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may start us with Ctrl-C turned off
    try:
        result = bf.solve(make_problem(), 2, bf.solvers.BFGD(), rng=0, tol=0, max_iter=10**9, callback=callback)
    finally:
        signal.signal(signal.SIGINT, before)
    assert result.status is bf.Status.INTERRUPTED
    assert finite(result)


def test_seeds(make_problem):
    fits = [bf.solve(make_problem(), 2, init=bf.inits.Random(), rng=rng, max_iter=3) for rng in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0].U, fits[1].U)
    assert not np.array_equal(fits[0].U, fits[2].U)
    generator = np.random.default_rng(1)
    np.testing.assert_array_equal(
        bf.solve(make_problem(), 2, init=bf.inits.Random(), rng=generator, max_iter=3).U, fits[0].U
    )


def test_global_random_state_is_untouched(make_problem):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    bf.solve(make_problem(), 2, max_iter=3)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_progress_bar_shows_and_changes_nothing(make_problem, capsys):
    quiet = bf.solve(make_problem(), 2, rng=0, max_iter=20)
    assert capsys.readouterr() == ("", "")
    shown = bf.solve(make_problem(), 2, rng=0, max_iter=20, progress=True)
    assert "objective" in capsys.readouterr().out
    np.testing.assert_array_equal(quiet.U, shown.U)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (2, 2)])
def test_tiny_matrices(shape):
    X = np.arange(1.0, 1 + shape[0] * shape[1]).reshape(shape)
    rank = min(shape)
    problem = bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(X))
    result = bf.solve(problem, rank, rng=0, tol=1e-12, max_iter=20000)
    np.testing.assert_allclose(result.matrix(), X, rtol=1e-4)


def test_full_rank_is_allowed_and_rows_without_data_stay_finite():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries([0, 4], [1, 0], (6, 5)), [1.0, 2.0])
    result = bf.solve(problem, 5, rng=0)
    assert finite(result)
    np.testing.assert_allclose(result.predict([0, 4], [1, 0]), [1, 2], rtol=1e-3)


P = bf.Problem(bf.losses.Squared(), bf.operators.Full((4, 3)), np.ones((4, 3)))


@pytest.mark.parametrize(
    ("message", "options"),
    [
        (r"rank=0 is not possible for a 4×3 matrix.*an integer from 1 to 3", {"rank": 0}),
        (r"rank=4 is not possible", {"rank": 4}),
        (r"rank=-1", {"rank": -1}),
        (r"rank=1.0", {"rank": 1.0}),
        (r"rank=True", {"rank": True}),
        (r"rank='auto'", {"rank": "auto"}),
        (r"solver is <class", {"solver": bf.solvers.BFGD}),
        (r"solver is 'BFGD'", {"solver": "BFGD"}),
        (r"init is 'random'", {"init": "random"}),
        (r"problem is None", {"problem": None}),
        (r"rng='seed'", {"rng": "seed"}),
        (r"rng=-1", {"rng": -1}),
        (r"max_iter=-1", {"max_iter": -1}),
        (r"max_iter=2.5", {"max_iter": 2.5}),
        (r"tol=-1", {"tol": -1.0}),
        (r"tol=nan", {"tol": float("nan")}),
        (r"objective_tol=inf", {"objective_tol": float("inf")}),
        (r"time_limit=0", {"time_limit": 0}),
        (r"tol=None", {"tol": None}),
        (r"tol='1e-3'", {"tol": "1e-3"}),
        (r"callback is 5", {"callback": 5}),
        (r"checkpoint=5", {"checkpoint": 5}),
        (r"is a folder", {"checkpoint": "/"}),
        (r"checkpoint_every=0", {"checkpoint_every": 0}),
        (r"folder that does not exist", {"checkpoint": "no/such/folder/file"}),
    ],
)
def test_mistakes_get_one_clear_error_before_any_work(message, options):
    with pytest.raises(InputError, match=message):
        bf.solve(**{"problem": P, "rank": 1, **options})


@pytest.mark.parametrize(
    "make",
    [lambda: bf.solvers.BFGD(0.01), lambda: bf.solvers.BFGD(balance="fro"), lambda: bf.solvers.FGD(bf.steps.Smooth)],
)
def test_solvers_check_their_parts(make):
    with pytest.raises(InputError, match="Pass an instance"):
        make()


def test_refusals_come_before_any_work(make_problem, monkeypatch):
    problem = make_problem(loss=bf.losses.Poisson())
    monkeypatch.setattr(problem.f, "gradient", None)
    with pytest.raises(InputError, match="Poisson has no global"):
        bf.solve(problem, 2, bf.solvers.BFGD())


@pytest.mark.parametrize("shape", [(1, 1), (4, 2), (9, 9)])
def test_an_optimum_reached_at_once_counts_as_converged(shape):
    for seed in range(5):
        X = np.random.default_rng(seed).standard_normal(shape)
        result = bf.solve(bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X), 1, rng=seed)
        assert result.status.converged, result.status
        best = 0.5 * np.sum(np.linalg.svd(X, compute_uv=False)[1:] ** 2)
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "rank"), [((4, 4), 2), ((8, 1), 1), ((20, 15), 15), ((30, 20), 3), ((1, 1), 1)])
def test_data_of_exactly_that_rank_count_as_converged(shape, rank, dtype):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))).astype(dtype)
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(shape), X)
        first = bf.solve(problem, rank, rng=seed)
        assert first.status.converged, first.status
        again = bf.solve(problem, rank, init=bf.inits.Given(first.U, first.V))
        assert again.status.converged, again.status


@pytest.mark.parametrize("size", [3, 400])
def test_divergence_never_warns(size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size, size)).astype(np.float32)  # large enough for threads
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(X.shape), X)
    result = bf.solve(problem, 2, bf.solvers.BFGD(bf.steps.Constant(1e30)), rng=0)
    assert result.status is bf.Status.DIVERGED


def test_tiny_starts_do_not_hang():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((3, 3)), np.eye(3))
    U = np.full((3, 1), 1e-160)
    result = bf.solve(problem, 1, init=bf.inits.Given(U, U.copy()), max_iter=50)
    assert finite(result)
    scaled = bf.operators.Scaled(bf.operators.Full((3, 3)), 1e-90)
    with pytest.raises(InputError, match="Rescale the operator"):
        bf.solve(bf.Problem(bf.losses.Squared(), scaled, np.eye(3).ravel()), 1)


def test_blas_threads_are_given_back():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda seed: bf.solve(P, 1, rng=seed, max_iter=50, tol=0), range(6)))
    with pytest.raises(ZeroDivisionError):
        bf.solve(P, 1, init=bf.inits.Random(), callback=lambda t, s: 1 / 0)
    assert threads() == before


def test_a_wrong_gradient_is_a_stall_and_not_convergence():
    wrong = bf.Function(lambda X: 0.5 * np.sum((X - 1) ** 2), lambda X: -(X - 1), (4, 4))
    result = bf.solve(wrong, 1, init=bf.inits.Random(), rng=0)
    assert result.status is bf.Status.STALLED
    assert not result.status.converged


def test_blocks_that_share_no_entry_are_both_fitted():
    truth = np.outer(np.arange(1.0, 41), np.arange(1.0, 31))
    mask = np.zeros(truth.shape, bool)
    mask[:25, :12] = mask[25:, 12:] = True
    problem = bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(truth, mask))
    result = bf.solve(problem, 1, rng=0)
    np.testing.assert_allclose(result.matrix()[mask], truth[mask], rtol=1e-3)


def test_rows_and_columns_without_data_are_predicted_as_zero():
    truth = np.outer(np.arange(1.0, 13), np.arange(1.0, 9))
    mask = np.random.default_rng(0).random(truth.shape) < 0.8
    mask[4], mask[:, 6] = False, False
    result = bf.solve(bf.Problem(bf.losses.Squared(), *bf.operators.Entries.from_dense(truth, mask)), 1, rng=0)
    X = result.matrix()
    assert not X[4].any()
    assert not X[:, 6].any()
    np.testing.assert_allclose(X[mask], truth[mask], rtol=1e-4)


@pytest.mark.parametrize(("dtype", "scales"), [(np.float32, (1e-12, 1e12)), (np.float64, (1e-100, 1e100))])
def test_the_scale_of_the_data_does_not_matter(make_problem, dtype, scales):
    problem = make_problem(dtype=dtype, noiseless=True)
    U, V = problem.truth
    for scale in scales:
        scaled = bf.Problem(bf.losses.Squared(), problem.operator, problem.y * dtype(scale))
        result = bf.solve(scaled, 2, rng=0)
        error = np.linalg.norm(result.matrix() / dtype(scale) - U @ V.T) / np.linalg.norm(U @ V.T)
        assert error < (1e-2 if dtype == np.float32 else 1e-5)
        assert result.status.converged


def test_time_limit_counts_the_start(make_problem):
    result = bf.solve(make_problem(), 2, rng=0, tol=0, time_limit=1e-6)
    assert result.status is bf.Status.TIME_LIMIT
    assert result.n_iter == 0
    assert result.history.seconds[0] > 0


def test_numpy_integers_are_ranks():
    assert bf.solve(P, np.int64(1), rng=np.int32(3), max_iter=np.int16(2)).rank == 1


@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "poisson"])
@pytest.mark.parametrize("small", [0, 1 << 16])
def test_the_same_bits_wherever_arrays_lie(loss, small, monkeypatch):
    """Compiled loops may sum in another order where arrays are aligned otherwise, or might overlap."""
    monkeypatch.setattr(kernels, "SMALL", small)
    rng = np.random.default_rng(0)
    for p in (5, 17, 27, 40):
        i, j, y = rng.integers(6, size=p), rng.integers(4, size=p), rng.poisson(2.0, p) + 0.0
        y = np.where(y > 1, 1.0, -1.0) if loss == "logistic" else y
        seen = set()
        for shift in range(8):
            moved = np.empty(p + shift)[shift:]
            moved[:] = y
            held = [np.empty(int(size)) for size in rng.integers(1, 500, size=3)]  # later arrays lie elsewhere
            problem = bf.Problem(loss, bf.operators.Entries(i, j, (6, 4)), moved, penalty=bf.penalties.Ridge(0.1))
            result = bf.solve(problem, 2, rng=0, max_iter=20)
            seen.add((result.U.tobytes(), result.V.tobytes(), len(held)))
        assert len(seen) == 1


@pytest.mark.parametrize("solver", [bf.solvers.MiFGD(), bf.solvers.GuaranteedMC()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_start_that_is_too_large_is_refused_or_diverges(solver, dtype):
    rng = np.random.default_rng(0)
    i, j, y = rng.integers(8, size=30), rng.integers(6, size=30), rng.poisson(3.0, 30).astype(dtype)
    for size in (1e2, 1e4, 1e8, 1e18, 1e30):
        U, V = (size * rng.standard_normal((k, 2)).astype(dtype) for k in (8, 6))
        for loss in ("poisson", "squared"):
            problem = bf.Problem(loss, bf.operators.Entries(i, j, (8, 6)), y)
            try:
                result = bf.solve(problem, 2, solver, bf.inits.Given(U, V), rng=0, max_iter=15)
            except InputError as error:
                assert "Start from smaller factors" in str(error)  # noqa: PT017
                continue
            assert finite(result)
            certificate = result.certificate
            assert "relative gradient" in str(certificate)
            assert not (result.status is bf.Status.DIVERGED and certificate.optimal())
