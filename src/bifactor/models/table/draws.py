"""Errors of the cells of a table, drawn jointly: cells of a row share its scores, and all rows share the loadings."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from bifactor.arrays import Array
from bifactor.models.factor_analysis import FactorModel
from bifactor.models.table.factors import TableFactors


class Errors(NamedTuple):
    """Errors of codes, or of normal scores if used, n × q; and as numbers between 0 and 1, by their distribution."""

    numbers: Array
    uniform: Array
    offsets: Array | None
    """Normal scores of numbers minus those of their expected values; None without normal scores."""


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
        """Random differences between cells and their predictions by the model."""
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
