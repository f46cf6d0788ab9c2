"""Completion of a matrix of numbers or labels from some of its entries, from data to report."""

from typing import TYPE_CHECKING

from bifactor._compat import lazy

if TYPE_CHECKING:
    from bifactor.applications.base import CompletedMatrix as CompletedMatrix
    from bifactor.applications.base import FitEvaluation as FitEvaluation
    from bifactor.applications.completion.predictions import Predictions as Predictions
    from bifactor.applications.completion.predictions import predict as predict
    from bifactor.applications.completion.workflow import complete as complete
    from bifactor.applications.completion.workflow import evaluate as evaluate
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            **dict.fromkeys(("CompletedMatrix", "FitEvaluation"), "bifactor.applications.base"),
            **dict.fromkeys(("Predictions", "predict"), "predictions"),
            **dict.fromkeys(("complete", "evaluate"), "workflow"),
        },
    )
