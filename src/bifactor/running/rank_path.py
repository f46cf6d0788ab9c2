"""How the held-out loss depends on the rank."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array
from bifactor.listing import Listing
from bifactor.running.shown import rank_chart


@dataclass(frozen=True, repr=False)
class RankPath(Listing):
    """One number per rank tried, from rank 1 on: mean losses per measurement.

    `train` is over the measurements that were fitted, `held_out` over those that were not. `error` is the standard
    error of the difference of the latter to that of the best rank, measurement by measurement: what is hard to predict
    at every rank says nothing about which is better.
    """

    rank: Array
    train: Array
    held_out: Array
    error: Array

    _lines = "rank"

    @property
    def chosen(self) -> int:
        """The least rank whose held-out loss is within one standard error of the best."""
        within = self.held_out - np.min(self.held_out) <= self.error
        return int(self.rank[np.flatnonzero(within)[0]])

    def _about(self) -> str:
        return f"{super()._about()} tried, {self.chosen} chosen"

    def pictures(self) -> list[str]:
        """The held-out loss over the rank, as SVG."""
        return [rank_chart(self)]
