"""Singular value projection, beside its formula on dense matrices."""

import numpy as np
import pytest

import bifactor as bf
from bifactor.solvers import SVP


def naive(gradient, shape, rank, mu, symmetric=False):
    """X ← P_r(X − μ∇f(X)) from X = 0."""
    X = np.zeros(shape)
    while True:
        M = X - mu * gradient(X)
        if symmetric:
            w, Q = np.linalg.eigh((M + M.T) / 2)
            X = (Q[:, -rank:] * np.maximum(w[-rank:], 0)) @ Q[:, -rank:].T
        else:
            A, s, Bh = np.linalg.svd(M)
            X = (A[:, :rank] * s[:rank]) @ Bh[:rank]
        yield X


@pytest.mark.parametrize("mu", [None, 1 / 3])
def test_iterates_of_sensing(sensing, dense, follow, mu):
    problem = sensing(noise=0.1)
    eta = 0.75 / problem.scale if mu is None else mu
    follow(problem, 2, SVP(mu), naive(dense(problem)[1], problem.shape, 2, eta))


def test_iterates_of_completion(make_problem, dense, follow):
    for shape in ((14, 11), (11, 14)):
        problem = make_problem(*shape, observed=0.7)
        follow(problem, 3, SVP(), naive(dense(problem)[1], shape, 3, 0.75 / problem.scale))


def test_iterates_of_semidefinite_matrices(make_problem, dense, follow):
    problem = make_problem(12, symmetric=True, observed=0.8)
    follow(problem, 2, SVP(0.5), naive(dense(problem)[1], problem.shape, 2, 0.5, symmetric=True))


def test_the_normalized_step_is_the_best_one_in_the_columns_of_X(make_problem, dense, follow):
    problem = make_problem(14, 11, observed=0.7)
    f, gradient = dense(problem)

    def iterates():
        X = np.zeros(problem.shape)
        while True:
            G = gradient(X)
            Q = np.linalg.svd(X if X.any() else G)[0][:, :2]
            P = Q @ Q.T @ G
            mu = np.sum(P**2) / (2 * (f(P) - f(0 * P) - np.sum(gradient(0 * P) * P)))
            A, s, Bh = np.linalg.svd(X - mu * G)
            X = (A[:, :2] * s[:2]) @ Bh[:2]
            yield X

    follow(problem, 2, SVP(normalized=True), iterates())


def test_other_losses_descend(make_problem, loss):
    if loss.smoothness is None:
        pytest.skip("a constant step needs a smoothness constant")
    problem = make_problem(14, 11, loss=loss)
    values = bf.solve(problem, 2, SVP(1 / problem.smoothness), rng=0, max_iter=50).history.objective
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert values[-1] < 0.9 * values[0]


@pytest.mark.parametrize("symmetric", [False, True])
def test_one_entry_is_enough_for_the_normalized_step(symmetric):
    entry = bf.operators.Entries([3], [3], (20, 20))
    problem = bf.Problem(bf.losses.Squared(), entry, np.array([5.0]), symmetric=symmetric)
    result = bf.solve(problem, 1, SVP(normalized=True), rng=0)
    assert result.status.converged
    assert result.predict([3], [3])[0] == pytest.approx(5.0)


def test_no_data_no_matrix():
    problem = bf.Problem(bf.losses.Squared(), bf.operators.Full((5, 4)), np.zeros((5, 4)))
    result = bf.solve(problem, 2, SVP(), rng=0)
    assert result.status is bf.Status.GRADIENT
    assert not result.matrix().any()


def test_it_starts_where_it_is_told_to(make_problem):
    problem = make_problem(20, 15, noiseless=True, observed=0.8)
    result = bf.solve(problem, 2, SVP(), bf.inits.Given(*problem.truth), max_iter=3)
    assert bf.metrics.relative_error(result.U, result.V, *problem.truth) < 1e-12


def test_penalties_and_offsets_are_refused(make_problem):
    entries = make_problem()
    with pytest.raises(bf.errors.InputError, match="minimises f alone"):
        bf.solve(bf.Problem(entries.loss, entries.operator, entries.y, penalty=bf.penalties.Ridge(1.0)), 2, SVP())
    with pytest.raises(bf.errors.InputError, match="offsets"):
        bf.solve(bf.Problem(entries.loss, entries.operator, entries.y, offsets=True), 2, SVP())
