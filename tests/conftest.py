"""Problems and instances that many tests share."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import bifactor as bf
from bifactor.arrays import gaussian

LOSSES = {
    "Squared": bf.losses.Squared(),
    "Huber": bf.losses.Huber(0.7),
    "Logistic": bf.losses.Logistic(),
    "Probit": bf.losses.Probit(0.6),
    "Poisson": bf.losses.Poisson(),
    "ExpectedCounts": bf.losses.ExpectedCounts(0.5),
    "Shifted": bf.losses.Shifted(bf.losses.Probit(0.6), -0.4),
}
STEPS = {
    "StronglyConvex": bf.steps.StronglyConvex(),
    "Smooth": bf.steps.Smooth(),
    "Semidefinite": bf.steps.Semidefinite(),
    "Constant": bf.steps.Constant(1e-3),
    "Backtracking": bf.steps.Backtracking(),
}


def targets(loss: bf.losses.Loss, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Data that the loss accepts and that z could have made."""
    if isinstance(loss, bf.losses.Shifted):
        return targets(loss.loss, z + z.dtype.type(loss.shift), rng)
    if isinstance(loss, (bf.losses.Logistic, bf.losses.Probit)):
        return np.where(rng.random(z.shape) < loss.mean(z), 1.0, -1.0).astype(z.dtype)
    if isinstance(loss, bf.losses.ExpectedCounts):
        return rng.poisson(np.maximum(z, 0)).astype(z.dtype)
    if isinstance(loss, bf.losses.Poisson):
        return rng.poisson(np.exp(np.clip(z, -5, 3))).astype(z.dtype)
    return (z + 0.1 * rng.standard_normal(z.shape)).astype(z.dtype)


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Threads of BLAS that wait for each other take a hundred times as long where other programs run too."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(params=LOSSES, scope="session")
def loss(request: pytest.FixtureRequest) -> bf.losses.Loss:
    return LOSSES[request.param]


@pytest.fixture(scope="session")
def make_problem() -> Callable[..., bf.Problem]:
    """A completion problem with a planted low-rank matrix; its factors are `problem.truth`."""

    def make(
        m=30,
        n=20,
        rank=2,
        observed=0.5,
        loss=None,
        dtype=np.float64,
        seed=0,
        weights=None,
        noiseless=False,
        psd=False,
        penalty=None,
    ) -> bf.Problem:
        rng = np.random.default_rng(seed)
        loss = bf.losses.Squared() if loss is None else loss
        U = gaussian(rng, (m, rank), dtype)
        V = U if psd else gaussian(rng, (n, rank), dtype)
        rows, cols = np.nonzero(rng.random((m, V.shape[0])) < observed)
        z = np.einsum("ik,ik->i", U[rows], V[cols].conj())
        y = z if noiseless else targets(loss, z, rng)
        problem = bf.Problem(loss, bf.operators.Entries(rows, cols, (m, V.shape[0])), y, weights, penalty)
        problem.truth = (U, V)
        return problem

    return make
