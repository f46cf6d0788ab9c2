"""Penalties on the factors: one file per penalty."""

from bifactor.penalties.base import Penalty, Term
from bifactor.penalties.ridge import Ridge

__all__ = ["Penalty", "Ridge", "Term"]
