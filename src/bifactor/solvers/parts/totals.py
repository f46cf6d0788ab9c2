"""Sums over the rows of a factor, which priors, rotations and the bound need."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.problems.state import Value
from bifactor.solvers.parts.moments import Places


@dataclass(frozen=True)
class Totals(Value, key="variational.totals"):
    """Sums over the rows with measurements, and over features, if any."""

    moments: Array
    """Σ E[(b − f)ᵀ(b − f)] of the unknown columns b with prior means f."""
    volume: float
    """Σ log det of the covariances."""
    seen: int
    """The number of rows."""
    told: int = 0
    """The number of features, whose weights have the same prior."""

    @property
    def drawn(self) -> int:
        """The number of values to which the prior of a column is fitted."""
        return self.seen + self.told

    def best_prior(self, places: Places) -> Array:
        """The best precisions for the columns, or groups of them."""
        numbers = np.bincount(places.groups)
        squares = np.bincount(places.groups, np.diagonal(self.moments))
        prior = (self.drawn * numbers / np.maximum(squares, 1e-300))[places.groups]
        return np.minimum(prior, 1e100)

    def of_components(self, places: Places) -> Array:
        """The moments of columns that are unknown on both sides."""
        return self.moments[places.effects :, places.effects :]

    def turned(self, R: Array) -> "Totals":
        """The sums for components that are multiplied by R."""
        whole = widened(R, len(self.moments))
        volume = self.volume + self.seen * 2 * float(np.linalg.slogdet(R)[1])
        return replace(self, moments=whole.T @ self.moments @ whole, volume=volume)

    def cost(self, prior: Array) -> float:
        """The divergence from the prior, without that of the weights of features."""
        spread = float(prior @ np.diagonal(self.moments)) - self.volume
        return 0.5 * (spread - self.seen * (prior.size + float(np.sum(np.log(prior)))))


def widened(R: Array, rank: int) -> Array:
    """R for the last of this many columns; the others are unchanged."""
    whole = np.eye(rank)
    whole[rank - len(R) :, rank - len(R) :] = R
    return whole
