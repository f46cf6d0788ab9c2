"""Where an iteration stands: a value that is passed in and returned, never changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    stalled: float | None = None
    """Where no step was found that decreases the objective: the decrease that the last step length had promised."""
    waiting: bool = False
    """Whether the solver has stages to come: until then, having come to rest is not the end."""
    settled: bool = False
    """Whether the solver's own stopping rule is met."""
    extra: Mapping[str, Array] = field(default_factory=dict)
    """Other arrays that a solver carries from step to step, such as a direction; checkpoints keep them."""
