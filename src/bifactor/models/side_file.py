"""File of the coefficients of features."""

from pathlib import Path

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import FileError
from bifactor.models.side import SideInformation
from bifactor.running import files
from bifactor.tables.standard import Standard

SIDES = ("row", "column")

ZERO, UNIT = "row_zero", "row_unit"
"""Zeros and units of features of rows; files of earlier versions, and those of fits to frames, have none."""


def write(path: Path, side: SideInformation) -> None:
    """Write the coefficients of each side that has features."""
    parts = zip(SIDES, (side.rows, side.cols), strict=True)
    patterns = {f"{name}_pattern": str(count) for name, count in zip(SIDES, side.patterns, strict=True)}
    arrays = {name: A for name, A in parts if A is not None}
    if side.standard is not None:
        arrays |= {ZERO: side.standard.zero, UNIT: side.standard.unit}
    files.write(path, "side", arrays, patterns)


def read(path: Path, width: int) -> SideInformation:
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
