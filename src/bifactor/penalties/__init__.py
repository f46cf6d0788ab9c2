"""Penalties on the factors."""

from bifactor.penalties import balance
from bifactor.penalties.base import Penalty, Term, Weights
from bifactor.penalties.ridge import Ridge

__all__ = ["Penalty", "Ridge", "Term", "Weights", "balance"]
