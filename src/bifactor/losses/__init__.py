"""Losses ℓ(z; y), which say what a measurement y means given its predictor z."""

from bifactor.losses.base import Loss, Targets
from bifactor.losses.binary import Logistic, Probit
from bifactor.losses.composite import Shifted
from bifactor.losses.counts import ExpectedCounts, NegativeBinomial, Poisson
from bifactor.losses.data_fit import DataFit
from bifactor.losses.gaussian import Huber, Squared
from bifactor.losses.ordinal import Ordinal

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
