"""`Bound`: a function f of X that is evaluated at factors, such as an operator bound to data, or a sum of bounds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import HERE, Array, column_norms, host
from bifactor.blocks import Exact, Shared
from bifactor.factors import Factors
from bifactor.kernels.blas import gram
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.operators.footprint import Footprint
from bifactor.operators.shares import Shares
from bifactor.operators.shown import Shown
from bifactor.operators.straight import straightened

if TYPE_CHECKING:
    from bifactor.operators.base import Operator
    from bifactor.operators.cells import Cells

Reach = tuple[float, float]
ANYWHERE: Reach = (0.0, np.inf)

Measurements = Any
"""z: an array in the order of a bound, or an opaque object of the bound, which is only passed back to it."""

Ahead = tuple[float, Measurements]
"""A step a, and the measurements at x + a·d."""

Apply = Callable[[Factors], tuple[Array, Array]]
"""A linear map of factors, from d to the two sides of its image."""


class Evaluated(NamedTuple):
    """f at some factors, the products ∇f V and ∇fᴴ U in new arrays, which may be overwritten, and z if it is kept."""

    f: float
    GV: Array
    GhU: Array
    z: Measurements


class Curve(ABC):
    """φ(a) = f at x + a·d, for every a; the measurements are quadratic in a."""

    reach: Reach = ANYWHERE
    """The shortest and the longest step for which the measurements are correct up to rounding."""
    bends: bool = True
    """Whether φ″ costs no more than φ; otherwise a search along the curve does not use it."""

    @property
    @abstractmethod
    def quartic(self) -> Array | None:
        """Five numbers c with φ(a) = Σₖ cₖ aᵏ if f is quadratic, otherwise None."""

    @abstractmethod
    def at(self, a: float) -> tuple[float, float, float | None]:
        """φ(a), φ′(a) and φ″(a), or None if the second derivative is not known."""

    @abstractmethod
    def to(self, a: float, x: Factors) -> Evaluated:
        """f and its gradient at x, which is the point of the curve at a."""


class Bound(Shown, ABC):
    """A smooth convex f on m×n matrices.

    f is the composition of two maps, X ↦ z (linear) and z ↦ f. The form of z is private to the bound. If `explicit`, z
    is an array in an order chosen by the bound, which solvers may keep and combine. Otherwise it is not stored, or only
    partly: each pass computes what it needs from the factors and the return value of `measure`, which may be None.
    Wherever a method takes z, None stands for the measurements at x.
    """

    shape: tuple[int, int]
    dtype: Any
    """The NumPy dtype of X."""
    like: Array = HERE
    """An array of the library and device of the factors of X."""
    explicit: bool = True
    expensive: bool = False
    """Whether passes go over blocks of data, which are read or are on other machines."""
    quick: bool = True
    """Whether a curve takes about as long as measuring one point."""
    quadratic: bool = False
    whole: bool = False
    """Whether f weights every entry of X, by the product of a weight of its row and one of its column."""

    @property
    def measured_shape(self) -> tuple[int, int]:
        """The shape of the matrix that is measured: that of X without the rows and columns of features."""
        return self.shape

    def inside(self, change: Callable[..., Any]) -> Any:
        """The result of `change`, a function of a bound, applied to f as a function of that matrix."""
        return change(self)

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """L, a Lipschitz constant of ∇f. Raises `SmoothnessError` if there is none."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The typical curvature of f, over matrices with no preferred direction; L is the largest.

        If a fraction ρ of entries is observed, it is ρ, and L is 1. It scales the balance term and first trial steps.
        """

    @property
    @abstractmethod
    def least(self) -> float | None:
        """A lower bound of f, if one is known."""

    @property
    def marginals(self) -> tuple[Array, Array] | None:
        """The sums of the typical curvature over each row and column of X if each measurement is of one entry, or None.

        Such measurements can miss parts of X and be distributed unevenly, so solvers treat them with more care."""
        return None

    @property
    def seen(self) -> int | None:
        """The number of observed entries if each measurement is of one entry, or None."""
        return None

    @abstractmethod
    def measure(self, x: Factors) -> Measurements:
        """z at x; if it is not explicit, the object that is kept in its place, or None."""

    @abstractmethod
    def value(self, x: Factors) -> float:
        """f."""

    @abstractmethod
    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        """f and its gradient at x; without z in a single pass if possible, and then z is not kept."""

    @abstractmethod
    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        """∇f(X), as a lazy matrix."""

    @abstractmethod
    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        """J*∇²f J with J the derivative of X in the factors: the Hessian without the second derivative of X."""

    @abstractmethod
    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: Ahead | None = None) -> Curve:
        """f along x + a·d. `ahead`, if known, saves work, and the curve is then valid within its `reach`."""

    def straight(self, x: Factors | None, new: Factors, z: Measurements = None) -> Curve:
        """t ↦ f(X + t·ΔX), where `new` are the factors of ΔX; x = None stands for X = 0."""
        if self.explicit:
            dz: Array = self.measure(new)
            here = 0 * dz if x is None else self.measure(x) if z is None else z
            return self.line(here, dz)
        return self.curve(*straightened(x, new))

    @property
    def summands(self) -> tuple["Bound", ...]:
        """The functions whose sum is f."""
        return (self,)

    @property
    def data(self) -> "Bound":
        """f without the terms on all entries of X, which do not come from data."""
        return self

    def curvatures(self, x: Factors) -> Array:
        """The expected curvature of f along each uₖvₖᴴ, on the host.

        If entries are observed unevenly, that of an entry of X is the product of a row's and a column's share.
        """
        if self.marginals is None:
            return self.scale * column_norms(x.left) ** 2 * column_norms(x.right) ** 2
        rows, cols = x.kind.marginals(*self.marginals)
        return (rows @ np.abs(host(x.left)) ** 2) * (cols @ np.abs(host(x.right)) ** 2) / rows.sum()

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        """The expected curvature of f in each row of a factor, U for side 0 and V for side 1.

        For row i of U it is about Σⱼ wᵢⱼ vⱼᴴvⱼ. If all rows and columns are alike, that is scale·VᴴV. If entries are
        observed unevenly, it is the row's share of the curvature times the mean of vⱼᴴvⱼ over the observed entries. A
        row without observations counts as an average row, unless f is not `alone` and other functions add to it.
        """
        other = x.left if side else x.right
        if self.marginals is None:
            return Shared(((self.scale, gram(other, other)),))
        return self._shares.blocks(other, side, alone)

    @cached_property
    def _shares(self) -> Shares:
        assert self.marginals is not None
        return Shares(self.marginals, self.like)

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact | None:
        """The curvature of f in each row of a factor if each measurement is of one entry, otherwise None.

        With `score` it is Σ (∂f/∂z)² instead of Σ ∂²f/∂z². `rows` selects a range of rows, (start, stop).
        """
        return None

    @property
    def fitted(self) -> tuple[float, ...]:
        """The parameters of losses that can be fitted to the data."""
        return ()

    @property
    def scales(self) -> bool:
        """Whether one of them is a scale of z, which must then be fixed in another way."""
        return False

    def refit(self, x: Factors, z: Measurements = None) -> "Bound":
        """The same data with the parameters that fit best at x."""
        return self

    def with_fitted(self, fitted: tuple[float, ...]) -> "Bound":
        """The same data with these parameters."""
        return self

    def footprint(self, width: int) -> Footprint:
        """The memory that f needs for factors of this many columns, estimated without a pass over the data.

        By default, as if z were X itself, plus two arrays of its size. Inner products are taken in double precision.
        """
        X = self.shape[0] * self.shape[1] * np.dtype(self.dtype).itemsize
        return Footprint(X if self.explicit else 0, 5 * X if np.finfo(self.dtype).eps > 1e-10 else 2 * X)

    @abstractmethod
    def check_factors(self, x: Factors) -> None:
        """Raise `InputError` if f is not defined for factors of this dtype."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies this f across processes."""

    # Only if z is explicit.

    def slopes(self, z: Array) -> tuple[float, Array]:
        """f and ∂f/∂z."""
        raise self._symbolic()

    def bend(self, z: Array) -> Callable[[Array], Array]:
        """The second derivative of f in z: maps a small dz to the change of ∂f/∂z."""
        raise self._symbolic()

    def pull_back(self, slopes: Array) -> LinearMap:
        """∇f(X) from the slopes ∂f/∂z, as a lazy matrix."""
        raise self._symbolic()

    def line(self, z: Array, dz: Array) -> Curve:
        """a ↦ f(z + a·dz); its method `to` must not be called."""
        raise self._symbolic()

    def _symbolic(self) -> Exception:
        return TypeError(f"{type(self).__name__} stores no measurements. Check `explicit` in a solver that needs them.")

    def __add__(self, other: "Bound") -> "Bound":
        """f + g."""
        from bifactor.operators.sum import Sum  # a Sum is a Bound itself

        return Sum(self, other) if isinstance(other, Bound) else NotImplemented


class DataBound(Bound):
    """f(X) = Σ wᵢ ℓ(A(X)ᵢ; yᵢ), an operator bound to data."""

    operator: "Operator"
    """The operator, with the measurements in the order of the bound."""
    fit: DataFit
    """The data, in the same order."""
    cells: "tuple[Cells, ...]" = ()

    @property
    def fitted(self) -> tuple[float, ...]:
        return self.fit.loss.fitted

    @property
    def scales(self) -> bool:
        return self.fit.loss.scales

    def footprint(self, width: int) -> Footprint:
        return Footprint(self.operator.size * self.fit.dtype.itemsize, self.operator.work(width, self.dtype))

    def refit(self, x: Factors, z: Measurements = None) -> "DataBound":
        return self.refitted(self.fit.refit(self.operator.forward(x.left, x.right) if z is None else z))

    def with_fitted(self, fitted: tuple[float, ...]) -> "DataBound":
        return self.refitted(self.fit.with_fitted(fitted))

    def refitted(self, fit: DataFit) -> "DataBound":
        """The same operator with other data, in the order of the bound."""
        return self.operator.bind(fit)

    @abstractmethod
    def recomputed(self) -> "DataBound":
        """The same f without stored measurements."""
