"""Principal components under a loss: z = oᵢ + μⱼ + uᵢ·vⱼ in all cells of a table; μ are effects of columns."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.factors import Factors, Free
from bifactor.inits import Given
from bifactor.metrics import triplets
from bifactor.models.completion.fitting import CompletionSettings, fit_constant_with_offset, run, warm_start
from bifactor.models.fold_in import best_rows, left_out_loss
from bifactor.models.hyperparameters import (
    CONSERVATIVE_RIDGE_SHARE,
    MAX_RANK,
    RankAndRidge,
    largest_ridge,
    select_rank_and_ridge,
    without_vanished,
)
from bifactor.models.link import Link
from bifactor.models.model import Model
from bifactor.models.rows import RidgeRows, with_ones
from bifactor.operators.full_table import FullTable
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective
from bifactor.solvers import PCG, RankContinuation
from bifactor.solvers.growth import add_columns

FIXED, EFFECTS = (1, 0), 0
"""One column of ones in U, whose partner in V has the effects of the columns; and the number of that column."""

LIGHT = 0.01
"""Ridge on column effects, as a share of that on the rest: too small to bias them, but enough to keep the effect of a
column with equal entries finite."""

NULL_RIDGE = 1e-6
"""Ridge on the column effects of the null model per unit of weight, for the same reason."""

SOLVER = RankContinuation(PCG(exact=True), stage_decrease=1e-4)
"""Losses of counts are large numbers of which components explain a small share. When stages ended at the default 0.005,
two components of 300 genes explained 32.4 % of the deviance instead of 33.5 %."""

CELLS, FEWEST_ROWS = 6_000_000, 500
"""Largest number of cells used to choose a ridge, and smallest number of rows."""

SETTLED = 1e-9
"""Change of effects that ends their fit."""

ENOUGH, NEWTON, HALVINGS, FARTHEST = 1e-7, 60, 12, 10.0
"""Decrease of the deviance, as a share of that of the null model, below which a component counts as added; the largest
numbers of Newton steps for it and of their halvings, and the longest step of an effect."""


def component_ridge(rho: float) -> Ridge:
    """(ρ/2)(‖U‖² + ‖V‖²) over the components, and LIGHT times that for the effects of columns."""
    return Ridge(rho, components=(LIGHT, 1.0))


def fit_components(table: FullTable, settings: CompletionSettings, earlier: Model | None = None) -> Model:
    """Choose the ridge unless it is given, and fit."""
    intercept = constant_of(table)
    problem, start = start_at_column_effects(table.shifted(intercept))
    rank, ridge, path, found, _ = _chosen(problem, start, settings)
    penalized = problem.penalized(component_ridge(ridge) if ridge > 0 else None)
    given, wide = warm_start(earlier, penalized, rank), start.padded(start.width + rank)
    x, usual = wide, SOLVER if given is None and found is None else PCG(exact=True)
    if found is not None and given is None:  # the chosen fit lacks only the held-out cells
        room = wide.width - found.width
        x = add_columns(penalized, found, room) if room else found
    solver = usual if settings.solver is None else settings.solver
    result = run(penalized, x.width - start.width, solver, given or Given(x.left, x.right), settings)
    x = problem.kind.pair(result.U, result.V).padded(wide.width)
    _, V = _rotated(*((without_vanished(x) if settings.n_components is None else x).arrays))
    U = best_rows(table.shifted(intercept), V, sum(FIXED), ridge)
    return Model(with_ones(U, V, FIXED), Link(table.loss, intercept), RidgeRows(ridge), result, search=path)


def refit_loss(table: FullTable, settings: CompletionSettings) -> FullTable:
    """The table with the best parameters of its loss, fitted together with components under a conservative ridge.

    With effects of columns alone, the dispersion would absorb what components explain; without a ridge, components
    would explain the dispersion.
    """
    shifted = table.shifted(constant_of(table))
    _, start = start_at_column_effects(shifted)
    problem, start = start_at_column_effects(shifted.with_loss(shifted.best_loss(start)))
    penalized = problem.penalized(component_ridge(CONSERVATIVE_RIDGE_SHARE * largest_ridge(problem, start)))
    rank = min(*table.shape, MAX_RANK if settings.n_components is None else settings.n_components)
    wide = start.padded(start.width + rank)
    quiet = replace(settings, callback=None, progress=False, checkpoint=None)
    result = run(penalized, rank, SOLVER, Given(wide.left, wide.right), quiet)
    fitted = penalized.f.parameters.refit(problem.kind.pair(result.U, result.V), None)
    return table.with_loss(table.loss.with_fitted(fitted))


def start_at_column_effects(table: FullTable) -> tuple[Objective, Factors]:
    """The problem without a ridge, and its start: the effects of columns."""
    problem = Objective(table, fixed=(np.ones((table.shape[0], 1)), None))
    start = problem.zero(0)
    start.right[:, EFFECTS] = table.best_effects(1, start.right[:, EFFECTS], LIGHT * table.mean_weight)
    return problem, start


def _chosen(problem: Objective, start: Factors, settings: CompletionSettings) -> RankAndRidge:
    """Rank, ridge and a fit to start from; for a large table, chosen with some evenly spaced rows.

    A ridge describes how much the factors of rows and columns vary, regardless of their number: on labels of 700, 1500,
    3000 and 6038 rows the best ones were 4.8, 2.8, 2.6 and 2.0.
    """
    (m, n), rng, table = problem.shape, np.random.default_rng(settings.seed), problem.f
    assert isinstance(table, FullTable)
    few = max(CELLS // n, FEWEST_ROWS)
    with settings.choosing as stage:
        if m <= few:
            return select_rank_and_ridge(
                problem, settings.n_components, settings.ridge, rng, start, component_ridge, stage
            )
        part = Objective(table.take(np.linspace(0, m - 1, few).astype(int)), fixed=(np.ones((few, 1)), None))
        here = part.zero(0)
        here.right[:, EFFECTS] = start.right[:, EFFECTS]
        rank, ridge, path, x, _ = select_rank_and_ridge(
            part, settings.n_components, settings.ridge, rng, here, component_ridge, stage
        )
    if path is None or x is None:
        return RankAndRidge(rank, ridge)
    U = best_rows(table, x.right, sum(FIXED), ridge)
    return RankAndRidge(rank, ridge, path, problem.kind.pair(U, x.right))


@dataclass(frozen=True)
class Deviance:
    """Deviance of a table under a null model, the effects of columns alone, and the remaining deviance of a fit."""

    null: float
    left: float

    @property
    def explained(self) -> float:
        """1 − left/null."""
        return 1 - self.left / self.null if self.null > 0 else float(self.left <= 0)


def null_effects(table: FullTable) -> Array:
    """z of the null model, one number per column."""
    return table.best_effects(1, np.zeros(table.shape[1]), NULL_RIDGE * table.mean_weight, SETTLED)


def deviances(table: FullTable, model: Model, null: Array) -> tuple[Deviance, Array]:
    """Deviance that the components of a fit explain, and the share of the null deviance that each of them explains.

    Components are added to the null model one after the other. Each time, the effects of columns are fitted again, and
    components are shortened if that lowers the deviance: without the others they may be too long. So the deviance
    starts from that of the null model and never increases. With all components, their lengths are those of the fit.
    """
    k, lowest = sum(FIXED), _lowest(table)
    V, whole = np.zeros_like(model.V), model.V.copy()
    V[:, EFFECTS] = null
    whole[:, EFFECTS] += whole.dtype.type(model.link.intercept)
    each = [_value_of_null(table, null)]
    for c in range(k + 1, V.shape[1] + 1):
        V = _extended(table, model.U, V, whole[:, k:c], ENOUGH * abs(each[0] - lowest))
        each.append(min(table.value(Free().pair(model.U, V)), each[-1]))
    each[-1] = min(table.value(Free().pair(model.U, whole)), each[-1])
    found = Deviance(each[0] - lowest, each[-1] - lowest)
    shares = np.subtract(each[:-1], each[1:]) / (found.null if found.null > 0 else 1.0)
    return found, shares


def _extended(table: FullTable, U: Array, V: Array, wanted: Array, enough: float) -> Array:
    """V of the lowest f(UVᵀ) if the components move a share t ≤ 1 of the way to the wanted ones, and effects freely.

    Newton's method in t and the effects, which ends when a step promises to lower f by less than `enough`.
    """
    k, t, way, ridge = sum(FIXED), 0.0, np.zeros_like(V), NULL_RIDGE * table.mean_weight
    way[:, k : k + wanted.shape[1]] = wanted - V[:, k : k + wanted.shape[1]]
    d = Free().pair(np.zeros_like(U), way)
    for _ in range(NEWTON):
        x = Free().pair(U, V)
        value, slope, bend = table.passes.along(x, d)
        (_, slopes), (_, bends) = table.passes.sums(x)
        slopes, bends = slopes + ridge * V[:, EFFECTS], bends + ridge
        cross = table.passes.bent(x, d)[1][:, EFFECTS]
        bend = max(float(bend - np.sum(cross**2 / bends)), np.finfo(np.float64).tiny)
        ahead = float(np.clip((np.sum(cross * slopes / bends) - slope) / bend, -t, 1 - t))
        step = ahead * way
        step[:, EFFECTS] = np.clip(-(slopes + ahead * cross) / bends, -FARTHEST, FARTHEST)
        promised = -(slope * ahead + float(slopes @ step[:, EFFECTS])) / 2
        trials = ((share, V + V.dtype.type(share) * step) for share in 0.5 ** np.arange(HALVINGS))
        share, better = next(((a, W) for a, W in trials if table.value(Free().pair(U, W)) < value), (0.0, V))
        if promised <= enough or share == 0:
            break
        V, t = better, t + share * ahead
    return V


def left_out_deviance(table: FullTable, model: Model, null: Array) -> Deviance:
    """Deviance of cells, a fifth of which at a time is predicted from the other four fifths."""
    assert model.rows.ridge is not None
    lowest = _lowest(table)
    left = left_out_loss(table.shifted(model.link.intercept), model.V, sum(FIXED), model.rows.ridge)
    return Deviance(_value_of_null(table, null) - lowest, left - lowest)


def rows_of(table: FullTable, model: Model) -> Array:
    """Scores of new rows."""
    assert model.rows.ridge is not None
    return best_rows(table.shifted(model.link.intercept), model.V, sum(FIXED), model.rows.ridge)[:, sum(FIXED) :]


def constant_of(table: FullTable) -> float:
    """The best constant z, apart from offsets; cells that are not stored are counted by row."""
    s = table.sheet
    counts = (s.shape[1] - np.diff(s.indptr)) * s.row_weights
    y = np.concatenate([np.full(s.shape[0], s.rest), s.y.astype(np.float64)])
    weights = np.concatenate([counts, s.weights])
    return fit_constant_with_offset(table.loss, y, weights, np.concatenate([table.offset, table.offset[s.stored_rows]]))


def _value_of_null(table: FullTable, null: Array) -> float:
    ones = np.ones((table.shape[0], 1), table.dtype)
    return table.value(Free().pair(ones, null[:, None].astype(table.dtype)))


def _lowest(table: FullTable) -> float:
    """Sum of the losses of perfect predictions."""
    s = table.sheet
    counts = (s.shape[1] - np.diff(s.indptr)) * s.row_weights
    stored, rest = (table.loss.saturated(np.asarray(y, np.float64)) for y in (s.y, np.array([s.rest])))
    return float(np.sum(s.weights * stored) + counts.sum() * rest[0])


def _rotated(U: Array, V: Array) -> tuple[Array, Array]:
    """Factors of the same z: singular vectors times the roots of their singular values.

    The largest entry of each right singular vector is positive, as in scikit-learn.
    """
    k = sum(FIXED)
    A, s, B = triplets(U[:, k:], V[:, k:])
    sign = np.sign(B[np.argmax(np.abs(B), axis=0), np.arange(s.size)])
    root = (np.where(sign == 0, 1, sign) * np.sqrt(s)).astype(s.dtype)
    return np.hstack([U[:, :k], A * root]), np.hstack([V[:, :k], B * root])
