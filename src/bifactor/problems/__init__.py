"""Objectives: a function of X and terms on the factors, and points at which they are evaluated."""

from bifactor.problems.function import Function
from bifactor.problems.objective import Objective, Problem

__all__ = ["Function", "Objective", "Problem"]
