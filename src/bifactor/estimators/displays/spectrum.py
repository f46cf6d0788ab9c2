"""Singular values of a fit, and the balance of its factors."""

from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.estimators.displays.drawing import FIRST, SECOND, THIRD, axes_for, fitted
from bifactor.metrics import triplets
from bifactor.running.result import Result


class SpectrumDisplay:
    """The singular values of X = UVᴴ, and the squared ones of U and of V: all three agree if UᴴU = VᴴV.

    Parameters
    ----------
    singular_values : array
        Singular values of X, descending.
    left, right : array
        Squared singular values of U and of V.
    imbalance : float
        ‖UᴴU − VᴴV‖_F/‖X‖_F.
    """

    def __init__(self, singular_values: Array, left: Array, right: Array, imbalance: float):
        self.singular_values, self.left, self.right, self.imbalance = singular_values, left, right, imbalance

    @classmethod
    def from_factors(cls, U: Array, V: Array, *, ax: Any = None) -> Self:
        """Draw the spectrum of UVᴴ."""
        s = triplets(U, V)[1]
        left, right = (np.linalg.svd(F, compute_uv=False) ** 2 for F in (U, V))
        gap = float(np.linalg.norm(U.conj().T @ U - V.conj().T @ V))
        size = float(np.linalg.norm(s))
        return cls(s, left, right, gap / size if size > 0 else 0.0).plot(ax)

    @classmethod
    def from_result(cls, result: Result, *, ax: Any = None) -> Self:
        """Draw the spectrum of X of a run; columns of offsets, if any, are included."""
        return cls.from_factors(result.U, result.V, ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> Self:
        """Draw the spectrum of a fit, without offsets."""
        model = fitted(estimator, "model_")
        return cls.from_factors(model.U[:, model.fixed_columns :], model.V[:, model.fixed_columns :], ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw."""
        self.ax_, self.figure_ = axes_for(ax)
        k = np.arange(1, self.singular_values.size + 1)
        self.ax_.plot(k, self.singular_values, color=FIRST, marker="o", label="σ(X)")
        self.ax_.plot(k, self.left, color=SECOND, marker="^", linestyle="none", markerfacecolor="none", label="σ(U)²")
        self.ax_.plot(k, self.right, color=THIRD, marker="v", linestyle="none", markerfacecolor="none", label="σ(V)²")
        if self.singular_values.size and np.all(self.singular_values > 0):
            self.ax_.set_yscale("log")
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        title = f"imbalance {self.imbalance:.2g}" if self.singular_values.size else "rank 0: no components"
        self.ax_.set(xlabel="component", ylabel="singular value", title=title)
        self.ax_.legend()
        return self
