"""Ready-made estimators for common tasks, with scikit-learn's habits."""

from bifactor.estimators.linear_inversion import linear_inversion, nearest_state
from bifactor.estimators.state_tomography import StateTomography

__all__ = ["StateTomography", "linear_inversion", "nearest_state"]
