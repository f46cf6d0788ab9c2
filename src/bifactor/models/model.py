"""A fitted matrix b1ᵀ + 1cᵀ + UVᵀ + intercept with a loss, common to all estimators."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.errors import InputError
from bifactor.factors import Fixed
from bifactor.losses import Loss, Shifted
from bifactor.models.completion.clipping import Range
from bifactor.models.completion.noise_selection import NoiseChoice
from bifactor.models.fold_in import fold_in
from bifactor.models.recommender.settings import ImplicitFeedback
from bifactor.models.side_information import SideInformation
from bifactor.operators import Entries
from bifactor.operators.all_cells import all_cells
from bifactor.problems.objective import Problem
from bifactor.running.result import Figures, Result, run_card
from bifactor.running.search import Search
from bifactor.solvers.variational.posterior import Gaussians, Posterior
from bifactor.validation import pluralize

if TYPE_CHECKING:
    from bifactor.data.seen_items import SeenItems

KNOWN = ("neither", "row", "column", "both")
"""Which names of a pair are known, indexed by 1 for the row plus 2 for the column."""


def scalar_if_single(told: Array, rows: Any, cols: Any) -> Array:
    """Results for pairs; a scalar if both sides are single names."""
    return told[0] if np.ndim(rows) == np.ndim(cols) == 0 else told


def match_status(i: Array, j: Array) -> Array:
    """Which names of pairs of indices are known."""
    return np.array(KNOWN)[(i >= 0) + 2 * (j >= 0)]


# Representations of a model, printed and in notebooks.


class ShownFit:
    """Representations of a fit, from its model and known pairs."""

    model: "Model"
    seen: "SeenItems"

    def __repr__(self) -> str:
        return f"Fit({describe_model(self.model)}, {pluralize(self.seen.size, 'pair')})"

    def _repr_html_(self) -> str:
        return model_card(self.model, "Fit", [(f"{self.seen.size:,}", "known pairs")])


def describe_model(model: "Model") -> str:
    """Size, rank and loss."""
    m, n = (side.shape[0] for side in (model.U, model.V))
    return f"{m:,}×{n:,}, {pluralize(model.rank, 'component')}, {model.loss!r}"


def model_card(model: "Model", title: str, more: Figures = ()) -> str:
    """Card of a model: its run, and how its ridge was chosen."""
    noise = None if model.posterior is None else f"±{model.posterior.variance**0.5:.4g}"
    shown = [
        (model.rank, "components"),
        (None if model.ridge is None else f"{model.ridge:.4g}", "ridge"),
        (noise, "noise"),
        *more,
    ]
    factors = (model.U[:, model.fixed_columns :], model.V[:, model.fixed_columns :])
    pictures = [] if model.path is None else model.path.pictures()
    return run_card(title, describe_model(model), model.result, shown, pictures, factors)


OFFSETS = (1, 1)
"""Numbers of fixed columns for offsets of rows and columns: U = [1, b, …], V = [c, 1, …]."""


@dataclass(frozen=True)
class Model:
    """Factors, preceded by fixed columns of ones, and the settings needed to add rows and columns."""

    loss: Loss
    intercept: float
    fixed: tuple[int, int]
    """Columns of ones in U, whose partners are effects of columns, and in V, whose partners are effects of rows."""
    ridge: float | None
    """None if factors have a posterior, with priors instead."""
    U: Array
    V: Array
    result: Result
    path: Search | None = None
    """How the ridge was chosen."""
    posterior: Posterior | None = None
    choice: NoiseChoice | None = None
    """How the noise of the posterior was chosen."""
    clicks: ImplicitFeedback | None = None
    side: SideInformation | None = None
    offset_ridge: float | None = None
    """Ridge of the offsets, if it is not that of the components."""
    clip: Range | None = None
    """Range of predictions, for losses whose predictions are z itself."""

    def __repr__(self) -> str:
        return f"Model({describe_model(self)})"

    def _repr_html_(self) -> str:
        return model_card(self, "Model")

    @cached_property
    def shifted(self) -> Loss:
        return Shifted(self.loss, self.intercept)

    @property
    def offsets(self) -> bool:
        """Whether both rows and columns have offsets."""
        return self.fixed == OFFSETS

    @property
    def rank(self) -> int:
        """Number of components, without effects."""
        return int(self.U.shape[1]) - self.fixed_columns

    @property
    def fixed_columns(self) -> int:
        """Number of columns of the factors that belong to effects."""
        return sum(self.fixed)

    def scores(self, rows: Array, cols: Array) -> Array:
        """z at some entries, including the intercept."""
        return self.entries(self.U, self.V, rows, cols)

    def expected_scores(self, rows: Array, cols: Array) -> Array:
        """The same; -1 stands for an unknown row or column."""
        both = (rows >= 0) & (cols >= 0)
        if both.all():
            return self.scores(rows, cols)
        if self.posterior is not None:
            posterior, i, j = self.posterior_at(rows, cols)
            U, V = (part.means.astype(self.U.dtype) for part in (posterior.rows, posterior.cols))
            return self.entries(U, V, i, j)
        b, c = (F[:, k] if self.offsets else np.zeros(F.shape[0], F.dtype) for F, k in ((self.U, 1), (self.V, 0)))
        z = self.intercept + np.where(rows >= 0, b[rows], 0) + np.where(cols >= 0, c[cols], 0)
        z[both] = self.scores(rows[both], cols[both])
        return z.astype(self.U.dtype)

    @property
    def dropped_features(self) -> bool:
        """Whether features, if any, are ignored because they do harm; those of new rows are then ignored too."""
        return self.choice is not None and not self.choice.chosen.features

    def entries(self, U: Array, V: Array, rows: Array, cols: Array) -> Array:
        """z at some entries, from other factors."""
        if np.size(rows) == 0:
            return np.empty(0, U.dtype)
        operator = Entries(rows, cols, (U.shape[0], V.shape[0]))
        z = operator.forward(U, V) if U.shape[1] else np.zeros(operator.size, U.dtype)
        return z + U.dtype.type(self.intercept)

    def predicted(self, z: Array) -> Array:
        """Predictions from z: the mean under the loss, clipped."""
        return self.loss.mean(self.clipped(z))

    def clipped(self, z: Array) -> Array:
        return z if self.clip is None else np.clip(z, *self.clip)

    def rows(self, new: Observations) -> Array:
        """Factors of new rows; `new` has all columns."""
        return self.fold_in(new, 0)[0]

    def fold_in(self, new: Observations, side: int) -> tuple[Array, Gaussians | None]:
        """Factors of new rows (side 0), or columns (1), and their posterior if the model has one.

        `new` has these rows alone and all columns, or the other way round.
        """
        if self.clicks is not None and self.clicks.items is not None:
            own = self.without_item_scores().fold_in(new, side)[0]
            return self.with_item_scores(own, new, side), None
        if self.posterior is None:
            assert self.ridge is not None
            centre = None if self.side is None else self.side.centre(new, side)
            return (self._columns(new, centre) if side else self._fold_in_with_ridge(new, self.V, centre)), None
        features = None if self.dropped_features else new.features[side]
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

    def with_rows(self, side: int, count: int, new: Observations, places: Array) -> "Model":
        """A model with `count` rows (side 0), or columns (1); row k of `new` is computed and put at places[k], if ≥ 0.

        Further rows beyond those of the model are treated as unknown.
        """
        k, stay = self.fixed[0], places >= 0
        ones = slice(k, self.fixed_columns) if side else slice(k)
        whole = _lengthened((self.U, self.V)[side], count, ones)
        factors, gaussians = self.fold_in(new, side)
        whole[places[stay]] = factors[stay]
        posterior = self.posterior
        if posterior is not None:
            assert gaussians is not None
            before = (posterior.rows, posterior.cols)[side].padded(count)
            after = before.replaced(places[stay], gaussians.take(np.flatnonzero(stay)))
            whole = after.means.astype(whole.dtype)
            posterior = replace(posterior, cols=after) if side else replace(posterior, rows=after)
        clicks = self.clicks
        if clicks is not None:
            clicks = clicks.with_columns(count) if side else clicks
            seen = np.unique((new.rows, new.cols)[side])
            clicks = clicks.with_known(side, count, places[seen][stay[seen]])
        model = replace(self, posterior=posterior, clicks=clicks)
        return replace(model, V=whole) if side else replace(model, U=whole)

    def without_item_scores(self) -> "Model":
        """The model without item-to-item scores."""
        if self.clicks is None or self.clicks.items is None:
            return self
        items = self.clicks.items
        own = self.U.shape[1] - items.rank
        V = self.V[:, :own] / self.V.dtype.type(1 - items.share)
        return replace(self, U=self.U[:, :own], V=V, clicks=replace(self.clicks, items=None))

    def pruned(self) -> "Model":
        """The model without the components that explain nothing, according to the posterior."""
        posterior = self.require_posterior()
        stay = np.concatenate([np.ones(self.fixed_columns, bool), posterior.active_components(self.fixed_columns)])
        if stay.all():
            return self
        cut = replace(posterior, rows=posterior.rows.columns(stay), cols=posterior.cols.columns(stay))
        return replace(self, U=self.U[:, stay], V=self.V[:, stay], posterior=cut)

    def with_side(self) -> "Model":
        """The model with the weights of features as `side`, without the weight of the added constant."""
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
        if not any(A is not None for A in found):
            return self
        return replace(self, side=SideInformation(found[0], found[1]))

    def posterior_at(self, rows: Array, cols: Array) -> tuple[Posterior, Array, Array]:
        """The posterior, and the indices of pairs in it; -1 stands for an unknown row or column."""
        posterior = self.require_posterior()
        if np.any(rows < 0) or np.any(cols < 0):
            m, n = len(posterior.rows), len(posterior.cols)
            posterior = replace(posterior, rows=posterior.rows.padded(m + 1), cols=posterior.cols.padded(n + 1))
            rows, cols = np.where(rows < 0, m, rows), np.where(cols < 0, n, cols)
        return posterior, rows, cols

    def require_posterior(self) -> Posterior:
        if self.posterior is None:
            raise InputError("This fit has a ridge, and error bars need a posterior. Fit numbers without ridge.")
        return self.posterior

    def with_item_scores(self, own: Array, new: Observations, side: int = 0) -> Array:
        """Factors of new rows, or columns, with item-to-item scores, which are 0 for new columns."""
        items = None if self.clicks is None else self.clicks.items
        assert items is not None
        if side:
            return np.hstack([(1 - items.share) * own, np.zeros((len(own), items.rank))]).astype(own.dtype)
        return np.hstack([own, items.rows(new)]).astype(own.dtype)

    def _columns(self, new: Observations, centre: Array | None) -> Array:
        """Factors of new columns under the ridge, as rows of the transposed matrix."""
        turned = Observations(new.cols, new.rows, new.values, new.shape[::-1], new.weights)
        left, right = self.fixed
        clicks = self.clicks
        if clicks is not None and clicks.known is not None:
            clicks = replace(clicks, known=clicks.known[::-1])
        across = replace(self, fixed=(right, left), clicks=clicks)
        centre = None if centre is None else _exchanged(centre, left, right)
        return _exchanged(across._fold_in_with_ridge(turned, _exchanged(self.U, left, right), centre), right, left)

    def _fold_in_with_ridge(self, new: Observations, held: Array, centre: Array | None) -> Array:
        """Rows with prior mean `centre`, by default 0, for fixed factors of columns."""
        assert self.ridge is not None
        L, R = self._ones(new.shape)
        if new.values.size == 0:
            found = Fixed(L, R).zero(new.shape, held.shape[1] - self.fixed_columns, held.dtype).left
            return found if centre is None else found + centre
        operator = Entries(new.rows, new.cols, new.shape)
        problem = Problem(self.shifted, operator, new.values.astype(held.dtype), new.weights, fixed=(L, R))
        ridge: float | Array = self.ridge
        if self.offset_ridge is not None:
            free = held.shape[1] - self.fixed_columns
            ridge = np.array([self.offset_ridge] * self.fixed[1] + [self.ridge] * free)
        if self.clicks is not None:
            weight, counts = self.clicks.unobserved, np.bincount(new.rows, new.weights, new.shape[0])
            problem = problem + all_cells(weight, rows=_rows_with(counts), cols=self.clicks.part(1))
            ridge = self.ridge * (counts + weight * new.shape[1])[:, None]
        return fold_in(problem, held, ridge, centre)

    def _ones(self, shape: tuple[int, int]) -> tuple[Array, Array]:
        """The fixed columns of a matrix."""
        return np.ones((shape[0], self.fixed[0])), np.ones((shape[1], self.fixed[1]))


def _rows_with(counts: Array) -> Array | None:
    """Mask of rows with entries, as numbers; None for all. Rows without entries had no opportunity to choose."""
    return None if np.all(counts > 0) else (counts > 0).astype(np.float64)


def _exchanged(F: Array, left: int, right: int) -> Array:
    """Factors of rows as factors of columns: swap the first `left` columns with the next `right` ones."""
    both = left + right
    return np.ascontiguousarray(F[:, [*range(left, both), *range(left), *range(both, F.shape[1])]])


def _lengthened(F: Array, rows: int, ones: slice) -> Array:
    """F with rows of zeros appended, except for the columns of ones."""
    longer = np.zeros((rows, F.shape[1]), F.dtype)
    longer[: F.shape[0]] = F
    longer[F.shape[0] :, ones] = 1
    return longer
