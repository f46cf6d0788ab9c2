"""What an experiment is: cells that can be computed one by one, and what they show together."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from bifactor_reproduce.harness.items import Findings
from bifactor_reproduce.harness.sources import Sources

Scale = Literal["quick", "paper"]

SCALES: tuple[Scale, ...] = ("quick", "paper")

Cell = TypeVar("Cell")
"""A frozen dataclass of numbers, texts and tuples: all that an outcome depends on, its seed included."""

Outcome = dict[str, Any]
"""What a cell gives: numbers, texts, lists and dictionaries, as JSON has them.

What a clock says has `seconds` in its name; all else is the same each time.
"""


class Finished(NamedTuple, Generic[Cell]):
    """A cell and what it gave."""

    cell: Cell
    outcome: Outcome


class Experiment(ABC, Generic[Cell]):
    """One section of the paper."""

    name: ClassVar[str]
    """On the command line."""

    title: ClassVar[str]

    place: ClassVar[str]
    """In the paper: the section, and its tables and figures."""

    revision: ClassVar[int] = 1
    """Raised when the code changes what cells give, so that old outcomes are not taken for new ones."""

    configurations: ClassVar[Mapping[Scale, Any]]
    """A frozen dataclass for each scale: sizes, ranks, seeds, tolerances."""

    def missing(self, sources: Sources) -> str | None:
        """Why the experiment cannot be run with these data; None where it can."""
        return None

    @abstractmethod
    def cells(self, scale: Scale, sources: Sources) -> list[Cell]:
        """All cells of a scale, each once."""

    @abstractmethod
    def run(self, cell: Cell, sources: Sources) -> Outcome:
        """Compute one cell; the same numbers each time, processor seconds aside."""

    @abstractmethod
    def findings(self, finished: Sequence[Finished[Cell]]) -> Findings:
        """Tables, figures and verdicts, from all cells of a scale; a cell that failed is not among them."""

    @abstractmethod
    def label(self, cell: Cell) -> str:
        """The cell in a few words, for the progress bar."""


def key(experiment: Experiment[Any], cell: Any) -> str:
    """The name under which the outcome of a cell is kept: a hash of everything it depends on."""
    told = {"experiment": experiment.name, "revision": experiment.revision, "cell": asdict(cell)}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:20]
