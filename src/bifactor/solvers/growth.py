"""What solvers share that begin with few columns and add more: zeros stand in for columns still to come."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from bifactor.arrays import Array, epsilon, gaussian, norm
from bifactor.inits.spectral import start_faint
from bifactor.metrics import balanced
from bifactor.objective import Objective
from bifactor.penalties.nuclear import nuclear_weight
from bifactor.state import State
from bifactor.svd import leading

TOL, RESTARTS = 0.1, 1
"""Accuracy of new directions, and the work they may cost: the iterations that follow correct them."""

COLUMNS = "columns"


def padded(inner: State, rank: int, extra: Mapping[str, Array], waiting: bool) -> State:
    """The state of an inner solver on its first columns as one of `rank` columns."""
    columns = inner.U.shape[1]
    U, dU = (_widened(a, rank) for a in (inner.U, inner.dU))
    V, dV = (U, dU) if inner.V is inner.U else (_widened(a, rank) for a in (inner.V, inner.dV))
    extra = {**inner.extra, COLUMNS: np.array(columns), **extra}
    stalled, settled = (None, False) if waiting else (inner.stalled, inner.settled)
    return replace(inner, U=U, V=V, dU=dU, dV=dV, stalled=stalled, settled=settled, extra=extra, waiting=waiting)


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
    """Balanced factors with up to `count` columns more: the leading singular pairs of −∇f(X), in a fitting length.

    With a ridge ρ only those with s > ρ are of use: that there are none is the optimality test of the nuclear norm.
    """
    rng = np.random.default_rng(0)  # the same each time, so that runs can be repeated
    some = U.shape[1] > 0
    size = float(np.max(np.linalg.norm(U, axis=0) * np.linalg.norm(V, axis=0), initial=0.0))
    rho = nuclear_weight(problem.penalty, psd)
    z = problem.measure(*((U, V) if some else (np.zeros((k, 1), U.dtype) for k in problem.shape)))
    G = problem.pull_back(problem.evaluate(z)[1])
    A, s, B = leading(G, count, rng, TOL, RESTARTS, psd, sign=-1)
    keep = s > max(1e3 * epsilon(U) * problem.scale * size, rho)
    if not np.any(keep):
        return U, V
    A, B = A[:, keep], B[:, keep]
    root = np.sqrt((s[keep] - rho) / _curvatures(problem, A, B)).astype(A.dtype)
    A, B = _descending(problem, z, A * root, B * root, rho)
    if some and not psd and problem.penalty is None and not problem.offsets:
        U, V = balanced(U, V)
    probe = [gaussian(rng, (k, 1), A.dtype) for k in problem.shape]
    absent = np.zeros(root.shape, dtype=bool)
    U = np.ascontiguousarray(np.hstack([U, start_faint(A, absent, G @ probe[1], rng)]))
    return U, U if psd else np.ascontiguousarray(np.hstack([V, start_faint(B, absent, G.H @ probe[0], rng)]))


def _curvatures(problem: Objective, A: Array, B: Array) -> Array:
    """The curvature to expect of f along each aᵢbᵢᴴ of norm 1.

    Not the one measured there: the leading pairs of a sampled residual lie where the samples are, so a length fitted to
    these is too short (measured: it made most runs fail where entries are scarce).
    """
    if problem.marginals is None:
        return np.full(A.shape[1], problem.scale)
    rows, cols = problem.marginals
    return (rows @ np.abs(A) ** 2) * (cols @ np.abs(B) ** 2) / rows.sum()


def _descending(problem: Objective, z: Array, A: Array, B: Array, rho: float) -> tuple[Array, Array]:
    """New columns that lower f: where it is no quadratic, its curvature may be far from the one to expect."""
    dz = problem.measure(A, B)
    line = problem.along(z, dz, np.zeros_like(dz))
    if line.quartic is not None:
        return A, B
    t, first, cost = 1.0, line.at(0.0)[0], rho * norm(A) ** 2
    while t > 1e-12 and not line.at(t)[0] + t * cost < first:
        t /= 2
    return A * t**0.5, B * t**0.5


def _widened(a: Array, rank: int) -> Array:
    if a.shape[1] == rank:
        return a
    wide = np.zeros((a.shape[0], rank), dtype=a.dtype)
    wide[:, : a.shape[1]] = a
    return wide
