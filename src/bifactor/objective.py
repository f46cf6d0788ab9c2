"""What a solver may ask of the function it minimises."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from bifactor.arrays import Array
from bifactor.factors import Factors, Kind
from bifactor.line import Line
from bifactor.linear_map import LinearMap
from bifactor.penalties import Penalty, Term
from bifactor.state import Point


class Objective(ABC):
    """A smooth convex f on m×n matrices, seen through factors, and perhaps a penalty on these.

    f is also reachable by its two halves, X ↦ z (linear) and z ↦ f: along a curve of factors z moves as a quadratic,
    which makes line searches and Hessians cheap. What z is, only the objective knows.
    """

    shape: tuple[int, int]
    dtype: Any
    kind: Kind
    """Which factors of X are looked for."""
    penalty: Penalty | None
    added: tuple[Term, ...] = ()
    """What a solver minimises beside F."""

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """L, a Lipschitz constant of ∇f. Raises `SmoothnessError` where there is none."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The typical curvature of f, against L the largest: over matrices with no preferred direction.

        For a fraction ρ of entries observed it is ρ where L is 1. It sets the size of what must fit f but not bound it:
        the balance term, first trial steps.
        """

    @abstractmethod
    def entrywise(self, z: Array) -> LinearMap | None:
        """The curvature of f at each entry of X at these z, where each measurement sees one entry; else None."""

    @property
    @abstractmethod
    def marginals(self) -> tuple[Array, Array] | None:
        """The sums of the typical such curvature over what each row of U and of V has a part in, likewise."""

    @property
    @abstractmethod
    def least(self) -> float | None:
        """A number that f never goes below, where one is known."""

    @abstractmethod
    def oversampling(self, rank: int) -> float | None:
        """Measurements per degree of freedom of a matrix of this rank, where each sees one entry of X; else None.

        Such measurements can miss what is in X, however many there are in theory: these problems ask for care.
        """

    @abstractmethod
    def value(self, U: Array, V: Array) -> float:
        """f(UVᴴ)."""

    @abstractmethod
    def gradient(self, U: Array, V: Array) -> LinearMap:
        """∇f(UVᴴ), lazily."""

    @abstractmethod
    def value_and_products(self, U: Array, V: Array) -> tuple[float, Array, Array]:
        """f(UVᴴ), ∇f(UVᴴ) V and ∇f(UVᴴ)ᴴ U, in one pass where the operator can."""

    @abstractmethod
    def measure(self, U: Array, V: Array) -> Array:
        """z."""

    @abstractmethod
    def tangent(self, U: Array, V: Array, D: Array, E: Array) -> Array:
        """z₁, the derivative of z along (D, E)."""

    @property
    @abstractmethod
    def quick_lines(self) -> bool:
        """Whether an exact line takes about as long as measuring one point."""

    @property
    @abstractmethod
    def quadratic(self) -> bool:
        """Whether f is a quadratic."""

    @abstractmethod
    def line(self, x: Factors, d: Factors, z: Array, ahead: tuple[float, Array] | None = None) -> Line:
        """b ↦ f at x + b·d, where x measures z: z(b) = z + b·z₁ + b²·z₂.

        `ahead` is a step a and the measurements at x + a·d, where these are known. That saves work, and the line then
        holds for the steps of its `reach`.
        """

    @abstractmethod
    def evaluate(self, z: Array) -> tuple[float, Array]:
        """f and its slopes ∂f/∂z."""

    @abstractmethod
    def bend(self, z: Array) -> Callable[[Array], Array]:
        """The second derivative of f in z: maps a little dz to the change of the slopes."""

    @abstractmethod
    def along(self, z: Array, z1: Array, z2: Array) -> Line:
        """a ↦ f(z + a·z₁ + a²·z₂)."""

    @abstractmethod
    def pull_back(self, slopes: Array) -> LinearMap:
        """∇f(X) from the slopes at z, lazily."""

    @abstractmethod
    def check_factors(self, U: Array, V: Array) -> None:
        """Raise `InputError` where f is not defined for factors of this dtype."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Tells this f from another, across processes; a checkpoint is resumed only on the f it was made for."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """What F has beside f."""
        return self.added if self.penalty is None else (self.penalty, *self.added)

    def at(self, x: Factors) -> Point:
        """The point at x, by one pass over the measurements; these are not kept."""
        f, GV, GhU = self.value_and_products(x.left, x.right)
        return self._point(x, f, x.gradient(GV, GhU), None)

    def objective(self, x: Factors) -> float:
        """F at x, alone."""
        return self.evaluate(self.measure(x.left, x.right))[0] + sum(term.evaluate(x)[0] for term in self.terms)

    def measured(self, x: Factors) -> Point:
        """The point at x, with its measurements."""
        z = self.measure(x.left, x.right)
        return self.known(x, *self.evaluate(z), z)

    def known(self, x: Factors, f: float, slopes: Array, z: Array) -> Point:
        """The point at x, where f, its slopes and z are known."""
        return self._point(x, f, x.gradient(*self.pull_back(slopes).products(x.left, x.right)), z)

    def seen(self, point: Point) -> Point:
        """The same point, whose value and gradient are those of this F: no pass over the measurements."""
        return self._point(point.x, point.f, point.slope, point.z)

    def _point(self, x: Factors, f: float, slope: Factors, z: Array | None) -> Point:
        value, gradient = f, slope
        for term in self.terms:
            h, more = term.evaluate(x)
            value, gradient = value + h, gradient + more
        return Point(x, f, slope, z, value, gradient)

    @property
    def curvature_of_terms(self) -> tuple[float, float]:
        """What the terms add to the curvature of every row of U and of V."""
        sides = [term.curvature for term in self.terms]
        return sum(left for left, _ in sides), sum(right for _, right in sides)

    def zero(self, width: int = 1) -> Factors:
        """X = 0."""
        return self.kind.zero(self.shape, width, self.dtype)

    def gradient_at_zero(self) -> LinearMap:
        """∇f(0), where starts come from."""
        x = self.zero()
        return self.gradient(x.left, x.right)

    def curvature_of_kind(self) -> float:
        """The typical curvature of f over the X that the factors can make: articles take it as 1."""
        probe = self.kind.random(np.random.default_rng(0), self.shape, 2, self.dtype)
        return self.kind.curvature(self.scale, self.measure, probe)

    def penalized(self, penalty: Penalty | None) -> Self:
        """The same f with another penalty; nothing large is copied."""
        return self._with(penalty=penalty)

    def plus(self, term: Term) -> Self:
        """The same F and one more term, which is the solver's own."""
        return self._with(added=(*self.added, term))

    def _with(self, **changed: Any) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changed)  # not `copy`, which would forget compiled passes
        return other
