"""A fitted matrix b1ᵀ + 1cᵀ + UVᵀ + intercept, seen through a loss: what all estimators share."""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import Array
from bifactor.caching import cached_property
from bifactor.inits import Given, Init
from bifactor.kinds import Fixed
from bifactor.losses import Loss, Shifted
from bifactor.losses.base import NUMBERS
from bifactor.models.duration import expected_seconds
from bifactor.models.fold_in import fold_in
from bifactor.models.tuning import RidgePath, tuned, without_vanished
from bifactor.operators import Entries
from bifactor.penalties import Ridge
from bifactor.problems.problem import Problem
from bifactor.running.result import Result
from bifactor.running.solve import solve
from bifactor.solvers import PCG, Solver
from bifactor.tables import Observations

OFFSETS = (1, 1)
"""The fixed columns that make offsets of rows and columns: U = [1, b, …], V = [c, 1, …]."""

LARGEST = 20.0
"""Of a link: beyond, labels are all alike and counts without end, or zero."""


@dataclass(frozen=True)
class Settings:
    """How to fit; the estimators' parameters, checked."""

    loss: Loss
    n_components: int | None
    """None for as many as the data justify."""
    alpha: float | None
    """None for the one that predicts best."""
    offsets: bool
    solver: Solver | None
    max_iter: int
    tol: float
    seed: int
    progress: bool = False
    callback: Callable[..., bool | None] | None = None
    checkpoint: str | os.PathLike[str] | None = None
    stage: Callable[[str, int, int], None] | None = None
    """Told what is chosen before the fit, how many choices were tried, and how many there are at most."""
    expect: Callable[[float], None] | None = None
    """Told how many seconds choosing and fitting will take; None saves the few passes that this costs."""


@dataclass(frozen=True)
class Model:
    """Factors, the fixed columns of ones in front, and what it takes to add rows and columns."""

    loss: Loss
    intercept: float
    fixed: tuple[int, int]
    """Columns of ones in U, whose partners are effects of columns, and in V, whose partners are effects of rows."""
    ridge: float
    U: Array
    V: Array
    result: Result
    path: RidgePath | None = None

    @cached_property
    def shifted(self) -> Loss:
        return Shifted(self.loss, self.intercept)

    @property
    def offsets(self) -> bool:
        """Whether both rows and columns have offsets."""
        return self.fixed == OFFSETS

    @property
    def rank(self) -> int:
        """Components, the effects aside."""
        return int(self.U.shape[1]) - self.fixed_columns

    @property
    def fixed_columns(self) -> int:
        """Columns of the factors that belong to the effects."""
        return sum(self.fixed)

    def scores(self, rows: Array, cols: Array) -> Array:
        """z at some entries, the intercept included."""
        return self.entries(self.U, self.V, rows, cols)

    def entries(self, U: Array, V: Array, rows: Array, cols: Array) -> Array:
        """z at some entries, by other factors."""
        if np.size(rows) == 0:
            return np.empty(0, U.dtype)
        operator = Entries(rows, cols, (U.shape[0], V.shape[0]))
        z = operator.forward(U, V) if U.shape[1] else np.zeros(operator.size, U.dtype)
        return z + U.dtype.type(self.intercept)

    def rows(self, new: Observations) -> Array:
        """Factors of new rows; `new` has all the columns."""
        return self._folded(new, self.V)

    def columns(self, new: Observations) -> Array:
        """Factors of new columns; `new` has all the rows."""
        turned = Observations(new.cols, new.rows, new.values, new.shape[::-1], new.weights)
        left, right = self.fixed
        across = replace(self, fixed=(right, left))
        return _exchanged(across._folded(turned, _exchanged(self.U, left, right)), right, left)

    def _folded(self, new: Observations, held: Array) -> Array:
        L, R = (np.ones((rows, k)) for rows, k in zip(new.shape, self.fixed, strict=True))
        if new.values.size == 0:
            return Fixed(L, R).zero(new.shape, held.shape[1] - self.fixed_columns, held.dtype).left
        operator = Entries(new.rows, new.cols, new.shape)
        problem = Problem(self.shifted, operator, new.values.astype(held.dtype), new.weights, fixed=(L, R))
        return fold_in(problem, held, self.ridge)


def _exchanged(F: Array, left: int, right: int) -> Array:
    """The factors of rows as those of columns: the first `left` columns change places with the `right` next ones."""
    both = left + right
    return np.ascontiguousarray(F[:, [*range(left, both), *range(left), *range(both, F.shape[1])]])


def fit_model(data: Observations, settings: Settings, start: Model | None = None) -> Model:
    """Chooses what is to be chosen, and fits."""
    rng = np.random.default_rng(settings.seed)
    settings.loss.targets.check(data.values, type(settings.loss).__name__)
    intercept = constant(data, settings.loss) if settings.offsets else 0.0
    problem = as_problem(data, settings, intercept)
    if settings.expect is not None:
        settings.expect(expected_seconds(problem, settings.n_components, settings.alpha))
    rank, ridge, path = tuned(problem, settings.n_components, settings.alpha, rng, stage=settings.stage)
    penalized = problem.penalized(Ridge(ridge) if ridge > 0 else None)
    init = resumed(start, penalized, rank)
    solver = settings.solver if init is None or settings.solver is not None else PCG()
    result = run(penalized, rank, solver, init, settings)
    U, V = result.U, result.V
    if settings.n_components is None:
        x = without_vanished(problem.kind.pair(U, V))
        U, V = x.left, x.right
    fixed = OFFSETS if settings.offsets else (0, 0)
    return Model(settings.loss, intercept, fixed, ridge, U, V, result, path)


