"""How `bifactor complete` fits the values of a file or of a block store."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from bifactor.arrays import Array
from bifactor.cli import monitor
from bifactor.cli.output import stderr
from bifactor.cli.signals import AfterFit
from bifactor.cli.summary import block_memory, require_free_memory, sample_memory, saved_memory
from bifactor.data import Dataset, RandomCells
from bifactor.data.dataset import MAX_LEVELS
from bifactor.errors import InputError
from bifactor.losses.base import SIGNS
from bifactor.models import Fit, Model
from bifactor.models.completion.fitting import (
    MAX_SEARCH_ENTRIES,
    CompletionSettings,
    after_search,
    check_targets,
    fit_model,
)
from bifactor.models.completion.labels import Labels, two_classes
from bifactor.models.completion.noise_selection import MAX_NOISE_SELECTION_ENTRIES, candidates
from bifactor.models.hyperparameters import MAX_RANK
from bifactor.models.metrics import held_out_scores
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective
from bifactor.running.memory import bytes_in_words, entries_memory
from bifactor.running.result import Status
from bifactor.solvers import PCG, Solver
from bifactor.validation import pluralize


def encode_entries(entries: Dataset, chosen: CompletionSettings, path: Path) -> tuple[Dataset, Array | None, list[str]]:
    """The entries encoded for the loss, the classes of labels, and notes for the user."""
    notes, classes, loss, about = [], None, chosen.loss, entries.summary()
    if about.constant:
        notes.append(f"All values are {about.least:g}, so rows and columns do not differ.")
    try:
        if loss.targets is SIGNS:
            if about.levels is None:
                raise InputError(f"There are more than {MAX_LEVELS} different values, not two. Code them as 0 and 1.")
            classes = two_classes(about.levels)
            lower, upper = (f"{value:g}" for value in classes)
            notes.append(f"Values {lower} and {upper} are two classes; predictions are probabilities of {upper}.")
            entries = entries.recode(Labels((float(classes[0]), float(classes[1]))))
        check_targets(entries, loss)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    origin = entries.origin
    if origin is not None and origin.missing and not origin.wide and entries.in_memory:
        notes.append(f"Left out: {pluralize(origin.missing, 'line')} without a value.")
    return entries, classes, notes


def require_fit_memory(data: Dataset, chosen: CompletionSettings, workers: int | None = None) -> int:
    """The memory that the fit will take, in bytes. Raise if that is more than there is."""
    tried: list[tuple[int, Solver | None]] = [(MAX_RANK if chosen.n_components is None else chosen.n_components, None)]
    if chosen.posterior:
        whole = data.in_memory
        implicit = chosen.implicit is not False and whole
        every = candidates(chosen.noise, chosen.n_components, data.shape, implicit, in_blocks=not whole)
        tried = [(one.rank, one.solver) for one in every]
    found = max((_memory(data, chosen, rank, solver, workers) for rank, solver in tried), default=0)
    require_free_memory(found, data, chosen)
    console = stderr()
    if console.is_terminal:
        console.print(f"The fit takes about {bytes_in_words(found)} of memory besides Python itself.")
    return found


def _memory(data: Dataset, chosen: CompletionSettings, rank: int, solver: Solver | None, workers: int | None) -> int:
    size = data.size
    if data.in_memory:
        return entries_memory(data.shape, size, rank, data.dtype, solver)
    penalty = Ridge(1.0) if solver is None else None
    problem = Objective(data.bind(chosen.loss, executor=chosen.executor), penalty, offsets=chosen.offsets)
    found = block_memory(problem, min(rank, *data.shape), solver or PCG(), size, workers)
    found += saved_memory(problem, min(rank, *data.shape)) if chosen.posterior else 0
    if chosen.ridge is not None and chosen.n_components is not None and not chosen.loss.located:
        return found
    return max(
        found,
        sample_memory(
            data.shape, size, MAX_NOISE_SELECTION_ENTRIES if chosen.posterior else MAX_SEARCH_ENTRIES, rank, solver
        ),
    )


def fit_and_score(
    data: Dataset, classes: Array | None, chosen: CompletionSettings, holdout: float, notes: list[str], rest: AfterFit
) -> tuple[Fit, Model, tuple[Array, Array] | None, dict[str, Any]]:
    """The fit to all entries, the first fit, held-out values with their predictions, and scores at these."""
    marks: dict[str, Any] = {}
    if chosen.n_components is not None and chosen.n_components > min(data.shape):
        notes.append(f"The rank was cut to {min(data.shape)}, the smaller side of the matrix.")
    train, part = hold_out(data, holdout, chosen.seed) if holdout else (data, data)
    held_out = None
    model = first = _run(train, replace(chosen, checkpoint=None) if holdout else chosen, None, notes)
    fit = Fit.of(model, data, classes)
    if fit.seen.size < data.size:
        repeated = data.size - fit.seen.size
        notes.append(f"Entries that repeat a pair: {repeated:,}; each was kept as a separate measurement.")
    rest.keep()
    if holdout:
        judged = rest.stage("the score at held-out entries", lambda: held_out_scores(fit.model, part, chosen.executor))
        if judged is not None:
            marks["held out"], *held_out = judged
        if first.result.status is not Status.INTERRUPTED and first.U.shape[1]:  # without columns, X = 0 for any data
            again = rest.stage("the fit to all entries", lambda: _run(data, _same(chosen, first), first, notes))
            model = model if again is None else replace(again, choice=first.choice)
    if model.rank == 0:
        told = "an intercept and offsets of rows and columns" if model.offsets else "0 everywhere"
        notes.append(f"The fit has rank 0, which means no components: it is {told}.")
    if model.result.status is Status.INTERRUPTED:
        some = " to the entries that were not held out" if holdout and model is first else ""
        notes.append(f"Interrupted: this is the best fit{some} so far.")
    return replace(fit, model=model), first, None if held_out is None else (held_out[0], held_out[1]), marks


def hold_out(data: Dataset, holdout: float, seed: int) -> tuple[Dataset, Dataset]:
    """The entries for the first fit and those held out from it, chosen by a hash of row, column and seed."""
    train, part = data.split(RandomCells(holdout, seed))
    if not train.size or not part.size:
        raise InputError(f"Nothing can be held out of {pluralize(data.size, 'entry')}. Leave out --holdout.")
    return train, part


def _same(chosen: CompletionSettings, first: Model) -> CompletionSettings:
    """Settings with the rank, ridges and solver that an earlier fit has chosen."""
    solver = chosen.solver if first.choice is None else first.choice.chosen.solver
    chosen = after_search(after_search(chosen, None if first.choice is None else first.choice.search), first.path)
    chosen = replace(chosen, ridge=first.ridge, offset_ridge=first.offset_ridge)
    return replace(chosen, n_components=first.rank, solver=solver)


def _run(data: Dataset, chosen: CompletionSettings, start: Model | None, notes: list[str]) -> Model:
    automatic = chosen.ridge is None or chosen.n_components is None
    what = "fitting all entries" if start is not None else "fitting"
    before = "choosing the ridge" if chosen.ridge is None else "choosing the rank" if automatic else "starting"
    before = "choosing the noise" if chosen.posterior else before
    with warnings.catch_warnings(record=True) as caught, monitor.fit_progress(what, before, data.size) as show:
        warnings.simplefilter("always")
        watched = replace(chosen, callback=show.iterations(chosen.max_iter), stage=show.stage)
        model = fit_model(data, watched, start)
        show.ended(model.result.status)
    notes += [str(warning.message) for warning in caught]
    if model.path is not None and model.path.interrupted:
        notes.append("Ctrl-C ended the search for the ridge early; the best so far was used.")
    if model.choice is not None and model.choice.search.interrupted:
        notes.append("Ctrl-C ended the search for the noise model early; the best so far was used.")
    return model
