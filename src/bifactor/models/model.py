"""A fitted matrix b1ᵀ + 1cᵀ + UVᵀ + intercept: factors, a link, a model of new rows, and a predictive distribution."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels.blas import matmul
from bifactor.losses import Loss
from bifactor.models.link import Link
from bifactor.models.predictive import PredictiveDistribution
from bifactor.models.rows import Addition, NewRows, RowModel, fixed_columns, with_ones
from bifactor.operators import Entries
from bifactor.running.result import Figures, Result, run_card
from bifactor.running.search import Search
from bifactor.solvers.variational.posterior import Posterior
from bifactor.validation import pluralize

KNOWN = ("neither", "row", "column", "both")
"""Which names of a pair are known, indexed by 1 for the row plus 2 for the column."""

OFFSETS = (1, 1)
"""Numbers of fixed columns for offsets of rows and columns: U = [1, b, …], V = [c, 1, …]."""


def match_status(i: Array, j: Array) -> Array:
    """Which names of pairs of indices are known."""
    return np.array(KNOWN)[(i >= 0) + 2 * (j >= 0)]


@dataclass(frozen=True)
class Model:
    """Factors, how z becomes a prediction, how rows and columns are added, and how predictions are distributed."""

    factors: Factors
    """U and V, which begin with columns of ones if there are effects of rows or columns."""
    link: Link
    rows: RowModel
    """Finds the factors of new rows and columns."""
    result: Result
    predictive: PredictiveDistribution | None = None
    """The distribution of new measurements; None for a ridge."""
    search: Search | None = None
    """How settings were chosen; None if they were given."""

    def __repr__(self) -> str:
        return f"Model({self.describe()})"

    def _repr_html_(self) -> str:
        return self.html("Model")

    def describe(self) -> str:
        """Size, rank and loss."""
        m, n = (side.shape[0] for side in (self.U, self.V))
        return f"{m:,}×{n:,}, {pluralize(self.rank, 'component')}, {self.loss!r}"

    def html(self, title: str, more: Figures = ()) -> str:
        """Card of the model: its run, and how its settings were chosen."""
        noise = None if self.posterior is None else f"±{self.posterior.variance**0.5:.4g}"
        ridge = self.rows.ridge
        shown = [
            (self.rank, "components"),
            (None if ridge is None else f"{ridge:.4g}", "ridge"),
            (noise, "noise"),
            *more,
        ]
        pictures = [] if self.search is None else self.search.pictures()
        return run_card(title, self.describe(), self.result, shown, pictures, self.components)

    @property
    def U(self) -> Array:
        return self.factors.left

    @property
    def V(self) -> Array:
        return self.factors.right

    @property
    def loss(self) -> Loss:
        return self.link.loss

    @property
    def posterior(self) -> Posterior | None:
        """The posterior of all rows and columns; None for a ridge."""
        return self.rows.posterior

    @property
    def fixed(self) -> tuple[int, int]:
        """Columns of ones in U, whose partners are effects of columns, and in V, whose partners are effects of rows."""
        return fixed_columns(self.factors)

    @property
    def offsets(self) -> bool:
        """Whether both rows and columns have offsets."""
        return self.fixed == OFFSETS

    @property
    def fixed_columns(self) -> int:
        """Number of columns of the factors that belong to effects."""
        return sum(self.fixed)

    @property
    def rank(self) -> int:
        """Number of components, without effects."""
        return self.factors.width - self.fixed_columns

    @property
    def components(self) -> tuple[Array, Array]:
        """The factors without effects."""
        return self.U[:, self.fixed_columns :], self.V[:, self.fixed_columns :]

    def scores(self, rows: Array, cols: Array) -> Array:
        """z at some entries, including the intercept; -1 stands for an unknown row or column."""
        rows, cols = np.asarray(rows), np.asarray(cols)
        if not (np.any(rows < 0) or np.any(cols < 0)):
            return self.entries(self.U, self.V, rows, cols)
        (U, i), (V, j) = self._lines(rows, 0), self._lines(cols, 1)
        return self.entries(U, V, i, j)

    def _lines(self, places: Array, side: int) -> tuple[Array, Array]:
        """Factors of the rows, or columns, at some places, each once, and which of them belongs to each place."""
        some, back = np.unique(places, return_inverse=True)
        lines = (self.U, self.V)[side][np.maximum(some, 0)]
        lines[some < 0] = self.rows.unknown(self.factors, side)
        return lines, back

    def entries(self, U: Array, V: Array, rows: Array, cols: Array) -> Array:
        """z at some entries, from other factors."""
        if np.size(rows) == 0:
            return np.empty(0, U.dtype)
        operator = Entries(rows, cols, (U.shape[0], V.shape[0]))
        z = operator.forward(U, V) if U.shape[1] else np.zeros(operator.size, U.dtype)
        return z + U.dtype.type(self.link.intercept)

    def all_scores(self) -> Array:
        """z of the whole matrix."""
        return matmul(self.U, self.V.T) + self.U.dtype.type(self.link.intercept)

    def distribution(self) -> PredictiveDistribution:
        """The distribution of new measurements; raises `InputError` if there is none."""
        if self.predictive is None:
            raise InputError("This fit has a ridge, and error bars need a posterior. Fit numbers without ridge.")
        return self.predictive

    def std(self, rows: Array, cols: Array) -> Array:
        """Standard deviations of new measurements at indices, -1 for an unknown row or column."""
        return self.distribution().std(rows, cols).astype(self.U.dtype)

    def interval(self, rows: Array, cols: Array, level: float) -> tuple[Array, Array]:
        """Intervals of new measurements, clipped, at indices, -1 for an unknown row or column."""
        ends = self.distribution().interval(rows, cols, level)
        lower, upper = (self.link.clipped(end + self.link.intercept).astype(self.U.dtype) for end in ends)
        return lower, upper

    def sample(self, rng: np.random.Generator, rows: Array, cols: Array, noise: bool, whole: bool = False) -> Array:
        """One draw of new measurements or, without noise, of z; `whole` means all of the matrix, row by row."""
        z = self.distribution().sample(rng, rows, cols, noise, whole)
        return (z + self.link.intercept).astype(self.U.dtype)

    def fold_in(self, new: Observations, side: int = 0) -> NewRows:
        """Factors of new rows (side 0), or columns (1), and their posterior if the model has one.

        `new` has these rows alone and all columns, or the other way round.
        """
        return self.rows.solve(self.factors, self.link, new, side)

    def of_rows(self, new: Observations) -> "Model":
        """A model of new rows alone, with all columns."""
        factors, gaussians = self.fold_in(new)
        predictive = None if self.predictive is None or gaussians is None else self.predictive.of_rows(gaussians)
        return replace(self.with_row_factors(factors), predictive=predictive)

    def with_row_factors(self, U: Array) -> "Model":
        """The matrix of other rows, with these factors; nothing is known about its error bars."""
        return replace(self, factors=with_ones(U, self.V, self.fixed), predictive=None)

    def with_rows(self, side: int, count: int, new: Observations, places: Array) -> "Model":
        """A model with `count` rows (side 0), or columns (1); row k of `new` is computed and put at places[k], if ≥ 0.

        Further rows beyond those of the model are treated as unknown.
        """
        factors, gaussians = self.fold_in(new, side)
        stay = np.flatnonzero(places >= 0)
        seen = np.unique((new.rows, new.cols)[side])
        added = Addition(side, count, places[stay], places[seen[places[seen] >= 0]])
        rows = self.rows.extended(added, None if gaussians is None else gaussians.take(stay))
        x = rows.placed(self.factors, added, factors[stay])
        predictive = None if self.predictive is None else self.predictive.following(rows)
        return replace(self, factors=x, rows=rows, predictive=predictive)

    def with_recoding(self, recoding: Any) -> "Model":
        """The model for data whose values are recoded for the loss in this way."""
        return replace(self, link=replace(self.link, recoding=recoding))


@dataclass(frozen=True, eq=False)
class Prediction:
    """Some cells of a fitted matrix, or all: their z, means, error bars and draws."""

    model: Model
    cells: tuple[Array, Array] | None = None
    """Rows and columns, -1 for unknown ones; None for the whole matrix."""
    single: bool = False
    """Whether the result is a number, not a vector."""

    def warned(self) -> "Prediction":
        """This prediction, with a warning if names are unknown, for results that do not show it."""
        strange = 0 if self.cells is None else int(np.count_nonzero((self.cells[0] < 0) | (self.cells[1] < 0)))
        if self.cells is not None and strange:
            warnings.warn(
                f"In {strange:,} of {pluralize(self.cells[0].size, 'pair')} a name was not in the fit; it counts as "
                "average. Pass unknown='raise' to raise an error instead.",
                UserWarning,
                stacklevel=3,
            )
        return self

    @property
    def scores(self) -> Array:
        """z, before the link of the loss."""
        if self.cells is None:
            return self.model.all_scores()
        return self._shaped(self.model.scores(*self.cells))

    @property
    def mean(self) -> Array:
        """The mean under the loss, clipped."""
        return self.model.link.mean(self.scores)

    @property
    def columns(self) -> dict[str, Array]:
        """Predictions as columns of a table: for labels, the more likely class and the probability of the upper one."""
        classes = self.model.link.classes
        if classes is None:
            return {"prediction": self.mean}
        z = self.scores
        return {"prediction": classes[(z > 0).astype(np.intp)], "probability": self.model.loss.mean(z)}

    @property
    def std(self) -> Array:
        """Standard deviation of a new measurement."""
        return self._shaped(self.model.std(*self._indices))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Intervals that contain new measurements with probability `level`."""
        lower, upper = self.model.interval(*self._indices, level)
        return self._shaped(lower), self._shaped(upper)

    def sample(self, count: int, noise: bool, rng: np.random.Generator) -> Array:
        """Joint draws, along the first axis."""
        i, j = self._indices
        draws = (self.model.sample(rng, i, j, noise, whole=self.cells is None) for _ in range(count))
        return np.stack([self._shaped(draw) for draw in draws])

    @property
    def _indices(self) -> tuple[Array, Array]:
        if self.cells is not None:
            return self.cells
        m, n = len(self.model.U), len(self.model.V)
        return np.repeat(np.arange(m), n), np.tile(np.arange(n), m)

    def _shaped(self, values: Array) -> Array:
        if self.cells is None:
            return values.reshape(len(self.model.U), -1)
        shaped: Array = values[0] if self.single else values
        return shaped
