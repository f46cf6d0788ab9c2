"""Representations of a model, printed and in notebooks."""

from typing import TYPE_CHECKING

from bifactor.running.result import Figures, run_card
from bifactor.validation import counted

if TYPE_CHECKING:
    from bifactor.models.model import Model
    from bifactor.models.stored_pairs import Seen


class ShownFit:
    """Representations of a fit, from its model and known pairs."""

    model: "Model"
    seen: "Seen"

    def __repr__(self) -> str:
        return f"Fit({in_words(self.model)}, {counted(self.seen.size, 'pair')})"

    def _repr_html_(self) -> str:
        return model_card(self.model, "Fit", [(f"{self.seen.size:,}", "known pairs")])


def in_words(model: "Model") -> str:
    """Size, rank and loss."""
    m, n = (side.shape[0] for side in (model.U, model.V))
    return f"{m:,}×{n:,}, {counted(model.rank, 'component')}, {model.loss!r}"


def model_card(model: "Model", title: str, more: Figures = ()) -> str:
    """Card of a model: its run, and how its ridge was chosen."""
    noise = None if model.posterior is None else f"±{model.posterior.variance**0.5:.4g}"
    shown = [
        (model.rank, "components"),
        (None if model.ridge is None else f"{model.ridge:.4g}", "ridge"),
        (noise, "noise"),
        *more,
    ]
    factors = (model.U[:, model.fixed_columns :], model.V[:, model.fixed_columns :])
    pictures = [] if model.path is None else model.path.pictures()
    return run_card(title, in_words(model), model.result, shown, pictures, factors)
