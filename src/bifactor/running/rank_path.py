"""The held-out loss as a function of the rank."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array
from bifactor.display.listing import Listing
from bifactor.running.shown import rank_chart


@dataclass(frozen=True, repr=False)
class RankPath(Listing):
    """Mean losses per measurement for each rank tried, from rank 1 on.

    `train` is the mean over the measurements that were fitted, `held_out` over those that were not. `error` is the
    standard error of the difference between `held_out` and its value at the best rank. It is computed from the
    differences of each measurement, so that measurements that are hard to predict at every rank do not increase it.
    """

    rank: Array
    train: Array
    held_out: Array
    error: Array

    _lines = "rank"

    @property
    def chosen(self) -> int:
        """The smallest rank whose held-out loss is within one standard error of the best."""
        within = self.held_out - np.min(self.held_out) <= self.error
        return int(self.rank[np.flatnonzero(within)[0]])

    def _about(self) -> str:
        return f"{super()._about()} tried, {self.chosen} chosen"

    def pictures(self) -> list[str]:
        """A chart of the held-out loss against the rank, as SVG."""
        return [rank_chart(self)]
