"""Fits in folders.

Folders of this format and of all earlier ones can be read; later ones are refused. The tests contain a folder of each
format. Formats and their additions:

1. card.json with the name of the loss, factors.safetensors (a `Result`), ids.safetensors with integers or text,
   seen.safetensors.
2. The loss with its parameters, classes of labels, and names of other types: floating-point numbers, dates, booleans.
3. posterior.safetensors, if there is no ridge: priors, noise and, unless they were left out, covariances.
4. For clicks, the weight of unobserved entries. side.safetensors, if rows or columns have features: their
   coefficients. The range that predictions are clipped to.
5. For clicks, the weights of the pairs, unless all are 1, as is assumed for folders of format 4. With item-to-item
   scores, their share, their ridge, and items.safetensors. For grades, the levels and the thresholds.
6. For a fit to a block store, its location; seen.safetensors then contains the numbers of observations of rows and
   columns. For features of rows that were a matrix, their zeros and units. The ridge of offsets, which is that of the
   components in earlier formats.
7. card.json calls ridges `ridge`, `offset_ridge` and `item_ridge`; before, they were `alpha`, `offset_alpha` and
   `item_alpha`. For labels above a threshold, the threshold.
"""

import errno
import json
import os
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.data import Names
from bifactor.data.features import Standard
from bifactor.data.names import packed_names, unpacked_names
from bifactor.data.seen_items import BlockPairs, Pairs, SeenItems, StoreAddress, folder_of
from bifactor.data.text import number_of
from bifactor.describe import describe
from bifactor.errors import FileError, InputError
from bifactor.factors import Factors
from bifactor.losses import Loss
from bifactor.losses.named import LOSSES
from bifactor.models.completion.clipping import restored_range, stored_range
from bifactor.models.completion.labels import Labels
from bifactor.models.fit import Fit
from bifactor.models.link import Link
from bifactor.models.model import OFFSETS, Model
from bifactor.models.predictive import PosteriorPredictive
from bifactor.models.provenance import model_card
from bifactor.models.recommender.rows import ClickRows, ItemToItem, WithItemScores, with_known
from bifactor.models.recommender.weights import CountsToClicks
from bifactor.models.rows import PosteriorRows, RidgeRows, RowModel, WithSideInformation, with_ones
from bifactor.models.side_information import SideInformation
from bifactor.running import files
from bifactor.running import files as places
from bifactor.running.result import Result
from bifactor.solvers.variational.features import FeatureWeights, parts_of
from bifactor.solvers.variational.moments import Places
from bifactor.solvers.variational.noise import NUMBERS, unpack_noise
from bifactor.solvers.variational.posterior import Gaussians, Posterior
from bifactor.validation import is_count

FACTORS, IDS, SEEN, CARD = "factors.safetensors", "ids.safetensors", "seen.safetensors", "card.json"

POSTERIOR, SIDE, ITEMS = "posterior.safetensors", "side.safetensors", "items.safetensors"

REPORT = "report.html"

OURS = frozenset({FACTORS, IDS, SEEN, CARD, REPORT, POSTERIOR, SIDE, ITEMS})
"""Files in the folder of a fit; a folder with other files is never replaced."""

FORMAT = 7


def save(fit: Fit, folder: str | os.PathLike[str], force: bool, report: str | None, error_bars: bool) -> None:
    """See `Fit.save`."""
    target, model = Path(folder), fit.model
    require_free(target, force)
    ids, kinds = packed_names(fit.rows, fit.cols)
    link, rows = model.link, model.rows
    core = {
        "loss": _stored_loss(model.loss),
        "intercept": link.intercept,
        "offsets": model.offsets,
        "features": rows.side is not None,
        **dict.fromkeys(("unobserved", "item_share", "item_ridge")),
        **rows.card,
        "clip": stored_range(link.clip),
        **_stored_labels(link),
        "store": store_entry(fit.seen, target),
    }
    card = json.dumps(fit.card | model_card(fit) | {"format": FORMAT, "model": core}, indent=2, ensure_ascii=False)
    with places.new_folder(target, force) as temporary:
        replace(model.result, U=model.U, V=model.V, problem=None).save(temporary / FACTORS)
        if model.posterior is not None:
            write_posterior(temporary / POSTERIOR, model.posterior, model.U.dtype, error_bars)
        if rows.side is not None:
            write_side(temporary / SIDE, rows.side)
        if rows.arrays:
            files.write(temporary / ITEMS, "items", rows.arrays, {})
        files.write(temporary / IDS, "ids", ids, kinds)
        write_seen(temporary / SEEN, fit.seen)
        files.write_atomically(temporary / CARD, f"{card}\n".encode("utf-8", "backslashreplace"))  # which JSON uses too
        if report is not None:
            files.write_atomically(temporary / REPORT, report.encode("utf-8", "replace"))


