"""The work of passes on one block of a partitioned matrix: plain functions, which other processes can run.

Each takes the f of a block, arrays with the rows of the block, P, and shared ones, Q, with z = PQᵀ at the entries.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.executors import Loaded, Part, Passed
from bifactor.factors import Factors, Free
from bifactor.losses import DataFit, Loss, Shifted
from bifactor.losses.grouped import Grouped, records
from bifactor.operators.entries import Entries
from bifactor.operators.entries_bound import EntriesBound, EntriesCurve, Slopes, SymbolicEntries

Arrays = tuple[Array, ...]

FITTED = 2_000_000
"""The approximate number of observations, over all blocks, to which parameters of losses are fitted."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """Makes f from the content of a block, with z computed again in each pass.

    Parameters
    ----------
    losses : tuple of Loss
        One loss, or one for each group.
    group : integer array or None
        The number of the loss of each column of the matrix.
    flipped : bool
        Whether the rows of blocks are columns of the matrix.
    weights : (number or array, number or array)
        Two factors of the weight of each entry: one for its place on the longer side, one for that on the shorter.
    """

    losses: tuple[Loss, ...]
    group: Array | None = None
    flipped: bool = False
    weights: tuple[Array | float, Array | float] = (1.0, 1.0)

    def __call__(self, part: Part, loaded: Loaded) -> SymbolicEntries:
        layout, y, _ = loaded
        weights = self._weights(part, loaded)
        operator = Entries.arranged((layout.n_outer, layout.n_inner), layout, False)
        return SymbolicEntries(EntriesBound(operator, self._fit(part, loaded, y, weights)))

    def _weights(self, part: Part, loaded: Loaded) -> Array | None:
        layout, y, weights = loaded
        rows, cols = self.weights
        if isinstance(rows, float) and isinstance(cols, float) and rows * cols == 1:
            return weights
        more = rows if isinstance(rows, float) else rows[part.start : part.stop][layout.outer]
        more = np.broadcast_to(more * (cols if isinstance(cols, float) else cols[layout.inner]), y.shape)
        return (more if weights is None else more * weights).astype(y.dtype)

    def _fit(self, part: Part, loaded: Loaded, y: Array, weights: Array | None) -> DataFit:
        loss = self.losses[0]
        if self.group is not None:
            own = self.group[part.start : part.stop] if self.flipped else self.group
            grouped = own[loaded.layout.outer if self.flipped else loaded.layout.inner]
            losses, numbered = records(self.losses, y, grouped)
            return DataFit(Grouped(losses), numbered, weights)
        if isinstance(loss, Shifted) and loss.loss.quadratic:
            return DataFit(loss.loss, y - y.dtype.type(loss.shift), weights)
        return DataFit(loss, y, weights)


def is_quadratic(loss: Loss) -> bool:
    """Whether f is quadratic: squared errors with an intercept are squared errors of shifted data."""
    return bool(loss.loss.quadratic if isinstance(loss, Shifted) else loss.quadratic)


def summarised(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """The sums of the typical curvature, the number of observations and a lower bound of f; also checks data."""
    fit = bound.fit
    fit.loss.targets.check(fit.y, type(fit.loss).__name__)
    if bound.bound.operator.size == 0:
        rows, cols = (np.zeros(k) for k in bound.shape)
        return Passed((rows,), (cols, 0, 0.0))
    curvature, weights = fit.typical
    rows, cols = bound.bound.operator.sums(weights)
    least = fit.least
    return Passed((curvature * rows,), (curvature * cols, fit.seen, np.nan if least is None else least))


def smoothest(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """The constant L of the block."""
    return Passed(each=bound.bound.smoothness if bound.bound.operator.size else 0.0)


def valued(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """The value of f alone, without a gradient of all blocks in memory."""
    return Passed(sums=(bound.value(_pair(tall[0], shared[0])),))


def evaluated(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """f, and its gradients in P and Q."""
    at = bound.evaluate(_pair(tall[0], shared[0]))
    return Passed((at.GV,), (at.f, at.GhU))


def quartic(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """Five numbers c with f = Σₖ cₖ aᵏ at (P + aD, Q + aE)."""
    return Passed(sums=(_curve(bound, tall, shared).quartic,))


def along(bound: SymbolicEntries, tall: Arrays, shared: Arrays, a: float) -> Passed:
    """φ(a), φ′(a) and φ″(a), with φ(a) = f at (P + aD, Q + aE)."""
    return Passed(sums=(np.array(_curve(bound, tall, shared).at(a)),))


def sloped(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """S B and Sᵀ A, where S holds the slopes at PQᵀ."""
    (P, A), (Q, B) = tall, shared
    left, right = Slopes(bound, _pair(P, Q)).products(A, B)
    return Passed((left,), (right,))


def times(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """S B alone."""
    (P,), (Q, B) = tall, shared
    return Passed((Slopes(bound, _pair(P, Q)).matmul(B),))


def times_transposed(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """Sᵀ A alone."""
    (P, A), (Q,) = tall, shared
    return Passed(sums=(Slopes(bound, _pair(P, Q)).rmatmul(A),))


def normal(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """Sᵀ S B, with the block read once; with diag(w)·S instead of S, if w is given."""
    (P, *rows), (Q, B) = tall, shared
    return Passed(sums=(Slopes(bound, _pair(P, Q)).normal(B, *rows),))


def bent(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Passed:
    """The Hessian of f, without the second derivative of X, applied to (D, E)."""
    (P, D), (Q, E) = tall, shared
    left, right = bound.hessian(_pair(P, Q))(_pair(D, E))
    return Passed((left,), (right,))


def exact(bound: SymbolicEntries, tall: Arrays, shared: Arrays, side: int, score: bool) -> Passed:
    """The curvature of f in each row of P (side 0) or Q, packed."""
    packed = bound.bound.exact(_pair(tall[0], shared[0]), side, score).packed
    return Passed(sums=(packed,)) if side else Passed((packed,))


def sampled(bound: SymbolicEntries, tall: Arrays, shared: Arrays, step: int) -> Passed:
    """z, y and weights of every `step`-th observation, as copies, because the memory of blocks is reused."""
    layout, fit = bound.bound.layout, bound.fit
    some = slice(None, None, step)
    z = np.vecdot(tall[0][layout.outer[some]], shared[0][layout.inner[some]])
    return Passed(each=(z, fit.y[some].copy(), None if fit.weights is None else fit.weights[some].copy()))


def _pair(P: Array, Q: Array) -> Factors:
    return Free().pair(P, Q)


def _curve(bound: SymbolicEntries, tall: Arrays, shared: Arrays) -> Any:
    (P, D), (Q, E) = tall, shared
    return EntriesCurve(bound, _pair(P, Q), _pair(D, E))
