"""Readers of files."""

from bifactor.datasets.layout import Asked
from bifactor.datasets.read import read
from bifactor.datasets.triples import Triples

__all__ = ["Asked", "Triples", "read"]
