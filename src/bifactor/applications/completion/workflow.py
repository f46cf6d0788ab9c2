"""Completion from data to report: hold out, fit, score beside the simplest rival, fit again to all, and report."""

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bifactor.applications.base import (
    Clock,
    CompletedMatrix,
    DataSource,
    FitEvaluation,
    Output,
    Pathlike,
    collect_warnings,
    columns_card,
    holdout_mask,
    in_memory,
    names_columns,
    open_fit,
    open_new_entries,
    open_source,
    require_executor,
    run_on,
    settings_card,
    with_checkpoint,
)
from bifactor.applications.completion.report import report
from bifactor.applications.memory import block_memory, require_free_memory, sample_memory, saved_memory
from bifactor.applications.watch import SILENT, AfterFit, Watch
from bifactor.arrays import Array
from bifactor.data import CellMask, Dataset
from bifactor.data.dataset import MAX_LEVELS
from bifactor.errors import InputError
from bifactor.executors import Executor
from bifactor.losses.base import SIGNS
from bifactor.models import Fit, Model
from bifactor.models.completion.fitting import (
    MAX_SEARCH_ENTRIES,
    CompletionSettings,
    after_search,
    check_targets,
    fit_model,
    validate_settings,
)
from bifactor.models.completion.labels import Labels, two_classes
from bifactor.models.completion.noise_selection import MAX_NOISE_SELECTION_ENTRIES, candidates, solver_of
from bifactor.models.hyperparameters import MAX_RANK
from bifactor.models.metrics import held_out_scores, score_file
from bifactor.models.provenance import about_data, about_fit, about_machine, about_path
from bifactor.penalties import Ridge
from bifactor.problems.objective import Objective
from bifactor.running.memory import entries_memory
from bifactor.running.result import Status
from bifactor.solvers import PCG, Solver, Variational
from bifactor.validation import pluralize

HELD_OUT, RIVAL = "held out", "baseline"
"""Scores at held-out entries: of the first fit, and of an intercept with offsets of rows and columns."""


def complete(
    data: Any,
    *,
    n_components: int | str = "auto",
    loss: Any = "squared",
    ridge: float | str | None = None,
    noise: str = "auto",
    offsets: bool = True,
    clip: str | bool | tuple[float, float] = "auto",
    holdout: float | CellMask = 0.0,
    test: Any = None,
    implicit: bool | None = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
    random_state: int = 0,
    executor: Executor | None = None,
    workers: int | None = None,
    checkpoint: Pathlike | None = None,
    output: Pathlike | None = None,
    force: bool = False,
    error_bars: bool = True,
    verbose: int = 0,
    watch: Watch = SILENT,
    **columns: Any,
) -> CompletedMatrix:
    """Complete a matrix from some of its entries, as `bifactor complete` does.

    With `holdout`, a first fit without some entries is scored at these, beside an intercept with offsets of rows and
    columns; then all entries are fitted with the rank, the ridge and the noise that it has chosen. Ctrl-C ends a stage
    and leaves out the later ones: what was fitted is returned, and a note says what is missing.

    Parameters
    ----------
    data : path, frame or Dataset
        What `bifactor.data.read` takes, observations in memory or in blocks, or the folder of a block store.
    n_components, loss, ridge, noise, offsets, clip, max_iter, tol
        As for `MatrixCompletion`.
    holdout : float or CellMask
        Share of the entries to hold out, or the cells, as `data.RandomLines(0.1, 0)`.
    test : path, frame or Dataset, optional
        Other entries to score the fit on, by the names of their rows and columns.
    implicit : False or None
        None raises an error for data that look like clicks; see `recommender.complete`.
    random_state : int
        Seed of the held-out entries, the choices and the start.
    executor, workers
        For a block store: where passes run, or a number of processes on this machine.
    checkpoint : path, optional
        File to save the run to, and to resume it from.
    output : path, optional
        Folder to write, as by `CompletedMatrix.save` with `force` and `error_bars`.
    verbose : int
        1 shows what is being chosen and fitted.
    watch : Watch
        What follows the work, as the command does on a terminal.
    **columns
        Arguments of `data.read`: row, col, value, weight, wide and others.

    Returns
    -------
    CompletedMatrix
    """
    given = {"loss": loss, "ridge": ridge, "noise": noise, "offsets": offsets, "clip": clip}
    limits = {"max_iter": max_iter, "tol": tol}
    shown = {"rank": n_components, **given, "holdout": holdout, **limits, "seed": random_state}
    settings = validate_settings(
        n_components=n_components, **given, **limits, random_state=random_state, solver=None, verbose=verbose
    )
    settings = with_checkpoint(settings, checkpoint)
    mask, place = holdout_mask(holdout, settings.seed), Output.of(output, force, error_bars)
    require_executor(executor, workers)
    clock = Clock()
    source = open_source(data, watch, **columns)
    if settings.loss.targets is not SIGNS or implicit:
        require_values(source, implicit)
    # The columns apply to both files.
    same = {**columns, "wide": columns.get("wide") if source.is_wide else False}
    tests = None if test is None else open_source(test, watch, **(same if names_columns(test) else {}))
    clock.read()
    entries, labels, notes = encode_entries(source, settings)
    with run_on(executor, workers) as where, watch.after_fit() as rest:
        settings = replace(settings, executor=where)
        memory = require_fit_memory(entries, settings, workers)
        watch.memory(memory)
        work = CompletionWork(entries, labels, settings, notes, watch, rest)
        fit, first, pairs = work.run(mask, tests)
        card = {
            "machine": about_machine(),
            "data": {**about_data(source.path, source.data), "repeated": entries.size - fit.seen.size},
            "settings": settings_card(**shown, **columns_card(columns)),
            "fit": about_fit(fit.model),
            "path": about_path(first),
            "memory": memory,
            "scores": work.scores,
            "notes": notes,
            "timings": clock.card(),
        }
        return place.finish(fit, card, lambda: report(card, pairs), rest)


