"""Losses ℓ(z; y), which say what a measurement y means given its predictor z: one file per loss."""

from bifactor.losses.base import Loss, Targets
from bifactor.losses.data_fit import DataFit
from bifactor.losses.expected_counts import ExpectedCounts
from bifactor.losses.huber import Huber
from bifactor.losses.logistic import Logistic
from bifactor.losses.negative_binomial import NegativeBinomial
from bifactor.losses.ordinal import Ordinal
from bifactor.losses.poisson import Poisson
from bifactor.losses.probit import Probit
from bifactor.losses.shifted import Shifted
from bifactor.losses.squared import Squared

__all__ = [
    "DataFit",
    "ExpectedCounts",
    "Huber",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "Ordinal",
    "Poisson",
    "Probit",
    "Shifted",
    "Squared",
    "Targets",
]
