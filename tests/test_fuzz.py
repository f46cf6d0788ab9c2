"""Random small problems × losses × solvers × dtypes: no surprise, no NaN."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bifactor as bf
from bifactor.errors import BifactorError

LOSSES = [
    bf.losses.Squared(),
    bf.losses.Huber(0.3),
    bf.losses.Logistic(),
    bf.losses.Probit(0.2),
    bf.losses.Poisson(),
]
RULES = [
    bf.steps.StronglyConvex(),
    bf.steps.StronglyConvex(every_step=True),
    bf.steps.Smooth(),
    bf.steps.Smooth(every_step=True),
    bf.steps.Semidefinite(every_step=True),
    bf.steps.Constant(0.1),
    bf.steps.Constant(1e8),
    bf.steps.Backtracking(),
]
INITS = [bf.inits.Spectral(), bf.inits.Spectral(fit=False), bf.inits.Random(), bf.inits.Random(1e4)]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


@st.composite
def problems(draw):
    m, n = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    symmetric = draw(st.booleans())
    n = m if symmetric else n
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.integers(1, 2 * m * n))
    dtype = draw(st.sampled_from(DTYPES))
    loss = draw(st.sampled_from(LOSSES))
    y = 10.0 ** draw(st.integers(-20, 20)) * rng.standard_normal(size)
    if np.dtype(dtype).kind == "c":
        y = y * np.exp(1j * rng.random(size))
    if loss.targets is bf.losses.Logistic.targets:
        y = np.sign(y.real)
    elif loss.targets is bf.losses.Poisson.targets:
        y = np.abs(y)
    y = y.astype(dtype if y.dtype.kind == "c" or np.dtype(dtype).kind == "f" else np.float64)
    weights = draw(st.sampled_from([None, 1e-3, rng.random(size) + 0.01, rng.integers(0, 2, size=size)]))
    rows, cols = rng.integers(m, size=size), rng.integers(n, size=size)
    full = draw(st.booleans()) and size >= m * n
    operator = bf.operators.Full((m, n)) if full else bf.operators.Entries(rows, cols, (m, n))
    if full:
        y = y[: m * n]
        weights = weights[: m * n] if np.ndim(weights) else weights
    return loss, operator, y, weights, symmetric


def test_no_surprise():
    finished = []

    @settings(max_examples=1000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(
        parts=problems(),
        rank=st.integers(1, 7),
        rule=st.sampled_from(RULES),
        init=st.sampled_from(INITS),
        balance=st.sampled_from([None, bf.penalties.balance.Frobenius(), bf.penalties.balance.Frobenius(2.0)]),
        tol=st.sampled_from([0.0, 1e-6]),
        seed=st.integers(0, 100),
    )
    def run(parts, rank, rule, init, balance, tol, seed):
        loss, operator, y, weights, symmetric = parts
        solver = bf.solvers.FGD(rule) if symmetric else bf.solvers.BFGD(rule, balance)
        try:
            problem = bf.Problem(loss, operator, y, weights, symmetric=symmetric)
            result = bf.solve(problem, rank, solver, init, seed, max_iter=12, tol=tol)
        except BifactorError:
            return
        for part in (result.U, result.V, result.objective, *vars(result.history).values(), result.matrix()):
            assert np.isfinite(part).all()
        first = result.history.objective[0]
        assert result.objective <= first + 1e3 * np.finfo(problem.dtype).eps * abs(first)
        assert result.U.dtype == problem.dtype
        assert isinstance(result.status, bf.Status)
        finished.append(1)

    run()
    assert len(finished) >= 300
