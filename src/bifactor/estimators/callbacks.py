"""Fits with scikit-learn's callbacks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from bifactor.kernels.threading import threads
from bifactor.models.completion.fitting import CompletionSettings, fit_model
from bifactor.models.model import Model
from bifactor.problems.state import State

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks
except ImportError:  # before scikit-learn 1.9
    CallbackSupportMixin, with_callbacks = type("CallbackSupportMixin", (), {}), None

Fitted = TypeVar("Fitted")

Look = Callable[[], bool]
"""Called after each iteration; returns True to stop the fit."""


Data = TypeVar("Data")
"""Data of a fit: observations, or a whole table."""


def fit_watched(
    estimator: Any,
    X: Any,
    data: Data,
    settings: CompletionSettings,
    start: Model | None = None,
    fit: Callable[[Data, CompletionSettings, Model | None], Model] = fit_model,  # type: ignore[assignment]
) -> Model:
    """Run `fit` with the callbacks of an estimator."""

    def watched(look: Look | None) -> Model:
        def callback(iteration: int, state: State) -> bool:
            assert look is not None
            return look()

        return fit(data, settings if look is None else replace(settings, callback=callback), start)

    return run_watched(estimator, X, settings.max_iter, watched)


def run_watched(estimator: Any, X: Any, max_iter: int, fit: Callable[[Look | None], Fitted]) -> Fitted:
    """Run a fit on the threads of an estimator; callbacks run after each iteration and stop it by returning True."""

    def watched(estimator: Any) -> Fitted:
        task = estimator._init_callback_context(max_subtasks=max_iter)
        task.call_on_fit_task_begin(estimator=estimator, X=X)

        def look() -> bool:
            step = task.subcontext(task_name="iteration").call_on_fit_task_begin(estimator=estimator, X=X)
            return bool(step.call_on_fit_task_end(estimator=estimator, X=X))

        found = fit(look)
        task.call_on_fit_task_end(estimator=estimator, X=X)
        return found

    with threads(estimator.n_jobs):
        found: Fitted = with_callbacks(watched)(estimator) if with_callbacks is not None else fit(None)
        return found
