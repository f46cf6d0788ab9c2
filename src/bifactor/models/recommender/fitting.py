"""Models of clicks: open settings are chosen, then all entries are fitted."""

from dataclasses import replace

import numpy as np

from bifactor.arrays import to_numpy
from bifactor.data import Dataset
from bifactor.errors import InputError
from bifactor.models.completion.fitting import CompletionSettings, after_search, run, warm_start
from bifactor.models.model import Model
from bifactor.models.recommender.hyperparameters import MAX_TRIAL_ENTRIES, Hyperparameters, search_hyperparameters
from bifactor.models.recommender.item_to_item import Cooccurrence, with_items
from bifactor.models.recommender.model import clicks_problem, ridge_weights
from bifactor.models.recommender.settings import ImplicitFeedback
from bifactor.models.side_information import ScaledFeatures


def fit_clicks(data: Dataset, settings: CompletionSettings, start: Model | None, given: Hyperparameters) -> Model:
    """Fit a model of clicks; values are 1, and weights express confidence.

    In blocks, weights are chosen with some users, and there are no item-to-item scores.
    """
    if data.size == 0:
        raise InputError("There are no choices: no value is above 0. Pass at least one.")
    if not data.in_memory:
        if given.item_share or (given.item_share is None and given.item_ridge is not None):
            raise InputError("Item-to-item scores need all data in memory, but these are in blocks. Pass item_share=0.")
        given = replace(given, item_share=0.0)
    most = data.size if data.in_memory else MAX_TRIAL_ENTRIES
    rng = np.random.default_rng(settings.seed)
    with settings.choosing as stage:
        watched = replace(settings, stage=stage)
        best, search = search_hyperparameters(lambda: data.subsample(most, rng, side=0), watched, given)
    rank = min(*data.shape, settings.n_components or 0)
    sides = ScaledFeatures(data, weights=ridge_weights(data, best.unobserved))
    clicks = ImplicitFeedback(best.unobserved, search)
    if not sides.none:
        clicks = replace(clicks, known=data.seen_items().known(data.shape[1]))
    problem = clicks_problem(data, clicks, best.ridge, sides, settings.executor)
    init = warm_start(None if start is None else start.without_item_scores(), problem, rank, sides)
    result = run(problem, rank, settings.solver, init, after_search(settings, search))
    result = result if data.in_memory else replace(result, problem=None)
    U, V, side = sides.add_features(problem.kind.pair(to_numpy(result.U), to_numpy(result.V)))
    model = Model(settings.loss, 0.0, (0, 0), best.ridge, U, V, result, clicks=clicks, side=side)
    if best.item_share == 0:
        return model
    some = data.lines(np.ones(data.shape[0], bool))
    together = Cooccurrence.of(some, settings.n_components or 0, model)
    return with_items(model, some, together, best.item_share / (1 - best.item_share), best.item_ridge)
