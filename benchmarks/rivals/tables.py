"""Imputers of mixed tables. Rivals get standardised columns, one for each level of a category; ours gets the frame."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.harness.rows import library
from benchmarks.harness.table_data import MixedTable
from bifactor.data.column_types import CATEGORY, NUMBER, ORDINAL

TREES, ROUNDS = 20, 3
"""Of forests, in each round of the columns."""

Imputer = Callable[[MixedTable, np.ndarray], np.ndarray]
"""A table and what is hidden of it, to codes without holes."""


def ours(effort: str) -> Imputer:
    def impute(table: MixedTable, hidden: np.ndarray) -> np.ndarray:
        imputer = bf.TableImputer(columns=table.kinds, effort=effort, random_state=0)
        return table.codes_of(imputer.fit_transform(table.shown(hidden)))

    return impute


class Encoded:
    """Codes as numbers of mean 0 and variance 1, NaN for holes; and back."""

    def __init__(self, table: MixedTable, hidden: np.ndarray):
        self.codes = np.where(hidden, np.nan, table.codes)
        self.table, parts = table, []
        for x, form in zip(self.codes.T, table.forms, strict=True):
            levels = np.arange(len(form.levels))
            one = np.where(np.isnan(x)[:, None], np.nan, x[:, None] == levels) if form.kind == CATEGORY else x[:, None]
            parts.append(one)
        self.widths = [part.shape[1] for part in parts]
        whole = np.hstack(parts)
        self.mean, spread = np.nanmean(whole, axis=0), np.nanstd(whole, axis=0)
        self.spread = np.where(spread > 0, spread, 1)
        self.X = (whole - self.mean) / self.spread

    def back(self, filled: np.ndarray) -> np.ndarray:
        """Numbers as they are, the nearest level, or the largest of the levels."""
        found, at, filled = self.codes.copy(), 0, filled * self.spread + self.mean
        for j, (form, width) in enumerate(zip(self.table.forms, self.widths, strict=True)):
            holes, part = np.isnan(found[:, j]), filled[:, at : at + width]
            at += width
            if form.kind == CATEGORY:
                found[holes, j] = part[holes].argmax(axis=1)
            elif form.kind == NUMBER:
                found[holes, j] = part[holes, 0]
            else:
                found[holes, j] = np.rint(part[holes, 0]).clip(0, len(form.levels) - 1)
        return found


def by_matrix(fill: Callable[[np.ndarray], np.ndarray]) -> Imputer:
    def impute(table: MixedTable, hidden: np.ndarray) -> np.ndarray:
        encoded = Encoded(table, hidden)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence
            return encoded.back(fill(encoded.X))

    return impute


def simple(table: MixedTable, hidden: np.ndarray) -> np.ndarray:
    """Mean, median, mode."""
    found = np.where(hidden, np.nan, table.codes)
    for x, form in zip(found.T, table.forms, strict=True):
        known = x[~np.isnan(x)]
        levels = np.bincount(known.astype(int)).argmax() if form.kind not in (NUMBER, ORDINAL) else 0
        x[np.isnan(x)] = known.mean() if form.kind == NUMBER else np.median(known) if form.kind == ORDINAL else levels
    return found


def nearest(X: np.ndarray) -> np.ndarray:
    return library("sklearn.impute").KNNImputer(keep_empty_features=True).fit_transform(X)


def iterative(X: np.ndarray) -> np.ndarray:
    library("sklearn.experimental.enable_iterative_imputer")
    return library("sklearn.impute").IterativeImputer(random_state=0, keep_empty_features=True).fit_transform(X)


def soft(X: np.ndarray) -> np.ndarray:
    """softImpute, with the threshold that predicts a tenth of the known cells best."""
    known = ~np.isnan(X)
    held = known & (np.random.default_rng(0).random(X.shape) < 0.1)
    largest = np.linalg.norm(np.where(known, X, 0), 2)
    best, Z = (np.inf, largest), np.zeros(X.shape)
    for threshold in largest * np.geomspace(0.8, 0.01, 12):
        Z = _softened(np.where(held, np.nan, X), threshold, Z)
        best = min(best, (float(np.mean((Z - X)[held] ** 2)) if held.any() else 0.0, threshold))
    return np.where(known, X, _softened(X, best[1], np.zeros(X.shape)))


def _softened(X: np.ndarray, threshold: float, Z: np.ndarray) -> np.ndarray:
    holes = np.isnan(X)
    for _ in range(200):
        U, s, Vt = np.linalg.svd(np.where(holes, Z, X), full_matrices=False)
        new = (U * np.maximum(s - threshold, 0)) @ Vt
        moved, Z = np.linalg.norm(new - Z), new
        if moved <= 1e-4 * max(np.linalg.norm(Z), 1e-12):
            break
    return Z


def forest(table: MixedTable, hidden: np.ndarray) -> np.ndarray:
    """MissForest: each column by a random forest of the others, some rounds, from the simple imputer."""
    ensemble = library("sklearn.ensemble")
    filled = simple(table, hidden)
    holes = np.isnan(np.where(hidden, np.nan, table.codes))
    for _ in range(ROUNDS):
        for j in np.argsort(holes.sum(axis=0)):
            if not holes[:, j].any():
                continue
            others = [_features(filled[:, k], form) for k, form in enumerate(table.forms) if k != j]
            kind = table.forms[j].kind
            regress = kind in (NUMBER, ORDINAL)
            maker = ensemble.RandomForestRegressor if regress else ensemble.RandomForestClassifier
            X, seen = np.hstack(others), ~holes[:, j]
            told = maker(TREES, random_state=0).fit(X[seen], filled[seen, j]).predict(X[~seen])
            filled[~seen, j] = np.rint(told) if kind == ORDINAL else told
    return filled


def _features(x: np.ndarray, form: Any) -> np.ndarray:
    return (x[:, None] == np.arange(len(form.levels))).astype(float) if form.kind == CATEGORY else x[:, None]


def copula(X: np.ndarray) -> np.ndarray:
    """gcimpute, which finds grades by itself; it was written for NumPy 1."""
    vars(np).setdefault("round_", np.round)
    model = library("gcimpute.gaussian_copula").GaussianCopula(verbose=0)
    return model.fit_transform(X)


IMPUTERS: dict[str, Imputer] = {
    "TableImputer": ours("full"),
    "TableImputer, fast": ours("fast"),
    "mean, median, mode": simple,
    "KNNImputer": by_matrix(nearest),
    "IterativeImputer": by_matrix(iterative),
    "softImpute": by_matrix(soft),
    "gcimpute": by_matrix(copula),
    "random forests": forest,
}
