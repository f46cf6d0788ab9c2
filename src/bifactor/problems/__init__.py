"""What is minimised: a function of X, terms on the factors, and a point among them."""

from bifactor.problems.function import Function
from bifactor.problems.objective import Objective
from bifactor.problems.problem import Problem

__all__ = ["Function", "Objective", "Problem"]
