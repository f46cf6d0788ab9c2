"""Objectives given by callables."""

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.errors import InputError, SmoothnessError
from bifactor.testing import check_gradient

TARGET = np.outer(np.arange(1.0, 7), np.arange(1.0, 6))


def quadratic(**options):
    return bf.Function(lambda X: 0.5 * np.sum(np.abs(X - TARGET) ** 2), lambda X: X - TARGET, TARGET.shape, **options)


def test_recovers_like_the_same_loss_on_full():
    result = bf.solve(quadratic(), 1, rng=0, tol=1e-12)
    np.testing.assert_allclose(result.matrix(), TARGET, rtol=1e-6)
    check_gradient(quadratic())
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full(TARGET.shape), TARGET)
    for solver in (bf.solvers.BFGD(), bf.solvers.BFGD(bf.steps.Smooth(), balance=None)):
        a, b = (bf.solve(p, 1, solver, rng=0, max_iter=15, tol=0) for p in (quadratic(smoothness=1.0), problem))
        np.testing.assert_allclose(a.history.objective, b.history.objective, rtol=0.1, atol=1e-20)


def test_smoothness_is_estimated_by_power_iteration():
    weights = np.linspace(1, 7, 30).reshape(6, 5)
    f = bf.Function(lambda X: 0.5 * np.sum(weights * X**2), lambda X: weights * X, (6, 5))
    assert f.smoothness == pytest.approx(7.0, rel=0.05)
    assert quadratic(smoothness=3.0).smoothness == 3.0


def test_no_curvature_at_zero_is_refused_by_rules_that_need_L():
    quartic = bf.Function(lambda X: np.sum((X - 1) ** 4), lambda X: 4 * (X - 1) ** 3, (4, 4))
    assert quartic.smoothness > 0
    flat = bf.Function(lambda X: np.sum(X), np.ones_like, (4, 4))
    with pytest.raises(SmoothnessError, match=r"smoothness=.*Backtracking"):
        bf.solve(flat, 1, bf.solvers.BFGD(), rng=0)


def test_unbounded_f_ends_with_a_status_not_an_error():
    falling = bf.Function(lambda X: float(np.sum(X)), np.ones_like, (4, 4))
    result = bf.solve(falling, 1, rng=0, max_iter=30)
    assert np.isfinite(result.U).all()
    assert np.isfinite(result.history.objective).all()


def test_sparse_and_complex_gradients():
    S = sparse.csr_array(np.eye(4))
    f = bf.Function(lambda X: 0.5 * np.sum((np.diag(X) - 1) ** 2), lambda X: S.multiply(X - 1).tocsr(), (4, 4))
    check_gradient(f)
    target = np.outer(np.arange(3) + 1j, np.arange(3) - 2j)
    g = bf.Function(lambda X: 0.5 * np.sum(np.abs(X - target) ** 2), lambda X: X - target, (3, 3), dtype=np.complex128)
    check_gradient(g)
    np.testing.assert_allclose(bf.solve(g, 1, rng=0, tol=1e-12).matrix(), target, atol=1e-5)


@pytest.mark.parametrize(
    ("message", "make"),
    [
        ("value is 3, not callable", lambda: bf.Function(3, lambda X: X, (2, 2))),
        ("gradient is None", lambda: bf.Function(lambda X: 0.0, None, (2, 2))),
        ("not the shape", lambda: bf.Function(lambda X: 0.0, lambda X: X, (2,))),
        ("smoothness=-1", lambda: bf.Function(lambda X: 0.0, lambda X: X, (2, 2), smoothness=-1)),
        ("dtype=<class 'int'>", lambda: bf.Function(lambda X: 0.0, lambda X: X, (2, 2), dtype=int)),
        ("Return a matrix", lambda: bf.solve(bf.Function(lambda X: 0.0, lambda X: X[0], (2, 2)), 1, rng=0)),
        ("value returned None", lambda: bf.solve(bf.Function(lambda X: None, lambda X: X, (2, 2)), 1, rng=0)),
        ("not finite", lambda: bf.solve(bf.Function(lambda X: 0.0, lambda X: X * np.nan, (2, 2)), 1, rng=0)),
        ("dtype='foo'", lambda: bf.Function(lambda X: 0.0, lambda X: X, (2, 2), dtype="foo")),
        ("Return a matrix", lambda: bf.solve(bf.Function(lambda X: 0.0, lambda X: 1.0, (2, 2)), 1, rng=0)),
    ],
)
def test_mistakes_get_one_clear_error(message, make):
    with pytest.raises(InputError, match=message):
        make()
