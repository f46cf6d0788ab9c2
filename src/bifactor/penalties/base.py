"""The base classes of terms that are added to f: smooth functions of the factors themselves."""

from abc import ABC, abstractmethod

import numpy as np

from bifactor.arrays import Array
from bifactor.blocks import Shared
from bifactor.factors import Factors
from bifactor.penalties.weights import Weights


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
