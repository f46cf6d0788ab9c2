"""From names of experiments to a report: what is still to be computed, and what there is to tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bifactor.errors import FileError, InputError
from bifactor_reproduce.balance.role_of_g import RoleOfG
from bifactor_reproduce.harness.experiment import Experiment, Finished, Scale
from bifactor_reproduce.harness.runner import Failure, Task, Watcher, run_all
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.harness.store import Store
from bifactor_reproduce.images.experiment import Images
from bifactor_reproduce.movielens.experiment import MovieLens
from bifactor_reproduce.noiselets.sensing import Sensing
from bifactor_reproduce.noiselets.starts import Starts
from bifactor_reproduce.one_bit.noise import OneBitNoise
from bifactor_reproduce.one_bit.samples import OneBitSamples
from bifactor_reproduce.report import Section, write_report
from bifactor_reproduce.svd.svd_cost import SvdCost

EXPERIMENTS: dict[str, Experiment[Any]] = {
    experiment.name: experiment
    for experiment in (
        SvdCost(),
        RoleOfG(),
        Sensing(),
        Starts(),
        Images(),
        OneBitNoise(),
        OneBitSamples(),
        MovieLens(),
    )
}
"""In the order of the paper."""

CELLS = "cells"
"""Where in the folder of a report outcomes are kept."""

LATER = "Not all of its cells are computed yet; the same command goes on where it was left."


@dataclass(frozen=True)
class Plan:
    """What is asked for, and where it goes."""

    names: tuple[str, ...]
    scale: Scale
    folder: Path
    sources: Sources

    @property
    def store(self) -> Store:
        return Store(self.folder / CELLS)

    @property
    def tasks(self) -> list[Task]:
        """The cells of all experiments that can be run, in the order of the paper."""
        return [
            Task(experiment, cell)
            for name, experiment in EXPERIMENTS.items()
            if name in self.names and experiment.missing(self.sources) is None
            for cell in experiment.cells(self.scale, self.sources)
        ]

    def pending(self) -> list[Task]:
        """Those that the store does not have."""
        return [task for task in self.tasks if self.store.read(task.experiment, task.cell) is None]


def require_folder(folder: Path) -> None:
    """Raise `InputError` where `folder` is a file, or holds something that is no report of ours."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, but the output is a folder. Choose another name.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / CELLS).is_dir():
        raise InputError(f"{folder} holds other things than a report. Choose another name, or an empty folder.")


def carry_out(plan: Plan, jobs: int, about: Mapping[str, Any], watcher: Watcher) -> tuple[list[Section], list[Failure]]:
    """Compute what is missing and write the report; after Ctrl-C that of the experiments which are complete."""
    try:
        (plan.folder / CELLS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{plan.folder} cannot be made: {error.strerror}. Choose another folder.") from None
    failures: list[Failure] = []
    try:
        failures = run_all(plan.pending(), plan.sources, plan.store, jobs, watcher)
    finally:
        told = sections(plan, failures)
        write_report(plan.folder, told, about)
    return told, failures


def sections(plan: Plan, failures: Sequence[Failure]) -> list[Section]:
    """What is known of each experiment that is asked for, and of others whose cells are all there."""
    told = []
    for name, experiment in EXPERIMENTS.items():
        section = _section(plan, experiment, [f for f in failures if f.task.experiment is experiment])
        if name in plan.names or (section.findings is not None and not section.reason):
            told.append(section)
    return told


def _section(plan: Plan, experiment: Experiment[Any], failures: Sequence[Failure]) -> Section:
    configuration = experiment.configurations[plan.scale]
    head = (experiment.name, experiment.title, experiment.place, configuration)
    missing = experiment.missing(plan.sources)
    if missing is not None:
        return Section(*head, reason=missing)
    cells = experiment.cells(plan.scale, plan.sources)
    known = [(cell, plan.store.read(experiment, cell)) for cell in cells]
    finished = [Finished(cell, outcome) for cell, outcome in known if outcome is not None]
    failed = [(experiment.label(failure.task.cell), failure.reason) for failure in failures]
    seconds = sum(outcome["processor_seconds"] for _, outcome in finished)
    if len(finished) + len(failed) < len(cells) or not finished:
        return Section(*head, reason=LATER if not failed else "", failed=failed, seconds=seconds)
    return Section(*head, experiment.findings(finished), failed=failed, seconds=seconds)
