"""Readers of files and data frames, names of rows and columns, and known entries."""

from bifactor.tables.counts_file import read_counts
from bifactor.tables.names import Names
from bifactor.tables.observations import Observations, Origin
from bifactor.tables.read import read
from bifactor.tables.store.block_store import BlockStore
from bifactor.tables.store.part import Part
from bifactor.tables.store.partition import partition

__all__ = [
    "BlockStore",
    "Names",
    "Observations",
    "Origin",
    "Part",
    "partition",
    "read",
    "read_counts",
]
