"""rank="auto": the rank that measurements held out can justify."""

import importlib

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.running.search import rank_search
from bifactor.solvers import BFGD, PCG, Newton


def noisy(rank, noise=0.1, size=150, observed=0.3, seed=0, dtype=np.float64, symmetric=False, **options):
    """A completion problem with directions of about equal strength and noise of this size beside entries of about 1."""
    rng = np.random.default_rng(seed)
    U = gaussian(rng, (size, rank), dtype)
    V = U if symmetric else gaussian(rng, (size - 20, rank), dtype)
    rows, cols = np.nonzero(rng.random((size, V.shape[0])) < observed)
    z = np.sum(U[rows] * V[cols].conj(), axis=1) / rank**0.5
    y = (z + noise * gaussian(rng, z.shape, dtype)).astype(dtype)
    operator = bf.operators.Entries(rows, cols, (size, V.shape[0]))
    return bf.Problem(bf.losses.Squared(), operator, y, symmetric=symmetric, **options)


def is_consistent(result):
    search = result.rank_search
    np.testing.assert_array_equal(search["rank"], np.arange(1, len(search["rank"]) + 1))
    for array in (search["train"], search.score, search.standard_error):
        assert array.shape == search["rank"].shape
        assert np.isfinite(array).all()
    assert np.all(search.standard_error >= 0)
    assert search.chosen == {"rank": result.rank}
    # No rank below the chosen one is within one standard error of the best, and the chosen one is.
    best = np.argmin(search.score)
    limit = search.score[best] + search.standard_error[best]
    assert search.score[search.index] <= limit
    assert np.all(search.score[: search.index] > limit)


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("noise", [0.05, 0.5])
def test_the_planted_rank_is_found(rank, noise):
    for seed in range(2):
        result = bf.solve(noisy(rank, noise, size=120, seed=seed), "auto", rng=0, max_iter=10)
        assert result.rank == rank
        is_consistent(result)
        path = result.rank_search
        assert np.all(np.diff(path["train"][:rank]) < 0)
        # With all directions there, the held-out loss is that of the noise, ½σ², and a little for fitting it.
        assert 0.8 < path.score[rank - 1] / (noise**2 / 2) < 1.8


def test_without_noise_nothing_is_left_unexplained():
    problem = noisy(3, 0.0, size=100, observed=0.5)
    result = bf.solve(problem, "auto", rng=0)
    is_consistent(result)
    assert result.rank >= 3
    assert result.objective < 1e-10 * np.sum(problem.y**2)


def test_nothing_but_noise_is_no_reason_for_many_columns():
    rng = np.random.default_rng(0)
    problem = noisy(1)
    noise = bf.Problem(bf.losses.Squared(), problem.operator, rng.standard_normal(problem.y.size))
    assert bf.solve(noise, "auto", rng=0, max_iter=20).rank == 1


def test_the_final_fit_is_that_of_the_chosen_rank_on_all_measurements():
    problem = noisy(2)
    auto = bf.solve(problem, "auto", rng=0)
    plain = bf.solve(problem, auto.rank, rng=0)
    np.testing.assert_array_equal(auto.U, plain.U)
    np.testing.assert_array_equal(auto.history.objective, plain.history.objective)
    assert plain.rank_search is None
    assert auto.solver == plain.solver


def test_the_same_seed_gives_the_same_path():
    problem = noisy(2, 0.5, size=80)
    a, b, c = (bf.solve(problem, "auto", rng=rng, max_iter=5).rank_search for rng in (1, np.random.default_rng(1), 2))
    np.testing.assert_array_equal(a.score, b.score)
    assert not np.array_equal(a.score, c.score)


@pytest.mark.parametrize("solver", [PCG(), BFGD(bf.steps.Backtracking()), Newton()], ids=lambda s: type(s).__name__)
def test_the_solver_that_is_named_is_used(solver):
    result = bf.solve(noisy(2, size=80), "auto", solver, rng=0, max_iter=200)
    assert result.rank == 2
    assert result.solver.startswith(type(solver).__name__)
    is_consistent(result)


def test_labels():
    rng = np.random.default_rng(0)
    U, V = 2 * rng.standard_normal((150, 2)), rng.standard_normal((150, 2))
    rows, cols = np.nonzero(rng.random((150, 150)) < 0.6)
    z = np.sum(U[rows] * V[cols], axis=1)
    y = np.where(rng.random(z.shape) < 1 / (1 + np.exp(-z)), 1.0, -1.0)
    problem = bf.Problem(bf.losses.Logistic(), bf.operators.Entries(rows, cols, (150, 150)), y)
    result = bf.solve(problem, "auto", rng=0, max_iter=50)
    is_consistent(result)
    assert result.rank == 2


