"""Problems and instances that many tests share."""

import importlib
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import bifactor as bf
from bifactor import kernels
from bifactor.arrays import gaussian, to_numpy
from bifactor.factors import Factors
from bifactor.problems.state import State
from bifactor.solvers import PCG, AltMin, Newton, Race, RankContinuation, Refitted, RidgeHomotopy, ScaledGD, SoftImpute
from bifactor.solvers.variational.factor_posterior import Uncertainty
from bifactor.steps import CurveSearch

LOSSES = {
    "Squared": bf.losses.Squared(),
    "Huber": bf.losses.Huber(0.7),
    "Logistic": bf.losses.Logistic(),
    "Probit": bf.losses.Probit(0.6),
    "Poisson": bf.losses.Poisson(),
    "NegativeBinomial": bf.losses.NegativeBinomial(3.0),
    "ExpectedCounts": bf.losses.ExpectedCounts(0.5),
    "Ordinal": bf.losses.Ordinal([1, 2, 4, 5], [-1.5, -0.2, 0.9]),
    "Shifted": bf.losses.Shifted(bf.losses.Probit(0.6), -0.4),
}
LAWS = ("kernels", "losses", "operators", "solvers", "steps", "theory", "test_blocks", "test_libraries")
"""Folders and files whose tests use compiled kernels for problems of every size."""

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
    if isinstance(loss, (bf.losses.Poisson, bf.losses.NegativeBinomial)):
        return rng.poisson(np.exp(np.clip(z, -5, 3))).astype(z.dtype)
    if isinstance(loss, bf.losses.Ordinal):
        loss = loss if loss.levels is not None else bf.losses.Ordinal(4)
        return loss.median(z + rng.logistic(size=z.shape)).astype(z.dtype)
    return (z + 0.1 * rng.standard_normal(z.shape)).astype(z.dtype)


@pytest.fixture(scope="session")
def draw_targets() -> Callable[..., np.ndarray]:
    return targets


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread() -> Iterator[None]:
    """Threads of BLAS that wait for each other take a hundred times as long where other programs run too."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(autouse=True)
def small_problems(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests are small, and small problems are solved without compiled kernels: where laws are tested, with them."""
    if set(LAWS) & {*request.path.parts, request.path.stem}:
        monkeypatch.setattr(kernels, "SMALL", 0)


@pytest.fixture(scope="session", autouse=True)
def objective_law() -> Iterator[None]:
    """In every fit of every test, what the loop calls the objective is F at its factors, and it never increases."""
    module = importlib.import_module("bifactor.running.solve")
    plain = module._iterate

    def watched(run, problem, solver, *rest):
        advance = run.advance

        def checked(state, *others):
            check_descent(problem, solver, run.state, state)
            taken = advance(state, *others)
            # Looking costs a forward, so that the largest problems are looked at in some iterations only.
            if taken and (run.iteration < 20 or run.iteration % 10 == 0):
                check_objective(solver.current(problem, state), state)
            return taken

        check_objective(solver.current(problem, run.state), run.state)
        run.advance = checked
        return plain(run, problem, solver, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_iterate", watched)
        yield


def check_objective(problem: bf.Objective, state: State) -> None:
    """The objective is F(U, V) up to the rounding of a sum of size F₁ = Σw|ℓ| + |terms|.

    A posterior has its squared errors from sums of squares, which cancel: there it may be ε·scale·‖X‖²_F.
    """
    x = state.point.x
    if x.width == 0:
        return
    terms = [term.value(x) for term in problem.terms]
    if isinstance(problem, bf.Problem) and problem.f.data is problem.f:
        losses = to_numpy(problem.f.fit.losses(problem.operator.forward(x.left, x.right)))
        losses = (losses if problem.weights is None else to_numpy(problem.weights) * losses).astype(np.float64)
    else:
        losses = np.array([problem.f.value(x)])
    allowed = rounding(problem, x, np.abs(losses).sum() + np.abs(terms).sum())
    if any(isinstance(term, Uncertainty) for term in problem.terms):
        allowed += float(np.finfo(x.dtype).eps) * problem.scale * x.product_norm() ** 2
    error = abs(state.value - losses.sum() - sum(terms))
    assert not error > allowed, f"the objective is off by {error:.3g}, where rounding allows {allowed:.3g}"


DESCENDING = (PCG, Newton, AltMin, ScaledGD, SoftImpute)
STAGED = (RankContinuation, RidgeHomotopy, Race, Refitted)


def check_descent(problem: bf.Objective, solver: bf.solvers.Solver, before: State, after: State) -> None:
    """The function that is being minimised does not increase, neither in an iteration nor where columns are added.

    Another solver of a race begins at its own start, and another loss is another function. Where a homotopy lowers its
    ridge, the function at one point only becomes smaller.
    """
    while isinstance(solver, STAGED):
        old, new = before.own, after.own
        if isinstance(solver, Race):
            if old.lane != new.lane:
                return
            solver = solver.solvers[new.lane]
        else:
            if isinstance(solver, Refitted) and old.rounds != new.rounds:
                return
            problem, solver = (
                problem.with_fitted(new.fitted) if isinstance(solver, Refitted) else problem,
                solver.solver,
            )
            if isinstance(solver, STAGED) and getattr(new, "count", 1) < 2:  # its own stages begin again
                return
        before, after = old.inner, new.inner
    if not isinstance(solver, DESCENDING) or not isinstance(getattr(solver, "step_size", CurveSearch()), CurveSearch):
        return
    if not (np.isfinite(before.value) and np.isfinite(after.value)) or before.point.x.width == 0:
        return
    allowed = max(rounding(problem, state.point.x, abs(state.value)) for state in (before, after))
    rise = after.value - before.value
    assert not rise > allowed, f"the objective rises by {rise:.3g}, where rounding allows {allowed:.3g}"


def rounding(problem: bf.Objective, x: Factors, size: float) -> float:
    """The rounding of a sum of terms of this total size: τF₁ + 20ε√(F₁S) + 100ε²S with S = scale·‖X‖²_F."""
    eps, S = float(np.finfo(x.dtype).eps), problem.scale * x.product_norm() ** 2
    return (1e-10 if eps < 1e-10 else 1e-5) * size + 20 * eps * size**0.5 * S**0.5 + 100 * eps**2 * S


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
        symmetric=False,
        penalty=None,
    ) -> bf.Problem:
        rng = np.random.default_rng(seed)
        loss = bf.losses.Squared() if loss is None else loss
        U = gaussian(rng, (m, rank), dtype)
        V = U if symmetric else gaussian(rng, (n, rank), dtype)
        rows, cols = np.nonzero(rng.random((m, V.shape[0])) < observed)
        z = np.einsum("ik,ik->i", U[rows], V[cols].conj())
        y = z if noiseless else targets(loss, z, rng)
        operator = bf.operators.Entries(rows, cols, (m, V.shape[0]))
        problem = bf.Problem(loss, operator, y, weights, penalty, symmetric=symmetric)
        problem.truth = (U, V)
        return problem

    return make
