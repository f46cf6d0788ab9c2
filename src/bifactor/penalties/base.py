"""What may be added to f: smooth functions of the factors themselves."""

from abc import ABC, abstractmethod

from bifactor.arrays import Array


class Term(ABC):
    """h(U, V), a polynomial of degree four at most along every curve (U + aD, V + aE)."""

    @abstractmethod
    def evaluate(self, U: Array, V: Array) -> tuple[float, Array, Array]:
        """h(U, V), ∇_U h and ∇_V h."""

    @abstractmethod
    def curve(self, U: Array, V: Array, D: Array, E: Array) -> Array:
        """The five numbers c with h(U + aD, V + aE) = Σₖ cₖ aᵏ for every a."""


class Penalty(Term):
    """A term that belongs to the problem, whatever the solver: it has a Hessian too."""

    @abstractmethod
    def hessian(self, U: Array, V: Array, D: Array, E: Array) -> tuple[Array, Array]:
        """The Hessian of h at (U, V), applied to (D, E)."""

    @property
    @abstractmethod
    def curvature(self) -> tuple[float, float]:
        """What h adds to the curvature of every row of U and of V: the damping that a preconditioner may count on."""
