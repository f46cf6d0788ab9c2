"""What tests need that compare a solver, iterate by iterate, with its formulas on dense matrices."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import bifactor as bf
from bifactor.arrays import gaussian, herm


@pytest.fixture(scope="session")
def sensing() -> Callable[..., bf.Problem]:
    """Gaussian measurements of a matrix of low rank, of unit curvature on average; its factors are `problem.truth`."""

    def make(
        m=12, n=10, rank=2, size=90, noise=0.0, symmetric=False, dtype=np.float64, seed=0, penalty=None
    ) -> bf.Problem:
        rng = np.random.default_rng(seed)
        U = gaussian(rng, (m, rank), dtype)
        V = U if symmetric else gaussian(rng, (n, rank), dtype)
        operator = bf.operators.Gaussian((m, V.shape[0]), size, rng=seed + 1)
        y = operator.forward(U, V)
        y = (y + noise * gaussian(rng, y.shape, y.dtype)).astype(y.dtype)
        problem = bf.Problem(bf.losses.Squared(), operator, y, penalty=penalty, symmetric=symmetric)
        problem.truth = (U, V)
        return problem

    return make


@pytest.fixture(scope="session")
def follow() -> Callable[..., None]:
    """Run a solver beside a generator of dense iterates, and compare each X with its own."""

    def compare(
        problem: bf.Problem, rank: int, solver: bf.solvers.Solver, naive: Iterator[np.ndarray], init=None, steps=8
    ) -> None:
        seen: list[np.ndarray] = []

        def look(t, state):
            seen.append(state.U @ herm(state.V))

        bf.solve(problem, rank, solver, init, rng=0, max_iter=steps, tol=0, callback=look)
        assert len(seen) == steps
        for t, (ours, theirs) in enumerate(zip(seen, naive, strict=False)):
            size = np.linalg.norm(theirs)
            assert np.linalg.norm(ours - theirs) <= 1e-8 * size, f"iterate {t + 1} differs"

    return compare


def explicit(problem: bf.Problem) -> np.ndarray:
    """The p×m×n array A with A(X)ₜ = Σ A[t, i, j] X[i, j]."""
    m, n = problem.shape
    rows, cols = np.eye(m), np.eye(n)
    forward = problem.operator.forward
    columns = [[forward(rows[:, [i]], cols[:, [j]]) for j in range(n)] for i in range(m)]
    return np.moveaxis(np.array(columns), -1, 0)


@pytest.fixture(scope="session")
def dense() -> Callable[[bf.Problem], tuple[np.ndarray, Callable, Callable]]:
    """(f, ∇f) of a least-squares problem as plain functions of a matrix X, from the explicit measurements."""

    def functions(problem: bf.Problem):
        A, y = explicit(problem), problem.y
        w = np.ones(y.shape) if problem.weights is None else problem.weights

        def f(X):
            return 0.5 * np.sum(w * np.abs(np.einsum("tij,ij->t", A, X) - y) ** 2)

        def gradient(X):
            return np.einsum("tij,t->ij", A.conj(), w * (np.einsum("tij,ij->t", A, X) - y))

        return f, gradient

    return functions
