"""Readers of files and data frames, names of rows and columns, and known entries."""

from bifactor.data.counts import read_counts
from bifactor.data.dataset import (
    BlockDataset,
    BlockView,
    Dataset,
    Recoding,
    Summary,
)
from bifactor.data.holes import holes_like
from bifactor.data.masks import CellMask, RandomCells, RandomLines, Rectangles, RowTails
from bifactor.data.names import Names
from bifactor.data.observations import Observations, Origin
from bifactor.data.read import read
from bifactor.data.store.block_store import BlockStore, Part
from bifactor.data.store.partition import partition

__all__ = [
    "BlockDataset",
    "BlockStore",
    "BlockView",
    "CellMask",
    "Dataset",
    "Names",
    "Observations",
    "Origin",
    "Part",
    "RandomCells",
    "RandomLines",
    "Recoding",
    "Rectangles",
    "RowTails",
    "Summary",
    "holes_like",
    "partition",
    "read",
    "read_counts",
]
