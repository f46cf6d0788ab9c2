"""Inner products of arrays of any size, in double precision."""

from bifactor.arrays import Array
from bifactor.arrays import inner as _inner


def inner(a: Array, b: Array) -> float:
    """Re⟨a, b⟩; each array is copied to double precision."""
    return _inner(a, b)
