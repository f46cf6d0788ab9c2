"""Losses by name, as estimators, problems and the command line accept them."""

from typing import Any

from bifactor.errors import InputError
from bifactor.losses.base import Loss
from bifactor.losses.binary import Logistic, Probit
from bifactor.losses.counts import NegativeBinomial, Poisson
from bifactor.losses.gaussian import Huber, Squared
from bifactor.losses.ordinal import Ordinal

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
