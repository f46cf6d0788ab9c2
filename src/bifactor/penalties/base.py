"""What may be added to f: smooth functions of the factors themselves."""

from abc import ABC, abstractmethod

from bifactor.arrays import Array
from bifactor.factors import Factors


class Term(ABC):
    """h(U, V)."""

    @abstractmethod
    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        """h and its gradient; `x.gradient(dU, dV)` makes one of the two derivatives."""

    @abstractmethod
    def polynomial(self, x: Factors, d: Factors) -> Array:
        """The five numbers c with h(x + a·d) = Σₖ cₖ aᵏ for every a; `InputError` where h is no polynomial."""

    @property
    def curvature(self) -> tuple[float, float]:
        """What h adds to the curvature of every row of U and of V: the damping that a preconditioner may count on."""
        return 0.0, 0.0


class Penalty(Term):
    """A term that belongs to the problem, whatever the solver: it has a Hessian too."""

    @abstractmethod
    def hessian(self, x: Factors, d: Factors) -> Factors:
        """The Hessian of h at x, applied to d."""
