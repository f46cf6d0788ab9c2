"""scikit-learn's warning about fits that did not converge."""

import warnings

from sklearn.exceptions import ConvergenceWarning

from bifactor.models import Model
from bifactor.running.result import Status


def warn_unless_converged(model: Model) -> None:
    status = model.result.status
    asked = status is Status.CALLBACK or status is Status.PLATEAU  # what the callback or tol wanted
    if not (status.converged or asked):
        warnings.warn(f"The fit has {status}.", ConvergenceWarning, stacklevel=3)
