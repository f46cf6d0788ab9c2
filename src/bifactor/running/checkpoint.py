"""Checkpoints of a run."""

import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from bifactor.arrays import Array, dtype_of, is_array, to_device_of, to_numpy
from bifactor.errors import FileError, InputError
from bifactor.factors import Factors, Kind
from bifactor.problems.state import Phase, Point, State, Value
from bifactor.running import files
from bifactor.running.record import Record, RunRecord
from bifactor.running.result import PRECISIONS, Status
from bifactor.validation import is_count

FORMAT = 4
"""The file format. Files without a number were written before states had types; 2 did not keep the order of arrays, and
3 named states by their modules."""


class Checkpoint:
    """Saves a run every `every` iterations and when it ends; without a path it does nothing.

    If a write fails, the run continues after one warning: the answer is worth more than its copy.
    """

    def __init__(self, path: str | os.PathLike[str] | None, every: int, kind: Kind, like: Array, *identity: str):
        if not is_count(every, 1):
            raise InputError(f"checkpoint_every={every!r} is not an integer ≥ 1. It counts iterations.")
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise InputError(f"checkpoint={path!r} is not a path. Pass the name of a file.")
        self.path = None if path is None else Path(path)
        self.every, self.kind, self.like, self.warned = every, kind, like, False
        self.fingerprint = hashlib.blake2b(" ".join(identity).encode(), digest_size=16).hexdigest()
        if self.path is not None:
            files.require_writable(self.path)

    def load(self) -> RunRecord | None:
        """The run to resume, if there is one."""
        if self.path is None or not self.path.exists():
            return None
        arrays, metadata = files.read(self.path, "checkpoint")
        if metadata.get("format") != FORMAT:
            raise FileError(f"{self.path} was written by another version of bifactor. Delete it or use another name.")
        if metadata.get("fingerprint") != self.fingerprint:
            raise FileError(
                f"{self.path} is a checkpoint of another problem, rank, solver, init or seed. "
                "Delete it, or use another name."
            )
        try:
            there = {name: to_device_of(array, self.like) for name, array in arrays.items()}
            state, best = (unpack_value(metadata[name], there, self.kind) for name in ("state", "best"))
            return _checked(RunRecord(state, best, metadata["best_value"], _records(arrays), metadata["magnitude"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            said = " ".join(str(error).split())[:80]
            raise FileError(
                f"{self.path} is damaged, or was written by another version of bifactor ({said}). Delete it."
            ) from None

    def save(self, run: RunRecord, status: Status | None) -> None:
        if self.path is not None and (status is not None or run.iteration % self.every == 0):
            try:
                self._write(run, self.path)
            except Exception as error:
                if not self.warned:
                    _warn(f"Iteration {run.iteration} is not in the checkpoint, and later ones may not be. {error}")
                self.warned = True

    def _write(self, run: RunRecord, path: Path) -> None:
        arrays: dict[str, Array] = {"records": run.columns()}
        known: dict[int, Any] = {}
        trees = {"state": pack_value(run.state, arrays, known), "best": pack_value(run.best, arrays, known)}
        numbers = {"best_value": run.best_value, "magnitude": run.magnitude}
        metadata = {"format": FORMAT, "fingerprint": self.fingerprint, **numbers, **trees}
        files.write(path, "checkpoint", arrays, metadata)


def _warn(sentence: str) -> None:
    """Warn without ending the run: if warnings are errors, the warning is shown instead."""
    try:
        warnings.warn(sentence, stacklevel=5)
    except Warning as warning:
        warnings.showwarning(warning, type(warning), __file__, 1)


def _records(arrays: dict[str, Array]) -> list[Record]:
    table = arrays["records"]
    if table.ndim != 2 or table.shape[0] != len(Record._fields) or table.shape[1] == 0 or table.dtype != np.float64:
        raise ValueError(f"the history is {table.dtype} of shape {table.shape}")
    if not np.all(np.isfinite(table)):
        raise ValueError("the history is not finite")
    return [Record(*row) for row in table.T.tolist()]


def _checked(run: RunRecord) -> RunRecord:
    """The run; raises `ValueError` if it is not valid."""
    state = run.state
    if not isinstance(state, State) or not isinstance(state.own, Value) or not isinstance(state.phase, Phase):
        raise ValueError("there is no state")
    point = state.point
    if not isinstance(point, Point):
        raise ValueError("there is no point")
    for number in (run.best_value, run.magnitude, point.value, point.f):
        if not isinstance(number, float) or not np.isfinite(number):
            raise ValueError(f"{str(number)[:40]!r} is not a finite number")
    for x in (point.x, point.gradient, point.original[1], run.best):
        if not isinstance(x, Factors) or x.left.ndim != 2 or x.right.ndim != 2:
            raise ValueError("factors are missing")
        if x.shape != point.x.shape or x.right.shape[1] != x.width:
            raise ValueError("factors differ in shape")
        # The two sides of a gradient may differ in precision, as those of a posterior of blocks do.
        types = [dtype_of(side) for side in (x.left, x.right)]
        apart = types[0] != types[1] and (x is point.x or x is run.best)
        if apart or any(one not in PRECISIONS for one in types) or types[0].kind != types[1].kind:
            raise ValueError("factors differ in type")
        if not all(np.all(np.isfinite(to_numpy(side))) for side in x.arrays):
            raise ValueError("factors are not finite")
    return run


def pack_value(value: Any, arrays: dict[str, Array], known: dict[int, Any]) -> Any:
    """A value as plain data, field by field. Its arrays go to `arrays`, each once; `known` lists those already there.

    Matrices keep their order by rows or columns: it determines how BLAS sums, and so the last bit of later results.
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if is_array(value):
        if id(value) not in known:
            here = to_numpy(value)
            by_columns = here.ndim == 2 and here.flags.fnc
            known[id(value)] = {"array": f"array{len(arrays)}", **({"by_columns": True} if by_columns else {})}
            arrays[f"array{len(arrays)}"] = here.T if by_columns else here
        return known[id(value)]
    if isinstance(value, Factors):
        grams = (
            {"carried": value.carried, "grams": pack_value(value.wide_grams, arrays, known)} if value.carried else {}
        )
        return {"factors": [pack_value(side, arrays, known) for side in (value.left, value.right)], **grams}
    if isinstance(value, tuple):
        return {"tuple": [pack_value(item, arrays, known) for item in value]}
    if isinstance(value, Value):
        parts = {name: pack_value(part, arrays, known) for name, part in value.parts().items()}
        return {"value": value.key, "parts": parts}
    raise InputError(f"A state holds a {type(value).__name__}, which cannot be saved. See extend.Value.")


def unpack_value(tree: Any, arrays: dict[str, Array], kind: Kind, made: dict[str, Factors] | None = None) -> Any:
    """The inverse of `pack_value`; factors get the kind of the problem, and those that were one object are one again.

    A run tells by identity whether Gram matrices are known; computed again, they may differ in the last bit.
    """
    made = {} if made is None else made
    if not isinstance(tree, dict):
        return tree
    if "array" in tree:
        array = arrays[tree["array"]]
        return array.T if tree.get("by_columns") else array
    if "factors" in tree:
        name = json.dumps(tree)
        if name not in made:
            made[name] = _factors(tree, arrays, kind)
        return made[name]
    if "tuple" in tree:
        return tuple(unpack_value(item, arrays, kind, made) for item in tree["tuple"])
    parts = {name: unpack_value(part, arrays, kind, made) for name, part in tree["parts"].items()}
    return Value.classes[tree["value"]](**parts)


def _factors(tree: dict[str, Any], arrays: dict[str, Array], kind: Kind) -> Factors:
    left, right = (unpack_value(side, arrays, kind) for side in tree["factors"])
    x = Factors(left, right, kind)
    if "carried" not in tree:
        return x
    left, right = (to_numpy(G) for G in unpack_value(tree["grams"], arrays, kind))
    return x.carrying((left, right), tree["carried"])
