"""Scores of a fit on held-out entries in blocks."""

from typing import Any, NamedTuple

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.executors import Executor, Passed
from bifactor.factors import Free
from bifactor.losses import Loss
from bifactor.losses.base import SIGNS
from bifactor.models.block_fitting import block_constant
from bifactor.models.block_views import BlockView
from bifactor.models.model import Model
from bifactor.operators import Partitioned
from bifactor.operators.entries import SymbolicEntries

SHOWN = 200_000
"""Largest number of entries whose values and predictions are returned."""


class Judge(NamedTuple):
    """Settings for scoring predictions."""

    loss: Loss
    intercept: float
    clip: tuple[float, float] | None
    null: float
    """The best constant, for comparison."""
    null_loss: Loss
    """The loss with the best thresholds for it, if it has some."""
    step: int
    """One in this many entries is returned."""


def block_scores(model: Model, held: BlockView, executor: Executor | None) -> tuple[dict[str, Any], Array, Array]:
    """Scores as in `scores.scores`, and values and predictions of some entries."""
    data = BlockView(held.store, held.how, plain=True)
    if held.store.size == 0:
        raise InputError("There are too few entries to hold some out. Leave out --holdout.")
    null = block_constant(data, model.loss, executor)
    null_loss = model.loss
    levels, counts = data.levels, data.level_counts
    if model.loss.located and levels is not None and counts is not None:
        null_loss = model.loss.refit(np.zeros(levels.size), levels, counts.astype(np.float64))
    f = Partitioned(model.loss, data, executor)
    judge = Judge(model.loss, model.intercept, model.clip, null, null_loss, -(-held.store.size // SHOWN))
    outer, inner = f.sides(model.U, model.V)
    _, sums, each = f.over(scored, (outer,), (inner,), (judge,))
    size, right, absolute, squares, losses, nothing, lowest = (float(one) for one in sums)
    answer: dict[str, Any] = {"entries": int(size), "unknown": 0}
    if model.loss.targets is SIGNS:
        answer["accuracy"] = right / size
    else:
        answer["rmse"], answer["mae"] = (squares / size) ** 0.5, absolute / size
    worst, here = nothing - lowest, losses - lowest
    answer["mean_loss"] = losses / size
    answer["explained"] = 1 - here / worst if worst > 0 else float(here <= 0)
    values, predicted = (np.concatenate([one[k] for one in each]) for k in range(2))
    return answer, values, predicted


def scored(bound: SymbolicEntries, tall: tuple[Array, ...], shared: tuple[Array, ...], judge: Judge) -> Passed:
    """Sums over the entries of a block, and some of the entries."""
    loss, y = judge.loss, bound.fit.y.astype(np.float64)
    x = Free().pair(tall[0], shared[0])
    z = bound.bound.measure(x) if y.size else np.zeros(0, x.dtype)
    z = z + z.dtype.type(judge.intercept)
    z = z if judge.clip is None else np.clip(z, *judge.clip)
    predicted = loss.mean(z)
    error = predicted - y
    right = np.count_nonzero((predicted >= 0.5) == (y > 0))
    losses = loss.value(z.astype(np.float64), y), judge.null_loss.value(np.full(y.size, judge.null), y)
    sums = y.size, right, np.abs(error).sum(), error @ error, *(one.sum() for one in losses), loss.lowest(y).sum()
    some = slice(None, None, judge.step)
    return Passed(sums=tuple(map(float, sums)), each=(y[some], predicted[some]))
