"""Compiled kernels against their NumPy reference, and what they promise about threads."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian
from bifactor.errors import InputError
from bifactor.factors import Free
from bifactor.kernels import compile, entries_numba, entries_reference, threading
from bifactor.kernels.entry_layout import RUN, TILE, arrange
from bifactor.losses import DataFit

SHAPES = [(1, 1, 1), (5, 5, 12), (40, 7, 200), (3000, 11, 9000), (TILE + 900, TILE + 50, (TILE + 900) * RUN * 2)]


def sample(n_outer, n_inner, size, seed=0, index=np.int64):
    rng = np.random.default_rng(seed)
    outer, inner = rng.integers(n_outer, size=size), rng.integers(n_inner, size=size)
    return arrange(outer.astype(index), inner.astype(index), n_outer, n_inner)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_equals_reference(shape, dtype, monkeypatch):
    monkeypatch.setattr(threading, "SMALL", 0)  # use threads however small the problem
    layout, _ = sample(*shape)
    rng = np.random.default_rng(1)
    rank = 3
    P, Q = rng.standard_normal((shape[0], rank)).astype(dtype), rng.standard_normal((shape[1], rank)).astype(dtype)
    w = rng.standard_normal(layout.size).astype(dtype)
    tol = {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(entries_numba.dot(layout, P, Q), entries_reference.dot(layout, P, Q), **tol)
    np.testing.assert_allclose(entries_numba.left(layout, w, Q), entries_reference.left(layout, w, Q), **tol)
    np.testing.assert_allclose(entries_numba.right(layout, w, P), entries_reference.right(layout, w, P), **tol)
    D, E = P[::-1] + 1, Q[::-1] - 1
    expected = (*entries_reference.both(layout, w, P, Q), *entries_reference.curve(layout, P, Q, D, E))
    found = (*entries_numba.both(layout, w, P, Q), *entries_numba.curve(layout, P, Q, D, E))
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, **tol)
        assert got.dtype == dtype


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(30, 20), (20, 30)])
def test_fused_pass_equals_the_plain_one(make_problem, loss, dtype, weighted, shape):
    weights = None
    if weighted:
        size = make_problem(*shape, loss=loss, dtype=dtype).operator.size
        weights = np.random.default_rng(2).random(size)
    problem = make_problem(*shape, loss=loss, dtype=dtype, weights=weights)
    U, V = (0.5 * factor for factor in problem.truth)
    x = problem.kind.pair(U, V)
    value, GV, GhU, _ = problem.f.evaluate(x)
    G = problem.f.gradient(x)
    tol = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(value, problem.f.value(x), rtol=tol)
    np.testing.assert_allclose(GV, G @ V, rtol=tol, atol=tol)
    np.testing.assert_allclose(GhU, G.H @ U, rtol=tol, atol=tol)
    assert GV.dtype == GhU.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("shape", [(30, 20), (20, 30)])
@pytest.mark.parametrize("arranged", [False, True])
def test_curve_is_that_of_the_products(shape, dtype, arranged, monkeypatch):
    monkeypatch.setattr(threading, "SMALL", 0)
    rng = np.random.default_rng(3)
    op = bf.operators.Entries(rng.integers(shape[0], size=400), rng.integers(shape[1], size=400), shape)
    bound = op.bind(DataFit.of(bf.losses.Squared(), gaussian(rng, (400,), dtype)))
    if arranged:  # bound once more, its measurements are in order already
        bound = bound.operator.bind(bound.fit)
    op = bound.operator
    U, D = (gaussian(rng, (shape[0], 5), dtype) for _ in range(2))
    V, E = (gaussian(rng, (shape[1], 5), dtype) for _ in range(2))
    tol = 100 * np.finfo(dtype).eps
    z1, z2 = bound.motion(Free().pair(U, V), Free().pair(D, E))
    np.testing.assert_allclose(z1, (D @ V.conj().T + U @ E.conj().T)[op.rows, op.cols], atol=tol)
    np.testing.assert_allclose(z2, (D @ E.conj().T)[op.rows, op.cols], atol=tol)
    assert z1.dtype == z2.dtype == dtype


def test_factors_that_do_not_fit_are_refused_before_any_loop(make_problem):
    problem = make_problem(30, 20)
    U, V = np.ones((30, 2)), np.ones((20, 2))
    x = Free().pair(U, V)
    for bad in (np.ones((30, 3)), np.ones((29, 2)), np.ones(30)):
        with pytest.raises(InputError):
            problem.operator.forward(bad, V)
        with pytest.raises(InputError):
            problem.f.motion(x, Free().pair(bad, V))
        with pytest.raises(InputError):
            problem.f.evaluate(Free().pair(bad, V))
    with pytest.raises(InputError, match="3 columns"):
        problem.f.motion(x, Free().pair(U, np.ones((20, 3))))


def test_spans_cover_every_entry_once_and_split_no_row():
    layout, _ = sample(500, 9, 4000)
    for threads in (1, 2, 3, 7, 64):
        spans = layout.spans(threads)
        seen = np.concatenate([np.arange(a, b) for start, stop in spans for a, b in zip(start, stop, strict=True)])
        np.testing.assert_array_equal(np.sort(seen), np.arange(layout.size))
        owners = [{*layout.outer[a:b]} for start, stop in spans for a, b in zip(start, stop, strict=True)]
        assert sum(map(len, owners)) == len(set().union(*owners))


def test_tiles_are_used_and_keep_rows_apart():
    layout, order = sample(*SHAPES[-1])
    assert layout.tiles.size > 2
    assert order is not None
    for start, stop in zip(layout.tiles[:-1], layout.tiles[1:], strict=True):
        key = layout.outer[start:stop].astype(np.int64) * layout.n_inner + layout.inner[start:stop]
        assert np.all(np.diff(key) >= 0)
    spans = layout.spans(2)
    rows = [{i for a, b in zip(*span, strict=True) for i in layout.outer[a:b]} for span in spans]
    assert not rows[0] & rows[1]


def test_sorted_input_is_left_alone():
    layout, order = sample(50, 9, 400)
    assert order is not None
    again, order = arrange(layout.outer, layout.inner, 50, 9)
    assert order is None
    np.testing.assert_array_equal(again.outer, layout.outer)


def test_repeatable_and_safe_from_several_threads(make_problem):
    problem = make_problem(400, 300, 8, observed=0.3)
    U, V = problem.truth
    x = problem.kind.pair(U + 0.1, V - 0.1)
    first = problem.f.evaluate(x)
    with ThreadPoolExecutor(4) as callers:
        for other in callers.map(lambda _: problem.f.evaluate(x), range(12)):
            assert other[0] == first[0]
            np.testing.assert_array_equal(other[1], first[1])
            np.testing.assert_array_equal(other[2], first[2])


SCRIPT = textwrap.dedent(
    """
    import sys
    import numpy as np
    import bifactor as bf
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((40, 2)), rng.standard_normal((25, 2))
    rows, cols = np.nonzero(rng.random((40, 25)) < 0.6)
    y = (U @ V.T)[rows, cols]
    out = []
    for loss, target in ((bf.losses.Squared(), y), (bf.losses.Logistic(), np.sign(y)), (bf.losses.Poisson(), y**2)):
        problem = bf.Problem(loss, bf.operators.Entries(rows, cols, (40, 25)), target)
        out.append(bf.solve(problem, 2, rng=0, max_iter=30, tol=0).matrix())
    np.save(sys.argv[1], np.array(out))
    """
)


def test_same_answer_without_the_compiler(tmp_path):
    answers = []
    for disabled in ("0", "1"):
        path = tmp_path / f"{disabled}.npy"
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disabled}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", SCRIPT, str(path)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        answers.append(np.load(path))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-6, atol=1e-8)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_works_after_a_fork():
    script = textwrap.dedent(
        """
        import os, warnings
        warnings.simplefilter("ignore")
        import numpy as np
        import bifactor as bf
        from bifactor.kernels import threading
        threading.SMALL = 0
        rng = np.random.default_rng(0)
        op = bf.operators.Entries(rng.integers(300, size=5000), rng.integers(200, size=5000), (300, 200))
        U, V = rng.standard_normal((300, 3)), rng.standard_normal((200, 3))
        before = op.forward(U, V)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(op.forward(U, V), before) else 1)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_nowhere_to_keep_a_cache_is_no_obstacle(monkeypatch):
    def njit(function, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(function, **options)

    monkeypatch.setattr(compile, "njit", njit)
    assert compile.compiled(lambda x: x + 1)(1) == 2


def test_public_operator_uses_the_same_kernels():
    op = bf.operators.Entries([2, 0, 1], [1, 1, 0], (3, 2))
    U, V = np.arange(3.0)[:, None], np.arange(1.0, 3.0)[:, None]
    np.testing.assert_array_equal(op.forward(U, V), (U @ V.T)[[2, 0, 1], [1, 1, 0]])
