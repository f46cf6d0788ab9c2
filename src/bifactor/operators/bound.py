"""`Bound`: a function f of X, seen through factors. An operator that is bound to data is one; sums of them are too."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bifactor.arrays import HERE, Array
from bifactor.blocks import Exact, Shared
from bifactor.caching import cached_property
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
"""z: an array in the order of a bound, or else what the bound keeps in its place; whoever is given it hands it back."""

Ahead = tuple[float, Measurements]
"""A step a and the measurements at x + a·d."""

Apply = Callable[[Factors], tuple[Array, Array]]
"""A linear map of the factors: d to the two sides of its image."""


class Evaluated(NamedTuple):
    """f at some factors, the products ∇f V and ∇fᴴ U in new arrays, which may be overwritten, and z if it is kept."""

    f: float
    GV: Array
    GhU: Array
    z: Measurements


class Curve(ABC):
    """φ(a) = f at x + a·d, for every a: the measurements are a quadratic in a."""

    reach: Reach = ANYWHERE
    """The shortest and the longest step for which the measurements are right up to rounding."""
    bends: bool = True
    """Whether φ″ costs no more than φ; else a search along the curve does without."""

    @property
    @abstractmethod
    def quartic(self) -> Array | None:
        """Five numbers c with φ(a) = Σₖ cₖ aᵏ where f is quadratic, else None."""

    @abstractmethod
    def at(self, a: float) -> tuple[float, float, float | None]:
        """φ(a), φ′(a) and φ″(a); None where the second derivative is not known."""

    @abstractmethod
    def to(self, a: float, x: Factors) -> Evaluated:
        """f and its gradient at x, which is the point of the curve at a."""


class Bound(Shown, ABC):
    """A smooth convex f on m×n matrices.

    f is the end of two maps, X ↦ z (linear) and z ↦ f. What z is, only the bound knows. Where z is `explicit`, it is an
    array in an order of the bound's own, which solvers may carry along and combine. Elsewhere it is not stored, or not
    all of it: each pass computes what it needs from the factors and from what `measure` returns, None at the least.
    Wherever a method takes z, None stands for the measurements at x.
    """

    shape: tuple[int, int]
    dtype: Any
    """Of X, as NumPy names it."""
    like: Array = HERE
    """An array of the library and on the device where X's factors live."""
    explicit: bool = True
    quick: bool = True
    """Whether a curve takes about as long as measuring one point."""
    quadratic: bool = False
    """Whether f is a quadratic."""
    whole: bool = False
    """Whether f weighs every entry of X, with one weight for its row times one for its column."""

    @property
    def measured_shape(self) -> tuple[int, int]:
        """The shape of the matrix whose entries f tells of: that of X but for rows and columns that are features."""
        return self.shape

    def inside(self, change: Callable[..., Any]) -> Any:
        """What `change`, a function of a bound, makes of f as a function of that matrix."""
        return change(self)

    @property
    @abstractmethod
    def smoothness(self) -> float:
        """L, a Lipschitz constant of ∇f. Raises `SmoothnessError` where there is none."""

    @property
    @abstractmethod
    def scale(self) -> float:
        """The typical curvature of f, against L the largest: over matrices with no preferred direction.

        For a fraction ρ of entries observed it is ρ where L is 1. It sizes the balance term and first trial steps.
        """

    @property
    @abstractmethod
    def least(self) -> float | None:
        """A number that f never goes below, where one is known."""

    @property
    def marginals(self) -> tuple[Array, Array] | None:
        """The sums of the typical curvature over each row and each column of X, where each measurement sees one entry.

        Such measurements can miss what is in X, and be spread unevenly: solvers take more care with them."""
        return None

    @property
    def seen(self) -> int | None:
        """How many entries are observed, likewise."""
        return None

    @abstractmethod
    def measure(self, x: Factors) -> Measurements:
        """z at x; where it is not explicit what is kept in its place, or None."""

    @abstractmethod
    def value(self, x: Factors) -> float:
        """f."""

    @abstractmethod
    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        """f and its gradient at x; without z in one pass where there is one, and then without keeping z."""

    @abstractmethod
    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        """∇f(X), lazily."""

    @abstractmethod
    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        """J*∇²f J with J the derivative of z in the factors: the Hessian but for how X curves in them."""

    @abstractmethod
    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: Ahead | None = None) -> Curve:
        """f along x + a·d. `ahead` saves work where it is known, and the curve then holds within its `reach`."""

    def straight(self, x: Factors | None, new: Factors, z: Measurements = None) -> Curve:
        """t ↦ f(X + t·ΔX) with ΔX by factors of its own; None for X stands for 0."""
        if self.explicit:
            dz: Array = self.measure(new)
            here = 0 * dz if x is None else self.measure(x) if z is None else z
            return self.line(here, dz)
        return self.curve(*straightened(x, new))

    @property
    def summands(self) -> tuple["Bound", ...]:
        """The functions that f is the sum of."""
        return (self,)

    @property
    def data(self) -> "Bound":
        """f without what is said of all entries of X alike, which comes from no data."""
        return self

    @property
    def patterns(self) -> tuple["Bound", ...]:
        """Functions with the sum f, in each of which the typical curvature of an entry is its row's times its column's.

        That is how `marginals` are understood.
        """
        return (self,)

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        """The curvature to expect of f in each row of a factor, U for side 0 and V for side 1.

        For row i of U it is about Σⱼ wᵢⱼ vⱼᴴvⱼ. Where rows and columns are alike that is scale·VᴴV. Where entries are
        observed unevenly it is the row's share of the curvature times the mean of vⱼᴴvⱼ over what is observed. A row of
        which nothing is observed counts as the mean one, unless f is not `alone` and others have a say in it.
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
        """The curvature of f in each row of a factor, where each measurement sees one entry; else None.

        For the `score` it is Σ (∂f/∂z)² in the place of Σ ∂²f/∂z². `rows` are those asked for, from and to.
        """
        return None

    @property
    def fitted(self) -> tuple[float, ...]:
        """The parameters of losses that can be fitted to the data."""
        return ()

    @property
    def scales(self) -> bool:
        """Whether one of them is a scale of z, which must then be fixed by other means."""
        return False

    def refit(self, x: Factors, z: Measurements = None) -> "Bound":
        """The same data with the parameters that fit best at x."""
        return self

    def with_fitted(self, fitted: tuple[float, ...]) -> "Bound":
        """The same data with these parameters."""
        return self

    def footprint(self, width: int) -> Footprint:
        """The memory that f takes with factors of so many columns, estimated without a pass over the data.

        By default as for a z that is X itself, and two more of its size. Inner products are taken in double precision.
        """
        X = self.shape[0] * self.shape[1] * np.dtype(self.dtype).itemsize
        return Footprint(X if self.explicit else 0, 5 * X if np.finfo(self.dtype).eps > 1e-10 else 2 * X)

    @abstractmethod
    def check_factors(self, x: Factors) -> None:
        """Raise `InputError` where f is not defined for factors of this dtype."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies this f across processes."""

    # Where z is explicit.

    def slopes(self, z: Array) -> tuple[float, Array]:
        """f and ∂f/∂z."""
        raise self._symbolic()

    def bend(self, z: Array) -> Callable[[Array], Array]:
        """The second derivative of f in z: maps a little dz to the change of the slopes."""
        raise self._symbolic()

    def pull_back(self, slopes: Array) -> LinearMap:
        """∇f(X) from the slopes at z, lazily."""
        raise self._symbolic()

    def line(self, z: Array, dz: Array) -> Curve:
        """a ↦ f(z + a·dz), whose `to` is not to be asked for."""
        raise self._symbolic()

    def _symbolic(self) -> Exception:
        return TypeError(f"{type(self).__name__} stores no measurements; a solver that needs them asks for `explicit`.")

    def __add__(self, other: "Bound") -> "Bound":
        """f + g."""
        from bifactor.operators.sum import Sum  # a Sum is a Bound itself

        return Sum(self, other) if isinstance(other, Bound) else NotImplemented


class DataBound(Bound):
    """f(X) = Σ wᵢ ℓ(A(X)ᵢ; yᵢ), what an operator makes of data."""

    operator: "Operator"
    """The measurements, in the order that the bound takes them."""
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
        at = self.operator.forward(x.left, x.right) if z is None else z
        return self.refitted(self.fit.refit(at))

    def with_fitted(self, fitted: tuple[float, ...]) -> "DataBound":
        return self.refitted(self.fit.with_fitted(fitted))

    def refitted(self, fit: DataFit) -> "DataBound":
        """The same operator with other data, in the order of the bound."""
        return self.operator.bind(fit)

    @abstractmethod
    def recomputed(self) -> "DataBound":
        """The same f, with measurements that are never stored."""
