"""From the scores z of a fitted matrix to predictions, and from a user's values to those of the loss."""

from dataclasses import dataclass

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array
from bifactor.data import Observations
from bifactor.data.dataset import Recoding
from bifactor.losses import Loss, Shifted
from bifactor.models.completion.clipping import Range
from bifactor.models.completion.labels import Labels
from bifactor.models.recommender.weights import CountsToClicks


@dataclass(frozen=True)
class Link:
    """The loss, the intercept, the range of predictions, and how values are encoded."""

    loss: Loss
    intercept: float = 0.0
    clip: Range | None = None
    """Range of predictions, for losses whose predictions are z itself."""
    recoding: Recoding | None = None
    """How the values of the data become those of the loss: two classes, or counts of choices; None for no change."""

    @cached_property
    def shifted(self) -> Loss:
        """The loss of z without the intercept."""
        return Shifted(self.loss, self.intercept)

    @property
    def classes(self) -> Array | None:
        """For labels, the classes that −1 and +1 stand for; None for other values."""
        return np.array(self.recoding.classes) if isinstance(self.recoding, Labels) else None

    @property
    def of_choices(self) -> bool:
        """Whether values are counts of choices, such as clicks, so that a pair needs no value."""
        return isinstance(self.recoding, CountsToClicks)

    def encode(self, data: Observations) -> Observations:
        """Observations with the values, and weights, of the loss."""
        return data if self.recoding is None else self.recoding.observations(data)

    def encode_values(self, values: Array) -> Array:
        """Values of the loss, for observations that are not merged: classes of labels as −1 and +1."""
        return self.recoding.signs(values) if isinstance(self.recoding, Labels) else values

    def decode_values(self, values: Array) -> Array:
        """Values of the loss as predictions would be: classes as probabilities of the upper one."""
        return values if self.classes is None else (values + 1) / 2

    def clipped(self, z: Array) -> Array:
        return z if self.clip is None else np.clip(z, *self.clip)

    def mean(self, z: Array) -> Array:
        """Predictions from z: the mean under the loss, clipped."""
        return self.loss.mean(self.clipped(z))
