"""Searches for settings: candidates, how well each predicts what is held out, and what Ctrl-C means meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import numpy as np

from bifactor.arrays import Array
from bifactor.display.listing import Listing, cell_text
from bifactor.display.svg import CARD, line_chart
from bifactor.validation import pluralize

if TYPE_CHECKING:
    from bifactor.running.holdout import Holdout
    from bifactor.running.progress import Stage
    from bifactor.running.result import Result

Candidate = TypeVar("Candidate")

LOGARITHMIC = ("ridge",)
"""Settings that differ by factors."""


@dataclass(frozen=True, eq=False, repr=False)
class Search(Listing):
    """Settings that were tried, how well each predicts, and which were chosen.

    It prints as a table; `search["ridge"]` is one of its columns, and `search.chosen["ridge"]` what was chosen.
    """

    what: str
    """What was sought: "rank", "ridge", "noise" or "weights"."""
    settings: Mapping[str, Array]
    """The candidates: one array for each setting."""
    score: Array
    """Mean score of each candidate."""
    index: int
    """Index of the candidate that was chosen."""
    standard_error: Array | None = None
    """Standard error of the difference to the best score, from the differences of each measurement; None if unknown."""
    interrupted: bool = False
    """Whether Ctrl-C ended the search."""
    measure: str = "held-out loss"
    """What the score is."""
    details: Mapping[str, Array] = field(default_factory=dict)
    """Other numbers of the candidates, such as the loss at the measurements that were fitted."""

    @classmethod
    def of_losses(
        cls,
        what: str,
        settings: Mapping[str, Array],
        losses: Sequence[Array],
        holdout: "Holdout",
        *,
        index: int | None = None,
        interrupted: bool = False,
    ) -> Self:
        """The search that has these losses at what is held out; by default, the smallest mean is chosen."""
        means = np.array([holdout.mean(each) for each in losses])
        best = int(np.argmin(means))
        errors = np.array([holdout.standard_error(each - losses[best]) for each in losses])
        return cls(what, settings, means, best if index is None else index, errors, interrupted)

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings that were chosen."""
        return {name: column[self.index].item() for name, column in self.settings.items()}

    def columns(self) -> dict[str, Array]:
        """The columns by name: settings, details, scores and, if they are known, their standard errors."""
        found = {**self.settings, **self.details, "score": self.score}
        return found if self.standard_error is None else {**found, "standard_error": self.standard_error}

    def lines(self) -> list[dict[str, Any]]:
        """The candidates, one dictionary of Python numbers and words for each."""
        columns = {name: column.tolist() for name, column in self.columns().items()}
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def __getitem__(self, name: str) -> Array:
        return self.columns()[name]

    def axis(self) -> tuple[str, Array]:
        """What the scores are drawn against: the setting that was sought, or the number of the candidate."""
        column = self.settings.get(self.what)
        if column is None or column.dtype.kind not in "iuf":
            return "candidate", np.arange(1, self.score.size + 1)
        return self.what, column

    def pictures(self) -> list[str]:
        """A chart of the scores, with the choice circled, as SVG."""
        name, x = self.axis()
        log = name in LOGARITHMIC  # 0 has no place on a logarithmic axis
        shown = np.isfinite(self.score) & ((x > 0) | (not log))
        if not shown.any():
            return []
        mark = int(np.count_nonzero(shown[: self.index])) if shown[self.index] else None
        errors = None if self.standard_error is None else self.standard_error[shown]
        options: dict[str, Any] = {"whole_x": not log, "log_x": log, "errors": errors, "mark": mark, "frame": CARD}
        return [line_chart(x[shown], self.score[shown], name, self.measure, **options)]

    def _about(self) -> str:
        chosen = ", ".join(f"{name} {cell_text(value)}" for name, value in self.chosen.items())
        tried = f"{pluralize(self.score.size, 'candidate')} tried by {self.measure}"
        return f"{tried}; chosen: {chosen}{'; interrupted by Ctrl-C' if self.interrupted else ''}"


def rank_search(rank: Array, train: Array, held_out: Array, error: Array, interrupted: bool = False) -> Search:
    """The search for a rank that chooses the first whose held-out loss is within one standard error of the best.

    `train` is the mean loss over the measurements that were fitted, `held_out` over those that were not.
    """
    index = int(np.flatnonzero(held_out - np.min(held_out) <= error)[0])
    return Search("rank", {"rank": rank}, held_out, index, error, interrupted, details={"train": train})


class Trials(Generic[Candidate]):
    """A search while it goes on: the one rule for Ctrl-C, and the line of progress.

    As a context, it ends a search after Ctrl-C as soon as a candidate has been tried, as there is a choice then; before
    that, `KeyboardInterrupt` propagates.
    """

    def __init__(self, stage: "Stage | None" = None):
        self.stage = stage
        self.tried = list[Candidate]()
        self.interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        ends = isinstance(error, KeyboardInterrupt) and bool(self.tried)
        self.interrupted = self.interrupted or ends
        return ends

    def announce(self, what: str, done: int, most: int) -> None:
        """Show what is being chosen, the number of candidates tried, and the largest number of them."""
        if self.stage is not None:
            self.stage(what, done, most)


def require_complete(result: "Result") -> "Result":
    """The result of a fit; raises `KeyboardInterrupt` if Ctrl-C ended it, as part of a fit is no candidate."""
    if result.status.name == "INTERRUPTED":
        raise KeyboardInterrupt
    return result
