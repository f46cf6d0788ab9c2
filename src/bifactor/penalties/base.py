"""What may be added to f: smooth functions of the factors themselves."""

from abc import ABC, abstractmethod

import numpy as np

from bifactor.arrays import Array
from bifactor.blocks import Shared
from bifactor.factors import Factors
from bifactor.penalties.weights import Weights


class Term(ABC):
    """h(U, V)."""

    invariant: bool = False
    """Whether (UR, VR⁻ᴴ) leaves h alone for every R: factors may then be balanced on the way."""

    @abstractmethod
    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        """h and its gradient; `x.gradient(dU, dV)` makes one of the two derivatives."""

    def value(self, x: Factors) -> float:
        """h alone."""
        return self.evaluate(x)[0]

    def added(self, x: Factors, gradient: Factors) -> tuple[float, Factors]:
        """h, and its gradient added to another one, whose memory may be overwritten."""
        value, own = self.evaluate(x)
        return value, gradient + own

    def polynomial(self, x: Factors, d: Factors) -> Array | None:
        """The five numbers c with h(x + a·d) = Σₖ cₖ aᵏ for every a; None where h is not a polynomial of degree 4."""
        return None

    def blocks(self, x: Factors, side: int) -> Shared:
        """The curvature of h in each row of U (side 0) or V (side 1) at x, or what a preconditioner may count on."""
        return Shared()

    def reach(self, x: Factors, d: Factors) -> float:
        """The longest step along d that h allows: the way to the edge of its domain."""
        return np.inf

    def project(self, x: Factors) -> Factors:
        """The nearest point of the domain of h; x itself where it is in it."""
        return x


class Penalty(Term):
    """A term that belongs to the problem, whatever the solver: it has a Hessian too."""

    @abstractmethod
    def hessian(self, x: Factors, d: Factors) -> Factors:
        """The Hessian of h at x, applied to d."""

    def behind(self, fixed: int) -> "Penalty":
        """h as a function of the columns behind the first ones, which are fixed or partners of fixed ones."""
        return self

    @property
    def nuclear(self) -> Weights | None:
        """The weighted nuclear norm that h amounts to at its least over all factors of one X; None where it is none."""
        return None

    @property
    def new_columns(self) -> Weights | None:
        """The weights that h has for columns which are yet to be added; by default those of `nuclear`."""
        return self.nuclear

    def check(self, shape: tuple[int, int]) -> None:
        """Raise `InputError` where h is not defined for factors of an X of this shape."""
