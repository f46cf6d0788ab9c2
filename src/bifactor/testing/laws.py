"""Assertions of laws."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import CheckError


def size_of(a: Array) -> float:
    return float(np.linalg.norm(a))


def close(law: str, got: Any, wanted: Any, tol: float, size: float | None = None) -> None:
    got, wanted = np.asarray(got), np.asarray(wanted)
    error = size_of(got - wanted) / (size if size is not None else size_of(wanted) + 1.0)
    if not error <= tol:
        raise CheckError(f"{law}: does not hold, relative error {error:.2e} (allowed {tol:.1e}).")


def true(law: str, holds: Any) -> None:
    if not holds:
        raise CheckError(f"{law}: does not hold.")
