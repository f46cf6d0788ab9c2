"""The state of solvers that descend by a step rule, on F or on F plus their own terms."""

from dataclasses import dataclass

from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, State, Value
from bifactor.steps.base import Step


@dataclass(frozen=True)
class Descent(Value, key="gradient_descent"):
    """The point of the iteration, with its own terms included, and the memory of the step rule."""

    at: Point
    memory: Value


def descended(problem: Objective, step: Step) -> State[Descent]:
    """The state after a step, with the value of the problem alone."""
    return State(problem.seen(step.point), Descent(step.point, step.memory), step.phase)