def require_values(source: DataSource, implicit: bool | None) -> None:
    """Raise `InputError` for data that look like clicks, unless `implicit` is False."""
    if implicit:
        raise InputError("implicit=True is for clicks, plays and purchases. Use recommender.complete.")
    about = source.data.summary()
    if implicit is None and about.constant and about.least == 1:
        raise InputError(
            f"All {pluralize(source.data.size, 'value')} in {source.name} are 1, as in data of clicks, plays or "
            "purchases. Pass --implicit to fit them as such, or --no-implicit to fit them as numbers (in Python, "
            "recommender.complete or implicit=False)."
        )


def encode_entries(source: DataSource, settings: CompletionSettings) -> tuple[Dataset, Labels | None, list[str]]:
    """The entries encoded for the loss, how labels were encoded, and notes for the user."""
    entries, loss, notes, labels = source.data, settings.loss, list[str](), None
    about = entries.summary()
    if about.constant:
        notes.append(f"All values are {about.least:g}, so rows and columns do not differ.")
    try:
        if loss.targets is SIGNS:
            if about.levels is None:
                raise InputError(f"There are more than {MAX_LEVELS} different values, not two. Code them as 0 and 1.")
            classes = two_classes(about.levels)
            lower, upper = (f"{value:g}" for value in classes)
            notes.append(f"Values {lower} and {upper} are two classes; predictions are probabilities of {upper}.")
            labels = Labels((float(classes[0]), float(classes[1])))
            entries = entries.recode(labels)
        check_targets(entries, loss)
    except InputError as error:
        raise InputError(f"{source.name}: {error}") from None
    origin = entries.origin
    if origin is not None and origin.missing and not origin.wide and entries.in_memory:
        notes.append(f"Left out: {pluralize(origin.missing, 'line')} without a value.")
    return entries, labels, notes


