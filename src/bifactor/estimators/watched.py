"""Fits that scikit-learn's callbacks see."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from bifactor.kernels.threads import threads
from bifactor.models.fitting import Settings, fit_model
from bifactor.models.model import Model
from bifactor.problems.state import State

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks
except ImportError:  # before scikit-learn 1.9
    CallbackSupportMixin, with_callbacks = type("CallbackSupportMixin", (), {}), None


Data = TypeVar("Data")
"""What is fitted: observations, or a whole table."""


def fit_watched(
    estimator: Any,
    X: Any,
    data: Data,
    settings: Settings,
    start: Model | None = None,
    fit: Callable[[Data, Settings, Model | None], Model] = fit_model,  # type: ignore[assignment]
) -> Model:
    """`fit` without the components that a ridge made vanish, where their number was left to it.

    scikit-learn's callbacks see each iteration; the fit stops where one returns True.
    """

    def watched(estimator: Any) -> Model:
        task = estimator._init_callback_context(max_subtasks=settings.max_iter)
        task.call_on_fit_task_begin(estimator=estimator, X=X)

        def look(iteration: int, state: State) -> bool:
            step = task.subcontext(task_name="iteration").call_on_fit_task_begin(estimator=estimator, X=X)
            return bool(step.call_on_fit_task_end(estimator=estimator, X=X))

        model = fit(data, replace(settings, callback=look), start)
        task.call_on_fit_task_end(estimator=estimator, X=X)
        return model

    with threads(estimator.n_jobs):
        return with_callbacks(watched)(estimator) if with_callbacks is not None else fit(data, settings, start)
