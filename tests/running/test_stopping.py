"""`converged` is said where the gradient is small, and nowhere else."""

import importlib

import numpy as np
import pytest

import bifactor as bf
from bifactor.running.stopping import SMALL, gradient_is_small

SOLVERS = {
    "PCG": bf.solvers.PCG(),
    "Newton": bf.solvers.Newton(),
    "ScaledGD": bf.solvers.ScaledGD(),
    "BFGD": bf.solvers.BFGD(bf.steps.Backtracking()),
}


def entries(seed=0, m=30, n=20, rank=2, noise=0.3, **options):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) + noise * rng.standard_normal((m, n))
    i, j = np.nonzero(rng.random((m, n)) < 0.6)
    loss, y = options.pop("loss", "squared"), X[i, j]
    y = np.sign(y) if loss == "logistic" else y
    return bf.Problem(loss, bf.operators.Entries(i, j, (m, n)), y, **options)


def pull(problem, result):
    """The gradient at X = 0, seen through the factors."""
    G = problem.gradient_at_zero()
    return np.hypot(np.linalg.norm(G @ result.V), np.linalg.norm(G.H @ result.U))


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic"])
def test_a_run_that_comes_to_rest_has_converged(solver, loss):
    problem = entries(loss=loss, penalty=bf.penalties.Ridge(0.5))
    result = bf.solve(problem, 2, solver, rng=0)
    assert result.status.converged
    assert result.history.gradient_norm[-1] <= SMALL * pull(problem, result)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(scale):
    problem = entries()
    same = bf.Problem("squared", problem.operator, scale * problem.y)
    for stop in ({"tol": 1e-7}, {"tol": 0, "objective_tol": 1e-2, "max_iter": 100}):
        assert (
            bf.solve(same, 2, bf.solvers.PCG(), rng=0, **stop).status
            is bf.solve(problem, 2, bf.solvers.PCG(), rng=0, **stop).status
        )


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
@pytest.mark.parametrize("rule", [bf.steps.Constant(1e-14), bf.steps.StronglyConvex()])
def test_short_steps_are_not_convergence(loss, rule):
    """From a start 10⁶ times too large, a theory step moves next to nothing where gradients do not grow with X."""
    rng = np.random.default_rng(1)
    start = bf.inits.Given(1e6 * rng.standard_normal((30, 2)), 1e6 * rng.standard_normal((20, 2)))
    result = bf.solve(entries(loss=loss), 2, bf.solvers.BFGD(rule), start, rng=0, max_iter=50)
    assert not result.status.converged
    if result.status is bf.Status.RELATIVE_CHANGE:
        assert result.history.gradient_norm[-1] > 0.1 * result.history.gradient_norm[0]


def test_a_rule_that_is_met_early_is_named():
    problem = entries(noise=1.0)
    early = bf.solve(problem, 2, bf.solvers.BFGD(), rng=0, tol=0, objective_tol=0.05)
    assert early.status is bf.Status.PLATEAU
    assert "objective_tol" in str(early.status)
    late = bf.solve(problem, 2, rng=0, tol=0, objective_tol=1e-10)
    assert late.status.converged


