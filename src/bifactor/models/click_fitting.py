"""Models of clicks: open settings are chosen, then all entries are fitted."""

from dataclasses import replace

from bifactor.errors import InputError
from bifactor.models.chosen import Clicks
from bifactor.models.click_choices import Choices, chosen
from bifactor.models.clicks import clicks_problem, paid
from bifactor.models.fitting import Settings, after_choice, resumed, run
from bifactor.models.item_regression import Cooccurrence, with_items
from bifactor.models.model import Model
from bifactor.models.pairs import Pairs
from bifactor.models.side import Sides
from bifactor.tables import Observations


def fit_clicks(data: Observations, settings: Settings, start: Model | None, given: Choices) -> Model:
    """Fit a model of clicks; values are 1, and weights express confidence."""
    if data.values.size == 0:
        raise InputError("There are no choices: no value is above 0. Pass at least one.")
    with settings.choosing as stage:
        found = chosen(lambda: data, replace(settings, stage=stage), given)
    best, most = found.best, settings.n_components or 0
    rank = min(*data.shape, most)
    sides = Sides(data, weights=paid(data, best.unobserved))
    clicks = Clicks(best.unobserved, tuple(found.tried), found.interrupted)
    if not sides.none:
        clicks = replace(clicks, known=Pairs.of(data).known(data.shape[1]))
    problem = clicks_problem(data, clicks, best.alpha, sides)
    init = resumed(None if start is None else start.alone(), problem, rank, sides)
    result = run(problem, rank, settings.solver, init, after_choice(settings, clicks))
    U, V, side = sides.unfolded(problem.kind.pair(result.U, result.V))
    model = Model(settings.loss, 0.0, (0, 0), best.alpha, U, V, result, clicks=clicks, side=side)
    if best.item_share == 0:
        return model
    together = Cooccurrence.of(data, most, model)
    return with_items(model, data, together, best.item_share / (1 - best.item_share), best.item_alpha)
