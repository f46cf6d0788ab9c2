"""`bifactor reproduce`: the paper's tables and figures, computed anew."""

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bifactor.cli.options import INPUT, json_option
from bifactor.cli.output import emit_json, interrupt_code, print_line, stderr, wants_json
from bifactor.errors import InputError
from bifactor.kernels.threading import thread_count
from bifactor.models.provenance import about_machine
from bifactor.plots import matplotlib_or_advice
from bifactor_reproduce.harness.experiment import SCALES, Scale
from bifactor_reproduce.harness.runner import Failure, Task, Watcher
from bifactor_reproduce.harness.sources import Sources
from bifactor_reproduce.plan import EXPERIMENTS, Plan, carry_out, require_folder
from bifactor_reproduce.report import Section

ALL, LIST = "all", "list"

EXAMPLES = """\b
Examples:
  bifactor reproduce list                        what there is
  bifactor reproduce all                         everything, in minutes
  bifactor reproduce sensing --scale paper       one experiment at the paper's sizes
  bifactor reproduce images --photos pictures/   with photographs of your own
"""

WORDS = {True: "holds", False: "does not hold", None: "cannot tell"}


@click.command(epilog=EXAMPLES)
@click.argument("names", nargs=-1, metavar="[NAME…|all|list]")
@click.option("--scale", type=click.Choice(SCALES), default="quick", show_default=True, help="Sizes: ours or theirs.")
@click.option("-o", "--output", "folder", type=INPUT, default="report", show_default=True, help="Folder of the report.")
@click.option("--jobs", type=click.IntRange(min=1), help="Cells side by side, each on one core; all cores by default.")
@click.option("--photos", type=INPUT, help="Folder of photographs, for images.")
@click.option("--ratings", type=INPUT, help="Table of users, films and ratings, for movielens.")
@json_option
def reproduce(
    names: tuple[str, ...], scale: Scale, folder: Path, jobs: int | None, photos: Path | None, ratings: Path | None
) -> None:
    """Run the paper's experiments and write a report with its numbers beside ours.

    An experiment is made of cells, which are kept in the folder of the report as soon as they are done: a run that was
    killed goes on where it was when the same command is given again, and no cell is computed twice.
    """
    if LIST in names:
        _list(scale)
        return
    chosen = _chosen(names)
    require_folder(folder)
    matplotlib_or_advice()
    plan = Plan(chosen, scale, folder, Sources.found(photos, ratings))
    _require_data(plan, names)
    jobs = jobs or thread_count()
    total = len(plan.tasks)
    try:
        with _watched(total, total - len(plan.pending())) as watcher:
            sections, failures = carry_out(plan, jobs, _about(scale, jobs), watcher)
    except KeyboardInterrupt:
        print_line(f"Interrupted. What is done is kept in {folder}; the same command goes on from there.")
        click.get_current_context().exit(interrupt_code())
    _tell(plan, sections, failures)
    if failures:
        click.get_current_context().exit(1)


def _chosen(names: Sequence[str]) -> tuple[str, ...]:
    unknown = [name for name in names if name not in EXPERIMENTS and name != ALL]
    if unknown:
        raise InputError(f"There is no experiment {unknown[0]!r}. Choose from {', '.join(EXPERIMENTS)}, or all.")
    return tuple(EXPERIMENTS) if not names or ALL in names else tuple(dict.fromkeys(names))


def _require_data(plan: Plan, names: Sequence[str]) -> None:
    """An experiment that was asked for by its name is not left out silently."""
    for name in names:
        reason = None if name == ALL else EXPERIMENTS[name].missing(plan.sources)
        if reason is not None:
            raise InputError(reason)


def _list(scale: Scale) -> None:
    if wants_json():
        emit_json({"experiments": [{"name": e.name, "title": e.title, "place": e.place} for e in EXPERIMENTS.values()]})
        return
    sources = Sources.found()
    for experiment in EXPERIMENTS.values():
        print_line(f"{experiment.name:<16} {experiment.title} ({experiment.place})")
        missing = experiment.missing(sources)
        many = "" if missing else f"{len(experiment.cells(scale, sources))} cells at {scale} scale"
        print_line(" " * 17 + (missing or many))


def _about(scale: Scale, jobs: int) -> dict[str, Any]:
    machine = about_machine()
    return {
        "scale": scale,
        "written": machine["created"],
        "python": machine["python"],
        "system": machine["system"],
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cells side by side": jobs,
        "threads of a cell": 1,
        "packages": machine["packages"],
    }


def _processor() -> str:
    """What Linux calls it, or what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


@contextmanager
def _watched(total: int, done: int) -> Iterator[Watcher]:
    """A bar on a terminal; elsewhere a line for each cell."""
    console = stderr()
    columns = (
        MofNCompleteColumn(),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=total, completed=done)

        def watcher(running: Sequence[Task], ended: Task | None) -> None:
            bar.update(task, description=" | ".join(map(str, running)), advance=0 if ended is None else 1)
            if ended is not None and not console.is_terminal:
                console.print(f"{bar.tasks[0].completed:.0f}/{total} {ended}", markup=False)

        yield watcher


def _tell(plan: Plan, sections: Sequence[Section], failures: Sequence[Failure]) -> None:
    page = plan.folder / "index.html"
    if wants_json():
        emit_json(
            {
                "report": str(page),
                "scale": plan.scale,
                "experiments": [_as_json(section) for section in sections],
                "failed": [{"cell": str(failure.task), "reason": failure.reason} for failure in failures],
            }
        )
        return
    for section in sections:
        print_line(f"{section.title} ({section.place})")
        for verdict in () if section.findings is None else section.findings.verdicts:
            print_line(f"  {WORDS[verdict.holds]:<14} {verdict.claim} {verdict.numbers}")
        if section.reason:
            print_line(f"  not run: {section.reason}")
    for failure in failures:
        print_line(f"failed: {failure.task}: {failure.reason}")
    print_line(f"written {page}")


def _as_json(section: Section) -> dict[str, Any]:
    verdicts = () if section.findings is None else section.findings.verdicts
    told = [asdict(verdict) for verdict in verdicts]
    return {"name": section.name, "reason": section.reason, "seconds": section.seconds, "verdicts": told}
