"""Factor models of a table: of standardised numbers, and of their normal scores."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.models.factor_analysis.fit import FactorModel, FactorResult, fit_factors
from bifactor.models.imputation.encoding import TableEncoding
from bifactor.running.result import Status

MOST = 20_000
"""Largest number of rows of a fit: more change the result by less than the tolerance."""

REPORTED = Status.INTERRUPTED, Status.DIVERGED, Status.CALLBACK, Status.MAX_ITER

OnRound = Callable[[int, float, float], bool]


class Guess(NamedTuple):
    """Predictions of factors for each encoded cell of a table, in standard deviations."""

    middle: Array
    apart: Array
    """Predictions from normal scores minus those from numbers; 0 if both are the same."""


@dataclass(frozen=True, eq=False)
class TableFactors:
    """One model, or two: `scores` is None if it would be the same, or was not requested."""

    layout: TableEncoding
    plain: FactorModel
    scores: FactorModel | None

    status: Status
    """How the rounds of both ended: the first of `REPORTED` that occurs, otherwise that they converged."""

    @classmethod
    def of(
        cls, layout: TableEncoding, X: Array, both: bool, seed: int, max_iter: int, tol: float, on_round: OnRound
    ) -> Self:
        """Fit one model, or two. Ctrl-C keeps what there is: the first alone, if the second has no round yet."""
        if len(X) > MOST:
            X = X[np.sort(np.random.default_rng(seed).choice(len(X), MOST, replace=False))]
        sample = SAMPLE if len(X) > MANY else None
        fit = partial(fit_factors, sample=sample, seed=seed, max_iter=max_iter, tol=tol)
        plain = fit(layout.encode(X), on_round=on_round)
        ends, scores = [plain.result.status], None
        if both and layout.numbers and Status.INTERRUPTED not in ends:
            done = plain.result.n_iter
            try:
                scores = fit(layout.encode(X, scores=True), on_round=lambda k, *rest: on_round(done + k, *rest))
                ends.append(scores.result.status)
            except KeyboardInterrupt:
                ends.append(Status.INTERRUPTED)
        return cls(layout, plain, scores, next((status for status in REPORTED if status in ends), Status.SETTLED))

    @property
    def results(self) -> tuple[FactorResult, ...]:
        return tuple(model.result for model in (self.plain, self.scores) if model is not None)

    def guess(self, plain: Array, scores: Array | None) -> Guess:
        """Predictions for rows in both encodings, with NaN for missing cells; those of known cells are arbitrary."""
        middle = self.plain.expected(self.plain.rows(plain))
        if self.scores is None or scores is None:
            return Guess(middle, np.zeros_like(middle))
        other, variance = self.scores.predict(self.scores.rows(scores))
        for place, code in self.layout.numbers:
            holes = np.isnan(scores[:, place])
            other[holes, place] = code.expected(other[holes, place], variance[holes, place])
        return Guess((middle + other) / 2, other - middle)

    def encoded(self, X: Array) -> tuple[Array, Array | None]:
        """Rows in both encodings."""
        return self.layout.encode(X), None if self.scores is None else self.layout.encode(X, scores=True)


MANY, SAMPLE = 1000, 500
"""Number of rows above which the first rounds of a fit use a sample, and the size of the sample."""
