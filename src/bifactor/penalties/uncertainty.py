"""What not knowing the factors exactly adds to squared errors."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array
from bifactor.blocks import Exact
from bifactor.factors import Factors
from bifactor.penalties.base import Penalty


@dataclass(frozen=True, eq=False)
class Uncertainty(Penalty):
    """½Σᵢ uᵢAᵢuᵢᵀ + ½Σⱼ vⱼBⱼvⱼᵀ + constant, with a matrix for each row of U and of V.

    `solvers.Variational` ends with one: where factors have covariances, E‖z − y‖² is that of their means plus such a
    form, in which Aᵢ collects the covariances of the columns that row i has met, and the prior.
    """

    left: Exact
    right: Exact
    constant: float

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        g = self._times(x)
        return self.constant + 0.5 * (_dot(x.left, g[0]) + _dot(x.right, g[1])), x.gradient(*g)

    def hessian(self, x: Factors, d: Factors) -> Factors:
        return x.gradient(*self._times(d))

    def _times(self, x: Factors) -> tuple[Array, Array]:
        return self.left.times(x.left), self.right.times(x.right)


def _dot(a: Array, b: Array) -> float:
    return float(np.sum(a * b, dtype=np.float64))