def require_fit_memory(data: Dataset, settings: CompletionSettings, workers: int | None = None) -> int:
    """The memory that the fit will take, in bytes. Raise if that is more than there is."""
    rank = MAX_RANK if settings.n_components is None else settings.n_components
    tried: list[tuple[int, Solver | None]] = [(rank, None)]
    if settings.posterior:
        whole = data.in_memory
        implicit = settings.implicit is not False and whole
        every = candidates(settings.noise, settings.n_components, data.shape, implicit, in_blocks=not whole)
        tried = [(one.rank, one.solver) for one in every]
    needed = max((_memory(data, settings, rank, solver, workers) for rank, solver in tried), default=0)
    return require_free_memory(needed, data, settings)


def _memory(data: Dataset, settings: CompletionSettings, rank: int, solver: Solver | None, workers: int | None) -> int:
    size = data.size
    if data.in_memory:
        return entries_memory(data.shape, size, rank, data.dtype, solver)
    penalty = Ridge(1.0) if solver is None else None
    problem = Objective(data.bind(settings.loss, executor=settings.executor), penalty, offsets=settings.offsets)
    needed = block_memory(problem, min(rank, *data.shape), solver or PCG(), size, workers)
    needed += saved_memory(problem, min(rank, *data.shape)) if settings.posterior else 0
    if settings.ridge is not None and settings.n_components is not None and not settings.loss.located:
        return needed
    most = MAX_NOISE_SELECTION_ENTRIES if settings.posterior else MAX_SEARCH_ENTRIES
    return max(needed, sample_memory(data.shape, size, most, rank, solver))


Pairs = tuple[Array, Array]
"""Observed and predicted values at some entries."""


@dataclass(frozen=True, eq=False)
class CompletionWork:
    """The stages of a completion, with the notes and the scores that they add."""

    entries: Dataset
    labels: Labels | None
    settings: CompletionSettings
    notes: list[str]
    watch: Watch
    rest: AfterFit
    scores: dict[str, Any] = field(default_factory=dict)

    def run(self, mask: CellMask | None, tests: DataSource | None) -> tuple[Fit, Model, Pairs | None]:
        """The fit to all entries, the first fit, and values with their predictions at entries that it has not seen."""
        data, settings, rest = self.entries, self.settings, self.rest
        if settings.n_components is not None and settings.n_components > min(data.shape):
            self.notes.append(f"The rank was cut to {min(data.shape)}, the smaller side of the matrix.")
        train, part = (data, data) if mask is None else hold_out(data, mask)
        first = self.fit(train, settings if mask is None else replace(settings, checkpoint=None), "fitting")
        fit = Fit.of(first, data)
        if fit.seen.size < data.size:
            repeated = data.size - fit.seen.size
            self.notes.append(f"Entries that repeat a pair: {repeated:,}; each was kept as a separate measurement.")
        rest.keep()
        pairs, model = None, first
        if mask is not None:
            pairs = self.judge(first, train, part)
            model = self.refit(first)
        self.describe(model, partly=mask is not None and model is first)
        fit = replace(fit, model=model)
        if tests is not None:
            scored = rest.stage("the score at --test", lambda: score_file(fit, tests.observations, tests.path))
            if scored is not None:
                self.scores["test"], predicted, values = scored
                pairs = (values, predicted) if pairs is None else pairs
        return fit, first, pairs

    def fit(self, data: Dataset, settings: CompletionSettings, what: str, start: Model | None = None) -> Model:
        """A fit under the watch, whose warnings become notes."""
        automatic = settings.ridge is None or settings.n_components is None
        before = "choosing the ridge" if settings.ridge is None else "choosing the rank" if automatic else "starting"
        before = "choosing the noise" if settings.posterior else before
        with collect_warnings(self.notes), self.watch.fitting(what, before, data.size) as show:
            watched = replace(settings, callback=show.iterations(settings.max_iter), stage=show.stage)
            model = fit_model(data, watched, start)
            show.ended(model.result.status)
        if model.search is not None and model.search.interrupted:
            chosen = {"noise": "noise model"}.get(model.search.what, model.search.what)
            self.notes.append(f"Ctrl-C ended the search for the {chosen} early; the best so far was used.")
        return model.with_recoding(self.labels)

    def judge(self, first: Model, train: Dataset, part: Dataset) -> Pairs | None:
        """Score the first fit at the held-out entries, and its simplest rival, unless that is the fit itself."""
        where = self.settings.executor
        judged = self.rest.stage("the score at held-out entries", lambda: held_out_scores(first, part, where))
        if judged is not None:
            self.scores[HELD_OUT] = judged[0]
        if first.rank:
            rival = self.rest.stage("the baseline", lambda: held_out_scores(self.rival(first, train), part, where))
            if rival is not None:
                self.scores[RIVAL] = rival[0]
        return None if judged is None else (judged[1], judged[2])

    def rival(self, first: Model, train: Dataset) -> Model:
        """An intercept with offsets of rows and columns, with the ridge and the noise that a first fit has chosen."""
        settings = settings_of(first, self.settings)
        solver = settings.solver
        if isinstance(solver, Variational):
            solver = replace(solver, implicit=False)
        settings = replace(settings, n_components=0, offsets=True, solver=solver, implicit=False, checkpoint=None)
        model = replace(self, notes=[]).fit(without_features(train), settings, "fitting the baseline")
        if model.result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return model

    def refit(self, first: Model) -> Model:
        """The fit to all entries, with what the first fit has chosen; the first one if that was interrupted."""
        if first.result.status is Status.INTERRUPTED or not first.U.shape[1]:  # without columns, X = 0 for any data
            return first
        data = self.entries if first.rows.uses_features else without_features(self.entries)
        settings = settings_of(first, self.settings)
        again = self.rest.stage(
            "the fit to all entries", lambda: self.fit(data, settings, "fitting all entries", first)
        )
        return first if again is None else replace(again, search=first.search)

    def describe(self, model: Model, partly: bool) -> None:
        """Note that a fit has no components, or was interrupted."""
        if model.rank == 0:
            what = "an intercept and offsets of rows and columns" if model.offsets else "0 everywhere"
            self.notes.append(f"The fit has rank 0, which means no components: it is {what}.")
        if model.result.status is Status.INTERRUPTED:
            some = " to the entries that were not held out" if partly else ""
            self.notes.append(f"Interrupted: this is the best fit{some} so far.")


