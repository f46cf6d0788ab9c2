"""The display of a run in notebooks: its status, sizes and history."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bifactor.arrays import Array, host
from bifactor.display.card import BAD, FAIR, GOOD, card, charts, figures, sentence
from bifactor.display.svg import CARD, bar_chart, line_chart, thinned
from bifactor.factors import Free

if TYPE_CHECKING:
    from bifactor.running.rank_path import RankPath
    from bifactor.running.result import History, Result, Status

Figures = Sequence[tuple[object, object]]


class ShownStatus:
    """Shows a status as its sentence in notebooks. (A base class, because Enum reserves names like `_repr_html_`.)"""

    def _repr_html_(self: Any) -> str:
        return card(self.name, "", status_line(self))


def status_line(status: "Status") -> str:
    """The sentence of a status."""
    colour = GOOD if status.converged else BAD if status.name == "DIVERGED" else FAIR
    return sentence(str(status), colour)


def result_card(result: "Result") -> str:
    """The status, sizes and charts of a result."""
    m, n = result.shape
    path = () if result.rank_path is None else (rank_chart(result.rank_path),)
    return run_card("Result", f"{m:,}×{n:,} of rank {result.rank}", result, more_charts=path)


def run_card(
    title: str,
    detail: str,
    result: "Result",
    more: Figures = (),
    more_charts: Sequence[str] = (),
    factors: tuple[Array, Array] | None = None,
) -> str:
    """A card of a run, with additional figures and charts; the spectrum is that of `factors`, if given."""
    misfit = None if result.misfit is None else f"{result.misfit:.3g}"
    shown = [
        *more,
        (f"{result.n_iter:,}", "iterations"),
        (f"{result.objective:.6g}", "objective"),
        (misfit, "misfit ‖A(X) − y‖/‖y‖"),
        (f"{result.history.seconds[-1]:.3g} s", "time"),
        (result.solver.split("(")[0], "solver"),
    ]
    pictures = [objective_chart(result.history), spectrum_chart(*(factors or (result.U, result.V)))]
    return card(title, detail, status_line(result.status), figures(shown), charts(*pictures, *more_charts))


def objective_chart(history: "History") -> str:
    """The objective against the iterations, on a logarithmic axis if it is positive."""
    some = thinned(history.objective.size)
    values, log = history.objective[some], bool(np.all(history.objective > 0))
    return line_chart(some, values, "iteration", "objective", whole_x=True, log_y=log, frame=CARD)


def spectrum_chart(U: Array, V: Array) -> str:
    """The singular values of UVᴴ."""
    values = np.zeros(0) if U.shape[1] == 0 else host(Free().pair(U, V).triplets()[1])
    return bar_chart(values, "component", "singular value", CARD)


def rank_chart(path: "RankPath") -> str:
    """The held-out loss against the rank, with the choice circled."""
    chosen = int(np.flatnonzero(path.rank == path.chosen)[0])
    names = ("rank", "held-out loss")
    return line_chart(path.rank, path.held_out, *names, whole_x=True, errors=path.error, mark=chosen, frame=CARD)
