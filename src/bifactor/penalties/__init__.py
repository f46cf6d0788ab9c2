"""Penalties on the factors: one file per penalty."""

from bifactor.penalties import balance
from bifactor.penalties.base import Penalty, Term
from bifactor.penalties.ridge import Ridge
from bifactor.penalties.weights import Weights

__all__ = ["Penalty", "Ridge", "Term", "Weights", "balance"]