def hold_out(data: Dataset, mask: CellMask) -> tuple[Dataset, Dataset]:
    """The entries for the first fit and those held out from it."""
    train, part = data.split(mask)
    if not train.size or not part.size:
        raise InputError(f"Nothing can be held out of {pluralize(data.size, 'entry')}. Leave out --holdout.")
    return train, part


def settings_of(first: Model, settings: CompletionSettings) -> CompletionSettings:
    """Settings with the rank, ridges and solver that an earlier fit has chosen."""
    solver = solver_of(first.search) if first.search is not None and first.posterior is not None else settings.solver
    settings = after_search(settings, first.search)
    settings = replace(settings, ridge=first.rows.ridge, offset_ridge=first.rows.offset_ridge)
    return replace(settings, n_components=first.rank, solver=solver)


def without_features(data: Dataset) -> Dataset:
    """The entries without features of rows and columns."""
    if data.features == (None, None):
        return data
    return replace(in_memory(data), row_features=None, column_features=None)


def evaluate(fit: Any, test: Any, *, history: Any = None, watch: Watch = SILENT, **columns: Any) -> FitEvaluation:
    """Errors of a fit to values at other entries, as `bifactor evaluate` shows them.

    Parameters
    ----------
    fit : Fit, path, CompletedMatrix or estimator
        The fit, or its folder.
    test : path, frame, tuple, matrix or Dataset
        Entries that should not have been in its data; see `Fit.fold_in`.
    history : path, frame, tuple, matrix or Dataset, optional
        Entries of new rows, which are added to the fit first.
    watch, **columns
        As for `complete`.

    Returns
    -------
    FitEvaluation
    """
    found = open_fit(fit, history)
    if found.of_choices:
        raise InputError("This is a fit to clicks, whose rankings are evaluated. Use recommender.evaluate.")
    data = open_new_entries(found, test, watch, **columns)
    return FitEvaluation(found, score_file(found, data, Path(test) if isinstance(test, str | os.PathLike) else None)[0])
