"""What measurements take of memory."""

from typing import NamedTuple


class Footprint(NamedTuple):
    """Bytes that a function of X takes beside its data, for factors of some width."""

    z: int
    """One vector of measurements; 0 where none is ever formed."""
    work: int
    """What the passes over the data take on the way, and what they leave behind for the next."""
