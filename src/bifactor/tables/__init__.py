"""Data on their way in: readers of files and frames, names, and known entries."""

from bifactor.tables.counts_file import read_counts
from bifactor.tables.names import Names
from bifactor.tables.observations import Observations, Origin
from bifactor.tables.read import read

__all__ = ["Names", "Observations", "Origin", "read", "read_counts"]