def load(folder: str | os.PathLike[str], loss: Loss | None = None) -> Fit:
    """Read a fit from a folder written by `bifactor complete` or by the method `save` of an estimator.

    Parameters
    ----------
    folder : path
        The folder of the fit.
    loss : Loss, optional
        The loss, if the fit was made with a custom one: a folder contains its name, but never code.
    """
    folder = Path(folder)
    card = _card(folder)
    result = Result.load(folder / FACTORS)
    model = _model(card, result, loss, folder)
    rows, cols = _names(folder / IDS)
    pairs = read_seen(folder / SEEN, card["model"].get("store"), result.shape, model.link.of_choices)
    if (len(rows), len(cols)) != result.shape:
        raise FileError(f"The files in {folder} do not belong together. Fit again.")
    if model.link.of_choices and model.rows.side is not None:
        model = replace(model, rows=with_known(model.rows, pairs.known(len(cols))))
    return Fit(model, rows, cols, pairs, card)


def require_free(target: Path, force: bool) -> None:
    """Raise `InputError`, before any work, if a fit cannot or must not be written to `target`."""
    places.require_free(target, force, _foreign)


def _foreign(folder: Path) -> str | None:
    """Why a non-empty folder is not one that `save` wrote; None if it is."""
    files_of_ours = {path.name for path in folder.iterdir() if path.is_file() and not path.is_symlink()} & OURS
    strange = sorted(set(os.listdir(folder)) - files_of_ours)
    if strange:
        return f"contains {strange[0]}, which is not part of a fit"
    try:
        _card(folder)
    except FileError:
        return f"contains no {CARD} of a fit"
    return None


def _card(folder: Path) -> dict[str, Any]:
    path = folder / CARD
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a file")
        card = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        fact = f"{folder} is not the folder of a fit: {CARD} cannot be read ({error.strerror})."
        raise FileError(f"{fact} Check its name.") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path} is damaged. Fit again.") from None
    number = card.get("format") if isinstance(card, dict) else None
    if number is None or not is_count(number, 1):
        raise FileError(f"{path} is not the card of a fit, or is damaged. Fit again.")
    if number > FORMAT:
        raise FileError(f"{path} has format {number}, but only 1 to {FORMAT} can be read. Use a later bifactor.")
    return card


