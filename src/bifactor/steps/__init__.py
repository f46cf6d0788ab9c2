"""Step rules, which decide how far to move: one file per rule."""

from bifactor.steps.backtracking import Backtracking
from bifactor.steps.base import StepSize
from bifactor.steps.constant import Constant
from bifactor.steps.curve_search import CurveSearch
from bifactor.steps.semidefinite import Semidefinite
from bifactor.steps.smooth import Smooth
from bifactor.steps.strongly_convex import StronglyConvex

__all__ = ["Backtracking", "Constant", "CurveSearch", "Semidefinite", "Smooth", "StepSize", "StronglyConvex"]
