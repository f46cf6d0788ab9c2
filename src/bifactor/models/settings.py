"""Estimators' parameters, checked, as the settings of a fit."""

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from bifactor.errors import InputError
from bifactor.losses.named import loss_of
from bifactor.models.model import Model, Settings
from bifactor.running.result import Status
from bifactor.solvers import Solver
from bifactor.validation import is_at_least_zero, is_count, positive, require_flag, require_instance


def settings(
    *,
    loss: Any,
    n_components: Any,
    alpha: Any,
    offsets: Any,
    solver: Any,
    max_iter: Any,
    tol: Any,
    random_state: Any,
    verbose: Any,
) -> Settings:
    """What a user passed, or an `InputError` that says what is wrong with it."""
    loss = loss_of(loss)
    if n_components != "auto" and not is_count(n_components, 1):
        raise InputError(f"n_components={n_components!r} is not an integer ≥ 1, nor 'auto'.")
    if alpha != "auto" and not is_at_least_zero(alpha):
        raise InputError(f"alpha={alpha!r} is not a number ≥ 0, nor 'auto'.")
    require_flag(offsets, "offsets")
    if solver is not None:
        require_instance(solver, Solver, "solver")
    if not is_count(max_iter, 1):
        raise InputError(f"max_iter={max_iter!r} is not an integer ≥ 1.")
    return Settings(
        loss=loss,
        n_components=None if n_components == "auto" else int(n_components),
        alpha=None if alpha == "auto" else float(alpha),
        offsets=bool(offsets),
        solver=solver,
        max_iter=int(max_iter),
        tol=positive(tol, "tol", "It is relative to X."),
        seed=seed_of(random_state),
        progress=bool(verbose),
    )


def seed_of(random_state: Any) -> int:
    """A seed, drawn from what scikit-learn takes for a source of randomness, or from NumPy's new generators."""
    most = np.iinfo(np.int32).max
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(most))
    try:
        return int(check_random_state(random_state).randint(most))
    except ValueError:
        raise InputError(
            f"random_state={random_state!r} is not a source of randomness. "
            "Pass a seed from 0 to 2³² − 1, a RandomState, a Generator or None."
        ) from None


def warn_unless_converged(model: Model) -> None:
    status = model.result.status
    if not status.converged and status is not Status.CALLBACK:  # a callback's stop is what was wanted
        warnings.warn(f"The fit has {status}.", ConvergenceWarning, stacklevel=3)
