"""Peaks of memory, measured in a process of its own, where nothing else allocates.

`python peaks.py` prints in JSON, for each case, the bytes at the peak of a run beyond the problem and those that the
problem told before.
"""

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy import sparse

import bifactor as bf
from bifactor import operators, solvers
from bifactor.arrays import gaussian
from bifactor.kernels import memory

SHAPE, ENTRIES = (8_000, 4_000), 200_000
SENSED, SIZE = (256, 256), 50_000

memory.REUSED_BYTES = 1 << 18
"""So that each kind of array is kept for use again: smaller ones are not."""

OPERATORS = {
    "Comparisons": lambda rng: comparisons(rng),
    "Comparisons, wide": lambda rng: comparisons(rng, SHAPE[::-1]),
    "DCT": lambda rng: operators.DCT(SENSED, SIZE, 0),
    "Entries": lambda rng: entries(rng, SHAPE[::-1]),
    "Featured": lambda rng: operators.Featured(entries(rng), rng.standard_normal((SHAPE[0], 4))),
    "Fourier": lambda rng: operators.Fourier(SENSED, SIZE, 0),
    "Fourier, complex": lambda rng: operators.Fourier(SENSED, SIZE, 0, complex=True),
    "Full": lambda rng: operators.Full(SENSED),
    "Gaussian": lambda rng: operators.Gaussian(SENSED, 20, 0),
    "Gaussian, drawn again": lambda rng: operators.Gaussian((256, 256), 20, 0, block=10),
    "Hadamard": lambda rng: operators.Hadamard(SENSED, SIZE, 0),
    "Linear": lambda rng: operators.Linear(rng.standard_normal((20, 256 * 256)), (256, 256)),
    "Linear, sparse": lambda rng: operators.Linear(sparse_rows(rng), SENSED),
    "Noiselet": lambda rng: operators.Noiselet(SENSED, SIZE, 0),
    "Pauli": lambda rng: operators.Pauli(8, SIZE, 0),
    "RankOne": lambda rng: operators.RankOne(gaussian(rng, (20_000, 60), float), gaussian(rng, (20_000, 50), float)),
    "RankOne, complex": lambda rng: operators.RankOne(gaussian(rng, (5_000, 60), complex)),
    "Recomputed": lambda rng: operators.Recomputed(entries(rng)),
    "Recomputed, noiselets": lambda rng: operators.Recomputed(operators.Noiselet(SENSED, SIZE, 0)),
    "Scaled": lambda rng: operators.Scaled(entries(rng), 2.0),
    "Stacked": lambda rng: operators.Stacked(operators.Noiselet(SENSED, SIZE // 2, 0), operators.DCT(SENSED, SIZE, 0)),
    "Stacked, entries": lambda rng: operators.Stacked(entries(rng, count=ENTRIES // 2), entries(rng, count=ENTRIES)),
}
HERMITIAN = ("Pauli", "RankOne, complex")
SINGLE = ("Comparisons", "Entries", "Fourier", "Gaussian", "Linear, sparse", "RankOne", "Stacked")
"""Those with steps in double precision, or without any, are measured in single precision too."""

SOLVERS = {
    "AltMin": solvers.AltMin(),
    "BFGD": solvers.BFGD(),
    "BFGD, curve": solvers.BFGD(bf.steps.CurveSearch()),
    "FGD": solvers.FGD(),
    "Variational": solvers.Variational(),
    "Variational, student": solvers.Variational("student"),
    "Variational, features": solvers.Variational(row_features=np.ones((SHAPE[0], 5)), column_features=np.eye(SHAPE[1])),
    "Variational, implicit": solvers.Variational(implicit=True),
    "GuaranteedMC": solvers.GuaranteedMC(),
    "MiFGD": solvers.MiFGD(),
    "Newton": solvers.Newton(),
    "NuclearNorm": solvers.NuclearNorm(),
    "PCG": solvers.PCG(),
    "ProcrustesFlow": solvers.ProcrustesFlow(),
    "Race": solvers.Race((solvers.RankContinuation(stages=2), solvers.PCG()), patience=4),
    "RankContinuation": solvers.RankContinuation(stages=3),
    "Refitted": solvers.Refitted(),
    "RidgeHomotopy": solvers.RidgeHomotopy(),
    "SPG": solvers.SPG(1e4),
    "SPG, bound": solvers.SPG(1e4, bound=3.0),
    "SVP": solvers.SVP(),
    "SVP, normalized": solvers.SVP(normalized=True),
    "ScaledGD": solvers.ScaledGD(),
    "SoftImpute": solvers.SoftImpute(),
    "SparseApproxSDP": solvers.SparseApproxSDP(1e4),
}
ITERATIONS = {
    "PCG": 26,
    "NuclearNorm": 2,
    "SparseApproxSDP": 11,
    "RankContinuation": 40,
    "RidgeHomotopy": 20,
    "Race": 40,
}
"""Of those whose peak is not at once: what is done every so often, and factors that grow."""


class Case(NamedTuple):
    """A problem to be made, and how it is solved."""

    name: str
    make: Callable[[], bf.Objective]
    rank: int
    solver: solvers.Solver
    iterations: int = 4


def entries(rng, shape=SHAPE, count=ENTRIES):
    return operators.Entries(rng.integers(shape[0], size=count), rng.integers(shape[1], size=count), shape)


def comparisons(rng, shape=SHAPE, count=ENTRIES):
    left = rng.integers(shape[1], size=count)
    return operators.Comparisons(rng.integers(shape[0], size=count), left, (left + 1) % shape[1], shape)


def sparse_rows(rng):
    rows, cols = np.repeat(np.arange(SIZE), 2), rng.integers(SENSED[0] * SENSED[1], size=2 * SIZE)
    return sparse.csr_array((rng.standard_normal(2 * SIZE), (rows, cols)), shape=(SIZE, SENSED[0] * SENSED[1]))


def problem_of(make, rank, dtype=np.float64, loss=None, **settings):
    """Some measurements of a matrix of low rank, with noise."""
    operator, rng = make(np.random.default_rng(0)), np.random.default_rng(1)
    kind = np.result_type(dtype, np.complex64) if operator.complex_matrix else dtype
    U = gaussian(rng, (operator.shape[0], rank), kind)
    V = U if settings.get("symmetric") else gaussian(rng, (operator.shape[1], rank), kind)
    z = operator.forward(U, V)
    y = (z + 0.1 * gaussian(rng, z.shape, z.dtype)).astype(z.dtype)
    return bf.Problem(bf.losses.Squared() if loss is None else loss, operator, y, **settings)


def function_of(dtype):
    T = np.random.default_rng(0).standard_normal(SENSED).astype(dtype)
    return bf.Objective(bf.Function(lambda X: 0.5 * float(np.sum((X - T) ** 2)), lambda X: X - T, SENSED, 1.0, dtype))


def solver_cases() -> Iterator[Case]:
    for name, solver in SOLVERS.items():
        make, rank, settings = entries, 10, {}
        if name == "NuclearNorm":
            settings["penalty"] = bf.penalties.Ridge(1.0)
        if name == "Refitted":
            settings["loss"] = bf.losses.Huber(0.7)
        if name == "FGD":
            make, settings["symmetric"] = (lambda rng: entries(rng, SHAPE[:1] * 2)), True
        if name == "SPG, bound":
            make, rank = (lambda rng: entries(rng, (300, 250), 30_000)), 250
        yield Case(name, partial(problem_of, make, 10, **settings), rank, solver, ITERATIONS.get(name, 3))
    single = partial(problem_of, entries, 10, np.float32, penalty=bf.penalties.Ridge(1.0))
    yield from (Case(f"{name} in float32", single, 10, SOLVERS[name]) for name in ("PCG", "SoftImpute"))


def operator_cases() -> Iterator[Case]:
    for dtype, names in ((np.float64, OPERATORS), (np.float32, SINGLE)):
        for name in names:
            problem = partial(problem_of, OPERATORS[name], 5, dtype, symmetric=name in HERMITIAN)
            yield Case(f"{name} in {np.dtype(dtype)}", problem, 5, solvers.PCG())
        yield Case(f"Function in {np.dtype(dtype)}", partial(function_of, dtype), 5, solvers.PCG())


def measured(case: Case) -> tuple[int, int]:
    with ThreadPoolExecutor(1) as other:  # operators keep memory for each thread: in this one there is none yet
        problem = other.submit(case.make).result()
    told = problem.memory(case.rank, case.solver).run
    gc.collect()
    tracemalloc.start()
    bf.solve(problem, case.rank, case.solver, rng=0, max_iter=case.iterations, tol=0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak, told


if __name__ == "__main__":
    # What is compiled takes memory too: once, before anything is measured.
    for warm in (np.float64, np.float32, np.complex64, np.complex128):
        small = problem_of(lambda rng: entries(rng, (60, 50), 1500), 2, warm)
        bf.solve(small, 2, rng=0, max_iter=3)
    cases = {"solvers": solver_cases, "operators": operator_cases}
    print(json.dumps({which: {case.name: measured(case) for case in made()} for which, made in cases.items()}))
