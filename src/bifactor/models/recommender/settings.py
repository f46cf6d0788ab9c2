"""Settings of a model of clicks, and how they were chosen."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Trial:
    """Settings of a model of clicks, and how well it ranked held-out choices."""

    unobserved: float
    ridge: float
    item_share: float
    item_ridge: float
    ndcg: float
    users: int
    """Number of held-out users; first guesses are evaluated with some of them."""
