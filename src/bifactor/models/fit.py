"""A fit in a folder: what `bifactor complete` writes, and how to predict from it."""

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import FileError, InputError
from bifactor.losses.named import LOSSES
from bifactor.models.model import OFFSETS, Model
from bifactor.models.ranking import best_columns
from bifactor.running import files
from bifactor.running.result import Result
from bifactor.tables.labels import Labels
from bifactor.tables.observations import Observations
from bifactor.validation import is_count

FACTORS, IDS, SEEN, CARD = "factors.safetensors", "ids.safetensors", "seen.safetensors", "card.json"

FORMAT = 1
"""Of the folder; a later one is refused."""

KNOWN = ("neither", "row", "column", "both")
"""What is known of a pair, by 1 for the row plus 2 for the column."""


@dataclass(frozen=True)
class Fit:
    """A fitted matrix with the names of its rows and columns.

    `Fit.load("fit")` reads the folder that `bifactor complete … -o fit` wrote.

    Attributes
    ----------
    model : Model
        Factors, offsets and intercept, and the loss they are seen through.
    rows, cols : Labels
        The names.
    seen : Observations
        The pairs that were fitted, in the order of rows; the values are not kept.
    card : dict
        Versions, data, settings and scores.
    """

    model: Model
    rows: Labels
    cols: Labels
    seen: Observations = field(repr=False)
    card: dict[str, Any] = field(default_factory=dict, repr=False)

    def places(self, names: Any, side: str) -> Array:
        """The place of each name among the rows, or the columns, -1 where it is unknown; 7 and "7" are one name."""
        labels = self.rows if side == "row" else self.cols
        names = np.asarray(names)
        if labels.names.dtype.kind in "iu":
            return labels.indices(names if names.dtype.kind in "iu" else _as_integers(names))
        return labels.indices(np.array([str(name) for name in names.ravel().tolist()], object))

    def scores(self, i: Array, j: Array) -> Array:
        """z at places, before the link of the loss; by intercept and offsets alone where one of the two is -1."""
        model = self.model
        b, c = (F[:, k] if model.offsets else np.zeros(F.shape[0]) for F, k in ((model.U, 1), (model.V, 0)))
        z = model.intercept + np.where(i >= 0, b[i], 0.0) + np.where(j >= 0, c[j], 0.0)
        both = (i >= 0) & (j >= 0)
        z[both] = model.scores(i[both], j[both])
        return z

    def predict(self, rows: Any, cols: Any) -> Array:
        """What is to be expected at the pairs (rows[t], cols[t]) of names.

        A name that was not in the fit counts with an offset of 0.
        """
        return self.model.loss.mean(self.scores(*self._pairs(rows, cols)))

    def known(self, rows: Any, cols: Any) -> Array:
        """Of each pair what was in the fit: "both", "row", "column" or "neither"."""
        i, j = self._pairs(rows, cols)
        return known(i, j)

    def _pairs(self, rows: Any, cols: Any) -> tuple[Array, Array]:
        i, j = self.places(np.atleast_1d(rows), "row"), self.places(np.atleast_1d(cols), "column")
        if i.size != j.size:
            raise InputError(f"There are {i.size} rows and {j.size} columns. Pass one of each per pair.")
        return i, j

    def recommend(self, rows: Any, n: int = 10, *, exclude_seen: bool = True) -> list[tuple[Array, Array]]:
        """For each of the rows the names of the n columns with the largest prediction, and these predictions."""
        if not is_count(n, 1):
            raise InputError(f"n={n!r} is not an integer ≥ 1.")
        names = np.atleast_1d(rows)
        index = self.places(names, "row")
        if np.any(index < 0):
            unknown = names[index < 0][0]
            raise InputError(f"There is no row {str(unknown)!r} in this fit. Check the name.")
        part = None
        if exclude_seen:
            starts: Array = np.searchsorted(self.seen.rows, index)
            ends: Array = np.searchsorted(self.seen.rows, index, side="right")
            chosen = np.unique(np.concatenate([np.arange(a, b) for a, b in zip(starts, ends, strict=True)]))
            part = self.seen.part(chosen.astype(np.int64))
        columns, predicted = best_columns(self.model, index, int(n), part)
        return [(self.cols.names[c[c >= 0]], z[c >= 0]) for c, z in zip(columns, predicted, strict=True)]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write everything into a folder that is there."""
        folder, model = Path(folder), self.model
        replace(model.result, U=model.U, V=model.V, problem=None).save(folder / FACTORS)
        files.write(folder / IDS, "ids", {**_packed(self.rows, "row"), **_packed(self.cols, "column")}, {})
        starts = np.searchsorted(self.seen.rows, np.arange(model.U.shape[0] + 1))
        files.write(folder / SEEN, "seen", {"starts": starts, "columns": self.seen.cols.astype(np.int32)}, {})
        name = next(name for name, loss in LOSSES.items() if loss == model.loss)
        core = {"loss": name, "intercept": model.intercept, "offsets": model.offsets, "ridge": model.ridge}
        text = json.dumps({"format": FORMAT, **self.card, "model": core}, indent=2, ensure_ascii=False)
        (folder / CARD).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Fit":
        """Read a folder that `save`, or `bifactor complete`, wrote."""
        folder = Path(folder)
        card = _card(folder)
        result = Result.load(folder / FACTORS)
        ids, seen = files.read(folder / IDS, "ids")[0], files.read(folder / SEEN, "seen")[0]
        try:
            core = card["model"]
            loss = LOSSES[core["loss"]]
            fixed = OFFSETS if core["offsets"] else (0, 0)
            model = Model(loss, core["intercept"], fixed, core["ridge"], result.U, result.V, result)
            rows, cols = _unpacked(ids, "row"), _unpacked(ids, "column")
            i = np.repeat(np.arange(result.shape[0]), np.diff(seen["starts"]))
            pairs = Observations(i, seen["columns"].astype(np.int64), np.zeros(i.size), result.shape)
        except (KeyError, TypeError) as error:
            raise FileError(f"{folder} lacks {error}. It was written by another version of bifactor.") from None
        if (rows.names.size, cols.names.size) != result.shape or i.size != pairs.cols.size:
            raise FileError(f"The files in {folder} do not belong together. Fit again.")
        return cls(model, rows, cols, pairs, card)


def seen_pairs(data: Observations) -> Observations:
    """The pairs of some data in the order of rows, each once."""
    # Counting is quicker than sorting: a sparse matrix puts them in order.
    matrix = sparse.csr_array((np.ones(data.values.size, bool), (data.rows, data.cols)), shape=data.shape)
    matrix.sum_duplicates()
    rows = np.repeat(np.arange(data.shape[0]), np.diff(matrix.indptr))
    return Observations(rows, matrix.indices, np.zeros(rows.size), data.shape)


def known(i: Array, j: Array) -> Array:
    """What is known of pairs of places."""
    return np.array(KNOWN)[(i >= 0) + 2 * (j >= 0)]


def _card(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{folder} is no folder of a fit: {CARD} cannot be read ({error.strerror}).") from None
    except ValueError:
        raise FileError(f"{path} is damaged. Fit again.") from None
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        raise FileError(f"{path} is of another format than {FORMAT}. Use the version of bifactor that wrote it.")
    return card


def _as_integers(names: Array) -> Array:
    """Names as integers; those that are none stay text, which is the name of nothing here."""
    words = [str(name) for name in names.ravel().tolist()]
    short = [word.removeprefix("-") for word in words]
    good = [
        text.isascii() and text.isdigit() and len(text) <= 18 and str(int(word)) == word
        for word, text in zip(words, short, strict=True)
    ]
    return np.array([int(word) if fine else word for word, fine in zip(words, good, strict=True)], object)


def _packed(labels: Labels, side: str) -> dict[str, Array]:
    """Integers as they are; text as bytes, one name after the other, and where each ends."""
    if labels.names.dtype.kind in "iu":
        return {f"{side}:integers": labels.names.astype(np.int64)}
    words = [str(name).encode() for name in labels.names.tolist()]
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return {f"{side}:utf8": np.frombuffer(b"".join(words), np.uint8), f"{side}:ends": ends}


def _unpacked(ids: dict[str, Array], side: str) -> Labels:
    if f"{side}:integers" in ids:
        return Labels(ids[f"{side}:integers"])
    text, ends = ids[f"{side}:utf8"].tobytes(), ids[f"{side}:ends"].tolist()
    names = np.empty(len(ends), object)
    names[:] = [text[a:b].decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return Labels(names)
