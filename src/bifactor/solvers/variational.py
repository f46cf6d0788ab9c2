"""Variational Bayes: the posterior of the factors, with nothing to tune."""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from bifactor.arrays import Array, cast
from bifactor.blocks import Exact
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.operators import Entries
from bifactor.penalties.uncertainty import Uncertainty
from bifactor.problems.footprint import run_memory
from bifactor.problems.objective import Objective
from bifactor.problems.problem import Problem
from bifactor.problems.state import Moving, Phase, Point, Settled, State, Value
from bifactor.solvers.base import Solver
from bifactor.solvers.parts.features import Features, ones
from bifactor.solvers.parts.gamma import Precisions, fitted_precisions
from bifactor.solvers.parts.gaussians import Gaussians
from bifactor.solvers.parts.half import Half, Matrices, Side
from bifactor.solvers.parts.moments import Data, Sums
from bifactor.solvers.parts.posterior import Posterior
from bifactor.solvers.parts.regression import WHOLE
from bifactor.solvers.parts.requirements import require_no_penalty, require_numpy, require_two_factors
from bifactor.solvers.parts.turn import best_turn
from bifactor.validation import is_at_least_zero, require_flag

NoiseModel = Literal["one", "columns", "rows", "both", "student"]

PriorModel = Literal["separate", "shared"]

FEATURES = ("row_features", "column_features")

HEAVIEST = 4.0
"""Degrees of freedom of Student's t at least. Where most values are alike, as some ratings are, they would fall
towards 0: a spike at one value, and no use for the others. Four is a usual choice (Lange, Little and Taylor,
Robust statistical modeling using the t distribution, JASA 84, 1989)."""

OFTEN, SELDOM = 10, 5
"""Factors are turned after each of so many first sweeps, and then after every few."""

STILL = 3
"""Sweeps in a row that must move predictions by less than the tolerance."""


@dataclass(frozen=True)
class Inferred(Value):
    """Both factors' posteriors, the noise, and the sums for the rows of U that the next sweep begins with."""

    rows: Side
    cols: Side
    variance: float
    packed: Array
    linear: Array
    squares: Array
    trust: Precisions | None = None
    """The precision of each entry, where they differ."""
    age: int = 0
    still: int = 0
    """Sweeps in a row that have moved predictions by next to nothing."""

    @property
    def sums(self) -> Sums:
        return Sums(self.packed, self.linear, self.squares)


