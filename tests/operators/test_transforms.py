"""Noiselets and their family against explicit matrices, and matrix sensing with them."""

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import fft, linalg

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError


def explicit(operator):
    """The matrix of an operator, entry by entry of X."""
    m, n = operator.shape
    columns = [operator.forward(np.eye(m)[:, [i]], np.eye(n)[:, [j]]) for i in range(m) for j in range(n)]
    return np.stack(columns, axis=1)


def dragon(N):
    """Real noiselets by their recursion: pass s pairs labels that differ in their s leading bits, pass 0 in all."""
    y = np.eye(N)
    j = np.arange(N // 2)
    for s in range(N.bit_length() - 1):
        k = N - 1 - j if s == 0 else j ^ ((N - 1) ^ ((N >> s) - 1))
        a, b = y[j].copy(), y[k].copy()
        y[j], y[k] = (a + b, a - b) if s == 0 else (a - b, a + b)
    return y


def coifman(N):
    """Complex noiselets, C = B ⊗ … ⊗ B."""
    C = np.ones((1, 1))
    for _ in range(N.bit_length() - 1):
        C = np.kron(C, 0.5 * np.array([[1 - 1j, 1 + 1j], [1 + 1j, 1 - 1j]]))
    return C


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (2, 2), (2, 4), (4, 4), (16, 2), (8, 16)], ids=str)
def test_noiselets_are_the_explicit_matrices(shape):
    N = shape[0] * shape[1]
    real = bf.operators.Noiselet(shape, np.arange(N), permute=False)
    np.testing.assert_allclose(explicit(real), dragon(N) / N**0.5, atol=1e-14)
    complex_ = bf.operators.Noiselet(shape, np.arange(N), permute=False, complex=True)
    np.testing.assert_allclose(explicit(complex_), coifman(N), atol=1e-14)


def test_small_real_noiselets_by_hand():
    wanted = [[1, -1, 1, 1], [-1, 1, 1, 1], [1, 1, -1, 1], [1, 1, 1, -1]]
    np.testing.assert_array_equal(dragon(4), wanted)
    np.testing.assert_array_equal(dragon(8)[0], [1, -1, -1, -1, 1, -1, 1, 1])
    np.testing.assert_array_equal(dragon(8)[7], [1, 1, -1, 1, 1, 1, 1, -1])


def test_the_others_are_the_explicit_matrices():
    N = 24
    keep = {"size": np.arange(N), "permute": False}
    np.testing.assert_allclose(
        explicit(bf.operators.DCT((4, 6), **keep)), fft.dct(np.eye(N), axis=0, norm="ortho"), atol=1e-14
    )
    np.testing.assert_allclose(
        explicit(bf.operators.Fourier((4, 6), complex=True, **keep)), linalg.dft(N, scale="sqrtn"), atol=1e-14
    )
    np.testing.assert_allclose(
        explicit(bf.operators.Hadamard((4, 8), np.arange(32), permute=False)), linalg.hadamard(32) / 32**0.5
    )
    F = linalg.dft(N, scale="sqrtn")
    packed = explicit(bf.operators.Fourier((4, 6), **keep))
    np.testing.assert_allclose(packed[0], F[0].real, atol=1e-14)
    np.testing.assert_allclose(packed[1::2][:-1], 2**0.5 * F[1:12].real, atol=1e-14)
    np.testing.assert_allclose(packed[2::2], 2**0.5 * F[1:12].imag, atol=1e-14)
    np.testing.assert_allclose(packed[-1], F[12].real, atol=1e-14)


KINDS = [
    (bf.operators.Noiselet, {}),
    (bf.operators.Noiselet, {"complex": True}),
    (bf.operators.Hadamard, {}),
    (bf.operators.DCT, {}),
    (bf.operators.Fourier, {}),
    (bf.operators.Fourier, {"complex": True}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
@pytest.mark.parametrize("scramble", [{}, {"permute": False}, {"signs": True}, {"permute": False, "signs": True}])
def test_unitary_whatever_the_scramble(kind, options, scramble):
    N = 64 * 64
    op = kind((64, 64), np.arange(N), 0, **options, **scramble)
    rng = np.random.default_rng(1)
    U, V = np.linalg.qr(rng.standard_normal((64, 64)))[0], np.eye(64)
    z = op.forward(U, V)
    assert np.linalg.norm(z) == pytest.approx(8.0, rel=1e-12)
    np.testing.assert_allclose(op.adjoint(z) @ V, U, atol=1e-12)  # A*A = I
    w = rng.standard_normal(N) + (1j * rng.standard_normal(N) if options else 0)
    back = op.forward(op.adjoint(w) @ V, V)
    np.testing.assert_allclose(back, w, atol=1e-11)  # AA* = I


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_normalised_measurements_keep_the_norm_on_average(kind, options):
    op = kind((32, 32), 300, 0, normalize=True, **options)
    rng = np.random.default_rng(2)
    ratios = []
    for _ in range(30):
        U, V = rng.standard_normal((32, 2)), rng.standard_normal((32, 2))
        ratios.append(np.linalg.norm(op.forward(U, V)) ** 2 / np.linalg.norm(U @ V.T) ** 2)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.05)
    assert op.norm_squared() == pytest.approx(1024 / 300)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_matrix_sensing_recovers_exactly(kind, options):
    rng = np.random.default_rng(3)
    dtype = complex if options else float
    U, V = (gaussian(rng, (32, 2), dtype) for _ in range(2))
    op = kind((32, 32), 500, 4, **options)
    problem = bf.Problem(bf.losses.Squared(), op, op.forward(U, V))
    assert problem.dtype == dtype
    result = bf.solve(problem, 2, init=bf.inits.Random(), rng=0, tol=1e-10)
    assert bf.metrics.relative_error(result.U, result.V, U, V) < 1e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("kind", "options"), [pair for pair in KINDS if not pair[1]])
