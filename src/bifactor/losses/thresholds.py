"""Maximum-likelihood thresholds between levels."""

import numpy as np
from scipy.special import expit

from bifactor.arrays import Array

ADDED = 0.5
"""Observations of each level, of the mean weight, added at the mean z: without them, the thresholds of an unseen level
would coincide."""

CLOSEST = 1e-3
"""The smallest distance between two thresholds."""

STEPS, HALVINGS, ENOUGH = 50, 30, 1e-10


def thresholds_of_shares(counts: Array) -> Array:
    """b such that σ(b_k) is the share of the levels up to k, with half an observation of each level added."""
    share = np.cumsum(counts + ADDED)[:-1] / np.sum(counts + ADDED)
    return np.log(share) - np.log1p(-share)


def best_thresholds(start: tuple[float, ...], z: Array, level: Array, weights: Array | None) -> Array:
    """argmin over b of Σ w·ℓ, which is convex, by Newton's method; the b stay in order."""
    w = np.ones(z.shape) if weights is None else weights.astype(np.float64)
    count = len(start) + 1
    middle = float(np.average(z, weights=w))
    z = np.concatenate([z.astype(np.float64), np.full(count, middle)])
    level = np.concatenate([level, np.arange(count)])
    w = np.concatenate([w, np.full(count, ADDED * w.mean())])
    data = [(z[own], w[own]) for own in (level == k for k in range(count))]
    b = np.asarray(start, np.float64)
    here = _value(b, data)
    for _ in range(STEPS):
        slope, bends = _derivatives(b, data)
        step = np.linalg.solve(bends, slope)
        if not slope @ step > ENOUGH * abs(here):
            break
        for halving in range(HALVINGS):
            trial = b - step / 2**halving
            reached = _value(trial, data)
            if reached < here:
                break
        else:
            break
        b, here = trial, reached
    return np.maximum.accumulate(b - CLOSEST * np.arange(b.size)) + CLOSEST * np.arange(b.size)


def _value(b: Array, data: list[tuple[Array, Array]]) -> float:
    """Σ w·ℓ; infinite if thresholds are out of order."""
    if np.any(np.diff(b) <= 0):
        return np.inf
    total = 0.0
    for k, (z, w) in enumerate(data):
        if k < b.size:
            total += float(w @ np.logaddexp(0.0, z - b[k]))
        if k > 0:
            total += float(w @ np.logaddexp(0.0, b[k - 1] - z))
        if 0 < k < b.size:
            total -= float(w.sum() * np.log(-np.expm1(b[k - 1] - b[k])))
    return total


def _derivatives(b: Array, data: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """The gradient in b, and the matrix of second derivatives, which is tridiagonal."""
    slope, bends = np.zeros(b.size), np.zeros((b.size, b.size))
    for k, (z, w) in enumerate(data):
        for at, sign in ((k, -1.0), (k - 1, 1.0)):
            if 0 <= at < b.size:
                p = expit(-sign * (z - b[at]))
                slope[at] += sign * (w @ p)
                bends[at, at] += w @ (p * (1 - p))
        if 0 < k < b.size:
            room = np.expm1(b[k] - b[k - 1])
            first, second = w.sum() / room, w.sum() * (1 + 1 / room) / room
            slope[k - 1 : k + 1] += first, -first
            bends[k - 1 : k + 1, k - 1 : k + 1] += second * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return slope, bends
