"""A fitted matrix b1ᵀ + 1cᵀ + UVᵀ + intercept, seen through a loss: what all estimators share."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.caching import cached_property
from bifactor.errors import InputError
from bifactor.kinds import Fixed
from bifactor.losses import Loss, Shifted
from bifactor.models.fold_in import fold_in
from bifactor.models.noise_choice import NoiseChoice
from bifactor.models.side import SideInformation
from bifactor.models.tuning import RidgePath
from bifactor.operators import Entries
from bifactor.operators.cells import all_cells
from bifactor.problems.problem import Problem
from bifactor.running.result import Result
from bifactor.solvers.parts.gaussians import Gaussians
from bifactor.solvers.parts.posterior import Posterior
from bifactor.tables import Observations

OFFSETS = (1, 1)
"""The fixed columns that make offsets of rows and columns: U = [1, b, …], V = [c, 1, …]."""


@dataclass(frozen=True)
class Trial:
    """Settings of a model of clicks, and how well it ranked what was held out."""

    unobserved: float
    alpha: float
    ndcg: float


@dataclass(frozen=True)
class Clicks:
    """What makes a model one of clicks: all entries count as 0, and a row's ridge grows with what is known of it."""

    unobserved: float
    """The weight of all entries, w₀."""
    tried: tuple[Trial, ...] = ()
    """How it was chosen."""


