"""What scikit-learn says of fits that did not converge."""

import warnings

from sklearn.exceptions import ConvergenceWarning

from bifactor.models import Model
from bifactor.running.result import Status


def warn_unless_converged(model: Model) -> None:
    status = model.result.status
    if not status.converged and status is not Status.CALLBACK:  # a callback's stop is what was wanted
        warnings.warn(f"The fit has {status}.", ConvergenceWarning, stacklevel=3)
