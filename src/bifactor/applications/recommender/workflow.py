"""Recommendations from data to report: hold out choices, fit, compare the ranking with popular items, fit again."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bifactor.applications.base import (
    Clock,
    CompletedMatrix,
    FitEvaluation,
    Output,
    Pathlike,
    collect_warnings,
    columns_card,
    holdout_mask,
    open_fit,
    open_new_entries,
    open_source,
    require_executor,
    run_on,
    settings_card,
    with_checkpoint,
)
from bifactor.applications.memory import block_memory, require_free_memory, sample_memory
from bifactor.applications.recommender.lists import title_array
from bifactor.applications.recommender.report import report
from bifactor.applications.watch import SILENT, AfterFit, Watch
from bifactor.data import CellMask, Dataset, Observations, read
from bifactor.errors import InputError
from bifactor.executors import Executor
from bifactor.losses import Squared
from bifactor.models import Fit, Model
from bifactor.models.completion.fitting import CompletionSettings, after_search, validate_settings
from bifactor.models.provenance import about_data, about_fit, about_machine, about_trials
from bifactor.models.recommender.evaluation import (
    BYTES_PER_SPLIT_ENTRY,
    MAX_EVALUATED_USERS,
    evaluate_fit,
    hold_out_choices,
    split_later_choices,
)
from bifactor.models.recommender.fitting import fit_clicks
from bifactor.models.recommender.hyperparameters import (
    MAX_TRIAL_ENTRIES,
    TRIAL_RANK,
    Hyperparameters,
    require_click_settings,
)
from bifactor.models.recommender.rows import click_rows, items_of
from bifactor.models.recommender.weights import CountsToClicks, lines_of
from bifactor.models.top_k import SCORE, SCORES_PER_BLOCK
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective
from bifactor.running.memory import entries_memory
from bifactor.running.result import Status
from bifactor.solvers import PCG
from bifactor.validation import is_count

PLACES = 10
"""Length of the lists that are judged."""


def complete(
    data: Any,
    *,
    n_components: int = 128,
    ridge: float | str = "auto",
    unobserved: float | str = "auto",
    holdout: float | CellMask = 0.1,
    max_iter: int = 100,
    tol: float = 1e-4,
    random_state: int = 0,
    titles: Any = None,
    executor: Executor | None = None,
    workers: int | None = None,
    checkpoint: Pathlike | None = None,
    output: Pathlike | None = None,
    force: bool = False,
    verbose: int = 0,
    watch: Watch = SILENT,
    **columns: Any,
) -> CompletedMatrix:
    """Fit clicks, plays or purchases, as `bifactor complete --implicit` does.

    A first fit chooses the weights and the ridge without the held-out choices, and is judged by how it ranks these,
    beside a list of the most popular items; then all choices are fitted. Ctrl-C ends a stage and leaves out the later
    ones: what was fitted is returned, and a note says what is missing.

    Parameters
    ----------
    data : path, frame or Dataset
        One line for each choice of a row (user) and a column (item), with counts if `value` names their column;
        or the folder of a block store.
    n_components, ridge, unobserved, max_iter, tol
        As for `Recommender`.
    holdout : float or CellMask
        Share of the choices to hold out, or the cells, as `data.RandomCells(0.1, 0)`; 0 for none.
    random_state : int
        Seed of the held-out choices and the start.
    titles : path or mapping, optional
        Titles of items for the report: a file of items and titles, or a mapping from names.
    executor, workers, checkpoint, output, force, verbose, watch, **columns
        As for `completion.complete`.

    Returns
    -------
    CompletedMatrix
    """
    shown = {"rank": n_components, "ridge": ridge, "unobserved": unobserved, "holdout": holdout}
    shown |= {"max_iter": max_iter, "tol": tol, "seed": random_state}
    settings = validate_clicks(n_components, ridge, unobserved, max_iter, tol, random_state, verbose)
    settings = with_checkpoint(settings, checkpoint)
    mask, place = holdout_mask(holdout, settings.seed), Output.of(output, force)
    require_executor(executor, workers)
    clock = Clock()
    source = open_source(data, watch, read_choices, **columns)
    clock.read()
    lines, notes = source.data, list[str]()
    named = None if titles is None else title_array(titles, lines.column_names)
    given = Hyperparameters(None if unobserved == "auto" else float(unobserved), settings.ridge)
    choices = lines.recode(CountsToClicks())
    with run_on(executor, workers) as where, watch.after_fit() as rest:
        settings = replace(settings, executor=where)
        memory = require_fit_memory(choices, settings, given, workers)
        work = ClickWork(choices, settings, given, notes, watch, rest)
        fit, first = work.run(mask)
        card = {
            "estimator": "Recommender",
            "machine": about_machine(),
            "data": {**about_data(source.path, lines), "choices": fit.seen.size},
            "settings": settings_card(**shown, **columns_card(columns), workers=workers),
            "fit": about_fit(fit.model),
            "choice": {**asdict(hyperparameters_of(first)), "trials": about_trials(first.search)},
            "memory": memory,
            "scores": work.scores,
            "notes": notes,
        }
        card["timings"] = clock.card()
        return place.finish(fit, card, lambda: report(replace(fit, card=card), card, named), rest)


def validate_clicks(
    n_components: Any, ridge: Any, unobserved: Any, max_iter: Any, tol: Any, random_state: Any, verbose: Any
) -> CompletionSettings:
    """Settings of a fit to clicks; raises `InputError` if one is invalid."""
    require_click_settings(n_components, unobserved, ridge, "auto", "auto")
    return validate_settings(
        n_components=n_components,
        loss="squared",
        ridge=ridge,
        offsets=False,
        max_iter=max_iter,
        tol=tol,
        random_state=random_state,
        solver=None,
        verbose=verbose,
    )


def read_choices(source: Any, *, wide: bool | None = None, **columns: Any) -> Observations:
    """Choices in a file or frame, with counts if there is a column of them."""
    if wide:
        return read(source, wide=True, **columns)
    named = {name: columns.pop(name, None) for name in ("row", "col", "value", "weight")}
    return lines_of(source, **named, **columns)


def require_fit_memory(
    data: Dataset, settings: CompletionSettings, given: Hyperparameters, workers: int | None = None
) -> int:
    """The memory that the fit will take, in bytes. Raise if that is more than there is."""
    (m, n), size = data.shape, data.size
    rank = min(settings.n_components or 1, m, n)
    scores = SCORE * min(max(SCORES_PER_BLOCK, n), min(m, MAX_EVALUATED_USERS) * n)
    if data.in_memory:
        needed = entries_memory(data.shape, max(1, size), rank) + 2 * BYTES_PER_SPLIT_ENTRY * size  # trials, too
        return require_free_memory(needed + scores, data, settings)
    problem = Objective(data.bind(Squared(), executor=settings.executor), Ridge(1.0))
    needed = block_memory(problem, rank, PCG(), size, workers)
    needed += BYTES_PER_SPLIT_ENTRY * size * min(MAX_EVALUATED_USERS, m) // m
    if given.ridge is None or given.unobserved is None:
        some = sample_memory(data.shape, size, MAX_TRIAL_ENTRIES, min(rank, TRIAL_RANK))
        needed = max(needed, some + 2 * BYTES_PER_SPLIT_ENTRY * min(size, MAX_TRIAL_ENTRIES))
    return require_free_memory(needed + scores, data, settings)


@dataclass(frozen=True, eq=False)
class ClickWork:
    """The stages of a fit to clicks, with the notes and the scores that they add."""

    choices: Dataset
    settings: CompletionSettings
    given: Hyperparameters
    notes: list[str]
    watch: Watch
    rest: AfterFit
    scores: dict[str, Any] = field(default_factory=dict)

    def run(self, mask: CellMask | None) -> tuple[Fit, Model]:
        """The fit to all choices, and the first fit."""
        data, settings, rest = self.choices, self.settings, self.rest
        if (settings.n_components or 0) > min(data.shape):
            self.notes.append(f"The rank was cut to {min(data.shape)}, the smaller side of the matrix.")
        parts = hold_out_choices(data, mask, settings.seed) if mask is not None and data.size else None
        if parts is None:
            if mask is not None:
                self.notes.append("There are too few choices to hold some out, so the ranking was not checked.")
            model = self.fit(data, settings, self.given, "fitting")
            rest.keep()
            return Fit.of(model, data), model
        train, split = parts
        first = self.fit(train, replace(settings, checkpoint=None), self.given, "fitting")
        rest.keep()
        judged = rest.stage("the check", lambda: evaluate_fit(Fit.of(first, train), split, PLACES, settings.seed))
        if judged is not None:
            self.scores["held out"] = judged.card()
        if first.result.status is Status.INTERRUPTED:
            return Fit.of(first, data), first
        settings = after_search(settings, first.search)
        again = rest.stage(
            "the fit to all choices",
            lambda: self.fit(data, settings, hyperparameters_of(first), "fitting all choices", first),
        )
        return Fit.of(first if again is None else again, data), first

    def fit(
        self, data: Dataset, settings: CompletionSettings, given: Hyperparameters, what: str, start: Model | None = None
    ) -> Model:
        """A fit under the watch, whose warnings become notes."""
        with collect_warnings(self.notes), self.watch.fitting(what, "starting", data.size) as show:
            watched = replace(settings, callback=show.iterations(settings.max_iter), stage=show.stage)
            model = fit_clicks(data, watched, start, given)
            show.ended(model.result.status)
        if model.search is not None and model.search.interrupted:
            self.notes.append("Ctrl-C ended the search for the weights early; the best so far were used.")
        if model.result.status is Status.INTERRUPTED:
            self.notes.append("Interrupted: this is the best fit so far.")
        return model


def hyperparameters_of(model: Model) -> Hyperparameters:
    """The settings that were chosen for a model."""
    rows, items = click_rows(model), items_of(model)
    share, ridge = (0.0, 0.0) if items is None else (items.share, items.ridge)
    return Hyperparameters(rows.unobserved, rows.ridge, share, ridge)


def evaluate(
    fit: Any,
    test: Any,
    n: int = PLACES,
    *,
    history: Any = None,
    random_state: int = 0,
    watch: Watch = SILENT,
    **columns: Any,
) -> FitEvaluation:
    """How well a fit to clicks ranks later choices, beside the most popular items, as `bifactor evaluate` shows it.

    Parameters
    ----------
    fit : Fit, path, CompletedMatrix or estimator
        The fit, or its folder.
    test : path, frame, tuple, matrix or Dataset
        Choices made since; see `Fit.fold_in`.
    n : int
        Length of the lists that are judged.
    history : path, frame, tuple, matrix or Dataset, optional
        Earlier choices of new users, which are added to the fit first.
    random_state : int
        Seed of the intervals.
    watch, **columns
        As for `complete`.

    Returns
    -------
    FitEvaluation
    """
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one place.")
    found = open_fit(fit, history)
    if not found.of_choices:
        raise InputError("This is a fit to values, whose errors are evaluated. Use completion.evaluate.")
    split, aside = split_later_choices(found, open_new_entries(found, test, watch, **columns))
    return FitEvaluation(found, evaluate_fit(found, split, int(n), random_state).card(), aside)
