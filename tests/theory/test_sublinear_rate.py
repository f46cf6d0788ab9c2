"""Theorem (thm:smooth) and the lemmas of its proof (Appendix C), for f that is only smooth, without a balance term.

Each f here is a sum over entries with a known least point X*, of rank r, and a known L.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

import bifactor as bf

SHAPE, SIGMA, STEPS = (9, 7), np.array([4.0, 2.0]), 60


def log_cosh(X):
    def value(Z):
        return float(np.sum(np.logaddexp(Z - X, X - Z) - np.log(2)))

    return bf.Objective(bf.Function(value, lambda Z: np.tanh(Z - X), X.shape, 1.0))


def huber(X):
    return bf.Problem(bf.losses.Huber(0.05), bf.operators.Full(X.shape), X)


def logistic(X):
    """Cross-entropy against the probabilities expit(X*) themselves, so that X* is the least point."""
    p = expit(X)

    def value(Z):
        return float(np.sum(np.logaddexp(0, Z) - p * Z))

    return bf.Objective(bf.Function(value, lambda Z: expit(Z) - p, X.shape, smoothness=0.25))


def quartic(X):
    """Flat at X*: d⁴/12 up to |d| = 1 and quadratic beyond, so f″ = min(d², 1)."""

    def value(Z):
        d = np.abs(Z - X)
        e = np.maximum(d, 1) - 1
        return float(np.sum(np.minimum(d, 1) ** 4 / 12 + e / 3 + e**2 / 2))

    def gradient(Z):
        d = np.abs(Z - X)
        return np.sign(Z - X) * (np.minimum(d, 1) ** 3 / 3 + np.maximum(d, 1) - 1)

    return bf.Objective(bf.Function(value, gradient, X.shape, 1.0))


FUNCTIONS = pytest.mark.parametrize("make_function", [log_cosh, huber, logistic, quartic])
RULES = pytest.mark.parametrize("every_step", [False, True])
KINDS = pytest.mark.parametrize("kind", ["random", "imbalanced", "short", "long"])


@pytest.fixture
def run(make_target, make_a1_start, trajectory):
    def go(make_function, kind, every_step, seed):
        rng = np.random.default_rng(seed)
        X, U, V = make_target(rng, SHAPE, SIGMA)
        problem = make_function(X)
        start = make_a1_start(rng, U, V, kind)
        solver = bf.solvers.BFGD(bf.steps.Smooth(every_step=every_step), balance=None)
        states = trajectory(problem, solver, *start, STEPS)
        excess = np.array([s.value for s in states]) - problem.f.value(problem.kind.pair(U, V))
        distance = np.array([bf.metrics.distance(s.U, s.V, U, V) for s in states])
        return states, excess, distance

    return go


@FUNCTIONS
@RULES
@KINDS
def test_excess_falls_like_one_over_t(run, step_taken, make_function, every_step, kind):
    """f(U_T V_T) − f(X*) ≤ 10 DIST₀²/(η T) at every T; with a step that changes, η is the least so far."""
    for seed in range(2):
        states, excess, distance = run(make_function, kind, every_step, seed)
        eta = np.minimum.accumulate([step_taken(s, t) for s, t in pairwise(states)])
        T = np.arange(1, STEPS + 1)
        assert np.all(excess[1:] <= 10 * distance[0] ** 2 / (eta * T))
        assert excess[-1] < excess[0]


@FUNCTIONS
@RULES
@KINDS
def test_the_lemmas_behind_it(run, step_taken, make_function, every_step, kind):
    """Lemmas (improvement), (suboptimality), (approaching) and (sublinear), with the proof's own constants."""
    for seed in range(2):
        states, excess, distance = run(make_function, kind, every_step, seed)
        slope = np.array([s.point.gradient.norm() for s in states])
        eta = np.array([step_taken(s, t) for s, t in pairwise(states)])
        assert np.all(excess[:-1] - excess[1:] >= 3 / 5 * eta * slope[:-1] ** 2)
        assert np.all(excess <= 7 / 3 * slope * distance)
        assert np.all(distance[1:] <= distance[:-1])
        alpha, beta = np.minimum.accumulate(3 / 5 * eta), 7 / 3 * distance[0]
        assert np.all(excess[1:] <= beta**2 / (alpha * np.arange(1, STEPS + 1)))


def test_the_rate_can_be_no_better_than_sublinear(make_target, make_a1_start, trajectory):
    """On a flat f successive ratios of the excess tend to 1, so the theorem is not a linear rate in disguise."""
    rng = np.random.default_rng(0)
    X, U, V = make_target(rng, SHAPE, SIGMA)
    solver = bf.solvers.BFGD(bf.steps.Smooth(), balance=None)
    values = [s.value for s in trajectory(quartic(X), solver, *make_a1_start(rng, U, V, "random"), 3000)]
    early, late = values[1000] / values[0], values[3000] / values[2000]
    assert early < late < 1
