"""How measurements of X are taken: one file per operator."""

from bifactor.operators.base import Operator
from bifactor.operators.entries import Entries
from bifactor.operators.full import Full
from bifactor.operators.rank_one import RankOne

__all__ = ["Entries", "Full", "Operator", "RankOne"]
