"""The memory that measurements need."""

from typing import NamedTuple


class Footprint(NamedTuple):
    """Bytes that a function of X needs besides its data, for factors of some width."""

    z: int
    """One vector of measurements; 0 if none is ever formed."""
    work: int
    """The temporary arrays of passes over the data, and those kept for the next pass."""
