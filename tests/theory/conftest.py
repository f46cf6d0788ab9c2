"""What the theorems share: targets of known rank, starts at the edge of Assumption A1, trajectories."""

import numpy as np
import pytest

from bifactor.arrays import gaussian

A1 = 2**0.5 / 10
"""Assumption A1: DIST(U₀, V₀; X*_r) ≤ A1·σ_r(X*_r)^½, divided by √κ where f is strongly convex."""


@pytest.fixture
def make_target():
    """X* of given leading singular values with a tail of given norm, and balanced factors U, V of X*_r."""

    def make(rng, shape, sigma, dtype=np.float64, tail=0.0):
        r = len(sigma)
        A, B = (np.linalg.qr(gaussian(rng, (k, min(shape) if tail else r), dtype))[0] for k in shape)
        U, V = (F[:, :r] * np.sqrt(sigma) for F in (A, B))
        X = U @ V.conj().T
        if tail:
            rest = rng.uniform(0.5, 1.0, min(shape) - r)
            rest *= tail / np.linalg.norm(rest)
            assert rest.max() < min(sigma)
            X = X + (A[:, r:] * rest) @ B[:, r:].conj().T
        return X, U, V

    return make


@pytest.fixture
def make_start():
    """(U, V) at DIST ≤ radius from the balanced pair given, in one of a few telling directions."""

    def make(rng, U, V, radius, kind):
        r = U.shape[1]
        if kind == "imbalanced":  # along (U S, −V S), where f(UVᴴ) is flat
            S = gaussian(rng, (r, r), U.dtype)
            S = S + S.conj().T
            D, E = U @ S, -V @ S
        elif kind == "short":
            D, E = -U, -V
        elif kind == "long":
            D, E = U, V
        else:
            D, E = (gaussian(rng, F.shape, U.dtype) for F in (U, V))
        scale = radius / np.hypot(np.linalg.norm(D), np.linalg.norm(E))
        R = np.linalg.qr(gaussian(rng, (r, r), U.dtype))[0]
        return (U + scale * D) @ R, (V + scale * E) @ R

    return make


@pytest.fixture
def make_a1_start(make_start):
    """The same at the very radius of Assumption A1."""

    def make(rng, U, V, kind, kappa=1.0):
        sigma_r = np.linalg.svd(U, compute_uv=False)[-1] ** 2
        return make_start(rng, U, V, A1 * (sigma_r / kappa) ** 0.5, kind)

    return make


@pytest.fixture
def trajectory():
    """The states of a number of steps, the start first."""

    def run(problem, solver, U, V, steps):
        states = [solver.init(problem, problem.kind.pair(U, V), U.shape[1])]
        for _ in range(steps):
            states.append(solver.step(problem, states[-1]))
        return states

    return run


@pytest.fixture
def step_taken():
    """The η of a step, from where it led."""

    def measure(old, new):
        slope = old.own.at.gradient
        return slope.inner(old.point.x - new.point.x) / slope.inner(slope)

    return measure
