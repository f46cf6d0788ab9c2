"""Fitted models: predict, recommend, fold in, save and load. Nothing here needs scikit-learn."""

from bifactor.models.fit import Fit
from bifactor.models.model import Model
from bifactor.models.storage import load

__all__ = ["Fit", "Model", "load"]