@pytest.mark.parametrize("name", ["PCG", "Newton", "ScaledGD"])
def test_a_column_that_vanishes_does_not_stop_the_others(name):
    """A PSD X that fits random numbers has fewer columns than the factors; y is 10³ times the start's size."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        operator = bf.operators.Pauli(2)
        problem = bf.Problem("squared", operator, 1e3 * rng.standard_normal(operator.size), symmetric=True)
        U = 0.1 * (rng.standard_normal((4, 4)) + 1j * rng.standard_normal((4, 4)))
        result = bf.solve(problem, 4, SOLVERS[name], bf.inits.Given(U, U), rng=0, max_iter=400)
        # With all strings measured, the best X is the positive part of the inverted one.
        S = operator.adjoint(problem.y / 4) @ np.eye(4, dtype=complex)
        values, Q = np.linalg.eigh(S)
        best = (Q * np.maximum(values, 0)) @ Q.conj().T
        assert np.linalg.norm(result.matrix() - best) <= 0.02 * np.linalg.norm(best)


@pytest.mark.parametrize("balance", [bf.penalties.balance.Frobenius(), bf.penalties.balance.Frobenius(3.0)])
def test_balance_leaves_fixed_columns_alone(balance):
    problem = entries(noise=1.0, offsets=True)
    result = bf.solve(problem, 2, bf.solvers.BFGD(bf.steps.Backtracking(), balance), rng=0, max_iter=5000)
    wanted = bf.solve(problem, 2, bf.solvers.PCG(), rng=0, max_iter=5000)
    assert result.status.converged
    assert result.objective == pytest.approx(wanted.objective, rel=1e-4)


@pytest.mark.parametrize("at_zero", [np.nan, np.inf, None])
def test_a_function_without_a_gradient_at_zero(at_zero):
    """None stands for one that raises; the first gradient is the measure then, and the answer is not lost."""
    Y = np.outer(np.arange(1.0, 7), np.arange(1.0, 5))

    def gradient(X):
        if np.any(X):
            return X - Y
        if at_zero is None:
            raise ZeroDivisionError
        return np.full(X.shape, at_zero)

    f = bf.Function(lambda X: 0.5 * np.sum((X - Y) ** 2), gradient, (6, 4), smoothness=1.0)
    start = bf.inits.Random()
    result = bf.solve(f, 1, bf.solvers.BFGD(bf.steps.Backtracking()), start, rng=0)
    assert result.status.converged
    assert gradient_is_small(
        result.problem, result.problem.evaluate_keeping_z(result.problem.kind.pair(result.U, result.V)), 1e3
    )


def test_separable_labels_start_at_a_size_that_can_be_left():
    """Their loss falls without end along the spectral direction, and its slope underflows before that shows."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        operator = bf.operators.Pauli(1, ["X", "Y"])
        y, ridge = np.sign(rng.standard_normal(2)), 10 ** rng.uniform(-2, -0.5)
        problem = bf.Problem("logistic", operator, y, symmetric=True, penalty=bf.penalties.Ridge(ridge))
        U = rng.standard_normal((2, 1)) + 1j * rng.standard_normal((2, 1))
        ours, other = (bf.solve(problem, 1, rng=0, init=init) for init in (None, bf.inits.Given(U, U)))
        assert ours.objective <= other.objective * (1 + 1e-6)


def test_the_misfit_is_the_relative_residual():
    problem = entries(noise=0.5)
    result = bf.solve(problem, 2, rng=0)
    z = problem.operator.forward(result.U, result.V)
    assert result.misfit == pytest.approx(np.linalg.norm(z - problem.y) / np.linalg.norm(problem.y), rel=1e-10)
    assert f"misfit {result.misfit:.3g}" in repr(result)
    labels = bf.solve(entries(loss="logistic", penalty=bf.penalties.Ridge(1.0)), 2, rng=0)
    assert labels.misfit is None
    assert "misfit" not in repr(labels)
    nothing = bf.Problem("squared", bf.operators.Full((3, 3)), np.zeros(9))
    assert bf.solve(nothing, 1, rng=0).misfit is None


def test_a_transposed_vec_shows_in_the_misfit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 15))
    B = rng.standard_normal((150, 180))
    right, wrong = (bf.Problem("squared", bf.operators.Linear(B, (12, 15)), B @ v) for v in (X.ravel(), X.ravel("F")))
    assert bf.solve(right, 2, rng=0).misfit < 1e-5
    assert bf.solve(wrong, 2, rng=0).misfit > 0.3


def test_ctrl_c_in_the_last_test_keeps_the_answer(monkeypatch):
    module = importlib.import_module("bifactor.running.solve")

    def pressed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "gradient_is_small", pressed)
    result = bf.solve(entries(penalty=bf.penalties.Ridge(0.5)), 2, bf.solvers.PCG(), rng=0)
    assert result.status is bf.Status.INTERRUPTED
    assert np.all(np.isfinite(result.matrix()))
