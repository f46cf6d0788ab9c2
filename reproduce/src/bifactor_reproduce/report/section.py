"""What the report tells of one experiment."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bifactor.errors import InputError
from bifactor_reproduce.harness.items import Figure, Findings, Table


@dataclass(frozen=True)
class Section:
    """An experiment, and what came of it."""

    name: str
    """On the command line; the section can be linked to by it."""
    title: str
    place: str
    """In the paper."""
    configuration: Any
    """The frozen dataclass of the scale that was run."""
    findings: Findings | None = None
    """None where nothing was run."""
    reason: str = ""
    """Why it was not run, or not all of it, in whole sentences."""
    failed: Sequence[tuple[str, str]] = ()
    """Cells without an outcome: the label of each, and what went wrong."""
    seconds: float = 0.0
    """Of the processor, all cells together."""

    @property
    def items(self) -> Sequence[Table | Figure]:
        """Tables and figures, none where nothing was run."""
        return () if self.findings is None else self.findings.items


def require_names(sections: Iterable[Section]) -> None:
    """Raise `InputError` where names cannot be those of files and links, or one stands for two things."""
    taken = set()
    for section in sections:
        names = [("section", section.name)]
        names += [("table" if isinstance(item, Table) else "figure", item.name) for item in section.items]
        for kind, name in names:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name):
                raise InputError(f"The {kind} {name!r} cannot be a file. Name it by letters, digits, - and _ only.")
            if (kind, name.lower()) in taken:  # some systems do not tell A from a in names of files
                raise InputError(f"Two are called {name!r}, each a {kind}. Give each a name of its own.")
            taken.add((kind, name.lower()))
