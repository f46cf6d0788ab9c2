"""Validation of the parameters of estimators."""

from typing import Any, get_args

import numpy as np

from bifactor.errors import InputError
from bifactor.losses import Loss, Squared
from bifactor.losses.named import loss_of
from bifactor.models.clipping import clip_of
from bifactor.models.fitting import Settings
from bifactor.solvers import Solver, Variational
from bifactor.solvers.variational.sweeps import NoiseModel
from bifactor.validation import is_at_least_zero, is_count, positive, require_flag, require_instance

NOISES = ("auto", *get_args(NoiseModel))
"""Kinds of noise of a posterior."""


def settings(
    *,
    loss: Any,
    n_components: Any,
    alpha: Any,
    noise: Any = "auto",
    offsets: Any,
    solver: Any,
    max_iter: Any,
    tol: Any,
    random_state: Any,
    verbose: Any,
    implicit_features: Any = "auto",
    keep_features: Any = False,
    clip: Any = False,
) -> Settings:
    """Settings from the parameters of a user; raises `InputError` if one is invalid."""
    require_flag(offsets, "offsets")
    least = 0 if offsets else 1  # without offsets or components there is nothing to fit
    if n_components != "auto" and not is_count(n_components, least):
        alone = "0 fits offsets alone." if offsets else "Without offsets, at least one component is needed."
        raise InputError(f"n_components={n_components!r} is not an integer ≥ {least}, nor 'auto'. {alone}")
    if alpha is not None and alpha != "auto" and not is_at_least_zero(alpha):
        raise InputError(f"alpha={alpha!r} is not a number ≥ 0. Pass such a number, 'auto' or None.")
    if solver is not None:
        require_instance(solver, Solver, "solver")
    seen_through = loss_of(loss)
    posterior = _wants_posterior(seen_through, alpha, noise, solver)
    if not (implicit_features == "auto" or isinstance(implicit_features, bool)):
        raise InputError(f"implicit_features={implicit_features!r} is unknown. Pass True, False or 'auto'.")
    require_flag(keep_features, "keep_features")
    if not is_count(max_iter, 1):
        raise InputError(f"max_iter={max_iter!r} is not an integer ≥ 1. Pass the maximum number of iterations.")
    return Settings(
        loss=seen_through,
        n_components=None if n_components == "auto" else int(n_components),
        alpha=None if alpha is None or alpha == "auto" else float(alpha),
        posterior=posterior,
        noise=None if noise == "auto" else noise,
        offsets=bool(offsets),
        solver=solver,
        max_iter=int(max_iter),
        tol=positive(tol, "tol", "It is relative to X."),
        seed=seed_of(random_state),
        clip=clip_of(clip, seen_through),
        progress=bool(verbose),
        implicit=None if implicit_features == "auto" else bool(implicit_features),
        keep_features=bool(keep_features),
    )


def _wants_posterior(loss: Loss, alpha: Any, noise: Any, solver: Solver | None) -> bool:
    """Whether to fit a posterior, with error bars; not with a ridge, another loss or another solver."""
    if noise not in NOISES:
        raise InputError(f"noise={noise!r} is unknown. Pass one of {', '.join(map(repr, NOISES))}.")
    given = isinstance(solver, Variational)
    possible = isinstance(loss, Squared) and alpha is None and (solver is None or given)
    if given and not possible:
        raise InputError("Variational needs loss='squared' and no ridge. Leave out alpha, or the solver.")
    if noise != "auto" and given:
        raise InputError(f"noise={noise!r} cannot be combined with a solver. Pass Variational({noise!r}).")
    if noise != "auto" and not possible:
        raise InputError(f"noise={noise!r} needs loss='squared', without alpha or a solver. Leave them out.")
    return possible


def seed_of(random_state: Any) -> int:
    """Seed from an int, RandomState, Generator or None, with the conventions of scikit-learn."""
    if random_state is None:
        random_state = np.random.mtrand._rand
    elif is_count(random_state, 0) and random_state < 1 << 32:
        random_state = np.random.RandomState(int(random_state))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(np.iinfo(np.int32).max))
    if not isinstance(random_state, np.random.RandomState):
        raise InputError(
            f"random_state={random_state!r} is not a seed. "
            "Pass an integer from 0 to 2³² − 1, a RandomState, a Generator or None."
        )
    return int(random_state.randint(np.iinfo(np.int32).max))
