"""Side information: prediction of factors from features of rows and columns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.data import Dataset, Observations
from bifactor.data.features import Standard
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.operators import pattern
from bifactor.operators.bound import Bound, DataBound
from bifactor.operators.features import FeaturedBound, FeatureMaps
from bifactor.solvers.variational.posterior import Posterior
from bifactor.validation import pluralize

SHARE = 0.25
"""Ridge on the coefficients of a feature, as a share of Σᵢ aᵢfᵢ² over its rows.

So the unit of a feature does not matter. On MovieLens 100k, with genres and years of films, age, gender and occupation
of users, values around it predicted best for cold users, cold films and others, both for ratings and for clicks.
"""

PATTERN = 0.25
"""Squared size of a pattern, on the scale on which coefficients and factors have the same ridge. From the same data."""


@dataclass(frozen=True, eq=False)
class SideInformation:
    """Prior means of factors: fA for a row with the features f."""

    rows: Array | None
    """A, with one line for each feature of a row and one column for each of the factors; None without features."""
    cols: Array | None
    patterns: tuple[int, int] = (0, 0)
    """Number of these lines, at the end, for the known columns of a row, and vice versa."""
    standard: Standard | None = None
    """Zeros and units of the features of rows, if they were a matrix; features of the model are in these."""

    @classmethod
    def of_posterior(cls, posterior: Posterior, width: int) -> "SideInformation | None":
        """The weights of features, without that of the added constant, for factors with `width` columns."""
        found: list[Array | None] = []
        for part in (posterior.rows, posterior.cols):
            weights, A = part.weights[0], None
            if weights is not None and len(weights.mean) > 1:
                A = np.zeros((len(weights.mean) - 1, width))
                A[:, part.places.free] = weights.mean[:-1]
            found.append(A)
        return None if found[0] is None and found[1] is None else cls(found[0], found[1])

    @property
    def implicit(self) -> bool:
        return self.patterns != (0, 0)

    def centre(self, new: Observations, side: int) -> Array | None:
        """fA for the rows of some data (side 0), or for the columns (1); None if there are no features."""
        A, count = (self.rows, self.cols)[side], self.patterns[side]
        features = new.features[side]
        if A is None:
            if features is not None:
                raise InputError(f"The fit has no features of {_called(side)}. Leave them out, or fit with them.")
            return None
        given, centre = len(A) - count, None
        if features is not None:
            if features.shape[1] != given:
                found = f"There are {pluralize(features.shape[1], 'feature')} of {_called(side)}"
                raise InputError(f"{found}, but the fit has {given}. Pass the same ones.")
            centre = features @ A[:given]
        if count and new.rows.size:
            seen = pattern_of(new, side)[:, :count]
            part = seen @ A[given : given + seen.shape[1]]
            centre = part if centre is None else centre + part
        return None if centre is None else centre.astype(A.dtype)


def pattern_of(data: Observations, side: int) -> sparse.csr_array:
    """Known columns of each row, or vice versa; see `operators.pattern`."""
    return pattern(data.cols, data.rows, data.shape[::-1]) if side else pattern(data.rows, data.cols, data.shape)


class ScaledFeatures:
    """Features of some data, on the scale on which their coefficients have the same ridge as factors.

    Parameters
    ----------
    data : Dataset
        The data with features.
    implicit : bool
        Use the known columns of each row as features too, and vice versa.
    weights : (rows, cols), optional
        Ridge weights of factors, a and b, for each row and each column; by default 1.
    """

    def __init__(self, data: Dataset, implicit: bool = False, weights: tuple[Array, Array] | None = None):
        self.patterns = (data.shape[1], data.shape[0]) if implicit else (0, 0)
        self.matrices: list[sparse.csr_array | None] = []
        self.scales: list[Array] = []
        self._paid: list[float] = []
        for side, counts in enumerate(data.counts()):
            warm = counts > 0
            own = np.ones(data.shape[side]) if weights is None else weights[side]
            self._paid.append(float(own[warm].mean()))
            given = data.features[side]
            parts = [] if given is None else [(given, _scale(given, own * warm / self._paid[side]))]
            if implicit:
                parts.append(
                    (
                        pattern_of(data.lines(np.ones(data.shape[0], bool)), side),
                        np.full(self.patterns[side], PATTERN**0.5),
                    )
                )
            self.scales.append(np.concatenate([scale for _, scale in parts]) if parts else np.empty(0))
            scaled = [sparse.csr_array(F @ sparse.diags_array(scale)) for F, scale in parts]
            self.matrices.append(sparse.hstack(scaled, format="csr") if scaled else None)

    @property
    def none(self) -> bool:
        return all(matrix is None for matrix in self.matrices)

    def wrap(self, f: Bound) -> Bound:
        """f as a function of the matrix with these features."""
        if self.none:
            return f
        assert isinstance(f, DataBound)  # features need data in memory
        return FeaturedBound(f, FeatureMaps.of(f.shape, *self.matrices))

    def weights(self, side: int, own: Array) -> Array:
        """Ridge weights of factors, `own` for each row, followed by those of coefficients."""
        return np.concatenate([own, np.full(self.scales[side].size, self._paid[side])])

    def add_features(self, x: Factors) -> tuple[Array, Array, SideInformation | None]:
        """(Ũ + FA, Ṽ + GB), A and B, from the factors of the problem with these features."""
        if self.none:
            return x.left, x.right, None
        (U, A), (V, B) = self._parted(0, x.left), self._parted(1, x.right)
        return U, V, SideInformation(A, B, self.patterns)

    def remove_features(self, U: Array, V: Array, side: SideInformation | None) -> tuple[Array, Array] | None:
        """The inverse of `add_features`; None if the features differ."""
        found = []
        for k, factor in enumerate((U, V)):
            matrix, A = self.matrices[k], None if side is None else (side.rows, side.cols)[k]
            if (matrix is None) != (A is None):
                return None
            if matrix is not None and A is not None:
                if matrix.shape[1] != len(A):
                    return None
                own = np.divide(A, self.scales[k][:, None], out=np.zeros_like(A), where=self.scales[k][:, None] > 0)
                factor = np.concatenate([factor - matrix @ own, own]).astype(factor.dtype)
            found.append(factor)
        return found[0], found[1]

    def _parted(self, side: int, factor: Array) -> tuple[Array, Array | None]:
        matrix = self.matrices[side]
        if matrix is None:
            return factor, None
        own, A = factor[: matrix.shape[0]], factor[matrix.shape[0] :]
        return (own + matrix @ A).astype(factor.dtype), (self.scales[side][:, None] * A).astype(factor.dtype)


def with_features_of(some: Observations, data: Observations, rows: Any, cols: Any) -> Observations:
    """Some rows and columns of data, given by index, with their features."""
    left, right = data.row_features, data.column_features
    return replace(
        some,
        row_features=None if left is None else left[rows],
        column_features=None if right is None else right[cols],
    )


def _scale(F: sparse.csr_array, weights: Array) -> Array:
    """1/√(SHARE·Σᵢ aᵢfᵢ²), or 0 if no row with a weight has the feature."""
    total = np.asarray(F.multiply(F).T @ weights).ravel()
    return np.divide(1.0, np.sqrt(SHARE * total), out=np.zeros_like(total), where=total > 0)


def _called(side: int) -> str:
    return "columns" if side else "rows"
