"""Principal components under a loss: z = μⱼ + uᵢ·vⱼ, columns with an effect of their own and rows without."""

from dataclasses import replace

import numpy as np

from bifactor.arrays import Array
from bifactor.inits import Given
from bifactor.losses import Shifted
from bifactor.metrics import triplets
from bifactor.models.fitting import Settings, as_problem, constant, resumed, run
from bifactor.models.fold_in import fold_in
from bifactor.models.model import Model
from bifactor.models.tuning import tuned
from bifactor.operators import Entries
from bifactor.penalties import Ridge
from bifactor.problems.problem import Problem
from bifactor.solvers import PCG, RankContinuation
from bifactor.tables import Observations

FIXED, EFFECTS = (1, 0), 0
"""One column of ones in U, whose partner in V has the effects of the columns; and which one that is."""

LIGHT = 0.01
"""The ridge on column effects, as a share of that on the rest: too light to bias them, enough to keep finite the effect
of a column whose entries are all alike."""

NULL_RIDGE = 1e-6
"""On the column effects of the null model, for the same reason."""


def component_ridge(rho: float) -> Ridge:
    """(ρ/2)(‖U‖² + ‖V‖²) over the components, and LIGHT times that over the effects of columns."""
    return Ridge(rho, components=(LIGHT, 1.0))


def fit_components(data: Observations, settings: Settings, earlier: Model | None = None) -> Model:
    """Chooses the ridge where it is to be chosen, and fits."""
    intercept = constant(data, settings.loss)
    problem = as_problem(data, settings, intercept, fixed=(np.ones((data.shape[0], 1)), None))
    start = problem.zero(0)
    start.right[:, EFFECTS] = _column_effects(data, settings, intercept, LIGHT)
    rng = np.random.default_rng(settings.seed)
    with settings.choosing as stage:
        rank, ridge, path = tuned(problem, settings.n_components, settings.alpha, rng, start, component_ridge, stage)
    penalized = problem.penalized(component_ridge(ridge) if ridge > 0 else None)
    init, solver = resumed(earlier, penalized, rank), settings.solver
    if init is None:
        wide = start.padded(start.width + rank)
        init = Given(wide.left, wide.right)
        solver = RankContinuation() if solver is None else solver
    result = run(penalized, rank, PCG() if solver is None else solver, init, settings)
    U, V = _rotated(result.U, result.V)
    model = Model(settings.loss, intercept, FIXED, ridge, U, V, result, path)
    return replace(model, U=model.rows(data))


def null_scores(data: Observations, settings: Settings) -> Array:
    """What a null model of column effects alone has in the place of z, one number per column."""
    intercept = constant(data, settings.loss)
    return _column_effects(data, settings, intercept, NULL_RIDGE) + intercept


def _column_effects(data: Observations, settings: Settings, intercept: float, ridge: float) -> Array:
    """The best μ where there is nothing else: new rows of the matrix on its side, whose one factor is 1."""
    operator = Entries(data.cols, data.rows, data.shape[::-1])
    problem = Problem(Shifted(settings.loss, intercept), operator, data.values, data.weights)
    return fold_in(problem, np.ones((data.shape[0], 1), problem.dtype), ridge)[:, 0]


def _rotated(U: Array, V: Array) -> tuple[Array, Array]:
    """The same z by singular vectors times the roots of their singular values.

    Of each right singular vector the largest entry is positive, as scikit-learn has it.
    """
    k = sum(FIXED)
    A, s, B = triplets(U[:, k:], V[:, k:])
    sign = np.sign(B[np.argmax(np.abs(B), axis=0), np.arange(s.size)])
    root = (np.where(sign == 0, 1, sign) * np.sqrt(s)).astype(s.dtype)
    return np.hstack([U[:, :k], A * root]), np.hstack([V[:, :k], B * root])
