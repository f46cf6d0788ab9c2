"""Kernels of torch: the numbers of the reference, and no tensor is converted to NumPy."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from tests.conftest import LOSSES, targets

import bifactor as bf
from bifactor import kernels
from bifactor.arrays import gaussian
from bifactor.factors import Free
from bifactor.kernels import entries_reference, entry_layout
from bifactor.kernels.entry_layout import arrange

torch = pytest.importorskip("torch", reason="torch is not installed here")
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
RANK = 3


@pytest.fixture(params=["one tile", "tiles", "no entries"])
def layout(request, monkeypatch):
    """Some rows have no entries, and some entries are observed twice."""
    if request.param == "tiles":
        monkeypatch.setattr(entry_layout, "TILE", 8)
    rng = np.random.default_rng(0)
    size = 0 if request.param == "no entries" else 900
    found, _ = arrange(rng.integers(38, size=size), rng.integers(25, size=size), 40, 25)
    assert (found.tiles.size > 2) == (request.param == "tiles")
    return found


@pytest.fixture
def same(layout):
    """Whether a function returns what that of the reference returns, in the same precision."""
    kernel = kernels.get("entries", torch.empty(0, dtype=torch.complex128), 1)

    def check(name, *arguments):
        here = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
        got, wanted = getattr(kernel, name)(layout, *here), getattr(entries_reference, name)(layout, *arguments)
        single = any(isinstance(a, np.ndarray) and np.finfo(a.dtype).eps > 1e-10 for a in arguments)
        for a, b in zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]:
            if isinstance(b, np.ndarray) and name != "quartic":
                a = a.numpy()
                assert a.dtype == b.dtype
            assert np.shape(a) == np.shape(b)
            assert np.linalg.norm(a - b) <= (1e-5 if single else 1e-13) * np.linalg.norm(b)

    return check


def test_torch_has_every_function_of_the_reference_for_its_tensors_alone(monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 1 << 16)
    single, double = torch.empty(0), torch.empty(0, dtype=torch.complex128)
    for like, size in ((single, 1), (double, 1), (double, 1e9)):
        assert kernels.get("entries", like, size).__name__.endswith("entries_torch")
        assert kernels.get("entries", like.numpy(), size).__name__.endswith("_reference")
    assert kernels.get("entries", single, 1e9).__name__.endswith("entries_numba")  # three times as fast on a CPU
    kernel = kernels.get("entries", torch.empty(0, dtype=torch.complex128), 1)
    for name, function in inspect.getmembers(entries_reference, inspect.isfunction):
        if function.__module__ == entries_reference.__name__ and not name.startswith("_"):
            assert list(inspect.signature(getattr(kernel, name)).parameters) == list(
                inspect.signature(function).parameters
            )


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(same, layout, dtype):
    rng = np.random.default_rng(1)
    P, D = (gaussian(rng, (40, RANK), dtype) for _ in range(2))
    Q, E = (gaussian(rng, (25, RANK), dtype) for _ in range(2))
    w = gaussian(rng, (layout.size,), dtype)
    same("dot", P, Q)
    same("curve", P, Q, D, E)
    same("left", w, Q)
    same("right", w, P)
    same("both", w, P, Q)
    same("both", w, P[:, :0], Q)
    same("both", w, P.astype(np.result_type(dtype, np.float64)), Q)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_passes(same, layout, loss, weighted, dtype):
    rng = np.random.default_rng(2)
    P, D, A = (0.5 * gaussian(rng, (40, RANK), dtype) for _ in range(3))
    Q, E, B = (0.5 * gaussian(rng, (25, RANK), dtype) for _ in range(3))
    y = targets(loss, entries_reference.dot(layout, P, Q), rng)
    data = y, rng.random(layout.size if weighted else 0).astype(dtype)
    same("fused", loss, *data, P, Q)
    same("slopes", loss, *data, P, Q, A, B)
    same("slopes", loss, *data, P, Q, A[:, :0], B)
    same("bent", loss, *data, P, Q, D, E)
    same("along", loss, *data, P, Q, D, E, 0.3)
    if loss.quadratic:
        same("quartic", *data, P, Q, D, E)


def tensors(dtype, recomputed=False):
    """A problem with tensors, too small for a compiled loop, and a point."""
    rng, shape = np.random.default_rng(3), (600, 400)
    rows, cols = np.unravel_index(np.sort(rng.permutation(600 * 400)[:5_000]), shape)
    operator = bf.operators.Entries(rows, cols, shape)
    operator = bf.operators.Recomputed(operator) if recomputed else operator
    sides = (torch.from_numpy(gaussian(rng, (k, RANK), dtype)) for k in shape)
    y, w = (torch.from_numpy(rng.random(5_000).astype(dtype)) for _ in range(2))
    return bf.Problem("squared", operator, y, w), Free().pair(*sides)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("recomputed", [False, True])
def test_the_fused_pass_converts_no_tensor(dtype, recomputed, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 1 << 16)
    problem, x = tensors(dtype, recomputed)
    f = problem.f
    first = f.evaluate(x)
    for name in ("numpy", "__array__", "tolist"):
        monkeypatch.setattr(torch.Tensor, name, lambda *_: pytest.fail("a tensor was converted"))
    again = f.evaluate(x)
    monkeypatch.undo()
    products = f.gradient(x).products(x.left, x.right)
    assert again.f == first.f  # the same bits
    for one, two, three in zip(first[1:3], again[1:3], products, strict=True):
        assert torch.equal(one, two)
        assert torch.allclose(one, three, rtol=1e-4)


def test_coordinates_are_shared():
    kernel = kernels.get("entries", torch.empty(0, dtype=torch.complex128), 1)
    rng = np.random.default_rng(4)
    layout, _ = arrange(rng.integers(40, size=99), rng.integers(25, size=99), 40, 25)
    kernel.dot(layout, torch.ones(40, 1), torch.ones(25, 1))
    side = kernel._SIDES[layout][torch.device("cpu")][0]
    assert np.shares_memory(side.rows.numpy(), layout.outer)
    assert np.shares_memory(side.others.numpy(), layout.inner)


def test_torch_is_not_loaded_for_arrays_of_numpy():
    code = """
import sys
import numpy as np
import bifactor as bf
rng = np.random.default_rng(0)
for size in (300, 40_000):
    rows, cols = rng.integers(300, size=size), rng.integers(200, size=size)
    problem = bf.Problem("squared", bf.operators.Entries(rows, cols, (300, 200)), rng.standard_normal(size))
    bf.solve(problem, 2, rng=0, max_iter=3)
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
