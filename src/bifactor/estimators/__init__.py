"""Ready-made estimators for common tasks, with scikit-learn's habits."""

from bifactor.estimators import displays
from bifactor.estimators.imputer import LowRankImputer
from bifactor.estimators.logistic_pca import LogisticPCA
from bifactor.estimators.matrix_completion import MatrixCompletion
from bifactor.estimators.one_bit import OneBitCompletion
from bifactor.estimators.poisson_pca import PoissonPCA
from bifactor.estimators.state_tomography import StateTomography
from bifactor.models.fit import Fit
from bifactor.models.goodness_of_fit import MisfitWarning
from bifactor.models.linear_inversion import linear_inversion, nearest_state

__all__ = [
    "Fit",
    "LogisticPCA",
    "LowRankImputer",
    "MatrixCompletion",
    "MisfitWarning",
    "OneBitCompletion",
    "PoissonPCA",
    "StateTomography",
    "displays",
    "linear_inversion",
    "nearest_state",
]
