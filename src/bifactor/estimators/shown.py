"""Estimators in notebooks: scikit-learn's diagram, and below it a card of the fit."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.display.card import card, charts, figures
from bifactor.display.html import table
from bifactor.display.svg import CARD, bar_chart
from bifactor.models.shown import model_card
from bifactor.running.result import run_card

COLUMNS = 12
"""Number of columns of a table listed in a card."""


class Shown:
    """Mixin to be placed before scikit-learn's `BaseEstimator`."""

    def _card(self) -> str:
        """Card of the fit; empty before `fit`."""
        model = getattr(self, "model_", None)
        return "" if model is None else model_card(model, f"{type(self).__name__}, fitted")

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram = super()._repr_html_  # type: ignore[misc]  # an AttributeError if scikit-learn should show text
        return lambda: diagram() + self._card()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._card()
        return bundle


def state_card(estimator: Any) -> str:
    """Card of a state of qubits."""
    goodness = estimator.goodness_of_fit_
    p = None if goodness is None or goodness.p_value is None else f"{goodness.p_value:.3g}"
    shown = [
        (estimator.n_qubits_, "qubits"),
        (estimator.rank_, "rank"),
        (f"{float(np.sum(estimator.eigenvalues_**2)):.4g}", "purity tr ρ²"),
        (p, "p-value of the fit"),
    ]
    state = bar_chart(estimator.eigenvalues_, "eigenvector", "eigenvalue of ρ", CARD)
    return run_card("StateTomography, fitted", "ρ = UUᴴ", estimator.result_, shown, [state])


def factors_card(estimator: Any) -> str:
    """Card of a factor analysis."""
    shown = [
        (estimator.n_components_, "components"),
        (len(estimator.mean_), "columns"),
        (f"{estimator.bound_:.6g}", "bound of the log evidence"),
        (f"{estimator.n_iter_:,}", "iterations"),
    ]
    variances = np.sum(estimator.components_**2, axis=1)
    pictures = [
        bar_chart(variances, "component", "variance explained", CARD),
        bar_chart(estimator.noise_variance_, "column", "noise variance", CARD),
    ]
    return card("FactorAnalysis, fitted", "", figures(shown), charts(*pictures))


def table_card(estimator: Any) -> str:
    """Card of a table, column by column."""
    lines = [
        (name, estimator.kinds_[name], score["metric"], f"{score['error']:.4g}", f"{score['baseline']:.4g}")
        for name, score in estimator.scores_.items()
    ]
    more = f" The first {COLUMNS} columns are shown." if len(lines) > COLUMNS else ""
    detail = f"Error of hidden cells, and that of a constant prediction.{more}"
    listed = table(("column", "kind", "metric", "error", "baseline"), lines[:COLUMNS])
    return card("TableImputer, fitted", detail, listed)


def picture_card(doubt: Array) -> str:
    """Card of a completed picture, from its uncertainty."""
    holes = doubt > 0
    mean = f"±{float(np.mean(doubt[holes])):.3g}" if holes.any() else None
    shown = [
        ("×".join(map(str, doubt.shape)), "picture"),
        (f"{np.mean(holes):.1%}", "filled in"),
        (mean, "uncertainty"),
    ]
    return card("ImageCompletion, fitted", "", figures(shown))