def test_the_fused_pass_equals_the_plain_one(kind, options, weighted, dtype, loss):
    rng = np.random.default_rng(5)
    op = kind((16, 32), 100, 6)
    U, V = (0.5 * rng.standard_normal((n, 2)).astype(dtype) for n in op.shape)
    y = np.abs(np.sign(rng.standard_normal(100))).astype(dtype)
    problem = bf.Problem(loss, op, y, rng.random(100) if weighted else None)
    x = problem.kind.pair(U, V)
    value, GV, GhU, _ = problem.f.evaluate(x)
    G = problem.f.gradient(x)
    tol = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(value, problem.f.value(x), rtol=tol)
    np.testing.assert_allclose(GV, G @ V, rtol=tol, atol=tol)
    np.testing.assert_allclose(GhU, G.H @ U, rtol=tol, atol=tol)
    assert GV.dtype == GhU.dtype == dtype


def test_a_lazy_matrix_survives_its_memory_being_used_again():
    op = bf.operators.Noiselet((8, 8), 20, 0)
    rng = np.random.default_rng(0)
    first, second = op.adjoint(rng.standard_normal(20)), op.adjoint(rng.standard_normal(20))
    V = np.eye(8)
    before = first @ V
    other = second @ V
    op.forward(V, V)
    np.testing.assert_array_equal(first @ V, before)
    np.testing.assert_array_equal(second @ V, other)


def test_memory_goes_with_the_operator():
    op = bf.operators.Noiselet((8, 8), 20, 0)
    op.adjoint(np.ones(20)) @ np.eye(8)
    alive = weakref.ref(op)
    del op
    gc.collect()
    assert alive() is None


def test_small_integer_samples():
    sample = np.array([1, 2, 3], np.uint8)
    assert bf.operators.Noiselet((64, 64), sample, 0, complex=True).size == 3


def test_threads_have_memory_of_their_own():
    op = bf.operators.Noiselet((64, 64), 900, 0)
    rng = np.random.default_rng(0)
    factors = [(rng.standard_normal((64, 3)), rng.standard_normal((64, 3))) for _ in range(40)]
    one_by_one = [op.forward(*pair) for pair in factors]
    with ThreadPoolExecutor(4) as pool:
        for got, wanted in zip(pool.map(lambda pair: op.forward(*pair), factors), one_by_one, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_operators_can_be_pickled():
    op = bf.operators.Noiselet((8, 8), 20, 0)
    U = np.eye(8)
    before = op.forward(U, U)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(op)).forward(U, U), before)


def test_the_same_seed_gives_the_same_operator():
    U = np.random.default_rng(0).standard_normal((8, 3))
    a, b, c = (bf.operators.Noiselet((8, 8), 20, seed).forward(U, U) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


@pytest.mark.parametrize("kind", [bf.operators.Noiselet, bf.operators.Hadamard])
def test_other_lengths_are_refused_with_a_way_out(kind):
    with pytest.raises(InputError, match=r"power of two, but 3·5 = 15 is not\. Use DCT or Fourier"):
        kind((3, 5), 4)


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ("Choose 1 to 16", 0),
        ("Choose 1 to 16", 17),
        ("Choose 1 to 16", 2.5),
        ("repeated indices, or indices outside 0 to 15", [1, 1]),
        ("repeated indices, or indices outside 0 to 15", [16]),
        ("repeated indices, or indices outside 0 to 15", [-1]),
        ("vector of indices", [[1]]),
        ("vector of indices", [0.5]),
        ("vector of indices", []),
    ],
)
def test_bad_samples_are_refused(message, size):
    with pytest.raises(InputError, match=message):
        bf.operators.Noiselet((4, 4), size)
