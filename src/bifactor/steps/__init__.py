"""Step rules, which decide how far to move."""

from bifactor.steps.base import StepSize
from bifactor.steps.line_search import Backtracking, CurveSearch
from bifactor.steps.theory import Constant, Semidefinite, Smooth, StronglyConvex

__all__ = ["Backtracking", "Constant", "CurveSearch", "Semidefinite", "Smooth", "StepSize", "StronglyConvex"]