@dataclass(frozen=True)
class Variational(Solver[Inferred]):
    """The posterior of the factors, by coordinate ascent on the variational bound of the evidence.

        y = z + noise,  z = (UVᵀ)ᵢⱼ,  uᵢₖ ~ N(0, 1/aₖ),  vⱼₖ ~ N(0, 1/dₖ),  q(uᵢ) = N(mᵢ, Cᵢ),  q(vⱼ) = N(nⱼ, Sⱼ)

    Each row of each factor has a mean and a full covariance. The precisions of the priors, one for each column, and the
    noise are fitted on the way, so there is nothing to tune and nothing is held out: a column that explains nothing
    gets an infinite precision. After a sweep the factors are turned to where the bound is largest.

    The objective is the negative bound, in nats: it never rises, and is comparable between ranks and noise models.
    `Result.U` and `Result.V` are the means, and `Result.posterior` tells how sure they are. `Result.problem` is least
    squares in the means, with what the covariances add. For squared errors of observed entries; weights are precisions
    relative to the noise.

    Parameters
    ----------
    noise : "one", "columns", "rows", "both" or "student"
        Whether all entries have one variance, or those of a column, of a row, or both a factor of it of their own; or
        each entry, which makes the noise Student's t and is for data with outliers. These factors have a gamma
        posterior; how strongly they are drawn to 1, for t the degrees of freedom, is fitted too.
    prior : "separate" or "shared"
        Whether each column of a factor has a prior precision of its own, by which those that explain nothing vanish, or
        all components have one in common, beside effects of rows and columns. The bound mostly prefers separate ones.
        Where rows have few entries and one component outdoes the others, a shared one may predict better, as it holds
        that component back; it needs a rank that is not too large.
    row_features, column_features : array or sparse matrix, optional
        What is known of the rows, and of the columns, one line of numbers for each. They move the means of the priors,
        uᵢ ~ N(fᵢA, 1/a), where A is fitted with a posterior of its own; thousands that tell little may do harm. A one
        is added to them, so they need not be around zero. Rows without entries are expected at fᵢA.
    implicit : bool
        Whether it also tells of a row which columns it is known in, and of a column in which rows, whatever the values
        (SVD++). These are features too: 1/√n at each of the n columns of a row.
    tol : float
        The run has converged when predictions of the entries move by less than this share of the noise, by root mean
        square, three sweeps in a row. 0 leaves the end to the tests of `solve`.

    References
    ----------
    Y. J. Lim and Y. W. Teh, Variational Bayesian approach to movie rating prediction, KDD Cup 2007. A. Ilin and
    T. Raiko, Practical approaches to principal component analysis in the presence of missing values, JMLR 11 (2010).
    B. Lakshminarayanan, G. Bouchard and C. Archambeau, Robust Bayesian matrix factorisation, AISTATS 2011. D. Agarwal
    and B.-C. Chen, Regression-based latent factor models, KDD 2009. Y. Koren, Factorization meets the neighborhood: a
    multifaceted collaborative filtering model, KDD 2008.
    """

    noise: NoiseModel = "one"
    prior: PriorModel = "separate"
    tol: float = 3e-3
    row_features: Any = None
    column_features: Any = None
    implicit: bool = False
    outermost = True

    def __post_init__(self) -> None:
        if self.noise not in get_args(NoiseModel):
            raise InputError(f"noise={self.noise!r} is not one of {', '.join(map(repr, get_args(NoiseModel)))}.")
        if self.prior not in get_args(PriorModel):
            raise InputError(f"prior={self.prior!r} is neither 'separate' nor 'shared'.")
        if not is_at_least_zero(self.tol):
            raise InputError(f"tol={self.tol!r} is not a number ≥ 0. Use 0 to turn the test off.")
        require_flag(self.implicit, "implicit")
        for name in FEATURES:
            object.__setattr__(self, name, Features.of(getattr(self, name), name))

    def told(self, row_features: Any, column_features: Any) -> "Variational":
        """With features; None leaves those that it has."""
        given = {
            name: one for name, one in zip(FEATURES, (row_features, column_features), strict=True) if one is not None
        }
        return replace(self, **given) if given else self

    @property
    def _shared(self) -> bool:
        return self.prior == "shared"

    def check(self, problem: Objective, rank: int) -> None:
        require_numpy(self, problem)
        require_no_penalty(self, problem)
        require_two_factors(self, problem)
        entries = isinstance(problem, Problem) and isinstance(problem.operator, Entries)
        if not (entries and problem.f.quadratic) or np.dtype(problem.dtype).kind == "c":
            raise InputError("Variational is made for squared errors of real entries. Use PCG here.")
        if problem.f.data is not problem.f:
            raise InputError("Variational knows the entries that are observed, and not all_cells. Use PCG here.")
        for given, name, rows in zip((self.row_features, self.column_features), FEATURES, problem.shape, strict=True):
            if given is not None:
                given.require_rows(rows, name)
        least, range_of = _data(problem).least_noise, np.finfo(problem.dtype)
        if not 1e4 / float(range_of.max) ** 0.5 <= least <= 1e-4 * float(range_of.max) ** 0.5:  # both are weights
            raise InputError(f"The size of y leaves no room for precisions in {problem.dtype}. Rescale it to around 1.")

    def peak(self, problem: Objective, rank: int) -> int:
        width = rank + problem.kind.fixed_columns
        packed = 8 * width * (width + 1) // 2
        tables, lengths = (8, 11) if self.noise == "student" else (6, 5)
        wide = 8 / np.dtype(problem.dtype).itemsize  # sums are taken in double precision
        usual = run_memory(problem, rank, pairs=8, lengths=wide * lengths) + tables * sum(problem.shape) * packed
        given = zip((self.row_features, self.column_features), problem.shape, problem.shape[::-1], strict=True)
        return usual + sum(self._features_memory(problem, width, *side) for side in given)

    def _features_memory(self, problem: Objective, width: int, given: Features | None, rows: int, others: int) -> int:
        """Bytes that the features of one side take, the tables that they came in aside."""
        if given is None and not self.implicit:
            return 0
        count, known = (1, rows) if given is None else (given.matrix.shape[1] + 1, given.matrix.nnz + rows)
        entries = problem.f.footprint(width).z // np.dtype(problem.dtype).itemsize
        count, known = (count + others, known + entries) if self.implicit else (count, known)
        return 8 * (6 * width * (rows + count) + 6 * known + 5 * min(count, WHOLE) ** 2)

    def init(self, problem: Objective, x: Factors, rank: int) -> State[Inferred]:
        data = _data(problem)
        variance = max(2 * float(problem.f.value(x)) / max(data.size, 1), data.least_noise)
        rows, cols = (
            Half.vague(x, side, data.counts[side], data.mean_square, self._shared, self._features(data, side))
            for side in (0, 1)
        )
        trust = Precisions(np.ones(data.y.size)) if self.noise == "student" else None
        return _state(data, rows, cols, variance, cols.slope(data.sums(1, *rows.known), variance), trust)

    def step(self, problem: Objective, state: State[Inferred]) -> State[Inferred]:
        own, data = state.own, _data(problem, state)
        rows, cols = self._halves(data, state)
        sums, trust, variance = own.sums, own.trust, own.variance
        if trust is not None:
            errors = data.errors(rows.known[:2], cols.known[:2])
            trust = fitted_precisions((data.given > 0).astype(float), errors / variance, trust.strength, HEAVIEST)
            data = Data(data.problem, trust.mean)
            sums = data.sums(0, *cols.known)
        rows, variance = rows.fitted(sums, data, variance, self.noise in ("rows", "both"))
        sums = data.sums(1, *rows.known)
        cols, variance = cols.fitted(sums, data, variance, self.noise in ("columns", "both"))
        slope = cols.slope(sums, variance)
        if own.age < OFTEN or own.age % SELDOM == 0:
            rows, cols, slope = _turned(rows, cols, slope, problem.kind.fixed_columns, self._shared)
        new = _state(data, rows, cols, variance, slope, trust)
        moved = data.moved(state.point.z, new.point.z, variance)
        still = own.still + 1 if moved <= self.tol else 0
        phase: Phase = Settled() if still >= STILL else Moving()
        return State(new.point, replace(new.own, age=own.age + 1, still=still), phase)

    def current(self, problem: Objective, state: State[Inferred]) -> Objective:
        """Least squares in the means, with what the covariances add."""
        data, trust = _data(problem, state), state.own.trust
        return _conditional(data, *self._halves(data, state), state.own.variance, 0.0 if trust is None else trust.cost)

    def posterior(self, problem: Objective, state: State[Inferred]) -> Posterior:
        own, halves = state.own, self._halves(_data(problem), state)
        varies = self.noise in ("rows", "both"), self.noise in ("columns", "both")
        rows, cols = (half.noise.strength if own else None for half, own in zip(halves, varies, strict=True))
        degrees = None if own.trust is None else own.trust.strength
        first, second = (self._with_weights(half, side) for side, half in enumerate(halves))
        return Posterior(first, second, own.variance, degrees, (rows, cols))

    def _with_weights(self, half: Half, side: int) -> Gaussians:
        """The rows of a factor, with what is expected of new ones; those without measurements are like these."""
        if not half.regressions:
            return half.rows
        told = [one.weights for one in half.regressions]
        rows = replace(half.rows, weights=(told[0], told[1] if self.implicit else None))
        given = (self.row_features, self.column_features)[side]
        return rows.with_cold(half.counts, None if given is None else given.with_ones)

    def _halves(self, data: Data, state: State[Inferred]) -> tuple[Half, Half]:
        x, sides = state.point.x, (state.own.rows, state.own.cols)
        rows, cols = (Half.of(x, k, data.counts[k], sides[k], self._shared, self._features(data, k)) for k in (0, 1))
        return rows, cols

    def _features(self, data: Data, side: int) -> Matrices:
        """What the means of the prior are made from: features with a one behind, and the pattern of entries."""
        given = (self.row_features, self.column_features)[side]
        if given is None and not self.implicit:
            return ()
        known = ones(data.shape[side]) if given is None else given.with_ones
        return (known, data.pattern(side)) if self.implicit else (known,)


