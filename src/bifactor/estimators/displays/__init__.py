"""Plots in scikit-learn's style: made from a result or an estimator, drawn by `plot`, which sets `ax_` and `figure_`.

They need matplotlib, which `pip install 'bifactor[plot]'` installs.
"""

from bifactor.estimators.displays.convergence import ConvergenceDisplay
from bifactor.estimators.displays.image import ImageDisplay
from bifactor.estimators.displays.observed_predicted import ObservedPredictedDisplay
from bifactor.estimators.displays.rank_path import RankPathDisplay
from bifactor.estimators.displays.scree import ScreeDisplay
from bifactor.estimators.displays.spectrum import SpectrumDisplay

__all__ = [
    "ConvergenceDisplay",
    "ImageDisplay",
    "ObservedPredictedDisplay",
    "RankPathDisplay",
    "ScreeDisplay",
    "SpectrumDisplay",
]
