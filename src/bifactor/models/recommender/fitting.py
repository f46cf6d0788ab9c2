"""Models of clicks: open settings are chosen, then all entries are fitted."""

from dataclasses import replace

import numpy as np

from bifactor.arrays import to_numpy
from bifactor.data import BlockStore, Observations
from bifactor.data.store.block_store import load_rows
from bifactor.errors import InputError
from bifactor.models.completion.fitting import CompletionSettings, after_choice, run, warm_start
from bifactor.models.model import Model
from bifactor.models.recoding import BlockView, CountsToClicks
from bifactor.models.recommender.hyperparameters import MAX_TRIAL_ENTRIES, Hyperparameters, search_hyperparameters
from bifactor.models.recommender.item_to_item import Cooccurrence, with_items
from bifactor.models.recommender.model import clicks_problem, ridge_weights
from bifactor.models.recommender.settings import ImplicitFeedback
from bifactor.models.recommender.weights import counts_to_weights
from bifactor.models.seen_items import Pairs
from bifactor.models.side_information import ScaledFeatures
from bifactor.operators import Partitioned
from bifactor.operators.all_cells import all_cells
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective


def fit_clicks(data: Observations, settings: CompletionSettings, start: Model | None, given: Hyperparameters) -> Model:
    """Fit a model of clicks; values are 1, and weights express confidence."""
    if data.values.size == 0:
        raise InputError("There are no choices: no value is above 0. Pass at least one.")
    with settings.choosing as stage:
        found = search_hyperparameters(lambda: data, replace(settings, stage=stage), given)
    best, most = found.best, settings.n_components or 0
    rank = min(*data.shape, most)
    sides = ScaledFeatures(data, weights=ridge_weights(data, best.unobserved))
    clicks = ImplicitFeedback(best.unobserved, tuple(found.tried), found.interrupted)
    if not sides.none:
        clicks = replace(clicks, known=Pairs.of(data).known(data.shape[1]))
    problem = clicks_problem(data, clicks, best.ridge, sides)
    init = warm_start(None if start is None else start.without_item_scores(), problem, rank, sides)
    result = run(problem, rank, settings.solver, init, after_choice(settings, clicks))
    U, V, side = sides.add_features(problem.kind.pair(result.U, result.V))
    model = Model(settings.loss, 0.0, (0, 0), best.ridge, U, V, result, clicks=clicks, side=side)
    if best.item_share == 0:
        return model
    together = Cooccurrence.of(data, most, model)
    return with_items(model, data, together, best.item_share / (1 - best.item_share), best.item_ridge)


# Models of clicks for data in blocks: weights are chosen with some users in memory, then all blocks are fitted.


def fit_click_blocks(
    store: BlockStore, settings: CompletionSettings, start: Model | None, given: Hyperparameters
) -> Model:
    """`fit_clicks` for data in blocks, without item-to-item scores, which need all data in memory."""
    if given.item_share or (given.item_share is None and given.item_ridge is not None):
        raise InputError("Item-to-item scores need all data in memory, but these are in blocks. Pass item_share=0.")
    given = replace(given, item_share=0.0)
    f = Partitioned("squared", BlockView(store, CountsToClicks()), settings.executor)
    rows, cols = f.marginals  # sums of weights
    with settings.choosing as stage:
        found = search_hyperparameters(lambda: _some_users(store, settings), replace(settings, stage=stage), given)
    best, (m, n) = found.best, store.shape
    clicks = ImplicitFeedback(best.unobserved, tuple(found.tried), found.interrupted)
    paid = rows + best.unobserved * n, cols + best.unobserved * m
    penalty = Ridge(best.ridge, rows=paid[0], cols=paid[1]) if best.ridge > 0 else None
    problem = Objective(f, penalty) + all_cells(best.unobserved)
    rank = min(m, n, settings.n_components or 0)
    result = run(problem, rank, settings.solver, warm_start(start, problem, rank), after_choice(settings, clicks))
    result = replace(result, U=to_numpy(result.U), V=to_numpy(result.V), problem=None)
    return Model(settings.loss, 0.0, (0, 0), best.ridge, result.U, result.V, result, clicks=clicks)


def _some_users(store: BlockStore, settings: CompletionSettings) -> Observations:
    """Choices of all users, or of some of them if there are many."""
    stay = np.ones(store.shape[0], bool)
    if store.size > MAX_TRIAL_ENTRIES:
        order = np.random.default_rng(settings.seed).permutation(store.shape[0])
        stay[order[max(2, int(np.searchsorted(np.cumsum(store.marginals[0][order]), MAX_TRIAL_ENTRIES))) :]] = False
    some = counts_to_weights(load_rows(store, stay))
    number = np.cumsum(stay) - 1
    return replace(some, rows=number[some.rows], shape=(int(stay.sum()), store.shape[1]), row_names=None)