@dataclass(frozen=True)
class Model:
    """Factors, the fixed columns of ones in front, and what it takes to add rows and columns."""

    loss: Loss
    intercept: float
    fixed: tuple[int, int]
    """Columns of ones in U, whose partners are effects of columns, and in V, whose partners are effects of rows."""
    ridge: float | None
    """None where factors have a posterior, and priors instead."""
    U: Array
    V: Array
    result: Result
    path: RidgePath | None = None
    """How the ridge was chosen."""
    posterior: Posterior | None = None
    choice: NoiseChoice | None = None
    """How the noise of the posterior was chosen."""
    clicks: Clicks | None = None
    side: SideInformation | None = None

    @cached_property
    def shifted(self) -> Loss:
        return Shifted(self.loss, self.intercept)

    @property
    def offsets(self) -> bool:
        """Whether both rows and columns have offsets."""
        return self.fixed == OFFSETS

    @property
    def rank(self) -> int:
        """Components, the effects aside."""
        return int(self.U.shape[1]) - self.fixed_columns

    @property
    def fixed_columns(self) -> int:
        """Columns of the factors that belong to the effects."""
        return sum(self.fixed)

    def scores(self, rows: Array, cols: Array) -> Array:
        """z at some entries, the intercept included."""
        return self.entries(self.U, self.V, rows, cols)

    def expected_scores(self, rows: Array, cols: Array) -> Array:
        """The same, where -1 stands for a row or column of which nothing is known."""
        both = (rows >= 0) & (cols >= 0)
        if both.all():
            return self.scores(rows, cols)
        if self.expects:
            posterior, i, j = self.doubt(rows, cols)
            U, V = (part.means.astype(self.U.dtype) for part in (posterior.rows, posterior.cols))
            return self.entries(U, V, i, j)
        b, c = (F[:, k] if self.offsets else np.zeros(F.shape[0], F.dtype) for F, k in ((self.U, 1), (self.V, 0)))
        z = self.intercept + np.where(rows >= 0, b[rows], 0) + np.where(cols >= 0, c[cols], 0)
        z[both] = self.scores(rows[both], cols[both])
        return z.astype(self.U.dtype)

    @property
    def expects(self) -> bool:
        """Whether anything is expected of rows or columns before their entries are seen."""
        parts = () if self.posterior is None else (self.posterior.rows, self.posterior.cols)
        return any(weights is not None for part in parts for weights in part.weights)

    def entries(self, U: Array, V: Array, rows: Array, cols: Array) -> Array:
        """z at some entries, by other factors."""
        if np.size(rows) == 0:
            return np.empty(0, U.dtype)
        operator = Entries(rows, cols, (U.shape[0], V.shape[0]))
        z = operator.forward(U, V) if U.shape[1] else np.zeros(operator.size, U.dtype)
        return z + U.dtype.type(self.intercept)

    def rows(self, new: Observations) -> Array:
        """Factors of new rows; `new` has all the columns."""
        return self.found(new, 0)[0]

    def found(self, new: Observations, side: int) -> tuple[Array, Gaussians | None]:
        """Factors of new rows (side 0), or columns (1), and how sure they are where the model has a posterior.

        `new` has these rows alone and all columns, or the other way round.
        """
        if self.posterior is None:
            assert self.ridge is not None
            return (self._columns(new) if side else self._folded(new, self.V, self.ridge)), None
        features = new.features[side]
        if new.values.size == 0:
            kept = (self.posterior.rows, self.posterior.cols)[side]
            known = self.posterior.known_features(features, new.shape[side], side)
            found = kept.take(np.arange(0)).padded(new.shape[side], known)
        else:
            y = new.values.astype(self.U.dtype) - self.U.dtype.type(self.intercept)
            operator = Entries(new.rows, new.cols, new.shape)
            problem = Problem(self.loss, operator, y, new.weights, fixed=self._ones(new.shape))
            found = self.posterior.fold_in(problem, side, features)
        return found.means.astype(self.U.dtype), found

    def with_found(self, side: int, count: int, new: Observations, places: Array) -> "Model":
        """With `count` rows (side 0), or columns (1): row k of `new` is found and put in places[k], unless that is -1.

        Rows beyond those that the model has, and not found, are as if nothing were known of them.
        """
        k, stay = self.fixed[0], places >= 0
        ones = slice(k, self.fixed_columns) if side else slice(k)
        whole = _lengthened((self.U, self.V)[side], count, ones)
        factors, gaussians = self.found(new, side)
        whole[places[stay]] = factors[stay]
        posterior = self.posterior
        if posterior is not None:
            assert gaussians is not None
            before = (posterior.rows, posterior.cols)[side].padded(count)
            after = before.replaced(places[stay], gaussians.take(np.flatnonzero(stay)))
            whole = after.means.astype(whole.dtype) if self.expects else whole
            posterior = replace(posterior, cols=after) if side else replace(posterior, rows=after)
        return replace(self, V=whole, posterior=posterior) if side else replace(self, U=whole, posterior=posterior)

    def with_living(self) -> "Model":
        """Without the components that explain nothing, by the posterior."""
        posterior = self.posterior_or_advice()
        stay = np.concatenate([np.ones(self.fixed_columns, bool), posterior.living(self.fixed_columns)])
        if stay.all():
            return self
        cut = replace(posterior, rows=posterior.rows.columns(stay), cols=posterior.cols.columns(stay))
        return replace(self, U=self.U[:, stay], V=self.V[:, stay], posterior=cut)

    def with_side(self) -> "Model":
        """With the weights of features for all to see; that of the one that is added to them is left out."""
        parts = () if self.posterior is None else (self.posterior.rows, self.posterior.cols)
        found: list[Array | None] = []
        for part, factor in zip(parts, (self.U, self.V), strict=False):
            weights = part.weights[0]
            A = (
                None
                if weights is None or len(weights.mean) == 1
                else np.zeros((len(weights.mean) - 1, factor.shape[1]))
            )
            if A is not None and weights is not None:
                A[:, part.places.free] = weights.mean[:-1]
            found.append(A)
        return self if not any(A is not None for A in found) else replace(self, side=SideInformation(*found))

    def doubt(self, rows: Array, cols: Array) -> tuple[Posterior, Array, Array]:
        """The posterior, and the places of pairs in it; -1 stands for a row or column of which nothing is known."""
        posterior = self.posterior_or_advice()
        if np.any(rows < 0) or np.any(cols < 0):
            m, n = len(posterior.rows), len(posterior.cols)
            posterior = replace(posterior, rows=posterior.rows.padded(m + 1), cols=posterior.cols.padded(n + 1))
            rows, cols = np.where(rows < 0, m, rows), np.where(cols < 0, n, cols)
        return posterior, rows, cols

    def posterior_or_advice(self) -> Posterior:
        if self.posterior is None:
            raise InputError("This fit has a ridge and no posterior, so no error bars. Fit numbers without alpha.")
        return self.posterior

    def _columns(self, new: Observations) -> Array:
        """Factors of new columns under the ridge, as rows of the matrix on its side."""
        assert self.ridge is not None
        turned = Observations(new.cols, new.rows, new.values, new.shape[::-1], new.weights)
        left, right = self.fixed
        across = replace(self, fixed=(right, left))
        return _exchanged(across._folded(turned, _exchanged(self.U, left, right), self.ridge), right, left)

    def _folded(self, new: Observations, held: Array, ridge: float) -> Array:
        L, R = self._ones(new.shape)
        if new.values.size == 0:
            return Fixed(L, R).zero(new.shape, held.shape[1] - self.fixed_columns, held.dtype).left
        operator = Entries(new.rows, new.cols, new.shape)
        problem = Problem(self.shifted, operator, new.values.astype(held.dtype), new.weights, fixed=(L, R))
        if self.clicks is None:
            return fold_in(problem, held, ridge)
        weight = self.clicks.unobserved
        known = np.bincount(new.rows, new.weights, new.shape[0]) + weight * new.shape[1]
        return fold_in(problem + all_cells(weight), held, ridge * known[:, None])

    def _ones(self, shape: tuple[int, int]) -> tuple[Array, Array]:
        """The fixed columns of a matrix."""
        return np.ones((shape[0], self.fixed[0])), np.ones((shape[1], self.fixed[1]))


def _exchanged(F: Array, left: int, right: int) -> Array:
    """The factors of rows as those of columns: the first `left` columns change places with the `right` next ones."""
    both = left + right
    return np.ascontiguousarray(F[:, [*range(left, both), *range(left), *range(both, F.shape[1])]])


def _lengthened(F: Array, rows: int, ones: slice) -> Array:
    """With rows of zeros at the end, but for the columns that are all ones."""
    longer = np.zeros((rows, F.shape[1]), F.dtype)
    longer[: F.shape[0]] = F
    longer[F.shape[0] :, ones] = 1
    return longer
