"""Which kernels are used for what."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bifactor
from bifactor import kernels
from bifactor.kernels.entry_layout import arrange

SCRIPT = """
import sys
import numpy as np
import bifactor as bf
rng = np.random.default_rng(0)
X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 30))
X[rng.random(X.shape) < 0.4] = np.nan
problem = bf.Problem(bf.losses.Logistic() if {labels} else bf.losses.Squared(), *bf.operators.Entries.from_dense(
    np.where(np.isnan(X), np.nan, np.sign(X)) if {labels} else X), penalty=bf.penalties.Ridge(0.1))
result = bf.solve(problem, 3, rng=0)
assert result.status.converged
print(sorted(set(sys.modules) & {{"numba", "sklearn", "pandas"}}))
"""


def is_compiled(kernel):
    return kernel.__name__.endswith("_numba")


@pytest.mark.parametrize("labels", [False, True])
def test_a_small_fit_loads_neither_numba_nor_scikit_learn(labels):
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(labels=labels)], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    "operation",
    [
        "entries",
        "row_blocks",
        "losses",
        "rows",
        "transforms",
        "blas",
        "applications.pictures.plate",
        "models.factor_analysis.lanes",
        "models.imputation.trees",
        "data.hash",
        "data.store.codec",
    ],
)
def test_compiled_and_reference_kernels_have_the_same_names(operation, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 100)
    assert kernels.get(operation, np.empty(0), 5, 5).__name__.endswith("_reference")
    assert is_compiled(kernels.get(operation, np.empty(0), 5, 21))


def test_complex_numbers_are_compiled_for_transforms_alone():
    assert is_compiled(kernels.get("transforms", np.empty(0, complex), 1e9, 10))
    assert not is_compiled(kernels.get("entries", np.empty(0, complex), 1e9, 10))
    assert not is_compiled(kernels.get("entries", np.empty(0, np.float16), 1e9))


def test_an_operation_without_a_reference_is_composed_by_its_caller(monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 100)
    assert is_compiled(kernels.get("operators.subsampled", np.empty(0), 1e9))
    assert kernels.get("operators.subsampled", np.empty(0), 5) is None
    assert kernels.get("operators.subsampled", np.empty(0, complex), 1e9) is None


def test_other_libraries_share_their_memory_with_kernels_of_numpy_if_it_is_the_host():
    strict = pytest.importorskip("array_api_strict", reason="array_api_strict is not installed here")
    rng = np.random.default_rng(0)
    layout, _ = arrange(rng.integers(30, size=99), rng.integers(20, size=99), 30, 20)
    P, Q = rng.standard_normal((30, 4)), rng.standard_normal((20, 4))
    for size in (99, 1e9):
        kernel = kernels.get("entries", strict.asarray(P), size, 4)
        z = kernel.dot(layout, strict.asarray(P), strict.asarray(Q))
        assert type(z) is type(strict.asarray(P))
        np.testing.assert_array_equal(np.asarray(z), kernels.get("entries", P, size, 4).dot(layout, P, Q))
    far = strict.asarray(P, device=strict.Device("device1"))
    assert kernels.get("entries", far, 99, 4) is None
    assert kernels.get("losses", far, 1e9).__name__.endswith("losses_reference")  # by array functions alone


def test_functions_with_a_compiled_twin_are_reached_through_get():
    """Other code may import types, constants and functions of a reference that have no twin."""
    source = Path(bifactor.__file__).parent
    for path in source.rglob("*.py"):
        if path.stem.endswith(("_numba", "_reference")) or path.parent.name == "kernels":
            continue
        tree = ast.parse(path.read_text())
        homes = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("bifactor"):
                assert not any(name.name.endswith("_numba") for name in node.names), path
                assert not node.module.endswith("_numba"), path
                if node.module.endswith("_reference"):
                    used = {name.name for name in node.names}
                    assert not used & twins(node.module), path
                homes |= {name.name: f"{node.module}.{name.name}" for name in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                home = homes.get(node.value.id, "")
                assert not home.endswith("_reference") or node.attr not in twins(home), path


def twins(reference):
    """The functions of a reference that are compiled too."""
    compiled = importlib.import_module(reference.removesuffix("_reference") + "_numba")
    return {
        name
        for name, value in vars(importlib.import_module(reference)).items()
        if inspect.isfunction(value)
        and value.__module__ == reference
        and getattr(vars(compiled).get(name), "__module__", None) == compiled.__name__
    }


def test_turning_compilation_off(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert not is_compiled(kernels.get("entries", np.empty(0), np.inf))
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not is_compiled(kernels.get("entries", np.empty(0), np.inf))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert is_compiled(kernels.get("entries", np.empty(0), np.inf))
