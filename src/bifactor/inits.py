"""Initialisations, which choose the first factors."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy

from bifactor.arrays import (
    Array,
    DistributedArray,
    dtype_of,
    floating,
    gaussian,
    namespace,
    norm,
    same_library,
    to_device_of,
    where,
)
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.operators.curves import Curve
from bifactor.penalties.base import Weights
from bifactor.problems.memory import pair_memory, search_memory
from bifactor.problems.objective import Objective
from bifactor.validation import require_finite, require_flag, settle_positive

__all__ = ["Given", "Init", "Random", "Spectral", "Zero"]


class Init(ABC):
    """A choice of the first factors (U₀, V₀)."""

    @abstractmethod
    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        """U₀ (m×rank) and V₀ (n×rank), of the problem's kind; the columns that it fixes come before these."""

    def peak(self, problem: Objective, rank: int) -> int:
        """Peak bytes of temporary memory, besides the problem."""
        return 3 * pair_memory(problem, rank)


# A start from X = 0.


@dataclass(frozen=True)
class Zero(Init):
    """X₀ = 0, for solvers that work on X: in the factors it is a saddle point with a zero gradient."""

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        return problem.zero(rank)


# A random start.


@dataclass(frozen=True)
class Random(Init):
    """Gaussian factors, scaled so that ‖U₀‖_F = ‖V₀‖_F and ‖U₀V₀ᴴ‖_F = `norm`."""

    norm: float = 1.0

    def __post_init__(self) -> None:
        settle_positive(self, "norm", "Pass the Frobenius norm of the start.")

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        x = problem.kind.random(rng, problem.shape, rank, problem.dtype, problem.f.like)
        x = x.each(lambda a: a / norm(a))
        x = (self.norm / x.product_norm()) ** 0.5 * x
        return problem.kind.start(x.left, x.right)


# A start given by the user.


@dataclass(frozen=True, eq=False)
class Given(Init):
    """The given pair (U, V); V may be left out for X = UUᴴ. It may include the columns that a problem fixes."""

    U: Array
    V: Array | None = None

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        (m, n), kind = problem.shape, problem.kind
        U = self._factor(self.U, "U", m, rank, kind.fixed_columns, problem.f.like)
        V = None if self.V is None else self._factor(self.V, "V", n, rank, kind.fixed_columns, problem.f.like)
        return kind.given(U, V, rank)

    @staticmethod
    def _factor(factor: Array, name: str, rows: int, rank: int, extra: int, like: Array) -> Array:
        F = floating(factor, name)
        if isinstance(like, DistributedArray) and type(F) is np.ndarray:  # one of the two is divided into blocks
            F = to_device_of(F, like)
        elif not same_library(F, like):
            raise InputError(f"{name} is in {where(F)}, but y is in {where(like)}. Pass both in the same library.")
        if F.ndim != 2 or F.shape[0] != rows or F.shape[1] not in (rank, rank + extra):
            raise InputError(f"{name} has shape {tuple(F.shape)}. Pass one of shape {(rows, rank)} for this rank.")
        require_finite(F, name, "Start from finite factors.")
        return F


# A start from the leading singular vectors of the gradient at 0.

TOL, RESTARTS = 1e-2, 4
"""Accuracy of the singular vectors, and the largest number of restarts: a better start is not worth its time."""

FLAT = 0.01
"""The share of its first slope at which a function without a minimum counts as flat."""

FAINT = 1e-4
"""The size given to directions that are missing in the gradient, as a fraction of the leading one."""