def test_measurements_of_weight_zero_are_neither_fitted_nor_asked():
    problem = noisy(2, size=100, observed=0.4)
    rng = np.random.default_rng(1)
    weights = rng.random(problem.y.size) + 0.5
    weights[rng.random(weights.size) < 0.2] = 0
    spoilt = problem.y + np.where(weights == 0, 1e3, 0.0)
    results = [
        bf.solve(bf.Problem(problem.loss, problem.operator, y, weights), "auto", rng=0, max_iter=40)
        for y in (problem.y, spoilt)
    ]
    for result in results:
        assert result.rank == 2
        is_consistent(result)
    np.testing.assert_allclose(results[0].rank_search.score, results[1].rank_search.score, rtol=1e-6)


def test_scaling_all_weights_changes_no_choice():
    a, b = (bf.solve(noisy(2, 0.5, size=80, weights=w), "auto", rng=0, max_iter=5).rank_search for w in (1.0, 2.0**12))
    np.testing.assert_allclose(a.score, b.score, rtol=1e-6)
    np.testing.assert_allclose(a.standard_error, b.standard_error, rtol=1e-6)
    np.testing.assert_allclose(a["train"], b["train"], rtol=1e-6)


def test_sensing():
    rng = np.random.default_rng(0)
    operator = bf.operators.Gaussian((24, 20), 400, rng=0)
    truth = rng.standard_normal((24, 2)), rng.standard_normal((20, 2))
    z = operator.forward(*truth)
    problem = bf.Problem(bf.losses.Squared(), operator, z + 0.1 * np.std(z) * rng.standard_normal(400))
    result = bf.solve(problem, "auto", rng=0)
    is_consistent(result)
    assert result.rank == 2
    assert result.solver.startswith("PCG")


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_symmetric(dtype):
    result = bf.solve(noisy(2, size=70, observed=0.4, dtype=dtype, symmetric=True), "auto", PCG(), rng=0, max_iter=99)
    is_consistent(result)
    assert result.rank == 2
    assert result.V is result.U


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_other_precisions(dtype):
    result = bf.solve(noisy(2, dtype=dtype, size=80, observed=0.5), "auto", rng=0, max_iter=40)
    assert result.rank == 2
    assert result.U.dtype == dtype
    is_consistent(result)


def test_a_ridge_is_part_of_every_fit():
    result = bf.solve(noisy(2, 0.5, size=100, observed=0.4, penalty=bf.penalties.Ridge(1.0)), "auto", rng=0)
    is_consistent(result)
    assert result.rank == 2


def test_small_matrices_end_at_full_rank():
    rng = np.random.default_rng(0)
    for shape in ((1, 30), (30, 1), (2, 20), (3, 3)):
        X = rng.standard_normal(shape)
        problem = bf.Problem(
            bf.losses.Squared(), bf.operators.Stacked(*3 * [bf.operators.Full(shape)]), np.tile(X.ravel(), 3)
        )
        result = bf.solve(problem, "auto", rng=0)
        is_consistent(result)
        assert 1 <= result.rank <= min(shape)


def test_it_is_saved_with_the_result(tmp_path):
    result = bf.solve(noisy(2, size=60), "auto", rng=0, max_iter=5)
    result.save(tmp_path / "result")
    loaded = bf.Result.load(tmp_path / "result")
    assert isinstance(loaded.rank_search, bf.Search)
    assert loaded.rank_search.chosen == {"rank": result.rank}
    for name, array in result.rank_search.columns().items():
        np.testing.assert_array_equal(loaded.rank_search[name], array)
    plain = bf.solve(noisy(2, size=60), 2, rng=0, max_iter=5)
    plain.save(tmp_path / "plain")
    assert bf.Result.load(tmp_path / "plain").rank_search is None


def test_callbacks_checkpoints_and_limits_are_those_of_the_last_fit(tmp_path):
    problem = noisy(2, size=60)
    seen = []
    whole = bf.solve(problem, "auto", rng=0, max_iter=12, tol=0, callback=lambda t, s: seen.append((t, s.U.shape[1])))
    assert [t for t, _ in seen] == list(range(1, 13))
    assert {columns for _, columns in seen} == {1, whole.rank}  # those in use, as the rank grows
    for limit in (5, 12):
        part = bf.solve(problem, "auto", rng=0, max_iter=limit, tol=0, checkpoint=tmp_path / "run")
        assert part.n_iter == limit
    np.testing.assert_array_equal(part.U, whole.U)
    np.testing.assert_array_equal(part.rank_search.score, whole.rank_search.score)
    hurried = bf.solve(problem, "auto", rng=0, time_limit=1e-6)
    assert hurried.status is bf.Status.TIME_LIMIT
    assert hurried.rank == 1


