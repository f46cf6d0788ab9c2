"""Side information: what features of rows and columns say of their factors."""

from dataclasses import dataclass

from bifactor.arrays import Array


@dataclass(frozen=True, eq=False)
class SideInformation:
    """Where factors are expected before any entry is seen: at fA for a row with the features f."""

    rows: Array | None
    """A, with one line for each feature of a row and one column for each of the factors; None without features."""
    cols: Array | None
