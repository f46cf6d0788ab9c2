"""Corrections to the predictions of factors, weighted by how well they predict hidden known cells."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bifactor.arrays import Array
from bifactor.data.column_types import NUMBER
from bifactor.models.imputation.encoding import TableEncoding
from bifactor.models.imputation.factors import TableFactors

FOLDS = 5

JUDGES = 1500
"""Largest number of rows."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Some rows of a table; each of their known cells is hidden once, together with a fifth of its row."""

    rows: Array
    """Indices of the rows in the table."""
    known: Array
    """Codes of the rows, n × q."""
    fold: Array
    """Fold in which a cell is hidden, n × q; −1 for missing cells."""
    middle: Array
    """Predictions of the factors for the hidden cell, n × q; 0 for missing cells."""
    apart: Array
    completed: Array
    """Rows with missing and hidden cells filled in, folds × n × q."""

    @classmethod
    def of(cls, factors: TableFactors, X: Array, rng: np.random.Generator) -> Self:
        n = len(X)
        rows = np.arange(n) if n <= JUDGES else np.sort(rng.choice(n, JUDGES, replace=False))
        X, own = X[rows], factors.layout.own
        holes = np.isnan(X)
        order = np.argsort(np.where(holes, 2.0, rng.random(X.shape)), axis=1)
        turn = np.argsort(order, axis=1) % FOLDS  # cells of a row, in random order, go to the folds in turn
        turn[holes] = -1
        fold, (plain, scores) = turn[:, own], factors.encoded(X)
        middle, apart = np.zeros(plain.shape), np.zeros(plain.shape)
        completed = np.empty((FOLDS, *plain.shape))
        for k in range(FOLDS):
            hidden = fold == k
            shown = np.where(hidden, np.nan, plain)
            guess = factors.guess(shown, None if scores is None else np.where(hidden, np.nan, scores))
            middle[hidden], apart[hidden] = guess.middle[hidden], guess.apart[hidden]
            completed[k] = np.where(np.isnan(shown), guess.middle, shown)
        return cls(rows, plain, fold, middle, apart, completed)

    @property
    def mask(self) -> Array:
        """Mask of known cells."""
        return self.fold >= 0


PARTS = 4
"""Number of parts of the rows: each part is corrected with weights from the others."""

POOLED, OWN = 30.0, 60.0
"""Ridges, in observations: on the weights of a kind of columns, and on the differences of each column from them."""


@dataclass(frozen=True, eq=False)
class Stack:
    """Weights of the corrections of each encoded column, shrunk by a gate as far as their gain may be due to chance."""

    weights: Array
    """Weights, q × corrections."""

    @classmethod
    def of(
        cls, layout: TableEncoding, held_out: HeldOut, corrections: Array, rng: np.random.Generator
    ) -> tuple[Self, Array]:
        """Fit weights; also returns the corrected predictions of known cells, each with weights from other rows."""
        (n, q, count), known = corrections.shape, held_out.mask
        rest = np.where(known, held_out.known - held_out.middle, 0)
        features = np.where(known[:, :, None], corrections, 0)
        part = rng.permutation(n) % PARTS
        grams, slopes = np.empty((PARTS, q, count, count)), np.empty((PARTS, q, count))
        for k in range(PARTS):
            f = features[part == k].transpose(1, 2, 0)
            grams[k], slopes[k] = f @ f.transpose(0, 2, 1), (f @ rest[part == k].T[:, :, None])[:, :, 0]
        weights, told = np.zeros((q, count)), np.zeros((n, q))
        kinds, counts = np.array(layout.kinds()), known.sum(axis=0)
        for kind in set(kinds.tolist()):
            at = np.flatnonzero(kinds == kind)
            use = slice(0 if kind == NUMBER else 1, count)
            unit = np.maximum(np.einsum("pjkk->k", grams[:, at]) / max(counts[at].sum(), 1), 1e-12)[use]
            G, b = grams[:, at][:, :, use, use], slopes[:, at][:, :, use]
            for k in range(PARTS):
                others = np.arange(PARTS) != k
                w = _weights(G[others].sum(axis=0), b[others].sum(axis=0), unit)
                told[np.ix_(part == k, at)] = np.einsum("ijk,jk->ij", features[part == k][:, at, use], w)
            weights[at, use] = _weights(G.sum(axis=0), b.sum(axis=0), unit)
        gates = _gates(layout, rest, told)
        return cls(weights * gates[:, None]), held_out.middle + told * gates

    def corrected(self, middle: Array, corrections: Array) -> Array:
        return middle + np.einsum("ijk,jk->ij", corrections, self.weights)


def _weights(grams: Array, slopes: Array, unit: Array) -> Array:
    """Ridge regression of each encoded column, shrunk towards that of all of them."""
    pooled = np.linalg.solve(grams.sum(axis=0) + np.diag(POOLED * unit), slopes.sum(axis=0))
    ridge = np.diag(OWN * unit)
    found: Array = np.linalg.solve(grams + ridge, (slopes + ridge @ pooled)[:, :, None])[:, :, 0]
    return found


def _gates(layout: TableEncoding, rest: Array, told: Array) -> Array:
    """1 − (se/gain)² of each column, or 0, where gain is the reduction of the squared errors of hidden cells."""
    gains, gates = rest**2 - (rest - told) ** 2, np.zeros(layout.width)
    for _, _, span in layout.places:
        gain = gains[:, span].sum(axis=1)
        total, square = float(gain.sum()), float(gain @ gain)
        if total > 0:
            gates[span] = max(0.0, 1 - square / total**2)
    return gates
