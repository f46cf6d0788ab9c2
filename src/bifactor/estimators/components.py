"""Principal components under a loss: z = μⱼ + uᵢ·vⱼ, columns with an effect of their own and rows without."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.estimators.fold_in import fold_in
from bifactor.estimators.model import Model, Settings, as_problem, constant, resumed, run
from bifactor.estimators.observations import Observations
from bifactor.estimators.tuning import tuned
from bifactor.inits import Given
from bifactor.losses import Shifted
from bifactor.offsets import COLUMNS, FIXED_LEFT
from bifactor.operators import Entries
from bifactor.penalties import Penalty
from bifactor.problem import Problem
from bifactor.shrinkage import triplets
from bifactor.solvers import PCG, RankContinuation

LIGHT = 0.01
"""The ridge on column effects, as a share of that on the rest: too light to bias them, enough to keep finite the effect
of a column whose entries are all alike."""

NULL_RIDGE = 1e-6
"""On the column effects of the null model, for the same reason."""


@dataclass(frozen=True)
class ComponentRidge(Penalty):
    """(ρ/2)(‖U‖² + ‖V‖²) over the components, and LIGHT times that over the effects of columns."""

    rho: float

    @property
    def curvature(self) -> tuple[float, float]:
        return self.rho, self.rho

    def evaluate(self, U: Array, V: Array) -> tuple[float, Array, Array]:
        dU, dV = self.hessian(U, V, U, V)
        return (inner(U, dU) + inner(V, dV)) / 2, dU, dV

    def hessian(self, U: Array, V: Array, D: Array, E: Array) -> tuple[Array, Array]:
        dU, dV = self.rho * D, self.rho * E
        dU[:, FIXED_LEFT] = 0
        dV[:, FIXED_LEFT] *= LIGHT
        return dU, dV

    def curve(self, U: Array, V: Array, D: Array, E: Array) -> Array:
        value, dU, dV = self.evaluate(U, V)
        return np.array([value, inner(dU, D) + inner(dV, E), self.evaluate(D, E)[0], 0.0, 0.0])


def fit_components(data: Observations, settings: Settings, earlier: Model | None = None) -> Model:
    """Chooses the ridge where it is to be chosen, and fits."""
    intercept = constant(data, settings.loss)
    problem = as_problem(data, settings, intercept)
    start = _start(problem, _column_effects(data, settings, intercept, LIGHT))
    rng = np.random.default_rng(settings.seed)
    rank, ridge, path = tuned(problem, settings.n_components, settings.alpha, rng, start, ComponentRidge)
    penalized = problem.penalized(ComponentRidge(ridge) if ridge > 0 else None)
    init, solver = resumed(earlier, penalized, rank), settings.solver
    if init is None:
        init = Given(*(np.hstack([F, np.zeros((F.shape[0], rank), F.dtype)]) for F in start))
        solver = RankContinuation() if solver is None else solver
    result = run(penalized, rank, PCG() if solver is None else solver, init, settings)
    U, V = _rotated(result.U, result.V)
    model = Model(settings.loss, intercept, settings.offsets, ridge, U, V, result, path)
    return replace(model, U=model.rows(data))


def null_scores(data: Observations, settings: Settings) -> Array:
    """What a null model of column effects alone has in the place of z, one number per column."""
    intercept = constant(data, settings.loss)
    return _column_effects(data, settings, intercept, NULL_RIDGE) + intercept


def _start(problem: Problem, effects: Array) -> tuple[Array, Array]:
    """The factors of column effects alone.

    V has zeros where offsets of rows would have ones: these then change nothing, and stay at zero.
    """
    U, V = (np.zeros((k, COLUMNS), problem.dtype) for k in problem.shape)
    U[:, FIXED_LEFT], V[:, FIXED_LEFT] = 1, effects
    return U, V


def _column_effects(data: Observations, settings: Settings, intercept: float, ridge: float) -> Array:
    """The best μ where there is nothing else: new rows of the matrix on its side, whose one factor is 1."""
    operator = Entries(data.cols, data.rows, data.shape[::-1])
    problem = Problem(Shifted(settings.loss, intercept), operator, data.values, data.weights)
    return fold_in(problem, np.ones((data.shape[0], 1), problem.dtype), ridge)[:, 0]


def _rotated(U: Array, V: Array) -> tuple[Array, Array]:
    """The same z by singular vectors times the roots of their singular values.

    Of each right singular vector the largest entry is positive, as scikit-learn has it.
    """
    A, s, B = triplets(U[:, COLUMNS:], V[:, COLUMNS:])
    sign = np.sign(B[np.argmax(np.abs(B), axis=0), np.arange(s.size)])
    root = (np.where(sign == 0, 1, sign) * np.sqrt(s)).astype(s.dtype)
    return np.hstack([U[:, :COLUMNS], A * root]), np.hstack([V[:, :COLUMNS], B * root])
