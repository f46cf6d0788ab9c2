"""The losses that go by a name."""

from typing import Any

from bifactor.errors import InputError
from bifactor.losses.base import Loss
from bifactor.losses.huber import Huber
from bifactor.losses.logistic import Logistic
from bifactor.losses.poisson import Poisson
from bifactor.losses.probit import Probit
from bifactor.losses.squared import Squared

LOSSES: dict[str, Loss] = {
    "squared": Squared(),
    "huber": Huber(),
    "logistic": Logistic(),
    "probit": Probit(),
    "poisson": Poisson(),
}


def loss_of(given: Any) -> Loss:
    """A loss by its name, or as it is; `InputError` for anything else."""
    if isinstance(given, Loss):
        return given
    if isinstance(given, str) and given in LOSSES:
        return LOSSES[given]
    raise InputError(f"loss={given!r} is none of {', '.join(LOSSES)}, nor a Loss. See bifactor.losses.")
