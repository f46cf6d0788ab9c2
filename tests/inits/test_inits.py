"""Where runs start."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import is_complex
from bifactor.errors import InputError

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("symmetric", [False, True])
def test_random_has_the_norm_asked_for(make_problem, dtype, symmetric):
    problem = make_problem(9, 9, dtype=dtype, symmetric=symmetric)
    x = bf.inits.Random(norm=3.5)(problem, 4, np.random.default_rng(0))
    U, V = x.left, x.right
    assert np.linalg.norm(U @ V.conj().T) == pytest.approx(3.5, rel=1e-5)
    assert np.linalg.norm(U) == pytest.approx(np.linalg.norm(V), rel=1e-5)
    assert U.dtype == V.dtype == dtype
    assert np.array_equal(U, V) == symmetric
    assert x.kind == problem.kind


@pytest.mark.parametrize("dtype", DTYPES)
def test_spectral_is_the_truncated_svd_of_the_gradient(make_problem, dtype):
    problem = make_problem(40, 30, rank=3, dtype=dtype, noiseless=True)
    x = bf.inits.Spectral()(problem, 3, np.random.default_rng(0))
    U, V = x.left, x.right
    zero = problem.kind.pair(np.zeros((40, 1), dtype), np.zeros((30, 1), dtype))
    G = problem.f.gradient(zero) @ np.eye(30, dtype=dtype)
    A, s, B = np.linalg.svd(-G)
    wanted = (A[:, :3] * s[:3]) @ B[:3]
    X = U @ V.conj().T
    cosine = np.vdot(wanted, X).real / np.linalg.norm(wanted) / np.linalg.norm(X)
    assert cosine == pytest.approx(1.0, abs=1e-4)
    np.testing.assert_allclose(U.conj().T @ U, V.conj().T @ V, atol=1e-3 * s[0])  # balanced
    assert is_complex(U) == (np.dtype(dtype).kind == "c")
    # The multiple is the best one: no other does better.
    best = problem.f.value(x)
    assert all(problem.f.value(t * x) >= best * (1 - 1e-6) for t in (0.8, 0.98, 1.02, 1.3))


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_sketch_is_close_to_the_truncated_svd_of_an_evened_gradient(symmetric):
    rng = np.random.default_rng(0)
    m, n, popular = 120, 100 + 20 * symmetric, 1 / (np.arange(100 + 20 * symmetric) + 2.0)
    i, j = rng.integers(0, m, 6000), rng.choice(n, 6000, p=popular / popular.sum())
    U, V = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
    X = U @ (U if symmetric else V).T
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries(i, j, (m, n)), X[i, j], symmetric=symmetric)
    x = bf.inits.Spectral(sketch=True)(problem, 2, np.random.default_rng(0))
    G = -(problem.gradient_at_zero() @ np.eye(n))
    rows, cols = (np.bincount(at, minlength=k).astype(float) for at, k in ((i, m), (j, n)))
    if symmetric:
        G, rows, cols = (G + G.T) / 2, (rows + cols) / 2, (rows + cols) / 2
    a, b = ((w + w.mean()) ** -0.5 for w in (rows, cols))
    A, s, B = np.linalg.svd(a[:, None] * G * b)
    wanted = a[:, None] * ((A[:, :2] * s[:2]) @ B[:2]) * b
    found = x.left @ x.right.T

    def cosine(one, other):
        return np.vdot(one, other) / np.linalg.norm(one) / np.linalg.norm(other)

    assert cosine(found, wanted) > 0.999
    # And closer to X than without: there, what is popular is all that counts.
    plain = bf.inits.Spectral()(problem, 2, np.random.default_rng(0))
    assert cosine(found, X) > cosine(plain.left @ plain.right.T, X) + 0.05


@pytest.mark.parametrize("asked", [{"fit": "yes"}, {"sketch": 3}])
def test_bad_settings_of_spectral_are_refused(asked):
    with pytest.raises(InputError, match=f"{next(iter(asked))}="):
        bf.inits.Spectral(**asked)


def test_spectral_is_the_positive_part_where_x_is_uu(make_problem):
    problem = make_problem(30, rank=2, symmetric=True, noiseless=True)
    x = bf.inits.Spectral()(problem, 2, np.random.default_rng(0))
    assert len(x.arrays) == 1
    U = x.left
    T = problem.truth[0] @ problem.truth[0].T
    assert np.vdot(U @ U.T, T) > 0.8 * np.linalg.norm(U @ U.T) * np.linalg.norm(T)


def test_spectral_when_zero_is_optimal_is_zero():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Entries([0, 1], [1, 0], (3, 3)), [0.0, 0.0])
    result = bf.solve(problem, 2, rng=0)
    assert result.status is bf.Status.GRADIENT
    assert result.objective == 0
    np.testing.assert_array_equal(result.matrix(), np.zeros((3, 3)))
    negative = bf.Problem(bf.losses.Squared(), bf.operators.Full((3, 3)), -np.eye(3), symmetric=True)
    np.testing.assert_array_equal(bf.solve(negative, 1, bf.solvers.FGD(), rng=0).matrix(), np.zeros((3, 3)))


def test_directions_that_the_gradient_does_not_show_can_still_grow():
    # Huber's gradient at 0 is ±δ here, a matrix of rank 1; the data have rank 2.
    X = np.outer([1, 1, 1, 1.0], [10, 10, 10.0]) + np.outer([1, -1, 1, -1.0], [3, -3, 3.0])
    problem = bf.Problem(bf.losses.Huber(1.0), bf.operators.Full(X.shape), X)
    result = bf.solve(problem, 2, rng=0, max_iter=5000, tol=1e-10)
    np.testing.assert_allclose(result.matrix(), X, atol=1e-3)


def test_separable_labels_get_a_finite_start():
    problem = bf.Problem(bf.losses.Logistic(), bf.operators.Full((4, 3)), np.ones((4, 3)))
    x = bf.inits.Spectral()(problem, 1, np.random.default_rng(0))
    X = x.left @ x.right.T
    assert np.isfinite(X).all()
    assert np.all(X > 1)


FIXED = {"offsets": True}, {"fixed": (np.arange(24.0).reshape(8, 3), None)}, {"fixed": (None, np.eye(7)[:, :2])}


@pytest.mark.parametrize("kind", FIXED, ids=str)
@pytest.mark.parametrize("init", [bf.inits.Spectral(), bf.inits.Random(2.0), bf.inits.Zero()], ids=str)
def test_fixed_columns_come_in_front_of_the_same_start(init, kind):
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((8, 7))
    plain = bf.Problem(bf.losses.Squared(), bf.operators.Full(Y.shape), Y)
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(Y.shape), Y, **kind)
    x, without = (init(part, 2, np.random.default_rng(0)) for part in (problem, plain))
    extra, k = problem.kind.fixed_columns, problem.kind.L.shape[1]
    assert x.width == extra + 2
    np.testing.assert_array_equal(x.left[:, :k], problem.kind.L)
    np.testing.assert_array_equal(x.right[:, k:extra], problem.kind.R)
    assert not x.left[:, k:extra].any()  # their partners
    assert not x.right[:, :k].any()
    for ours, theirs in ((x.left, without.left), (x.right, without.right)):
        np.testing.assert_array_equal(ours[:, extra:], theirs)
    # A start that has been fitted may be given again, with its fixed columns or without.
    for start in (x.columns(slice(extra, None)), x):
        again = bf.inits.Given(start.left, start.right)(problem, 2, rng)
        np.testing.assert_array_equal(again.left, x.left)
        np.testing.assert_array_equal(again.right, x.right)


def test_given_is_taken_as_it_is_and_left_alone(make_problem):
    problem = make_problem(6, 5)
    U, V = np.asfortranarray(np.ones((6, 2))), np.ones((2, 5)).T
    U.setflags(write=False)
    result = bf.solve(problem, 2, init=bf.inits.Given(U, V), max_iter=0)
    np.testing.assert_allclose(result.matrix(), U @ V.T, rtol=1e-12)
    bf.solve(problem, 2, init=bf.inits.Given(U, V), max_iter=3)
    np.testing.assert_array_equal(U, np.ones((6, 2)))


def test_given_complex_factors_for_real_data():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((3, 3)), np.eye(3))
    start = bf.inits.Given(np.eye(3, 2) * (1 + 0.5j), np.eye(3, 2) * 1j)
    assert np.iscomplexobj(bf.solve(problem, 2, init=start, max_iter=3).U)
    labels = bf.Problem(bf.losses.Logistic(), bf.operators.Full((3, 3)), np.ones((3, 3)))
    with pytest.raises(InputError, match="real measurements"):
        bf.solve(labels, 2, init=start)


@pytest.mark.parametrize(
    ("message", "start", "symmetric"),
    [
        ("U has shape", bf.inits.Given(np.ones((5, 2)), np.ones((6, 2))), False),
        ("V has shape", bf.inits.Given(np.ones((6, 2)), np.ones((6, 3))), False),
        ("U holds 1 NaN", bf.inits.Given(np.diag([1, np.nan, 1, 1, 1, 1])[:, :2], np.ones((6, 2))), False),
        (r"The start has no V.*Pass both factors", bf.inits.Given(np.ones((6, 2))), False),
        ("different from U", bf.inits.Given(np.ones((6, 2)), np.zeros((6, 2))), True),
    ],
)
def test_bad_pairs_are_refused(make_problem, message, start, symmetric):
    for solver in (bf.solvers.PCG(), bf.solvers.FGD() if symmetric else bf.solvers.BFGD()):
        with pytest.raises(InputError, match=message):
            bf.solve(make_problem(6, 6, symmetric=symmetric), 2, solver, start)


def test_fixed_columns_of_a_start_are_those_of_the_problem():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((3, 3)), np.eye(3), offsets=True)
    with pytest.raises(InputError, match="fixed columns"):
        bf.solve(problem, 1, init=bf.inits.Given(np.full((3, 3), 2.0), np.ones((3, 3))))


def test_a_start_that_overflows_is_refused(make_problem):
    start = bf.inits.Given(np.full((6, 2), 1e200), np.full((6, 2), 1e200))
    with pytest.raises(InputError, match="smaller factors"):
        bf.solve(make_problem(6, 6), 2, init=start)


@pytest.mark.parametrize("norm", [0, -1, np.nan, np.inf, "big"])
def test_bad_norms_are_refused(norm):
    with pytest.raises(InputError, match="norm="):
        bf.inits.Random(norm)
