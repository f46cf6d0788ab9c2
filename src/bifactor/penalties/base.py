"""Terms that are added to f: smooth functions of the factors themselves, and their weights by row and column."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, to_device_of
from bifactor.blocks import Shared
from bifactor.factors import Factors, Free, Kind
from bifactor.linear_map import LinearMap, RowsAndColumns

Weight = Array | float
"""One number for each row, or one for all rows."""


@dataclass(frozen=True, eq=False)
class Weights:
    """½Σᵢ aᵢ‖uᵢ‖² + ½Σⱼ bⱼ‖vⱼ‖² over the rows of U and V.

    Over all factorisations of one X its least value is ‖A^½ X B^½‖_* with A = diag(a) and B = diag(b) (Srebro, Rennie
    and Jaakkola, 2005, for A^½U and B^½V). So X̃ = A^½ X B^½ replaces X wherever the nuclear norm enters, and ∇f with
    respect to it is A^{-½}∇f B^{-½}. Here a = ρ_U·ã and b = ρ_V·b̃ with ã and b̃ of mean 1, and the numbers ρ are kept
    separately: a side with one weight for all rows is then not transformed.

    Parameters
    ----------
    rows, cols : number or array
        The weights a and b.
    """

    rows: Weight = 0.0
    cols: Weight = 0.0

    def __add__(self, other: "Weights") -> "Weights":
        return Weights(self.rows + other.rows, self.cols + other.cols)

    def __rmul__(self, number: float) -> "Weights":
        return Weights(number * self.rows, number * self.cols)

    @property
    def sides(self) -> tuple[float, float]:
        """(ρ_U, ρ_V), the means."""
        return float(np.mean(self.rows)), float(np.mean(self.cols))

    @property
    def even(self) -> bool:
        """Whether each side has one weight for all of its rows."""
        return np.ndim(self.rows) == 0 and np.ndim(self.cols) == 0

    @property
    def positive(self) -> bool:
        """Whether all weights are positive."""
        return bool(np.all(self.rows > 0) and np.all(self.cols > 0))

    def of(self, kind: Kind) -> "Weights":
        """The weights for factors of this kind: for X = UUᴴ there is one factor, with the mean of both weights."""
        return self if self.even else Weights(*kind.marginals(self.rows, self.cols))

    def rho(self, kind: Kind) -> float:
        """The factor of ‖X̃‖_* for weights of mean 1, or of the trace if X = UUᴴ."""
        return kind.nuclear(*self.sides)

    def gradient(self, G: LinearMap) -> LinearMap:
        """Ã^{-½} G B̃^{-½}."""
        return G if self.even else RowsAndColumns(self._roots(0) ** -1, G, self._roots(1) ** -1)

    def lifted(self, x: Factors) -> Factors:
        """Factors of X̃ from those of X."""
        if self.even:
            return x
        left, right = (to_device_of(self._roots(k)[:, None], x.left) for k in (0, 1))
        return Free().pair(left * x.left, right * x.right)

    def back(self, x: Factors) -> Factors:
        """Factors of X from those of X̃."""
        if self.even:
            return x
        left, right = (to_device_of(self._roots(k)[:, None].astype(np.finfo(x.dtype).dtype), x.left) for k in (0, 1))
        return x.kind.pair(x.left / left, x.right / right)

    def rescale_sides(self, x: Factors) -> Factors:
        """The factors of X with the smallest penalty, from balanced factors of X̃."""
        left, right = self.sides
        ratio = (right / left) ** 0.25 if left > 0 and right > 0 else 1.0
        return self.back(x.kind.rescale_sides(x, ratio))

    def _roots(self, side: int) -> Array:
        """ã^½ or b̃^½."""
        weights = np.atleast_1d(self.cols if side else self.rows)
        return (weights / weights.mean()) ** 0.5


class Term(ABC):
    """A function h(U, V) that is added to f."""

    invariant: bool = False
    """Whether h(UR, VR⁻ᴴ) = h(U, V) for every R: factors may then be balanced during a run."""

    @abstractmethod
    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        """h and its gradient; `x.gradient(dU, dV)` makes the gradient from the two derivatives."""

    def value(self, x: Factors) -> float:
        """h alone."""
        return self.evaluate(x)[0]

    def added(self, x: Factors, gradient: Factors) -> tuple[float, Factors]:
        """h, and its gradient added to another one, whose memory may be overwritten."""
        value, own = self.evaluate(x)
        return value, gradient + own

    def polynomial(self, x: Factors, d: Factors) -> Array | None:
        """The five numbers c with h(x + a·d) = Σₖ cₖ aᵏ for every a; None if h is not a polynomial of degree ≤ 4."""
        return None

    def blocks(self, x: Factors, side: int) -> Shared:
        """The curvature of h at x in each row of U (side 0) or V (side 1), or an estimate for a preconditioner."""
        return Shared()

    def reach(self, x: Factors, d: Factors) -> float:
        """The longest step along d that stays in the domain of h."""
        return np.inf

    def project(self, x: Factors) -> Factors:
        """The nearest point of the domain of h; x itself if it is inside."""
        return x


class Penalty(Term):
    """A term that belongs to the problem rather than to a solver; it also has a Hessian."""

    @abstractmethod
    def hessian(self, x: Factors, d: Factors) -> Factors:
        """The Hessian of h at x, applied to d."""

    def behind(self, fixed: int) -> "Penalty":
        """h as a function of the columns after the first ones, which are fixed or partners of fixed ones."""
        return self

    @property
    def nuclear(self) -> Weights | None:
        """The weighted nuclear norm that is the least h over all factors of an X; None if it is not such a norm."""
        return None

    @property
    def new_columns(self) -> Weights | None:
        """The weights of h for columns that are yet to be added; by default those of `nuclear`."""
        return self.nuclear

    def check(self, shape: tuple[int, int]) -> None:
        """Raise `InputError` if h is not defined for factors of an X of this shape."""
