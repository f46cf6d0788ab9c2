"""Losses by name, as estimators, problems and the command line accept them."""

from typing import Any

from bifactor.errors import InputError
from bifactor.losses.base import Loss
from bifactor.losses.huber import Huber
from bifactor.losses.logistic import Logistic
from bifactor.losses.negative_binomial import NegativeBinomial
from bifactor.losses.ordinal import Ordinal
from bifactor.losses.poisson import Poisson
from bifactor.losses.probit import Probit
from bifactor.losses.squared import Squared

LOSSES: dict[str, Loss] = {
    "squared": Squared(),
    "huber": Huber(),
    "logistic": Logistic(),
    "probit": Probit(),
    "poisson": Poisson(),
    "negative_binomial": NegativeBinomial(),
    "ordinal": Ordinal(),
}


def loss_of(loss: Any) -> Loss:
    """The loss given by its name or as an instance; `InputError` if it is neither."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        return LOSSES[loss]
    raise InputError(
        f"loss={loss!r} is neither one of {', '.join(LOSSES)} nor a Loss. "
        "Pass one of these names, or an instance such as losses.Squared()."
    )
