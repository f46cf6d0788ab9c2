"""Laws that extensions must obey, from losses to executors: the test of an extension takes two lines.

Each check raises `CheckError` with the law that does not hold and the error, and returns None if all hold.
"""

from bifactor.testing.checks import (
    check_dataset,
    check_executor,
    check_gradient,
    check_loss,
    check_operator,
    check_penalty,
    check_solver,
)
from bifactor.testing.invariance import check_invariance

__all__ = [
    "check_dataset",
    "check_executor",
    "check_gradient",
    "check_invariance",
    "check_loss",
    "check_operator",
    "check_penalty",
    "check_solver",
]
