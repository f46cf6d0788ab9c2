"""Columns of a factor analysis: loadings, means, noise and ridges from sums over the rows."""

from dataclasses import dataclass
from math import lgamma, log
from typing import NamedTuple

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.kernels.blocks_reference import triangle
from bifactor.kernels.lanes_reference import matrices, packed_of
from bifactor.models.factor_rows import Columns, Sums, Table, diagonal, lanes

MEAN_PRECISION = 0.01
"""Precision of the prior of a column's mean: columns are roughly standardised, so it is nearly uninformative."""

NOISE = (1.0, 0.02)
"""(a, b) of the prior τᵃ·exp(−bτ) of a column's precision τ = 1/ψ, equivalent to two cells with errors of 0.02."""

RIDGE = (2.0, 0.2)
"""(c, v₀) of the prior of a ridge α, α^{c/2}·exp(−αc·v₀/2): it pulls towards 1/v₀, with the strength of c loadings."""

VANISHED = 1e-3
"""Mean square of loadings below which a component is dropped, unless they stand out from the noise of their columns."""

NOTHING = 1e-10
"""Lower limit of squares of loadings, which keeps coordinates finite."""

SETTLED = 6
"""Rounds before components are dropped."""


@dataclass(frozen=True, eq=False)
class State:
    """State between two rounds: the columns, the ridge of each component, and further terms of the bound."""

    columns: Columns
    precisions: Array
    logs: float
    """Σ log det of the covariances of columns."""
    before: tuple[Array, Array] | None = None
    """Means of columns of the previous round, in the coordinates of this one, and its noise."""


class Turn(NamedTuple):
    """New coordinates of scores, u → R⁻¹(u − t), and loadings, v → Rᵀv, and the best ridges for them."""

    onto: Array
    """Matrix that maps (u, 1) to the new scores, followed by a one."""
    precisions: Array


