"""Outcomes on disk: one small file for each cell, named by what it depends on, so that no cell is computed twice."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bifactor.running.files import write_atomically
from bifactor_reproduce.harness.experiment import Experiment, Outcome, key


@dataclass(frozen=True)
class Store:
    """A folder of outcomes."""

    folder: Path

    def path(self, experiment: Experiment[Any], cell: Any) -> Path:
        return self.folder / experiment.name / f"{key(experiment, cell)}.json"

    def read(self, experiment: Experiment[Any], cell: Any) -> Outcome | None:
        """What the cell gave, None where it is still to be computed: a file that cannot be read is as good as none."""
        try:
            kept = json.loads(self.path(experiment, cell).read_text(encoding="utf-8"))
            outcome = kept["outcome"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return outcome if isinstance(outcome, dict) else None

    def write(self, experiment: Experiment[Any], cell: Any, outcome: Outcome) -> None:
        """Keep an outcome, whole or not at all."""
        path = self.path(experiment, cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"cell": asdict(cell), "outcome": outcome}, allow_nan=False).encode())
