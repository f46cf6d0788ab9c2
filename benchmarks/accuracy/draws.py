"""Draws of `TableImputer.sample`: do they vary as the hidden cells do, and do Rubin's rules work with them?

Tables are those of `benchmarks.accuracy.tables` that it was not developed on; 30 % of the cells are hidden at random
or by other columns. `cover`: the share of hidden numbers within the range of 20 draws (90.5 % if calibrated) and of 39
(95 %).
Regressions: a column of numbers on up to five others, all standardised, from complete data, from complete rows, from a
table filled in once, from one draw, and from 5 and 20 draws pooled by Rubin's rules. `error` is the root mean square of
slopes less those of complete data, in standard errors of these; `cover95` the share of 95 % intervals that hold the
slope: that of complete data, or the true one where rows are drawn from a known law.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy

import bifactor as bf
from benchmarks.harness.rows import Absent, Row, row
from benchmarks.harness.table_data import MASKS, UNSEEN, MixedTable, hide, read
from bifactor.data.column_types import NUMBER

SHARE, SEED, MOST, MANY = 0.3, 7, 39, 20
RANGES, POOLED = (20, MOST), (5, MANY)
FEATURES, FEWEST, LEVEL = 5, 4, 0.95
PLANTED, ROWS = 100, 300


class Fit(NamedTuple):
    """Slopes, their variances, and degrees of freedom."""

    slopes: np.ndarray
    variances: np.ndarray
    freedom: np.ndarray

    def holds(self, truth: np.ndarray) -> np.ndarray:
        wide = scipy.stats.t.ppf((1 + LEVEL) / 2, self.freedom) * np.sqrt(self.variances)
        return np.abs(self.slopes - truth) <= wide


def regression(X: np.ndarray, y: np.ndarray) -> Fit:
    A = np.column_stack([np.ones(len(X)), X])
    inverse = np.linalg.pinv(A.T @ A)
    slopes = inverse @ (A.T @ y)
    freedom = max(len(A) - A.shape[1], 1)
    variance = np.sum((y - A @ slopes) ** 2) / freedom
    return Fit(slopes[1:], variance * np.diagonal(inverse)[1:], np.full(X.shape[1], float(freedom)))


def pooled(fits: list[Fit]) -> Fit:
    """Rubin's rules, with the degrees of freedom of Barnard and Rubin (Biometrika 1999)."""
    m = len(fits)
    if m == 1:
        return fits[0]
    slopes = np.mean([fit.slopes for fit in fits], axis=0)
    within = np.mean([fit.variances for fit in fits], axis=0)
    between = np.var([fit.slopes for fit in fits], axis=0, ddof=1)
    total = within + (1 + 1 / m) * between
    share = np.maximum((1 + 1 / m) * between / total, 1e-12)
    complete = fits[0].freedom
    seen = (complete + 1) / (complete + 3) * complete * (1 - share)
    return Fit(slopes, total, 1 / (share**2 / (m - 1) + 1 / np.maximum(seen, 1e-12)))


def fits_of(complete: np.ndarray, shown: np.ndarray, single: np.ndarray, draws: list[np.ndarray]) -> dict[str, Fit]:
    """Of the last column on the others; all in units of complete data."""
    mean, spread = complete.mean(axis=0), complete.std(axis=0)

    def fit(table: np.ndarray) -> Fit:
        Z = (table - mean) / spread
        return regression(Z[:, :-1], Z[:, -1])

    found = {"complete data": fit(complete)}
    whole = ~np.isnan(shown).any(axis=1)
    if whole.sum() > 2 * complete.shape[1]:
        found["complete rows"] = fit(shown[whole])
    drawn = [fit(draw) for draw in draws[: max(POOLED)]]
    found |= {"filled in": fit(single), "1 draw": drawn[0]}
    return found | {f"{m} draws": pooled(drawn[:m]) for m in POOLED}


def table_rows(name: str, how: str) -> Iterator[Row]:
    mixed = read(name)
    hidden = hide(mixed, how, SHARE, SEED)
    shown = mixed.shown(hidden)
    imputer = bf.TableImputer(columns=mixed.kinds, random_state=0).fit(shown)
    draws = [mixed.codes_of(draw) for draw in imputer.sample(shown, MOST, random_state=0)]
    numbers = [j for j, form in enumerate(mixed.forms) if form.kind == NUMBER]
    objective, data = f"{how} {SHARE:.0%}", f"{name}, {mixed.codes.shape[0]} × {mixed.codes.shape[1]}"
    at = hidden.copy()
    at[:, [j for j in range(hidden.shape[1]) if j not in numbers]] = False
    if at.any():
        found = np.array([draw[at] for draw in draws])
        for m in RANGES:
            inside = (found[:m].min(axis=0) <= mixed.codes[at]) & (mixed.codes[at] <= found[:m].max(axis=0))
            yield row(
                f"{objective}, cells", data, f"range of {m} draws", cover=float(inside.mean()), cells=int(at.sum())
            )
    yield from slope_rows(mixed, hidden, numbers, mixed.codes_of(imputer.transform(shown)), draws, objective, data)


