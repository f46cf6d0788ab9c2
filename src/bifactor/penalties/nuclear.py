"""The nuclear norm that a penalty on the factors stands for.

Over all factorisations of one X the least of (ρ_U/2)‖U‖² + (ρ_V/2)‖V‖² is √(ρ_U ρ_V)·‖X‖_*.
"""

from bifactor.factors import Factors, Kind
from bifactor.penalties.base import Penalty


def nuclear_weight(penalty: Penalty | None, kind: Kind) -> float:
    """The weight of ‖X‖_* that a penalty amounts to; of the trace where X = UUᴴ."""
    return 0.0 if penalty is None else kind.nuclear(*penalty.curvature)


def side(penalty: Penalty | None) -> float:
    """What balanced factors are to be multiplied by on the left, and divided by on the right, for the least penalty."""
    left, right = (1.0, 1.0) if penalty is None else penalty.curvature
    return (right / left) ** 0.25


def sided(penalty: Penalty | None, x: Factors) -> Factors:
    """Balanced factors made such that the penalty is the least that it can be for this X."""
    return x.kind.sided(x, side(penalty))
