"""Errors of the cells of a table, drawn jointly: cells of a row share its scores, and all rows share the loadings."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from bifactor.arrays import Array
from bifactor.models.factor_analysis import FactorModel
from bifactor.models.table.factors import TableFactors


class Errors(NamedTuple):
    """n × q: of codes, or of normal scores where there are some; and between 0 and 1 by their normal distribution."""

    numbers: Array
    uniform: Array
    offsets: Array | None
    """Normal scores of numbers, less those of what these are expected to be; None where there are no normal scores."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """One draw of the loadings, for all rows."""

    factors: TableFactors
    model: FactorModel
    loadings: tuple[Array, Array]

    @classmethod
    def of(cls, factors: TableFactors, rng: np.random.Generator) -> Self:
        model = factors.plain if factors.scores is None else factors.scores
        return cls(factors, model, model.sample_loadings(rng))

    def errors(self, X: Array, rng: np.random.Generator) -> Errors:
        """By how much cells differ from what the model says of them."""
        layout, scored = self.factors.layout, self.factors.scores is not None
        rows = self.model.rows(layout.encode(X, scores=scored))
        middle, variance = self.model.predict(rows)
        drawn = self.model.sample(rows, rng, self.loadings)
        numbers, uniform = drawn - middle, ndtr((drawn - middle) / np.sqrt(variance))
        offsets = None
        if scored:
            offsets = np.zeros_like(middle)
            for place, code in layout.numbers:
                z = middle[:, place]
                offsets[:, place] = z - code.score_of(code.expected(z, variance[:, place]))
        return Errors(numbers, uniform, offsets)
