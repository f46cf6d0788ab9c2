"""Which kernels are used for what."""

import subprocess
import sys

import numpy as np
import pytest

from bifactor import kernels

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
        "pictures.plate",
        "models.factor_analysis.lanes",
        "models.imputation.trees",
        "data.hash",
        "data.store.codec",
    ],
)
def test_compiled_and_reference_kernels_have_the_same_names(operation, monkeypatch):
    monkeypatch.setattr(kernels, "SMALL", 100)
    reference = kernels.find(operation, np.float64, 5, 5)
    assert reference.__name__.endswith("_reference")
    assert kernels.find(operation, np.float64, 5, 21).__name__.endswith("_numba")


def test_complex_numbers_are_compiled_for_transforms_alone():
    assert kernels.has_compiled(np.complex128, 1e9, 10, "transforms")
    assert not kernels.has_compiled(np.complex128, 1e9, 10)
    assert not kernels.has_compiled(np.float16, 1e9)


def test_turning_compilation_off(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    assert not kernels.has_compiled(np.float64)
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not kernels.has_compiled(np.float64)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert kernels.has_compiled(np.float64)