def start(table: Table, rank: int, one_noise: bool) -> State:
    """The singular vectors of the table with zeros for missing entries, with covariance 0."""
    n, q = table.shape
    loadings = _directions(table.values, rank) / max(n, 1) ** 0.5
    squares = table.squares / np.maximum(table.counts, 1)
    noise = np.maximum(squares - np.sum(loadings**2, axis=0), 0.1 * squares) + 1e-3
    if one_noise:
        noise[:] = noise.mean()
    means = np.vstack([loadings, table.sums / np.maximum(table.counts, 1)])
    spread = np.zeros(((rank + 1) * (rank + 2) // 2, q))
    return State(Columns(means, spread, noise), np.ones(rank), -np.inf)


def _directions(values: Array, rank: int) -> Array:
    """The leading right singular vectors times their singular values, as rows."""
    if rank == 0:
        return np.zeros((0, values.shape[1]))
    tall = values.shape[0] >= values.shape[1]
    G = values.T @ values if tall else values @ values.T
    w, Q = scipy.linalg.eigh(G, subset_by_index=[len(G) - rank, len(G) - 1])
    w, Q = np.maximum(w[::-1], 0), Q[:, ::-1]
    return np.sqrt(w)[:, None] * Q.T if tall else Q.T @ values


def improved(table: Table, state: State, sums: Sums, age: int, one_noise: bool) -> State:
    """Update the columns for these sums, then their noise, then the ridges."""
    turn = best_turn(state, sums, table.counts if age >= SETTLED else None)
    moments, linear = turned(sums.moments, turn.onto), turn.onto @ sums.linear
    rank = len(turn.precisions)
    noise = state.columns.noise
    packed = moments / noise
    packed[diagonal(rank + 1)] += np.append(turn.precisions, MEAN_PRECISION)[:, None]
    kernel = lanes(packed, rank + 1)
    logs = -float(kernel.invert(packed, rank + 1).sum())
    means = kernel.times(packed, linear / noise)
    columns = Columns(means, packed, noise)
    noise = _best_noise(table, columns, moments, linear, one_noise)
    before = None
    if rank == state.columns.rank:
        before = np.linalg.solve(turn.onto.T, state.columns.means), state.columns.noise
    return _with_ridges(Columns(means, packed, noise), logs, before)


def extrapolated(state: State, factor: float) -> State:
    """Extrapolate the step from the previous round by `factor`, in the means of columns and the logarithm of noise."""
    if state.before is None:
        return state
    (means, noise), columns = state.before, state.columns
    means = means + factor * (columns.means - means)
    noise = noise * (columns.noise / noise) ** factor
    return _with_ridges(Columns(means, columns.spread, noise), state.logs)


def _with_ridges(columns: Columns, logs: float, before: tuple[Array, Array] | None = None) -> State:
    squares = np.diagonal(loading_moments(columns)[0])
    return State(columns, ridges(squares, len(columns.noise)), logs, before)


def best_turn(state: State, sums: Sums, counts: Array | None) -> Turn:
    """Coordinates with the lowest cost of the priors; predictions do not depend on them, and rounds change them slowly.

    With M = ΣE[uuᵀ]/n and K = ΣE[vvᵀ], the bound with the best ridges is, up to constants,

        −½n·tr(R⁻¹MR⁻ᵀ) − (n − q)·log det R − ½(q + c)·Σ log((RᵀKR)ₖₖ + c·v₀).

    It is largest for R = LQ·diag(x)^½ with M = LLᵀ, Q the eigenvectors of LᵀKL, w its eigenvalues and x the positive
    root of (n + c)w·x² − (nw − (n − q)cv₀)·x − ncv₀ = 0. The prior of the means gives the best t. If `counts` of cells
    are given, vanished components are dropped.
    """
    K, cross = loading_moments(state.columns)
    n, q, rank, (c, v0) = float(sums.total[-1]), state.columns.means.shape[1], state.columns.rank, RIDGE
    whole = matrices(sums.total[:, None], rank + 1)[0] / n
    M, mean = whole[:-1, :-1], whole[:-1, -1]
    t = np.linalg.solve(n * np.eye(rank) + MEAN_PRECISION * K, n * mean - MEAN_PRECISION * cross)
    L = np.linalg.cholesky(M - np.outer(t, mean) - np.outer(mean, t) + np.outer(t, t))
    w, Q = np.linalg.eigh(L.T @ K @ L)
    w, Q = np.maximum(w[::-1], NOTHING), Q[:, ::-1]
    half = (n * w - (n - q) * c * v0) / 2
    root = np.sqrt(half**2 + (n + c) * w * n * c * v0)
    x = np.where(half > 0, (half + root) / ((n + c) * w), n * c * v0 / (root - np.minimum(half, 0)))
    back = (Q / np.sqrt(x)).T @ np.linalg.inv(L)
    stay = np.ones(rank, bool)
    if counts is not None:
        R, loadings = L @ Q * np.sqrt(x), state.columns.means[:-1]
        signal = (R.T @ loadings) ** 2 @ (counts / state.columns.noise)
        stay = (x * w >= VANISHED * q) | (signal >= q)
    onto = np.zeros((int(stay.sum()) + 1, rank + 1))
    onto[:-1, :-1], onto[:-1, -1], onto[-1, -1] = back[stay], -back[stay] @ t, 1
    return Turn(onto, ridges((x * w)[stay], q))


def tidied(state: State, value: float) -> tuple[State, float]:
    """The state with components that are orthogonal on average, the largest first, with reproducible signs.

    A rotation changes the bound only through the ridges; its new value is returned too.
    """
    columns, (c, v0) = state.columns, RIDGE
    K, q = loading_moments(columns)[0], columns.means.shape[1]
    w, Q = np.linalg.eigh(K)
    w, Q = np.maximum(w[::-1], 0), Q[:, ::-1]
    loadings = Q.T @ columns.means[:-1]
    largest = np.argmax(np.abs(loadings), axis=1)[:, None]
    onto = np.eye(columns.rank + 1)
    onto[:-1, :-1] = np.where(np.take_along_axis(loadings, largest, axis=1) < 0, -1, 1) * Q.T
    value += 0.5 * (q + c) * float(np.sum(np.log(np.diagonal(K) + c * v0) - np.log(w + c * v0)))
    columns = Columns(onto @ columns.means, turned(columns.spread, onto), columns.noise)
    return State(columns, ridges(w, q), state.logs), value


def ridges(squares: Array, q: int) -> Array:
    """The best ridge of each component, from ΣE[v²]."""
    c, v0 = RIDGE
    return (q + c) / (squares + c * v0)


def loading_moments(columns: Columns) -> tuple[Array, Array]:
    """ΣE[vvᵀ] and ΣE[vμ] over the columns."""
    whole = matrices(columns.moments.sum(axis=1)[:, None], columns.rank + 1)[0]
    return whole[:-1, :-1], whole[:-1, -1]


def turned(packed: Array, onto: Array) -> Array:
    """BMBᵀ of each matrix."""
    whole = matrices(packed, onto.shape[1]) @ onto.T
    return packed_of(onto @ whole)


def _best_noise(table: Table, columns: Columns, moments: Array, linear: Array, one_noise: bool) -> Array:
    """ψ from the expected squared errors and its prior."""
    first, second = triangle(columns.rank + 1)
    double = np.where(first == second, 1.0, 2.0)
    errors = table.squares - 2 * np.sum(columns.means * linear, axis=0) + double @ (moments * columns.moments)
    errors, (a, b) = np.maximum(errors, 0), NOISE
    if one_noise:
        return np.full(len(errors), (errors.sum() + 2 * b) / (table.counts.sum() + 2 * a))
    return (errors + 2 * b) / (table.counts + 2 * a)


def bound(table: Table, state: State, sums: Sums, one_noise: bool) -> float:
    """Lower bound of log p(Y, τ, α) with the best scores for this state."""
    columns, rank, q = state.columns, state.columns.rank, table.shape[1]
    noise, mu = columns.noise, columns.means[-1]
    errors = table.squares - 2 * mu * table.sums + table.counts * columns.moments[-1]
    found = sums.evidence - 0.5 * float(np.sum(table.counts * np.log(2 * np.pi * noise) + errors / noise))
    prior = np.append(state.precisions, MEAN_PRECISION)
    squares = columns.moments[diagonal(rank + 1)].sum(axis=1)
    found -= 0.5 * float(prior @ squares - q * (rank + 1 + np.log(prior).sum()) - state.logs)
    (a, b), (c, v0) = NOISE, RIDGE
    scale = c * v0 / 2
    found += _gamma(1 / (noise[:1] if one_noise else noise), a, b) + _gamma(state.precisions, c / 2, scale)
    return found


def _gamma(x: Array, a: float, b: float) -> float:
    """Σ of the log density of x, which is proportional to xᵃ·exp(−bx)."""
    return float(np.sum(a * np.log(x) - b * x)) + x.size * ((a + 1) * log(b) - lgamma(a + 1))