@dataclass(frozen=True)
class Spectral(Init):
    """X₀ = s·P_r(−∇f(0)), split evenly between the factors; if X = UUᴴ, the leading positive eigenpairs.

    P_r is computed by a truncated SVD of the lazy gradient. The paper's s is 1/L (its eq. (initial_sol)); that is right
    for a well-conditioned f, but if a fraction ρ of the entries is observed, it is too short by 1/ρ. So by default s is
    the best multiple, argmin_s f(s·P_r(−∇f(0))), found by a line search without L. `fit=False` takes 1/L.

    Parameters
    ----------
    fit : bool
        Whether to take the best multiple s instead of 1/L.
    sketch : bool, optional
        Whether to take few passes over the data. P_r is then less accurate, and rows and columns are divided, before
        and after it, by the square roots of their numbers of observations plus the mean number. By default, True for
        data in blocks.
    """

    fit: bool = True
    sketch: bool | None = None

    def __post_init__(self) -> None:
        require_flag(self.fit, "fit")
        if self.sketch is not None:
            require_flag(self.sketch, "sketch")

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        m, n = problem.shape
        G = problem.f.data.gradient(problem.zero())  # a term on all entries has no gradient at 0
        right, left = (to_device_of(gaussian(rng, (k, 1), problem.dtype), G.like) for k in (n, m))
        seen = G.products(left, right)
        if not all(np.isfinite(norm(side)) for side in seen):
            raise InputError("The gradient at X = 0 is not finite, so no spectral start exists. Rescale the data.")
        weights, restarts = (_evening(problem), 0) if self._sketches(problem) else (Weights(), RESTARTS)
        A, values, B = problem.kind.leading(weights.gradient(G), rank, rng, TOL, restarts, sign=-1)
        if not values[0] > 0:  # no descent from 0: X = 0 is optimal
            return problem.zero(rank)
        x = weights.back(problem.kind.from_triplets(A, np.maximum(values, 0), B))
        s = self._multiple(problem, x) if self.fit else 1 / problem.smoothness
        x = start_faint(s**0.5 * x, values <= 1e-10 * values[0], seen, rng)
        return problem.kind.start(x.left, x.right)

    def peak(self, problem: Objective, rank: int) -> int:
        return search_memory(problem, rank, self._sketches(problem)) if rank else 0

    def _sketches(self, problem: Objective) -> bool:
        return problem.f.data.expensive if self.sketch is None else self.sketch

    @staticmethod
    def _multiple(problem: Objective, x: Factors) -> float:
        return best_multiple(problem.f.straight(None, x), 1 / problem.scale)


def _evening(problem: Objective) -> Weights:
    """Weights with which all rows and columns of ∇f(0) count about equally, however often they are observed.

    If the numbers of observations differ much, the leading singular vectors of ∇f(0) itself are concentrated on the
    rows and columns that have most of them. In three sets of two million ratings by Zipf's law, PCG came within 1 % of
    the least objective after 3 to 8 iterations from this start, and after 22 to 33 from the other, however accurate.
    Means are added so that rarely observed rows and columns do not dominate instead.
    """
    marginals = problem.f.data.marginals
    if marginals is None:
        return Weights()
    rows, cols = (np.asarray(side, np.float64) for side in marginals)
    return Weights(rows + rows.mean(), cols + cols.mean()).of(problem.kind)


def best_multiple(line: Curve, guess: float) -> float:
    """argmin over s > 0 of φ(s), for a convex φ that decreases at s = 0.

    If the slope tends to zero without crossing it (labels that X can separate, an f without a minimum), s is where it
    has decreased to a hundredth. The search begins at `guess`; the result does not depend on it.
    """
    quartic = line.quartic
    if quartic is not None and quartic[2] > 0:  # f is quadratic, so φ is
        return max(float(-quartic[1] / (2 * quartic[2])), 0.0)
    first = line.at(0.0)[1]

    def slope(s: float) -> float:
        value = line.at(s)[1]
        return value if np.isfinite(value) else 1e6 * abs(first)

    if not first < 0:
        return 0.0
    high = guess
    while slope(high) < FLAT * first:
        high *= 4
        if high > 1e15 * guess:
            return guess
    crossing = next((s for s in (high * 4.0**k for k in range(6)) if slope(s) > 0), None)
    level, end = (FLAT * first, high) if crossing is None else (0.0, crossing)
    return float(scipy.optimize.brentq(lambda s: (slope(s) if s > 0 else first) - level, 0.0, end, rtol=1e-6))


def start_faint(x: Factors, absent: Array, seen: tuple[Array, Array], rng: np.random.Generator) -> Factors:
    """Fill `absent` columns and zero rows with small random numbers: they would otherwise stay zero.

    Columns are zero if the rank of the gradient is too low, rows if the observed entries form separate blocks and the
    leading singular vectors are zero there. Rows in which the gradient itself is zero, as without any observation, are
    left at zero: `seen` is the gradient of both sides, in some direction.
    """
    sides = x.kind.pair(*seen)
    return x.each(lambda factor, gradient: _filled(factor, absent, gradient, rng), sides)


def _filled(factor: Array, absent: Array, seen: Array, rng: np.random.Generator) -> Array:
    xp = namespace(factor)
    rows = xp.linalg.vector_norm(factor, axis=1, keepdims=True)
    empty = to_device_of(absent, factor) | (rows <= 1e-10 * xp.max(rows))
    lacking = empty & (seen != 0)
    if not xp.any(lacking):
        return factor
    fill = gaussian(rng, tuple(factor.shape), dtype_of(factor))
    fill *= FAINT**0.5 * norm(factor[:, :1]) / np.linalg.norm(fill, axis=0)
    return xp.where(lacking, to_device_of(fill, factor), factor)
