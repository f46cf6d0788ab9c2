"""Solvers of X itself on a matrix that would take 800 MB: they never form it."""

import time
import tracemalloc

import numpy as np
import pytest

import bifactor as bf
from bifactor.penalties import Ridge
from bifactor.solvers import SPG, SVP, NuclearNorm, SoftImpute

M, N, RANK, SEEN = 20_000, 5_000, 5, 2_000_000
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def large():
    """Two million entries of a 20,000×5,000 matrix of rank 5 with noise."""
    rng = np.random.default_rng(0)
    U, V = rng.standard_normal((M, RANK)), rng.standard_normal((N, RANK))
    rows, cols = rng.integers(M, size=SEEN), rng.integers(N, size=SEEN)
    y = np.einsum("ik,ik->i", U[rows], V[cols]) + 0.1 * rng.standard_normal(SEEN)
    return bf.Problem(bf.losses.Squared(), bf.operators.Entries(rows, cols, (M, N)), y)


RADIUS = RANK * (M * N) ** 0.5  # about the nuclear norm of the truth


@pytest.mark.parametrize(
    ("solver", "rank", "rho", "share"),
    [
        (SVP(), 5, None, 0.01),  # a rank too high makes it diverge at this density
        (SPG(RADIUS), 8, None, 0.8),
        (NuclearNorm(), 8, 100.0, 0.8),
        (SoftImpute(), 8, 100.0, 1.0),
    ],
    ids=["SVP", "SPG", "NuclearNorm", "SoftImpute"],
)
def test_memory(large, solver, rank, rho, share):
    problem = large if rho is None else large.penalized(Ridge(rho))
    tracemalloc.start()
    try:
        started = time.perf_counter()
        result = bf.solve(problem, rank, solver, max_iter=4)
        seconds = time.perf_counter() - started
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.n_iter == 4
    assert np.isfinite(result.objective)
    assert result.objective < share * result.history.objective[0]
    assert peak < 400 * MEGABYTE, f"{peak / MEGABYTE:.0f} MB in {seconds:.1f} s"


def test_bounds_on_entries_are_refused(large):
    tracemalloc.start()
    try:
        with pytest.raises(bf.errors.InputError, match="20000×5000 is more than"):
            bf.solve(large, N, SPG(RADIUS, bound=5.0))
        assert tracemalloc.get_traced_memory()[1] < 10 * MEGABYTE
    finally:
        tracemalloc.stop()