def slope_rows(
    mixed: MixedTable,
    hidden: np.ndarray,
    numbers: list[int],
    single: np.ndarray,
    draws: list[np.ndarray],
    objective: str,
    data: str,
) -> Iterator[Row]:
    known = [j for j in numbers if not np.isnan(mixed.codes[:, j]).any()]
    known = [j for j in known if np.linalg.matrix_rank(mixed.codes[:, [*known[: known.index(j)], j]]) > known.index(j)]
    if len(known) < FEWEST:
        return
    target = max(known, key=lambda j: hidden[:, j].sum())
    at = [*[j for j in known if j != target][:FEATURES], target]
    shown = np.where(hidden, np.nan, mixed.codes)[:, at]
    fits = fits_of(mixed.codes[:, at], shown, single[:, at], [draw[:, at] for draw in draws])
    truth = fits["complete data"]
    for name, fit in fits.items():
        error = np.sqrt(np.mean((fit.slopes - truth.slopes) ** 2 / truth.variances))
        inside = float(np.mean(fit.holds(truth.slopes)))
        yield row(f"{objective}, slopes", data, name, error=float(error), cover95=inside, slopes=len(at) - 1)


def planted(seed: int, how: str) -> Iterator[Row]:
    """y = x₁ − x₂/2 + 0·x₃ + noise, with x that go together; cells are hidden at random, or by x₃."""
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal(np.zeros(3), 0.5 * np.eye(3) + 0.5, ROWS)
    truth = np.array([1.0, -0.5, 0.0])
    complete = np.column_stack([x, x @ truth + rng.standard_normal(ROWS)])
    chance = np.full(complete.shape, SHARE)
    if how == "MAR":
        chance[:] = (2 * SHARE * scipy.special.ndtr(x[:, 2]))[:, None]
        chance[:, 2] = 0
    hidden = rng.random(complete.shape) < chance
    shown = np.where(hidden, np.nan, complete)
    imputer = bf.TableImputer(random_state=0).fit(shown)
    draws = imputer.sample(shown, max(POOLED), random_state=seed)
    spread = complete.std(axis=0)
    goal = truth * spread[:-1] / spread[-1]
    for name, fit in fits_of(complete, shown, imputer.transform(shown), draws).items():
        error = float(np.sqrt(np.mean((fit.slopes - goal) ** 2)))
        inside = float(np.mean(fit.holds(goal)))
        yield row(f"{how} {SHARE:.0%}, slopes", f"planted, {ROWS} × 4", name, draw=seed, rmse=error, cover95=inside)


def summary(rows: list[Row]) -> tuple[list[dict[str, str]], str]:
    """Over all cells, or slopes, of all tables."""
    lines = []
    for objective, solver in dict.fromkeys((one["objective"], one["solver"]) for one in rows if "skipped" not in one):
        mine = [one for one in rows if (one["objective"], one["solver"]) == (objective, solver)]
        real = [one for one in mine if "draw" not in one]
        line = {"objective": objective, "solver": solver, "tables": str(len(real))}
        if "cover" in real[0]:
            weights = [one["cells"] for one in real]
            line |= {"cover": f"{np.average([one['cover'] for one in real], weights=weights):.3f}"}
            line |= {"mean of tables": f"{np.mean([one['cover'] for one in real]):.3f}"}
        else:
            weights = [one["slopes"] for one in real]
            square = np.average([one["error"] ** 2 for one in real], weights=weights)
            middle = np.median([one["error"] for one in real])
            line |= {"error": f"{np.sqrt(square):.3f}", "median error": f"{middle:.3f}"}
            line |= {"cover95": f"{np.average([one['cover95'] for one in real], weights=weights):.3f}"}
        lines.append(line)
    return lines, "Of tables that are not planted; cover: of all cells, cover95: of all slopes."


def run() -> Iterator[Row]:
    for how in MASKS:
        for name in UNSEEN:
            try:
                yield from table_rows(name, how)
            except Absent as reason:
                yield row(how, name, "", skipped=str(reason))
        for seed in range(PLANTED):
            yield from planted(seed, how)
