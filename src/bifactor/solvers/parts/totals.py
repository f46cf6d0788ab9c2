"""What priors, turns and the bound know of the rows of a factor: sums over them, whoever holds the rows."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.problems.state import Value
from bifactor.solvers.parts.moments import Places


@dataclass(frozen=True)
class Totals(Value):
    """Over the rows with measurements; of features, too, where there are any."""

    moments: Array
    """Σ E[(b − f)ᵀ(b − f)] of the unknown columns b, f where they are expected."""
    volume: float
    """Σ log det of the covariances."""
    seen: int
    """Rows."""
    told: int = 0
    """Features, whose weights are drawn from the prior, too."""

    @property
    def drawn(self) -> int:
        """Numbers that the prior of a column is fitted to."""
        return self.seen + self.told

    def best_prior(self, places: Places) -> Array:
        """The precisions that fit the columns, or groups of them."""
        numbers = np.bincount(places.groups)
        squares = np.bincount(places.groups, np.diagonal(self.moments))
        prior = (self.drawn * numbers / np.maximum(squares, 1e-300))[places.groups]
        return np.minimum(prior, 1e100)

    def of_components(self, places: Places) -> Array:
        """The moments of columns that are unknown on both sides."""
        return self.moments[places.effects :, places.effects :]

    def turned(self, R: Array) -> "Totals":
        """For components that are multiplied by R."""
        whole = widened(R, len(self.moments))
        volume = self.volume + self.seen * 2 * float(np.linalg.slogdet(R)[1])
        return replace(self, moments=whole.T @ self.moments @ whole, volume=volume)

    def cost(self, prior: Array) -> float:
        """The divergence from the prior, but for that of the weights of features."""
        spread = float(prior @ np.diagonal(self.moments)) - self.volume
        return 0.5 * (spread - self.seen * (prior.size + float(np.sum(np.log(prior)))))


def widened(R: Array, rank: int) -> Array:
    """R for the last of so many columns, which leaves the others alone."""
    whole = np.eye(rank)
    whole[rank - len(R) :, rank - len(R) :] = R
    return whole