def test_the_choice_is_the_least_rank_within_one_standard_error():
    held_out, errors = np.array([5.0, 2.05, 2.0, 1.9, 2.3]), np.array([0.5, 0.2, 0.2, 0.2, 0.2])
    assert rank_search(np.arange(1, 6), np.zeros(5), held_out, errors).chosen == {"rank": 2}
    assert rank_search(np.arange(1, 6), np.zeros(5), held_out, np.zeros(5)).chosen == {"rank": 4}
    assert rank_search(np.array([1]), *(np.ones(1) for _ in range(3))).chosen == {"rank": 1}


P = noisy(1, size=30)


@pytest.mark.parametrize(
    ("message", "options"),
    [
        ("rank='Auto' is not possible.*'auto'", {"rank": "Auto"}),
        ("rank=''", {"rank": ""}),
        ("rank=b'auto'", {"rank": b"auto"}),
        ("rank=None", {"rank": None}),
        ("rank=True", {"rank": True}),
        ("rank=1.5", {"rank": 1.5}),
        ("holds out measurements", {"init": bf.inits.Random()}),
        ("holds out measurements", {"init": bf.inits.Spectral()}),
        ("holds out measurements", {"problem": bf.Function(lambda X: 0.5 * np.sum(X**2), lambda X: X, (5, 5))}),
        ("X = UUᴴ", {"solver": bf.solvers.FGD()}),
        (
            "19 measurements: too few",
            {"problem": bf.Problem(bf.losses.Squared(), bf.operators.Gaussian((5, 5), 19, rng=0), np.ones(19))},
        ),
        ("rng=-1", {"rng": -1}),
        ("tol=-1", {"tol": -1}),
    ],
)
def test_what_cannot_be_chosen_is_refused(message, options):
    with pytest.raises(InputError, match=message):
        bf.solve(**{"problem": P, "rank": "auto", **options})


def test_weights_of_zero_do_not_count_among_the_measurements():
    weights = np.zeros(P.y.size)
    weights[:19] = 1
    with pytest.raises(InputError, match="19 measurements: too few"):
        bf.solve(bf.Problem(P.loss, P.operator, P.y, weights), "auto", rng=0)


def counts(seed, rank=3):
    rng = np.random.default_rng(seed)
    Z = np.clip(rng.standard_normal((60, rank)) @ rng.standard_normal((rank, 40)), -5, 6)
    rows, cols = np.nonzero(rng.random(Z.shape) < 0.6)
    y = rng.poisson(np.exp(Z[rows, cols])).astype(float)
    return bf.Problem(bf.losses.Poisson(), bf.operators.Entries(rows, cols, Z.shape), y)


def test_counts_get_a_path():
    path = bf.solve(counts(0), "auto", rng=0, max_iter=1).rank_search
    assert len(path["rank"]) > 1


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_without_noise_the_rank_is_found(rank, noise):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        U, V = rng.standard_normal((100, rank)), rng.standard_normal((90, rank))
        rows, cols = np.nonzero(rng.random((100, 90)) < 0.4)
        y = np.sum(U[rows] * V[cols], axis=1) + noise * rng.standard_normal(rows.size)
        problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, (100, 90)), y)
        assert bf.solve(problem, "auto", rng=0, max_iter=1).rank == rank


@pytest.mark.parametrize("tried", [0, 2])
def test_ctrl_c_while_the_rank_is_chosen_takes_the_best_so_far(monkeypatch, tmp_path, tried):
    """If there is one, and without a checkpoint, as another search may choose another rank."""
    problem, module, count = noisy(3, size=60), importlib.import_module("bifactor.running.solve"), iter(range(100))
    running = module._iterate

    def pressed(*arguments):
        return bf.Status.INTERRUPTED if next(count) == tried else running(*arguments)

    monkeypatch.setattr(module, "_iterate", pressed)
    if tried == 0:
        with pytest.raises(KeyboardInterrupt):
            bf.solve(problem, "auto", rng=0)
        return
    result = bf.solve(problem, "auto", rng=0, max_iter=20, checkpoint=tmp_path / "run")
    assert result.rank_search.interrupted
    assert result.rank_search.score.size == tried
    assert result.status is not bf.Status.INTERRUPTED
    assert not (tmp_path / "run").exists()
    assert "interrupted by Ctrl-C" in repr(result.rank_search)
