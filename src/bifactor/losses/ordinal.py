"""Grades: levels with an order but without distances."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, expit, namespace, to_numpy
from bifactor.errors import InputError
from bifactor.kernels import pointwise
from bifactor.losses.base import Loss, Targets
from bifactor.validation import is_count

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


MOST = 101
"""The largest number of levels."""


@dataclass(frozen=True)
class Ordinal(Loss):
    """ℓ(z; y) = −log[σ(b_k − z) − σ(b_{k−1} − z)] for the k-th level y of a scale, with b₀ < b₁ < …. L = 1/2.

    Proportional odds: P(y ≤ level k) = σ(b_k − z) with σ(t) = 1/(1 + e^{−t}); the ends of the scale have one threshold.
    ℓ = log(1 + e^{z − b_k}) + log(1 + e^{b_{k−1} − z}) − log(1 − e^{b_{k−1} − b_k}) contains two logistic losses and is
    convex in z, and jointly in z and b. `mean` is the expected level.

    Parameters
    ----------
    levels : int or sequence of numbers, optional
        The values that y takes, in ascending order; an integer K stands for 0, …, K − 1. By default, those that occur
        in the data.
    thresholds : sequence of numbers, optional
        The thresholds b, one fewer than there are levels. By default, they reproduce at z = 0 the shares of the levels
        in the data, or equal shares if `levels` is given. `solvers.Refitted` fits them.

    References
    ----------
    P. McCullagh, Regression models for ordinal data, J. R. Stat. Soc. B 42 (1980).
    """

    levels: tuple[float, ...] | None = None
    thresholds: tuple[float, ...] | None = None
    pointwise = staticmethod(pointwise.ordinal)
    located = True

    def __init__(self, levels: int | Sequence[float] | None = None, thresholds: Sequence[float] | None = None):
        if levels is None and thresholds is not None:
            raise InputError("thresholds are given without levels. Pass the levels that they separate.")
        known = None if levels is None else _levels(levels)
        object.__setattr__(self, "levels", known)
        if known is not None and thresholds is None:
            thresholds = thresholds_of_shares(np.ones(len(known))).tolist()
        object.__setattr__(self, "thresholds", None if known is None else _thresholds(thresholds, len(known)))
        if known is not None:
            object.__setattr__(self, "targets", _targets(known))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.levels, self.thresholds)  # targets hold functions that cannot be pickled

    @property
    def left_open(self) -> bool:  # type: ignore[override]
        return self.levels is None

    @property
    def smoothness(self) -> float:
        return 0.5

    def with_data_parameters(self, y: Array) -> "Ordinal":
        """The loss with the levels in the data and the thresholds of their shares, unless levels were given."""
        if self.levels is not None:
            return self
        levels, counts = np.unique(to_numpy(y), return_counts=True)
        if not 2 <= levels.size <= MOST:
            raise InputError(
                f"Ordinal found {levels.size} levels in y, but needs 2 to {MOST}. "
                "Pass Ordinal(levels=…) if the data have only one level, or use another loss for numbers."
            )
        return Ordinal(levels.tolist(), thresholds_of_shares(counts).tolist())

    @property
    def fitted(self) -> tuple[float, ...]:  # type: ignore[override]
        """e^b, the odds of a level or a lower one at z = 0: positive numbers, so that relative changes make sense."""
        return () if self.thresholds is None else tuple(np.exp(self.thresholds).tolist())

    def with_fitted(self, fitted: tuple[float, ...]) -> "Ordinal":
        return self if fitted == self.fitted else Ordinal(self._known[0], np.log(fitted).tolist())

    def refit(self, z: Array, y: Array, weights: Array | None) -> "Ordinal":
        """The maximum-likelihood thresholds, with half an observation of each level added."""
        level = np.searchsorted(self._cuts, y)
        return Ordinal(self.levels, best_thresholds(self._known[1], z, level, weights).tolist())

    def parameter(self, dtype: Any) -> tuple[float, ...]:
        """The number of levels, the cuts between them, the thresholds with −∞ and ∞, and the constant of each level."""
        return self._numbers

    @cached_property
    def _numbers(self) -> tuple[float, ...]:
        edges = np.array([-np.inf, *self._known[1], np.inf])
        return (float(len(self._known[0])), *self._cuts, *edges, *_added(np.diff(edges)))

    def value(self, z: Array, y: Array) -> Array:
        lower, upper = self._edges(y)
        xp, zero = namespace(z, y), namespace(z).zeros_like(z)
        return xp.logaddexp(zero, z - upper) + xp.logaddexp(zero, lower - z) + _added(upper - lower)

    def gradient(self, z: Array, y: Array) -> Array:
        lower, upper = self._edges(y)
        return expit(z - upper) - expit(lower - z)

    def curvature(self, z: Array, y: Array) -> Array:
        lower, upper = self._edges(y)
        return expit(z - upper) * expit(upper - z) + expit(z - lower) * expit(lower - z)

    def saturated(self, y: Array) -> Array:
        """ℓ half way between the thresholds of y; 0 at the ends of the scale."""
        lower, upper = self._edges(y)
        return -np.log(np.tanh((upper - lower) / 4))

    def mean(self, z: Array) -> Array:
        """E[y | z]."""
        levels, thresholds = self._known
        found = namespace(z).full_like(z, levels[0])
        for b, step in zip(thresholds, np.diff(levels).tolist(), strict=True):
            found = found + step * expit(z - b)
        return found

    def median(self, z: Array) -> Array:
        """The median level, between whose thresholds z lies."""
        levels, thresholds = self._known
        return np.asarray(levels, z.dtype)[np.searchsorted(np.asarray(thresholds, z.dtype), z)]

    def probabilities(self, z: Array) -> Array:
        """P(y = level | z), with the levels along an additional last axis."""
        below = expit(np.asarray(self._known[1], z.dtype) - np.asarray(z)[..., None])
        return np.diff(below, prepend=below.dtype.type(0), append=below.dtype.type(1))

    @property
    def _known(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if self.levels is None or self.thresholds is None:
            raise InputError(
                "Ordinal() does not know its levels. Pass them, or call `with_data_parameters` with the data first."
            )
        return self.levels, self.thresholds

    @property
    def _cuts(self) -> Array:
        """The midpoints between neighbouring levels."""
        levels = np.asarray(self._known[0])
        return (levels[1:] + levels[:-1]) / 2

    def _edges(self, y: Array) -> tuple[Array, Array]:
        """The thresholds below and above each y."""
        xp = namespace(y)
        lower, upper = xp.full_like(y, -np.inf), xp.full_like(y, np.inf)
        for cut, b in zip(self._cuts.tolist(), self._known[1], strict=True):
            lower = xp.where(y > cut, xp.full_like(y, b), lower)
        for cut, b in zip(self._cuts[::-1].tolist(), self._known[1][::-1], strict=True):
            upper = xp.where(y < cut, xp.full_like(y, b), upper)
        return lower, upper


def _added(gap: Array) -> Array:
    """−log(1 − e^{−gap})."""
    xp = namespace(gap)
    return -xp.log1p(-xp.exp(-gap))


def _levels(given: Any) -> tuple[float, ...]:
    if is_count(given, 0):
        given = range(min(given, MOST + 1))  # a larger count, as in a damaged file, takes no time
    levels = _numbers(given, "levels")
    if not 2 <= len(levels) <= MOST or not all(a < b for a, b in pairwise(levels)):
        raise InputError(f"levels={given!r} is not a scale. Pass 2 to {MOST} increasing numbers, or their count.")
    return levels


def _thresholds(given: Any, levels: int) -> tuple[float, ...]:
    thresholds = _numbers(given, "thresholds")
    if len(thresholds) != levels - 1 or not all(a < b for a, b in pairwise(thresholds)):
        raise InputError(f"thresholds={given!r} do not separate {levels} levels. Pass {levels - 1} increasing numbers.")
    return thresholds


def _numbers(given: Any, name: str) -> tuple[float, ...]:
    found = given.tolist() if isinstance(given, np.ndarray) else given
    ok = isinstance(found, (list, tuple, range)) and all(
        isinstance(one, Real) and not isinstance(one, bool) and np.isfinite(float(one)) for one in found
    )
    if not ok:
        raise InputError(f"{name}={given!r} is not a sequence of finite numbers. Pass a list or tuple of numbers.")
    return tuple(float(one) for one in found)


def _targets(levels: tuple[float, ...]) -> Targets:
    """The values of the scale, up to the rounding of single precision."""
    scale = np.asarray(levels)
    near = 1e-6 * max(np.abs(scale).max(), 1.0)

    def contains(y: Array) -> Array:
        place = np.clip(np.searchsorted((scale[1:] + scale[:-1]) / 2, y), 0, scale.size - 1)
        return np.abs(scale[place] - y) <= near

    shown = ", ".join(f"{level:g}" for level in levels[:6]) + (f", … {levels[-1]:g}" if len(levels) > 6 else "")
    return Targets(f"one of the levels {shown}", contains, "Pass all levels of the scale as Ordinal(levels=…).")
