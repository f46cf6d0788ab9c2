"""What a solver may ask of the function it minimises."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

from bifactor.arrays import Array
from bifactor.line import Line
from bifactor.linear_map import LinearMap
from bifactor.offsets import COLUMNS
from bifactor.penalties import Penalty


class Objective(ABC):
    """A smooth convex f on m×n matrices, seen through factors, and perhaps a penalty on these.

    f is also reachable by its two halves, X ↦ z (linear) and z ↦ f: along a curve of factors z moves as a quadratic,
    which makes line searches and Hessians cheap. What z is, only the objective knows.
    """

    shape: tuple[int, int]
    dtype: Any
    penalty: Penalty | None
    offsets: bool
    """Whether rows and columns have offsets, the first two columns of the factors; see `bifactor.offsets`."""

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
        """The row and column sums of the typical such curvature, likewise."""

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

    @abstractmethod
    def curve(self, U: Array, V: Array, D: Array, E: Array, z: Array | None) -> tuple[Array, Array]:
        """(z₁, z₂): at (U + aD, V + aE) the measurements are z + a·z₁ + a²·z₂ for every a.

        Where z is given, z₂ may come back empty: it is small beside z₁, and z + z₁ is exact at a = 1. For long steps
        ask again without z.
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
    def offset_columns(self) -> int:
        """Columns of the factors beside the rank."""
        return COLUMNS if self.offsets else 0

    def penalized(self, penalty: Penalty | None) -> Self:
        """The same f with another penalty; nothing large is copied."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, penalty=penalty)  # not `copy`, which would forget compiled passes
        return other