def _data(problem: Objective, state: State[Inferred] | None = None) -> Data:
    assert isinstance(problem, Problem)  # checked at the door
    trust = None if state is None else state.own.trust
    return Data(problem, None if trust is None else trust.mean)


def _state(
    data: Data, rows: Half, cols: Half, variance: float, slope: Array, trust: Precisions | None
) -> State[Inferred]:
    """The state at these posteriors; `slope` is that of the columns' means."""
    problem, sums = data.problem, data.sums(0, *cols.known)
    errors = float(np.sum(rows.rows.precision * rows.errors(sums)))
    value = data.normalisation(variance) + errors / (2 * variance) + rows.cost + cols.cost
    value += 0.0 if trust is None else trust.cost
    pair = [cast(half.means, problem.dtype) for half in (rows, cols)]
    x = problem.kind.pair(*pair)
    gradient = x.gradient(rows.slope(sums, variance) + rows.pulled, slope + cols.pulled)
    z = problem.operator.forward(x.left, x.right) if x.width else np.zeros(data.y.size, problem.dtype)
    point = Point(x, value, gradient, z, value, gradient)
    return State(point, Inferred(rows.side, cols.side, variance, *sums, trust))


def _turned(rows: Half, cols: Half, slope: Array, fixed: int, shared: bool) -> tuple[Half, Half, Array]:
    """The same X by factors that the priors agree with best, and the slope of the columns there."""
    together = (rows.drawn, cols.drawn) if shared else None
    R = best_turn(rows.component_moments(fixed), cols.component_moments(fixed), together)
    if R is None:
        return rows, cols, slope
    back = np.linalg.inv(R).T
    turned = slope.copy()
    turned[:, fixed:] = slope[:, fixed:] @ R
    return rows.turned(R, fixed), cols.turned(back, fixed), turned


