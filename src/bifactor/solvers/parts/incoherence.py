"""A regulariser that keeps the factors and each of their rows from growing large."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.factors import Factors
from bifactor.penalties import Term


@dataclass(frozen=True)
class Incoherence(Term):
    """R·[Σᵢ G(‖Uᵢ‖/b₁) + Σⱼ G(‖Vⱼ‖/b₂) + G(‖U‖_F/b_T) + G(‖V‖_F/b_T)],   G(t) = max(0, (3/2)t² − 1)².

    Uᵢ and Vⱼ are rows. The term is 0 up to √(2/3) of a bound b. It is convex in U and in V, once continuously
    differentiable, and not a polynomial along a curve.

    Parameters
    ----------
    rows, cols, whole : float
        The bounds b₁, b₂ and b_T.
    weight : float
        The weight R.

    References
    ----------
    R. Sun and Z.-Q. Luo, Guaranteed matrix completion via non-convex factorization, IEEE Trans. Inf. Theory 62 (2016).
    """

    rows: float
    cols: float
    whole: float
    weight: float

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        left, dU = self._side(x.left, self.rows)
        right, dV = self._side(x.right, self.cols)
        return left + right, x.gradient(dU, dV)

    def _side(self, F: Array, bound: float) -> tuple[float, Array]:
        """The two parts of one factor, and their gradient."""
        above = np.maximum(1.5 * (np.linalg.norm(F, axis=1, keepdims=True) / bound) ** 2 - 1, 0)
        beyond = max(1.5 * inner(F, F) / self.whole**2 - 1, 0.0)
        value = (
            float(np.sum(above**2, dtype=np.float64)) + beyond * beyond
        )  # not a power, which raises an error on overflow
        pull = (6 / bound**2) * above + 6 / self.whole**2 * beyond  # G₀′(z)·∇z, with G₀′(z) = 2(z − 1)₊ and ∇z = 3F/b²
        return self.weight * value, self.weight * pull * F


def shrunk_rows(F: Array, bound: float) -> Array:
    """The factor with its long rows shortened to √(2/3)·bound, the length up to which the term is 0."""
    limit = (2 / 3) ** 0.5 * bound
    return F * (limit / np.maximum(np.linalg.norm(F, axis=1, keepdims=True), limit))
