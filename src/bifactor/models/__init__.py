"""Fitted models: predict, recommend, fold in, save and load. Nothing here needs scikit-learn."""

from bifactor.models.fit import Fit
from bifactor.models.link import Link
from bifactor.models.model import Model, Prediction
from bifactor.models.predictive import PredictiveDistribution
from bifactor.models.rows import RowModel
from bifactor.models.storage import load

__all__ = ["Fit", "Link", "Model", "Prediction", "PredictiveDistribution", "RowModel", "load"]
