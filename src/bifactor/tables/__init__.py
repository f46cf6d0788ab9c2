"""Readers of files."""

from bifactor.tables.counts_file import read_counts
from bifactor.tables.layout import Asked
from bifactor.tables.read import read
from bifactor.tables.triples import Triples

__all__ = ["Asked", "Triples", "read", "read_counts"]
