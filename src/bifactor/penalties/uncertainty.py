"""The contribution of uncertain factors to expected squared errors."""

from dataclasses import dataclass
from typing import Protocol

from bifactor.arrays import Array, inner
from bifactor.factors import Factors
from bifactor.penalties.base import Penalty


@dataclass(frozen=True, eq=False)
class Around:
    """½Σᵢₖ aₖ(uᵢₖ − mᵢₖ)²: a prior with precisions a and means m."""

    precision: Array
    means: Array

    def slope(self, rows: Array) -> Array:
        return (rows - self.means) * self.precision

    def value(self, rows: Array) -> float:
        return 0.5 * inner(rows - self.means, self.slope(rows))


class Form(Protocol):
    """A matrix Mᵢ for each row, given by its products."""

    def times(self, rows: Array) -> Array:
        """aᵢ·Mᵢ for each row aᵢ; `Exact` is such a form."""


@dataclass(frozen=True, eq=False)
class Uncertainty(Penalty):
    """½Σᵢ uᵢAᵢuᵢᵀ + ½Σⱼ vⱼBⱼvⱼᵀ + constant, with a matrix for each row of U and of V, and priors for both.

    The result of `solvers.Variational` has one: if factors have covariances, E‖z − y‖² is ‖z − y‖² at their means plus
    such a form, in which Aᵢ collects the covariances of the columns observed in row i, and the prior if its mean is 0.
    """

    left: Form
    right: Form
    constant: float
    priors: tuple[Around, Around] | None = None
    """The priors whose means are not 0, if any."""

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        g = self._times(x)
        value = self.constant + 0.5 * (inner(x.left, g[0]) + inner(x.right, g[1]))
        if self.priors is None:
            return value, x.gradient(*g)
        first, second = self.priors
        value += first.value(x.left) + second.value(x.right)
        return value, x.gradient(g[0] + first.slope(x.left), g[1] + second.slope(x.right))

    def hessian(self, x: Factors, d: Factors) -> Factors:
        g = self._times(d)
        if self.priors is not None:
            g = g[0] + self.priors[0].precision * d.left, g[1] + self.priors[1].precision * d.right
        return x.gradient(*g)

    def _times(self, x: Factors) -> tuple[Array, Array]:
        return self.left.times(x.left), self.right.times(x.right)
