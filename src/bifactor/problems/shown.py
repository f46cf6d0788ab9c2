"""The display of an objective in notebooks: its data, loss and factors."""

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bifactor.arrays import host, is_foreign
from bifactor.display.card import card, figures

if TYPE_CHECKING:
    from bifactor.problems.objective import Objective
    from bifactor.problems.problem import Problem


def objective_card(objective: "Objective") -> str:
    """The sizes of f, the factors and the penalties."""
    shown = [(_size(objective), "matrix"), (type(objective.f).__name__, "f"), *_factors(objective)]
    return card(type(objective).__name__, "F(U, V) = f(UVᴴ) + penalties", figures(shown))


def problem_card(problem: "Problem") -> str:
    """The same, and the loss, the operator and the data."""
    y = host(problem.y)
    m, n = problem.operator.shape
    low, high = (f"{end:.4g}" for end in (np.min(np.real(y)), np.max(np.real(y))))
    shown = [
        (_size(problem), "matrix"),
        (f"{y.shape[0]:,}", "measurements"),
        (f"{y.shape[0] / (m * n):.3g}", "measurements per entry"),
        (type(problem.operator).__name__, "operator"),
        (problem.loss, "loss"),
        (f"{low} to {high}", "y, real part" if np.iscomplexobj(y) else "y"),
        ("yes" if problem.weights is not None else None, "weights"),
        *((cells.given, "added to the loss") for cells in problem.f.cells),
        *_factors(problem),
    ]
    return card("Problem", "Σ wᵢ ℓ(zᵢ; yᵢ) with z = A(X), plus penalties", figures(shown))


def _size(objective: "Objective") -> str:
    m, n = objective.shape
    return f"{m:,}×{n:,}"


def _short(penalty: Any) -> str:
    """A penalty without the settings that are None."""
    if not is_dataclass(penalty):
        return repr(penalty)
    values = {part.name: getattr(penalty, part.name) for part in fields(penalty)}
    told = ", ".join(f"{name}={'…' if np.ndim(v) else repr(v)}" for name, v in values.items() if v is not None)
    return f"{type(penalty).__name__}({told})"


def _factors(objective: "Objective") -> list[tuple[object, object]]:
    like = objective.f.like
    library = f", {type(like).__module__.split('.')[0]}" if is_foreign(like) else ""
    return [
        (objective.kind.describe(), "factors"),
        *((_short(penalty), "penalty") for penalty in objective.penalties),
        (f"{objective.dtype}{library}", "precision"),
    ]
