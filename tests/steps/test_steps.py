"""Step rules; the paper's own are tested as theory."""

import inspect

import numpy as np
import pytest

import bifactor as bf
from bifactor.errors import InputError


def test_backtracking_descends_on_what_is_minimised(make_problem, loss):
    """On f and the balance term, which the objective of a result leaves out."""
    for balance in (None, bf.penalties.balance.Frobenius(3.0)):
        solver = bf.solvers.BFGD(bf.steps.Backtracking(), balance)
        values = []
        look = {"callback": lambda t, state, values=values: values.append(state.own.at.value)}
        result = bf.solve(make_problem(loss=loss), 2, solver, bf.inits.Random(5.0), rng=0, max_iter=60, tol=0, **look)
        assert np.all(np.diff(values) < 0)
        assert len(values) == result.n_iter > 1
        if balance is None:
            np.testing.assert_array_equal(values, result.history.objective[1:])


def test_backtracking_in_single_precision_stops_at_its_limits(make_problem):
    result = bf.solve(make_problem(dtype=np.float32), 2, rng=0, max_iter=5000, tol=0)
    assert result.status is bf.Status.PRECISION
    assert result.U.dtype == np.float32
    double = bf.solve(make_problem(dtype=np.float64), 2, rng=0, max_iter=5000, tol=1e-12)
    assert result.objective == pytest.approx(double.objective, rel=1e-2)


def test_a_first_guess_far_too_short_is_mended(make_problem, monkeypatch):
    problem = make_problem(noiseless=True)
    monkeypatch.setitem(vars(problem), "scale", 1e12)
    solver = bf.solvers.BFGD(bf.steps.Backtracking(), balance=None)
    result = bf.solve(problem, 2, solver, bf.inits.Random(10.0), rng=0)
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-5


def test_constant_takes_the_very_step(make_problem):
    problem = make_problem()
    solver = bf.solvers.BFGD(bf.steps.Constant(1e-3))
    state = solver.init(problem, 0.3 * problem.kind.pair(*problem.truth), 2)
    after, slope = solver.step(problem, state), state.own.at.gradient
    np.testing.assert_allclose(after.U, state.U - 1e-3 * slope.left)
    np.testing.assert_allclose(after.V, state.V - 1e-3 * slope.right)


def test_any_rule_may_start_at_zero(make_problem):
    free, symmetric = make_problem(20, 20), make_problem(20, symmetric=True)
    zero = bf.inits.Zero()
    for name in bf.steps.__all__:
        rule = getattr(bf.steps, name)
        if inspect.isabstract(rule):
            continue
        made = rule(1e-3) if rule is bf.steps.Constant else rule()
        if rule is not bf.steps.Semidefinite:
            assert bf.solve(free, 2, bf.solvers.BFGD(made), zero).status is bf.Status.GRADIENT, name
        assert bf.solve(symmetric, 2, bf.solvers.FGD(made), zero).status is bf.Status.GRADIENT, name


def test_the_rule_of_fgd_is_refused_where_x_is_not_uu(make_problem):
    with pytest.raises(InputError, match=r"Semidefinite is for X = UUᴴ.*symmetric=True"):
        bf.solve(make_problem(20, 20), 2, bf.solvers.BFGD(bf.steps.Semidefinite()), rng=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bf.steps.Constant(0),
        lambda: bf.steps.Constant(float("nan")),
        lambda: bf.steps.StronglyConvex(L=-1),
        lambda: bf.steps.Smooth(L="1"),
        lambda: bf.steps.Semidefinite(L=np.inf),
        lambda: bf.steps.Backtracking(decrease=1.0),
        lambda: bf.steps.Backtracking(shrink=0.0),
        lambda: bf.steps.Backtracking(grow=0.9),
        lambda: bf.penalties.balance.Frobenius(0.0),
        lambda: bf.penalties.balance.Elementwise(np.square, lambda d: 2 * d, mu=3.0, L=2.0),
        lambda: bf.penalties.balance.Elementwise(np.square, lambda d: 2 * d + 1, mu=2.0, L=2.0),
        lambda: bf.solvers.BFGD(lam=0.0),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(InputError):
        make()