def run(problem: Problem, rank: int, solver: Solver | None, init: Init | None, settings: Settings) -> Result:
    """A fit within the limits of the settings."""
    return solve(
        problem,
        rank,
        solver,
        init,
        rng=settings.seed,
        max_iter=settings.max_iter,
        tol=settings.tol,
        objective_tol=settings.tol,
        callback=settings.callback,
        checkpoint=settings.checkpoint,
        progress=settings.progress,
    )


def as_problem(
    data: Observations,
    settings: Settings,
    intercept: float,
    fixed: tuple[Array | None, Array | None] | None = None,
) -> Problem:
    """The data, and what is to be fitted to them beside a fixed intercept."""
    operator, y, loss = Entries(data.rows, data.cols, data.shape), data.values, settings.loss
    if loss.quadratic:  # the same as a shift of the loss, and compiled
        y = y - y.dtype.type(intercept)
    elif intercept:
        loss = Shifted(loss, intercept)
    return Problem(loss, operator, y, data.weights, offsets=settings.offsets, fixed=fixed)


def constant(data: Observations, loss: Loss) -> float:
    """argmin over a of Σ w ℓ(a; y), by Newton's method; no further out than where a link says all that it can."""
    y = data.values.astype(np.float64)
    w = np.ones_like(y) if data.weights is None else data.weights
    if loss.quadratic:  # of values that are all alike a mean would be off by rounding
        return float(y[0]) if np.all(y == y[0]) else float(np.average(y, weights=w))
    a, limit = (float(np.median(y)), np.inf) if loss.targets is NUMBERS else (0.0, LARGEST)
    for _ in range(100):
        z = np.full_like(y, a)
        slope, bend = float(np.sum(w * loss.gradient(z, y))), float(np.sum(w * loss.curvature(z, y)))
        step = float(np.clip(-slope / bend, -1.0, 1.0)) if bend > 0 else 0.0
        a = float(np.clip(a + step, -limit, limit))
        if abs(step) <= 1e-10 * (1 + abs(a)) or abs(a) == limit:
            break
    return a


def resumed(start: Model | None, problem: Problem, rank: int) -> Given | None:
    """Where an earlier fit left off, if it fits."""
    if start is None or (start.U.shape[0], start.V.shape[0]) != problem.shape:
        return None
    return Given(start.U, start.V) if start.U.shape[1] == rank + problem.kind.fixed_columns else None


def updated(model: Model, known: Observations, new: Observations) -> tuple[Model, Observations]:
    """The model with rows and columns that are new, and with the rows anew for which there is more data.

    Rows are found first, by their entries in columns that were there, then new columns by all of theirs. Other rows and
    columns stay as they are.
    """
    shape = (max(known.shape[0], new.shape[0]), max(known.shape[1], new.shape[1]))
    every = merged(known, new, shape)
    m, n = model.U.shape[0], model.V.shape[0]
    touched = np.union1d(np.unique(new.rows[new.cols < n]), np.arange(m, shape[0]))
    k = model.fixed[0]
    U, V = lengthened(model.U, shape[0], slice(k)), lengthened(model.V, shape[1], slice(k, model.fixed_columns))
    if touched.size:
        place = np.full(shape[0], -1)
        place[touched] = np.arange(touched.size)
        used = (place[every.rows] >= 0) & (every.cols < n)
        some = every.part(used)
        some = replace(some, rows=place[some.rows], shape=(touched.size, n))
        U[touched] = model.rows(some)
    if shape[1] > n:
        some = every.part(every.cols >= n)
        some = replace(some, cols=some.cols - n, shape=(shape[0], shape[1] - n))
        V[n:] = replace(model, U=U).columns(some)
    return replace(model, U=U, V=V), every


def merged(known: Observations, new: Observations, shape: tuple[int, int]) -> Observations:
    """All of them; of an entry that is in both, the new value counts."""
    rows, cols = np.concatenate([known.rows, new.rows]), np.concatenate([known.cols, new.cols])
    keys = rows.astype(np.int64) * shape[1] + cols
    again = np.isin(keys[: known.values.size], keys[known.values.size :])
    stay = np.concatenate([~again, np.ones(new.values.size, bool)])
    weights = None
    if known.weights is not None or new.weights is not None:
        sides = [np.ones(d.values.size) if d.weights is None else d.weights for d in (known, new)]
        weights = np.concatenate(sides)[stay]
    values = np.concatenate([known.values, new.values])
    row_names = known.row_names if new.row_names is None else new.row_names
    column_names = known.column_names if new.column_names is None else new.column_names
    return Observations(rows[stay], cols[stay], values[stay], shape, weights, row_names, column_names, known.origin)


def lengthened(F: Array, rows: int, ones: slice) -> Array:
    """With rows of zeros at the end, but for the columns that are all ones."""
    longer = np.zeros((rows, F.shape[1]), F.dtype)
    longer[: F.shape[0]] = F
    longer[F.shape[0] :, ones] = 1
    return longer
