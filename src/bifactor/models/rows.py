"""How a fitted matrix finds the factors of new rows, or of new columns, from their entries."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.data.features import Standard
from bifactor.factors import Factors, Fixed
from bifactor.models.fold_in import fold_in
from bifactor.models.link import Link
from bifactor.models.side_information import SideInformation
from bifactor.operators import Entries
from bifactor.problems.objective import Problem
from bifactor.solvers.variational.posterior import Gaussians, Posterior


class NewRows(NamedTuple):
    """Factors of new rows or columns, and their posterior if there is one."""

    factors: Array
    gaussians: Gaussians | None = None


@dataclass(frozen=True)
class Addition:
    """Rows (side 0), or columns (1), that are added to a model, or replace some of it."""

    side: int
    count: int
    """Number of rows or columns after the addition; those without a place in it are unknown."""
    places: Array
    """Where the new rows belong."""
    seen: Array
    """The places of those that have entries."""


class RowModel(ABC):
    """Finds factors of new rows, or columns, while those of the other side are fixed."""

    ridge: float | None = None
    """Ridge of the components; None for a posterior."""
    offset_ridge: float | None = None
    """Ridge of the offsets, if it is not that of the components."""
    posterior: Posterior | None = None
    """Posterior of all rows and columns of the fit; None for a ridge."""
    side: SideInformation | None = None
    """Coefficients of features; None without features."""
    uses_features: bool = True
    """Whether features, if there are any, are used."""

    @abstractmethod
    def solve(self, x: Factors, link: Link, new: Observations, side: int) -> NewRows:
        """Factors of the rows of some data with all columns (side 0), or vice versa, for the factors x of the fit."""

    def unknown(self, x: Factors, side: int) -> Array:
        """Factors of a row, or column, of which nothing is known: one line."""
        line = np.zeros((1, x.width), x.dtype)
        line[:, _ones(x, side)] = 1
        return line

    def extended(self, added: Addition, gaussians: Gaussians | None) -> "RowModel":
        """The model of rows after an addition."""
        return self

    def placed(self, x: Factors, added: Addition, rows: Array) -> Factors:
        """Factors with rows of one side put in their places; further ones are zeros, except for columns of ones."""
        old = (x.left, x.right)[added.side]
        whole = np.zeros((added.count, old.shape[1]), old.dtype)
        whole[: old.shape[0]] = old
        whole[old.shape[0] :, _ones(x, added.side)] = 1
        whole[added.places] = rows
        return _with_side(x, added.side, whole)

    def with_feature_units(self, standard: Standard) -> "RowModel":
        """The model of rows with zeros and units of the features of rows, which were a matrix."""
        return self

    @property
    def base(self) -> "RowModel":
        """The model that wrappers wrap."""
        return self

    @property
    def card(self) -> dict[str, Any]:
        """The numbers that are saved."""
        return {"ridge": self.ridge, "offset_ridge": self.offset_ridge}

    @property
    def arrays(self) -> dict[str, Array]:
        """Arrays that are saved, besides factors, a posterior and side information."""
        return {}


def _ones(x: Factors, side: int) -> slice:
    """The columns of ones of U (side 0) or V (1)."""
    left, both = fixed_columns(x)[0], x.kind.fixed_columns
    return slice(left, both) if side else slice(left)


def fixed_columns(x: Factors) -> tuple[int, int]:
    """Numbers of columns of ones in U, whose partners are effects of columns, and in V, of rows."""
    kind = x.kind
    return (int(kind.L.shape[1]), int(kind.R.shape[1])) if isinstance(kind, Fixed) else (0, 0)


def with_ones(U: Array, V: Array, fixed: tuple[int, int]) -> Factors:
    """Factors of which the first columns are ones in U, and the next in V."""
    return Fixed(*(np.ones((len(F), k)) for F, k in zip((U, V), fixed, strict=True))).pair(U, V)


def _with_side(x: Factors, side: int, whole: Array) -> Factors:
    return with_ones(x.left, whole, fixed_columns(x)) if side else with_ones(whole, x.right, fixed_columns(x))


@dataclass(frozen=True)
class RidgeRows(RowModel):
    """Rows that minimise the loss with a ridge, around a centre."""

    ridge: float
    offset_ridge: float | None = None

    def solve(self, x: Factors, link: Link, new: Observations, side: int, centre: Array | None = None) -> NewRows:
        if side == 0:
            return NewRows(self._rows(x, link, new, centre))
        left, right = fixed_columns(x)
        turned = Observations(new.cols, new.rows, new.values, new.shape[::-1], new.weights)
        across = with_ones(_exchanged(x.right, left, right), _exchanged(x.left, left, right), (right, left))
        centre = None if centre is None else _exchanged(centre, left, right)
        return NewRows(_exchanged(self.transposed()._rows(across, link, turned, centre), right, left))

    def transposed(self) -> Self:
        """The model of rows of the transposed matrix."""
        return self

    def _rows(self, x: Factors, link: Link, new: Observations, centre: Array | None) -> Array:
        V, ones = x.right, [np.ones((rows, k)) for rows, k in zip(new.shape, fixed_columns(x), strict=True)]
        if new.values.size == 0:
            found = Fixed(*ones).zero(new.shape, x.width - x.kind.fixed_columns, V.dtype).left
            return found if centre is None else found + centre
        operator = Entries(new.rows, new.cols, new.shape)
        problem = Problem(link.shifted, operator, new.values.astype(V.dtype), new.weights, fixed=(ones[0], ones[1]))
        return fold_in(*self._terms(problem, x, new), centre)

    def _terms(self, problem: Problem, x: Factors, new: Observations) -> tuple[Problem, Array, float | Array]:
        """The problem of new rows, the factors of the columns, and the ridge."""
        ridge: float | Array = self.ridge
        if self.offset_ridge is not None:
            ridge = np.array(
                [self.offset_ridge] * fixed_columns(x)[1] + [self.ridge] * (x.width - x.kind.fixed_columns)
            )
        return problem, x.right, ridge


def _exchanged(F: Array, left: int, right: int) -> Array:
    """Factors of rows as factors of columns: swap the first `left` columns with the next `right` ones."""
    both = left + right
    return np.ascontiguousarray(F[:, [*range(left, both), *range(left), *range(both, F.shape[1])]])


@dataclass(frozen=True, eq=False)
class PosteriorRows(RowModel):
    """Rows with a posterior, from the priors and the noise of the fit."""

    posterior: Posterior
    uses_features: bool = True
    side: SideInformation | None = None

    def solve(self, x: Factors, link: Link, new: Observations, side: int) -> NewRows:
        posterior, features = self.posterior, new.features[side] if self.uses_features else None
        if new.values.size == 0:
            own = (posterior.rows, posterior.cols)[side]
            known = posterior.known_features(features, new.shape[side], side)
            found = own.take(np.arange(0)).padded(new.shape[side], known)
        else:
            y = new.values.astype(x.dtype) - np.dtype(x.dtype).type(link.intercept)
            left, right = (np.ones((rows, k)) for rows, k in zip(new.shape, fixed_columns(x), strict=True))
            operator = Entries(new.rows, new.cols, new.shape)
            problem = Problem(link.loss, operator, y, new.weights, fixed=(left, right))
            found = posterior.fold_in(problem, side, features)
        return NewRows(found.means.astype(x.dtype), found)

    def unknown(self, x: Factors, side: int) -> Array:
        own = (self.posterior.rows, self.posterior.cols)[side]
        line: Array = own.take(np.arange(0)).padded(1).means.astype(x.dtype)
        return line

    def extended(self, added: Addition, gaussians: Gaussians | None) -> "PosteriorRows":
        assert gaussians is not None
        posterior = self.posterior
        before = (posterior.rows, posterior.cols)[added.side].padded(added.count)
        after = before.replaced(added.places, gaussians)
        changed = replace(posterior, cols=after) if added.side else replace(posterior, rows=after)
        return replace(self, posterior=changed)

    def placed(self, x: Factors, added: Addition, rows: Array) -> Factors:
        means = (self.posterior.rows, self.posterior.cols)[added.side].means
        return _with_side(x, added.side, means.astype(x.dtype))

    def with_feature_units(self, standard: Standard) -> "PosteriorRows":
        return self if self.side is None else replace(self, side=replace(self.side, standard=standard))


@dataclass(frozen=True, eq=False)
class WrappedRows(RowModel):
    """Rows of another model, changed; the numbers are those of the other."""

    inner: RowModel

    @property
    def ridge(self) -> float | None:  # type: ignore[override]
        return self.inner.ridge

    @property
    def offset_ridge(self) -> float | None:  # type: ignore[override]
        return self.inner.offset_ridge

    @property
    def side(self) -> SideInformation | None:  # type: ignore[override]
        return self.inner.side

    @property
    def base(self) -> RowModel:
        return self.inner.base

    @property
    def card(self) -> dict[str, Any]:
        return self.inner.card

    @property
    def arrays(self) -> dict[str, Array]:
        return self.inner.arrays

    def extended(self, added: Addition, gaussians: Gaussians | None) -> RowModel:
        return replace(self, inner=self.inner.extended(added, gaussians))

    def with_feature_units(self, standard: Standard) -> RowModel:
        return replace(self, inner=self.inner.with_feature_units(standard))


@dataclass(frozen=True, eq=False)
class WithSideInformation(WrappedRows):
    """Rows around the centre that their features predict."""

    inner: RidgeRows
    information: SideInformation

    @property
    def side(self) -> SideInformation:  # type: ignore[override]
        return self.information

    def solve(self, x: Factors, link: Link, new: Observations, side: int) -> NewRows:
        return self.inner.solve(x, link, new, side, self.information.centre(new, side))

    def with_feature_units(self, standard: Standard) -> "WithSideInformation":
        return replace(self, information=replace(self.information, standard=standard))