def _conditional(data: Data, rows: Half, cols: Half, variance: float, cost: float) -> Objective:
    """The negative bound as a function of the means alone; `cost` is the part of the entries' precisions."""
    problem = data.problem
    assert isinstance(problem.operator, Entries)
    halves, means = (rows, cols), [half.rows.precision for half in (rows, cols)]
    spreads = [half.rows.spread for half in halves]
    blocks = []
    for side in (0, 1):
        other = 1 - side
        packed = data.sums(side, 0 * halves[other].means, spreads[other], means[other]).packed
        blocks.append(packed * (means[side] / variance)[:, None])
    constant = cost + data.normalisation(variance) + sum(half.cost_of_spread for half in halves)
    constant += 0.5 * rows.traces(blocks[0])
    priors = (rows.around, cols.around) if rows.regressions or cols.regressions else None
    for half, packed in zip(halves, blocks, strict=True):
        if priors is None:
            packed[:, half.places.pairs[half.places.diagonal]] += half.rows.prior
    width = rows.places.width
    term = Uncertainty(Exact(blocks[0], width), Exact(blocks[1], width), constant, priors)
    weights = data.weights * means[0][problem.operator.rows] * means[1][problem.operator.cols] / variance
    return problem.reweighted(cast(weights, problem.dtype)).penalized(term)
