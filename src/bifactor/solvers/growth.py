"""What solvers share that begin with few columns and add more: zeros stand in for columns still to come."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bifactor.arrays import Array, epsilon
from bifactor.metrics import balanced
from bifactor.objective import Objective
from bifactor.penalties import Penalty
from bifactor.state import State
from bifactor.svd import truncated_eigh, truncated_svd

TOL, RESTARTS = 0.1, 1
"""Accuracy of new directions, and the work they may cost: the iterations that follow correct them."""

COLUMNS = "columns"


def padded(inner: State, rank: int, extra: Mapping[str, Array], waiting: bool) -> State:
    """The state of an inner solver on its first columns as one of `rank` columns."""
    columns = inner.U.shape[1]
    U, dU = (_widened(a, rank) for a in (inner.U, inner.dU))
    V, dV = (U, dU) if inner.V is inner.U else (_widened(a, rank) for a in (inner.V, inner.dV))
    extra = {**inner.extra, COLUMNS: np.array(columns), **extra}
    stalled = None if waiting else inner.stalled
    return replace(inner, U=U, V=V, dU=dU, dV=dV, stalled=stalled, extra=extra, waiting=waiting)


def stripped(state: State) -> State:
    """The state of the inner solver again."""
    k = int(state.extra[COLUMNS])
    if k == state.U.shape[1]:
        return state
    U, dU = (np.ascontiguousarray(a[:, :k]) for a in (state.U, state.dU))
    psd = state.V is state.U
    V, dV = (U, dU) if psd else (np.ascontiguousarray(a[:, :k]) for a in (state.V, state.dV))
    return replace(state, U=U, V=V, dU=dU, dV=dV)


def grown(problem: Objective, U: Array, V: Array, count: int, psd: bool) -> tuple[Array, Array]:
    """Balanced factors with up to `count` columns more, from the leading singular pairs of −∇f(X).

    Each is as long as f's typical curvature says. With a ridge ρ only those with s > ρ are of use: that there are none
    is the optimality condition of the nuclear norm.
    """
    size = float(np.max(np.linalg.norm(U, axis=0) * np.linalg.norm(V, axis=0), initial=0.0))
    above = max(1e3 * epsilon(U) * problem.scale * size, 0.0 if problem.penalty is None else ridge(problem.penalty))
    some = U.shape[1] > 0
    G = problem.gradient(*((U, V) if some else (np.zeros((k, 1), U.dtype) for k in problem.shape)))
    rng = np.random.default_rng(0)  # the same each time, so that runs can be repeated
    if psd:
        s, A = truncated_eigh(G, count, rng, TOL, RESTARTS, sign=-1)
        B = -A
    else:
        A, s, B = truncated_svd(G, count, rng, TOL, RESTARTS)
    keep = s > above
    root = np.sqrt((s[keep] - above) / problem.scale).astype(U.dtype)
    if some and not psd and problem.penalty is None:
        U, V = balanced(U, V)
    U = np.ascontiguousarray(np.hstack([U, -A[:, keep] * root]))
    return U, U if psd else np.ascontiguousarray(np.hstack([V, B[:, keep] * root]))


def ridge(penalty: Penalty) -> float:
    """The weight of the nuclear norm that a penalty amounts to."""
    left, right = penalty.curvature
    return (left * right) ** 0.5


def _widened(a: Array, rank: int) -> Array:
    if a.shape[1] == rank:
        return a
    wide = np.zeros((a.shape[0], rank), dtype=a.dtype)
    wide[:, : a.shape[1]] = a
    return wide