def _model(card: dict[str, Any], result: Result, loss: Loss | None, folder: Path) -> Model:
    """Model from a card and factors."""
    core = card.get("model")
    try:
        if not isinstance(core, dict):
            raise ValueError("it does not describe the model")
        if not isinstance(core.get("offsets"), bool):
            raise ValueError(f"offsets is {core.get('offsets')!r}, neither true nor false")
        fixed = OFFSETS if core["offsets"] else (0, 0)
        clicks = core.get("unobserved") is not None
        link = Link(
            _restored_loss(core.get("loss"), loss, folder),
            _number(core, "intercept"),
            restored_range(core.get("clip")),
            CountsToClicks() if clicks else _labels(core),
        )
        ridge = _ridge(core)
        if clicks:
            ridge = _click_rows(core, ridge, fixed)
    except (ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise FileError(f"{folder / CARD} is damaged: {str(error)[:200]}. Fit again.") from None
    x = _factors(result, link, fixed, folder)
    if ridge is None:
        posterior = read_posterior(folder / POSTERIOR, x)
        side = read_side(folder / SIDE, x.width) if core.get("features") else None
        return Model(x, link, PosteriorRows(posterior, side=side), result, PosteriorPredictive(posterior))
    items = _items(core, result, folder)
    rows: RowModel = ridge
    if core.get("features"):
        rows = WithSideInformation(ridge, read_side(folder / SIDE, x.width - (0 if items is None else items.rank)))
    return Model(x, link, rows if items is None else WithItemScores(rows, items), result)


def _factors(result: Result, link: Link, fixed: tuple[int, int], folder: Path) -> Factors:
    """The factors of a card with this link and these columns of ones."""
    U, V, intercept = result.U, result.V, link.intercept
    if not abs(intercept) <= float(np.finfo(U.dtype).max) ** 0.5:
        raise FileError(f"{folder / CARD} is damaged: the intercept {intercept:g} overflows in {U.dtype}. Fit again.")
    ones = fixed == (0, 0) or (result.rank >= sum(OFFSETS) and np.all(U[:, 0] == 1) and np.all(V[:, 1] == 1))
    if U.dtype.kind != "f" or not ones:
        raise FileError(f"{folder / FACTORS} does not contain the factors of {folder / CARD}. Fit again.")
    return with_ones(U, V, fixed)


def _ridge(core: dict[str, Any]) -> RidgeRows | None:
    """The ridges, or None for a posterior, which formats 1 and 2 never have."""
    ridge = None if "ridge" in core and core["ridge"] is None else _number(core, "ridge")
    if ridge is not None and ridge < 0:
        raise ValueError(f"ridge is {ridge}")
    own = None if core.get("offset_ridge") is None else _number(core, "offset_ridge")
    if own is not None and not (own >= 0 and ridge is not None and core["offsets"]):
        raise ValueError(f"offset_ridge is {own}, which needs to be ≥ 0, a ridge and offsets")
    return None if ridge is None else RidgeRows(ridge, own)


def _click_rows(core: dict[str, Any], ridge: RidgeRows | None, fixed: tuple[int, int]) -> ClickRows:
    unobserved = _number(core, "unobserved")
    if not (unobserved > 0 and ridge is not None and fixed == (0, 0)):
        raise ValueError(f"unobserved is {unobserved}, which needs a ridge and no offsets")
    return ClickRows(ridge.ridge, unobserved=unobserved)


def _items(core: dict[str, Any], result: Result, folder: Path) -> ItemToItem | None:
    """The item-to-item scores of clicks, if there are any."""
    if core.get("unobserved") is None or core.get("item_share") is None:
        return None
    name = "item_ridge" if "item_ridge" in core else "item_alpha"  # before format 7
    try:
        share, ridge = _number(core, "item_share"), _number(core, name)
        if not (0 < share < 1 and ridge > 0):
            raise ValueError(f"item_share is {share} and {name} {ridge}")
    except ValueError as error:
        raise FileError(f"{folder / CARD} is damaged: {error}. Fit again.") from None
    carried = files.read(folder / ITEMS, "items")[0].get("carried")
    if carried is None or carried.ndim != 2 or len(carried) != result.shape[1] or carried.shape[1] > result.rank:
        raise FileError(f"{folder / ITEMS} does not belong to {folder / FACTORS}. Fit again.")
    if carried.dtype != result.V.dtype or not np.all(np.isfinite(carried)):
        raise FileError(f"{folder / ITEMS} is damaged: it is not finite numbers of type {result.V.dtype}. Fit again.")
    return ItemToItem(share, ridge, carried)


def _number(core: dict[str, Any], name: str) -> float:
    value = core.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a finite number")
    return float(value)


def _stored_labels(link: Link) -> dict[str, Any]:
    """The classes of labels, and the threshold above which numbers are in the upper one, if there is one."""
    labels = link.recoding if isinstance(link.recoding, Labels) else None
    return {
        "classes": None if labels is None else list(labels.classes),
        "binarize": None if labels is None else labels.binarize,
    }


def _labels(core: dict[str, Any]) -> Labels | None:
    """Classes that −1 and +1 stand for, if there are labels."""
    stored = core.get("classes")
    if stored is None:
        return None
    if not isinstance(stored, list) or len(stored) != 2:
        raise ValueError(f"classes is {str(stored)[:40]!r}, not two numbers")
    lower, upper = (_number({"classes": value}, "classes") for value in stored)
    if not lower < upper:
        raise ValueError(f"classes are {lower} and {upper}, which are not increasing")
    return Labels((lower, upper), None if core.get("binarize") is None else _number(core, "binarize"))


def _names(path: Path) -> tuple[Names, Names]:
    arrays, kinds = files.read(path, "ids")
    try:
        return unpacked_names(arrays, "row", kinds.get("row")), unpacked_names(arrays, "column", kinds.get("column"))
    except ValueError as error:
        raise FileError(f"{path} is damaged: {error}. Fit again.") from None


def _stored_loss(loss: Loss) -> dict[str, Any]:
    """A loss of the library by its name and parameters; any other by its description, which is compared on loading."""
    for name, standard in LOSSES.items():
        if type(loss) is type(standard):
            parameters = {part.name: np.asarray(getattr(loss, part.name), float).tolist() for part in fields(loss)}  # type: ignore[arg-type]
            return {"name": name, "parameters": parameters}
    return {"name": None, "described": described(loss)}


def described(loss: Loss) -> str:
    """The class and settings of a loss, wherever it is defined."""
    return describe(loss) if is_dataclass(loss) else type(loss).__name__


def _restored_loss(stored: Any, given: Loss | None, folder: Path) -> Loss:
    if isinstance(stored, str):  # format 1
        stored = {"name": stored, "parameters": {}}
    told = stored if isinstance(stored, dict) else {"name": stored}
    name, parameters, own = (told.get(key) for key in ("name", "parameters", "described"))
    if isinstance(name, str) and name in LOSSES and isinstance(parameters, dict):
        try:
            return type(LOSSES[name])(**parameters)
        except (InputError, TypeError) as error:
            raise ValueError(str(error).rstrip(".")) from None
    if name is not None or not isinstance(own, str):
        raise ValueError(f"loss is {str(stored)[:40]!r}, which does not exist")
    if given is None:
        raise InputError(f"{folder} was fitted with {own}, a custom loss. Pass it: load(folder, loss=…).")
    if own != described(given) and not own.endswith(f".{described(given)}"):  # earlier folders name the module, too
        raise InputError(f"{folder} was fitted with {own}, not {described(given)}. Pass that loss.")
    return given


# The posterior of a fit in a file, with or without its covariances.

SIDES = ("row", "column")

KINDS = ("features", "pattern")
"""Kinds of weights; files of earlier versions have none."""

MOST = 1 << 28
"""Largest number of numbers in the covariances of one side that are computed for a file if they were not stored."""


def write_posterior(path: Path, posterior: Posterior, dtype: Any, whole: bool) -> None:
    """Write a posterior in the precision of the factors, whose means are in another file; covariances if `whole`."""
    arrays: dict[str, Array] = {}
    for name, part in zip(SIDES, (posterior.rows, posterior.cols), strict=True):
        arrays |= {f"{name}_prior": part.prior, f"{name}_precision": part.precision}
        covariance = _covariance(part) if whole else None
        if covariance is not None:
            arrays[f"{name}_covariance"] = covariance.astype(dtype)
        if part.cold is not None:
            arrays[f"{name}_cold"] = part.cold
        for kind, weights in zip(KINDS, part.weights, strict=True):
            if weights is not None:
                arrays |= {f"{name}_{kind}_{key}": one for key, one in _packed_weights(weights, whole).items()}
    numbers = {"variance": posterior.variance, **posterior.noise_model.pack(), "weight": posterior.weight}
    told = {name: repr(float(one)) for name, one in numbers.items()}
    sides = zip(SIDES, (posterior.rows, posterior.cols), strict=True)
    told |= {f"{name}_blind": "1" for name, part in sides if part.blind}
    files.write(path, "posterior", arrays, told)


def _covariance(part: Gaussians) -> Array | None:
    """Covariances; those of rows in blocks are computed again, unless there are too many."""
    if part.covariance is None and part.again is not None and len(part) * part.places.rank**2 <= MOST:
        return part.take(np.arange(len(part))).covariance
    return part.covariance


def read_posterior(path: Path, x: Factors) -> Posterior:
    """Read a posterior; the factors of the fit are its means."""
    arrays, told = files.read(path, "posterior")
    try:
        sides = [_side(arrays, name, x, which) for which, name in enumerate(SIDES)]
        sides = [replace(side, blind=f"{name}_blind" in told) for name, side in zip(SIDES, sides, strict=True)]
        numbers = {name: _positive(told, name) for name in ("variance", *NUMBERS, "weight") if name in told}
        if "variance" not in numbers:
            raise ValueError("it has no variance of the noise")
        noise = unpack_noise({name: numbers[name] for name in NUMBERS if name in numbers})
    except ValueError as error:
        raise FileError(f"{path} is damaged: {error}. Fit again.") from None
    weight = numbers.get("weight", 1.0)  # that of files of earlier versions
    return Posterior(sides[0], sides[1], numbers["variance"], noise, weight)


def _side(arrays: dict[str, Array], name: str, x: Factors, which: int) -> Gaussians:
    means = np.asarray((x.left, x.right)[which], np.float64)
    places = Places.of(x, which, shared=False)
    prior = _array(arrays, f"{name}_prior", (places.rank,))
    precision = _array(arrays, f"{name}_precision", (len(means),))
    if not (np.all(prior > 0) and np.all(precision > 0)):
        raise ValueError(f"some precisions of {name}s are not positive")
    covariance = None
    if f"{name}_covariance" in arrays:
        covariance = _array(arrays, f"{name}_covariance", (len(means), places.rank * (places.rank + 1) // 2))
        if np.any(covariance[:, places.diagonal] < 0):
            raise ValueError(f"some variances of {name}s are negative")
    first, second = (_weights(arrays, f"{name}_{kind}", places) for kind in KINDS)
    cold = _array(arrays, f"{name}_cold", (places.rank,)) if f"{name}_cold" in arrays else None
    return Gaussians(means, covariance, places, prior, precision, (first, second), cold)


def _packed_weights(weights: FeatureWeights, whole: bool) -> dict[str, Array]:
    """Arrays by the names of fields; K only in a `whole` posterior."""
    names = ("mean", "columns", "average", "scatter")
    lines = {f"lines_{k}": K for k, K in enumerate(weights.lines if whole else ())}
    return {name: getattr(weights, name) for name in names} | lines


def _weights(arrays: dict[str, Array], name: str, places: Places) -> FeatureWeights | None:
    if f"{name}_mean" not in arrays:
        return None
    d, k = places.rank, arrays[f"{name}_mean"].shape[0] if arrays[f"{name}_mean"].ndim else 0
    lines = []
    for part in range(len(parts_of(places.effects, d)) if f"{name}_lines_0" in arrays else 0):
        whole = arrays.get(f"{name}_lines_{part}", np.empty(0)).ndim == 2
        lines.append(_array(arrays, f"{name}_lines_{part}", (k, k) if whole else (k,)))
    mean, average = _array(arrays, f"{name}_mean", (k, d)), _array(arrays, f"{name}_average", (k,))
    columns, scatter = (_array(arrays, f"{name}_{field}", (d, d)) for field in ("columns", "scatter"))
    return FeatureWeights(mean, tuple(lines), columns, places.effects, average, scatter)


def _array(arrays: dict[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    found = arrays.get(name)
    if found is None or found.shape != shape or found.dtype.kind != "f" or not np.all(np.isfinite(found)):
        raise ValueError(f"{name} is not {'×'.join(map(str, shape))} finite numbers")
    return found.astype(np.float64)


def _positive(told: dict[str, Any], name: str) -> float:
    number = number_of(told[name]) if isinstance(told[name], str) else None
    if number is None or not 0 < number < np.inf:
        raise ValueError(f"{name} is {str(told[name])[:40]!r}, not a number above 0")
    return number


# File of the fitted pairs: all pairs or, if these are in a block store, the location of the store.


def store_entry(seen: SeenItems, folder: Path) -> dict[str, Any] | None:
    """Entry in the card of a fit about the store that it was fitted to."""
    if isinstance(seen, Pairs) or seen.address is None:
        return None
    place = os.path.abspath(seen.address.folder)
    content = seen.address.fingerprint
    return {"folder": place, "beside": os.path.relpath(place, os.path.abspath(folder)), "content": content}


def write_seen(path: Path, seen: SeenItems) -> None:
    if isinstance(seen, Pairs) or seen.address is None:
        whole = seen if isinstance(seen, Pairs) else seen.select(np.arange(seen.counts.size))
        files.write(path, "seen", _packed(whole), {})
        return
    arrays = {"counts": seen.counts, "column_counts": seen.column_counts}
    if seen.added is not None and seen.places is not None:
        arrays |= {"places": seen.places, **_packed(seen.added)}
    files.write(path, "seen", arrays, {})


def read_seen(path: Path, store: Any, shape: tuple[int, int], clicks: bool) -> SeenItems:
    """Read the pairs of a matrix of this shape; `store` is a result of `store_entry`."""
    arrays, _ = files.read(path, "seen")
    if store is None:
        if not {"starts", "columns"} <= set(arrays):
            raise FileError(f"{path} is damaged: it contains no pairs. Fit again.")
        pairs = _unpacked(arrays)
        if not pairs.fits(shape):
            raise FileError(f"The files in {path.parent} do not belong together. Fit again.")
        return pairs
    counts = [arrays.get(name, np.empty(0)) for name in ("counts", "column_counts")]
    if [one.shape for one in counts] != [(size,) for size in shape] or any(one.dtype.kind != "i" for one in counts):
        raise FileError(f"The files in {path.parent} do not belong together. Fit again.")
    try:
        home, content = folder_of(store, path.parent), str(store["content"])
    except (TypeError, KeyError):
        raise FileError(f"The card in {path.parent} is damaged: it does not locate the data. Fit again.") from None
    address = StoreAddress(home, content, CountsToClicks() if clicks else None)
    found = BlockPairs(counts[0], counts[1], clicks, address)
    return found if "places" not in arrays else _with_added(found, arrays, path, shape)


def _with_added(found: BlockPairs, arrays: dict[str, Array], path: Path, shape: tuple[int, int]) -> BlockPairs:
    places, added = arrays["places"], _unpacked(arrays) if {"starts", "columns"} <= set(arrays) else None
    rows = 0 if added is None else added.starts.size - 1
    good = added is not None and places.shape == shape[:1] and added.fits((rows, shape[1]))
    if not good or places.dtype.kind != "i" or np.any(places >= rows) or np.any(places < -1):
        raise FileError(f"The files in {path.parent} do not belong together. Fit again.")
    return replace(found, added=added, places=places)


def _packed(pairs: Pairs) -> dict[str, Array]:
    arrays = {"starts": pairs.starts, "columns": pairs.columns}
    return arrays if pairs.weights is None else {**arrays, "weights": pairs.weights}


def _unpacked(arrays: dict[str, Array]) -> Pairs:
    return Pairs(arrays["starts"], arrays["columns"], arrays.get("weights"))


# File of the coefficients of features.

ZERO, UNIT = "row_zero", "row_unit"
"""Zeros and units of features of rows; files of earlier versions, and those of fits to frames, have none."""


def write_side(path: Path, side: SideInformation) -> None:
    """Write the coefficients of each side that has features."""
    parts = zip(SIDES, (side.rows, side.cols), strict=True)
    patterns = {f"{name}_pattern": str(count) for name, count in zip(SIDES, side.patterns, strict=True)}
    arrays = {name: A for name, A in parts if A is not None}
    if side.standard is not None:
        arrays |= {ZERO: side.standard.zero, UNIT: side.standard.unit}
    files.write(path, "side", arrays, patterns)


def read_side(path: Path, width: int) -> SideInformation:
    """Read coefficients for factors with this many columns."""
    arrays, told = files.read(path, "side")
    try:
        coefficients = [_coefficients(arrays, name, width) for name in SIDES]
        patterns = [_count(told.get(f"{name}_pattern"), A) for name, A in zip(SIDES, coefficients, strict=True)]
        if all(A is None for A in coefficients):
            raise ValueError("it has no coefficients")
        standard = _standard(arrays, 0 if coefficients[0] is None else len(coefficients[0]) - patterns[0])
    except ValueError as error:
        raise FileError(f"{path} is damaged: {error}. Fit again.") from None
    return SideInformation(coefficients[0], coefficients[1], (patterns[0], patterns[1]), standard)


def _coefficients(arrays: dict[str, Array], name: str, width: int) -> Array | None:
    A = arrays.get(name)
    if A is None:
        return None
    if A.dtype.kind != "f" or A.ndim != 2 or A.shape[1] != width or not np.all(np.isfinite(A)):
        raise ValueError(
            f"the coefficients of {name}s have dtype {A.dtype} and shape {A.shape}, for {width} columns of factors"
        )
    return A


def _standard(arrays: dict[str, Array], features: int) -> Standard | None:
    if ZERO not in arrays and UNIT not in arrays:
        return None
    zero, unit = (arrays.get(name, np.empty((0, 0))) for name in (ZERO, UNIT))
    for one in (zero, unit):
        if one.dtype.kind != "f" or one.shape != (features,) or not np.all(np.isfinite(one)):
            raise ValueError(f"the zeros and units are not {features} finite numbers each")
    if not np.all(unit > 0):
        raise ValueError("some units of features are not above 0")
    return Standard(zero, unit)


def _count(told: object, A: Array | None) -> int:
    most = 0 if A is None else len(A)
    if not isinstance(told, str) or not told.isdecimal() or len(told) > 18 or int(told) > most:
        raise ValueError(f"a pattern has {str(told)[:40]} of {most} coefficients")
    return int(told)
