"""Where an iteration stands: a value that is passed in and returned, never changed."""

from dataclasses import dataclass

from bifactor.arrays import Array


@dataclass(frozen=True)
class State:
    """Factors, the function being minimised there, and its gradient.

    In the PSD case V is U and dU is dV, each half of the true gradient in U: sums over the pair are then right.
    """

    U: Array
    V: Array
    value: float
    dU: Array
    dV: Array
    memory: float = 0.0
    """The one number that the step rule carries from step to step."""
    stalled: bool = False
    """No step was found that decreases the objective in this precision."""
