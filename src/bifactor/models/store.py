"""Fits in folders.

Which folders can be read: those of this format and of all earlier ones; a later one is refused. What a format holds is
pinned by a folder of each in the tests.

1. card.json with the model's loss by its name, factors.safetensors (a `Result`), ids.safetensors with integers or text,
   seen.safetensors.
2. The loss with its parameters, classes of labels, and names of other kinds: floating numbers, dates, booleans.
"""

import json
import os
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.describe import describe
from bifactor.errors import FileError, InputError
from bifactor.losses import Loss
from bifactor.losses.named import LOSSES
from bifactor.models.card import model_card
from bifactor.models.fit import Fit
from bifactor.models.model import OFFSETS, Model
from bifactor.models.pairs import Pairs
from bifactor.running import files, places
from bifactor.running.result import Result
from bifactor.tables import Names

FACTORS, IDS, SEEN, CARD = "factors.safetensors", "ids.safetensors", "seen.safetensors", "card.json"

REPORT = "report.html"

OURS = frozenset({FACTORS, IDS, SEEN, CARD, REPORT})
"""What a folder of a fit holds; a folder with more in it is somebody's, and never replaced."""

FORMAT = 2


def save(fit: Fit, folder: str | os.PathLike[str], force: bool, report: str | None) -> None:
    """See `Fit.save`."""
    target, model = Path(folder), fit.model
    require_free(target, force)
    ids, kinds = _packed_names(fit)
    core = {
        "loss": _stored_loss(model.loss),
        "intercept": model.intercept,
        "offsets": model.offsets,
        "ridge": model.ridge,
        "classes": None if fit.classes is None else [float(value) for value in fit.classes],
    }
    card = json.dumps(fit.card | model_card(fit) | {"format": FORMAT, "model": core}, indent=2, ensure_ascii=False)
    with places.new_folder(target) as temporary:
        replace(model.result, U=model.U, V=model.V, problem=None).save(temporary / FACTORS)
        files.write(temporary / IDS, "ids", ids, kinds)
        files.write(temporary / SEEN, "seen", {"starts": fit.seen.starts, "columns": fit.seen.columns}, {})
        (temporary / CARD).write_text(card + "\n", encoding="utf-8")
        if report is not None:
            (temporary / REPORT).write_text(report, encoding="utf-8")


def load(folder: str | os.PathLike[str], loss: Loss | None = None) -> Fit:
    """Read a fit from the folder that `bifactor complete`, or an estimator's `save`, wrote.

    Parameters
    ----------
    folder : path
    loss : Loss, optional
        Needed where the fit was made with a loss of your own: a folder says what it was called, and never holds code.
    """
    folder = Path(folder)
    card = _card(folder)
    result = Result.load(folder / FACTORS)
    (ids, kinds), (seen, _) = files.read(folder / IDS, "ids"), files.read(folder / SEEN, "seen")
    try:
        core = card["model"]
        fixed, found = OFFSETS if core["offsets"] else (0, 0), _restored_loss(core["loss"], loss, folder)
        model = Model(found, float(core["intercept"]), fixed, float(core["ridge"]), result.U, result.V, result)
        rows, cols = (_unpacked(ids, side, kinds.get(side)) for side in ("row", "column"))
        pairs = Pairs(seen["starts"], seen["columns"])
        classes = None if core.get("classes") is None else np.array(core["classes"], np.float64)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileError(f"{folder} lacks {error}. It is damaged: fit again.") from None
    if (len(rows), len(cols)) != result.shape or not pairs.fits(result.shape):
        raise FileError(f"The files in {folder} do not belong together. Fit again.")
    if not np.isfinite(model.intercept) or not (classes is None or classes.shape == (2,)):
        raise FileError(f"{folder / CARD} is damaged. Fit again.")
    return Fit(model, rows, cols, pairs, classes, card)


def require_free(target: Path, force: bool) -> None:
    """Raise `InputError`, before any work, where a fit cannot or must not be written to `target`."""
    places.require_free(target, force, OURS)


def _card(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{folder} is not the folder of a fit: {CARD} cannot be read ({error.strerror}).") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path} is damaged. Fit again.") from None
    number = card.get("format") if isinstance(card, dict) else None
    if not isinstance(number, int) or number < 1:
        raise FileError(f"{path} is not the card of a fit, or is damaged. Fit again.")
    if number > FORMAT:
        raise FileError(f"{path} is of format {number}, and 1 to {FORMAT} can be read. Use a later bifactor.")
    return card


def _stored_loss(loss: Loss) -> dict[str, Any]:
    """A loss of the library by its name and parameters; any other by what it is called, to be compared on loading."""
    for name, standard in LOSSES.items():
        if type(loss) is type(standard):
            return {"name": name, "parameters": {part.name: float(getattr(loss, part.name)) for part in fields(loss)}}  # type: ignore[arg-type]
    return {"name": None, "described": described(loss)}


def described(loss: Loss) -> str:
    return f"{type(loss).__module__}.{describe(loss) if is_dataclass(loss) else type(loss).__qualname__}"


def _restored_loss(stored: Any, given: Loss | None, folder: Path) -> Loss:
    if isinstance(stored, str):  # format 1
        stored = {"name": stored, "parameters": {}}
    if stored["name"] is not None:
        try:
            return type(LOSSES[stored["name"]])(**stored["parameters"])
        except InputError as error:
            raise FileError(f"{folder / CARD} is damaged: {error}") from None
    if given is None:
        raise InputError(
            f"{folder} was fitted with {stored['described']}, a loss of your own. Pass it: load(folder, loss=…)."
        )
    if described(given) != stored["described"]:
        raise InputError(f"{folder} was fitted with {stored['described']}, not {described(given)}. Pass that loss.")
    return given


def _packed_names(fit: Fit) -> tuple[dict[str, Array], dict[str, str]]:
    arrays: dict[str, Array] = {}
    kinds: dict[str, str] = {}
    for names, side in ((fit.rows, "row"), (fit.cols, "column")):
        arrays |= _packed(names, side)
        kinds[side] = names.values.dtype.str
    return arrays, kinds


def _packed(names: Names, side: str) -> dict[str, Array]:
    """Numbers as they are; text as bytes, one name after the other, and where each ends."""
    kind = names.values.dtype.kind
    if kind in "iumMb":
        return {f"{side}:integers": names.values.astype(np.int64)}
    if kind == "f":
        return {f"{side}:numbers": names.values.astype(np.float64)}
    strange = next((name for name in names if not isinstance(name, str)), None)
    if strange is not None:
        raise InputError(
            f"The {side} name {strange!r} is of type {type(strange).__name__}, which is not kept. Use text or numbers."
        )
    try:
        words = [name.encode() for name in names]
    except UnicodeEncodeError as error:
        raise InputError(f"The {side} name {error.object!r} is not Unicode text. Rename it.") from None
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    return {f"{side}:utf8": np.frombuffer(b"".join(words), np.uint8), f"{side}:ends": ends}


def _unpacked(ids: dict[str, Array], side: str, kind: str | None) -> Names:
    if f"{side}:integers" in ids:
        return Names(ids[f"{side}:integers"].astype(kind if kind and np.dtype(kind).kind in "iumMb" else np.int64))
    if f"{side}:numbers" in ids:
        return Names(ids[f"{side}:numbers"])
    text, ends = ids[f"{side}:utf8"].tobytes(), ids[f"{side}:ends"].tolist()
    names = np.empty(len(ends), object)
    names[:] = [text[a:b].decode() for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return Names(names)
