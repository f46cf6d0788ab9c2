"""`Bound`: a function f of X that is evaluated at factors, such as an operator bound to data, or a sum of bounds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import (
    HOST_ARRAY,
    Array,
    column_norms,
    digest,
    dtype_of,
    empty_of,
    gaussian,
    hstack,
    is_complex,
    to_device_of,
    to_numpy,
)
from bifactor.blocks import Exact, Shared, fill_zero_weights
from bifactor.display.card import card, figures
from bifactor.errors import InputError
from bifactor.factors import Factors, Free
from bifactor.kernels.blas import gram
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit, Loss
from bifactor.losses.data_fit import Moving
from bifactor.operators.curves import ANYWHERE, Curve, Evaluated, Measurements, Reach, WrappedCurve, line_as_curve

if TYPE_CHECKING:
    from bifactor.operators.all_cells import Cells
    from bifactor.operators.base import Operator


class Shares:
    """Sums of the curvature over each row and over each column, in the library of `like`."""

    def __init__(self, marginals: tuple[Array, Array], like: Array):
        self._last: list[tuple[Callable[[], Any], Array]] = [(_nobody, HOST_ARRAY)] * 2
        self._sums = [to_device_of(sums, like) for sums in marginals]
        self._totals = [float(sums.sum()) for sums in marginals]
        # Rows without curvature count as average rows.
        self._filled = [
            own if np.all(sums > 0) else to_device_of(fill_zero_weights(sums), like)
            for own, sums in zip(self._sums, marginals, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": [(_nobody, HOST_ARRAY)] * 2}  # weak references cannot be pickled

    def centre(self, factor: Array, side: int) -> Array:
        """The mean of the rows of a factor, weighted by their shares of the curvature."""
        ones = to_device_of(np.ones((factor.shape[0], 1), dtype_of(factor)), factor)
        return to_device_of(gram(ones, factor, self._sums[side])[0] / self._totals[side], factor)

    def blocks(self, other: Array, side: int, alone: bool) -> Shared:
        """For each row its curvature, times the mean of vⱼᴴvⱼ over the observed rows of the `other` factor."""
        mean = self._mean(other, 1 - side)
        if alone:
            return Shared(((self._filled[side], mean),))
        # Next to other functions the mean becomes a sum, as theirs are, so that damping is the same for all.
        return Shared(((self._per_row[side], other.shape[0] * mean),))

    @cached_property
    def _per_row(self) -> tuple[Array, Array]:
        """The sums, divided by the length of the other side; kept, since arrays elsewhere remember their mean."""
        rows, cols = self._sums
        return rows / cols.shape[0], cols / rows.shape[0]

    def _mean(self, factor: Array, side: int) -> Array:
        """The mean of vⱼᴴvⱼ over observations, which may be needed twice in succession."""
        of, known = self._last[side]
        if of() is not factor:
            known = gram(factor, factor, self._sums[side]) / self._totals[side]
            self._last[side] = ref(factor), known
        return known


def _nobody() -> None:
    return None


# The memory that measurements need.


class Footprint(NamedTuple):
    """Bytes that a function of X needs besides its data, for factors of some width."""

    z: int
    """One vector of measurements; 0 if none is ever formed."""
    work: int
    """The temporary arrays of passes over the data, and those kept for the next pass."""


# Parameters of losses.


@dataclass(frozen=True, eq=False)
class FittedParameters:
    """The parameters of the losses of a function f that can be fitted to its data."""

    values: tuple[float, ...]
    scales: bool
    """Whether one of them is a scale of z, which must then be fixed in another way."""
    refit: Callable[[Factors, Measurements], tuple[float, ...]]
    """The values that fit best at x; z may be None."""
    replace: Callable[[tuple[float, ...]], "Bound"]
    """f with other values."""

    @classmethod
    def of(
        cls, loss: Loss, best: Callable[[Factors, Measurements], Loss], bind: Callable[[Loss], "Bound"]
    ) -> "FittedParameters":
        """Those of a loss, from the one that fits best at x, and f of a loss."""
        return cls(
            loss.fitted,
            loss.scales,
            lambda x, z: best(x, z).fitted,
            lambda values: bind(loss.with_fitted(values)),
        )


# The display of a function of X, printed and in notebooks.


class ShapeRepr:
    """A base class that shows a shape and a dtype."""

    shape: tuple[int, int]
    dtype: Any

    def __repr__(self) -> str:
        m, n = self.shape
        return f"{type(self).__name__}({m}×{n}, {self.dtype})"

    def _repr_html_(self) -> str:
        m, n = self.shape
        loss = getattr(self, "loss", None)
        shown = [(f"{m:,}×{n:,}", "matrix"), (self.dtype, "precision"), (loss, "loss")]
        return card(type(self).__name__, "a function f(X)", figures(shown))


TrialPoint = tuple[float, Measurements]
"""A step a, and the measurements at x + a·d."""

Apply = Callable[[Factors], tuple[Array, Array]]
"""A linear map of factors, from d to the two sides of its image."""


class Bound(ShapeRepr, ABC):
    """A smooth convex f on m×n matrices.

    f is the composition of two maps, X ↦ z (linear) and z ↦ f. The form of z is private to the bound. If `explicit`, z
    is an array in an order chosen by the bound, which solvers may keep and combine. Otherwise it is not stored, or only
    partly: each pass computes what it needs from the factors and the return value of `measure`, which may be None.
    Wherever a method takes z, None stands for the measurements at x.
    """

    shape: tuple[int, int]
    dtype: Any
    """The NumPy dtype of X."""
    like: Array = HOST_ARRAY
    """An array of the library and device of the factors of X."""
    explicit: bool = True
    expensive: bool = False
    """Whether passes go over blocks of data, which are read or are on other machines."""
    quick: bool = True
    """Whether a curve takes about as long as measuring one point."""
    quadratic: bool = False

    @property
    def measured_shape(self) -> tuple[int, int]:
        """The shape of the matrix that is measured: that of X without the rows and columns of features."""
        return self.shape

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
    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: TrialPoint | None = None) -> Curve:
        """f along x + a·d. `ahead`, if known, saves work, and the curve is then valid within its `reach`."""

    def straight(self, x: Factors | None, new: Factors, z: Measurements = None) -> Curve:
        """t ↦ f(X + t·ΔX), where `new` are the factors of ΔX; x = None stands for X = 0."""
        if self.explicit:
            dz: Array = self.measure(new)
            here = 0 * dz if x is None else self.measure(x) if z is None else z
            return self.line(here, dz)
        return self.curve(*line_as_curve(x, new))

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
        return (rows @ np.abs(to_numpy(x.left)) ** 2) * (cols @ np.abs(to_numpy(x.right)) ** 2) / rows.sum()

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

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact | None:
        """The curvature of f in each row of a factor if each measurement is of one entry, otherwise None.

        `rows` selects a range of rows, (start, stop).
        """
        return None

    @property
    def parameters(self) -> FittedParameters:
        """The parameters of losses that can be fitted to the data; by default there are none."""
        return FittedParameters((), False, lambda x, z: (), lambda values: self)

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

    def hessian_z(self, z: Array) -> Callable[[Array], Array]:
        """The second derivative of f in z: maps a small dz to the change of ∂f/∂z."""
        raise self._symbolic()

    def adjoint_z(self, slopes: Array) -> LinearMap:
        """∇f(X) from the slopes ∂f/∂z, as a lazy matrix."""
        raise self._symbolic()

    def line(self, z: Array, dz: Array) -> Curve:
        """a ↦ f(z + a·dz); its method `to` must not be called."""
        raise self._symbolic()

    def _symbolic(self) -> Exception:
        return TypeError(f"{type(self).__name__} stores no measurements. Check `explicit` in a solver that needs them.")

    def __add__(self, other: "Bound") -> "Bound":
        """f + g."""
        from bifactor.operators.compose import SumBound  # a Sum is a Bound itself

        return SumBound(self, other) if isinstance(other, Bound) else NotImplemented


class DataBound(Bound):
    """f(X) = Σ wᵢ ℓ(A(X)ᵢ; yᵢ), an operator bound to data."""

    operator: "Operator"
    """The operator, with the measurements in the order of the bound."""
    fit: DataFit
    """The data, in the same order."""
    cells: "tuple[Cells, ...]" = ()

    @property
    def loss(self) -> Loss:
        return self.fit.loss

    @property
    def parameters(self) -> FittedParameters:
        def best(x: Factors, z: Measurements) -> Loss:
            return self.fit.refit(self.operator.forward(x.left, x.right) if z is None else z).loss

        return FittedParameters.of(self.fit.loss, best, lambda loss: self.refitted(replace(self.fit, loss=loss)))

    def footprint(self, width: int) -> Footprint:
        return Footprint(self.operator.size * self.fit.dtype.itemsize, self.operator.work(width, self.dtype))

    def refitted(self, fit: DataFit) -> "DataBound":
        """The same operator with other data, in the order of the bound."""
        return self.operator.bind(fit)

    @abstractmethod
    def recomputed(self) -> "DataBound":
        """The same f without stored measurements."""


# The bound of another bound, of which it changes something.


class WrappedBound(DataBound):
    """f(X) of another f at an image of X that is linear in the factors, such as cX; by default at X itself.

    `image` maps factors to those of the image, `pull` and `through` map gradients back.
    """

    def __init__(self, bound: DataBound):
        self.bound, self.operator = bound, bound.operator
        self.shape, self.dtype, self.like = bound.shape, bound.dtype, bound.like
        self.explicit, self.expensive = bound.explicit, bound.expensive
        self.quick, self.quadratic = bound.quick, bound.quadratic

    @abstractmethod
    def with_bound(self, bound: Any) -> DataBound:
        """The same around another bound."""

    def image(self, x: Factors) -> Factors:
        """The factors of the image of UVᴴ."""
        return x

    def at(self, x: Factors) -> Factors:
        """The image of a point; wrappers may keep the last one."""
        return self.image(x)

    def pull(self, GV: Array, GhU: Array) -> tuple[Array, Array]:
        """The products of the gradient in X with V and U, from those of the gradient in the image with its factors."""
        return GV, GhU

    def through(self, G: LinearMap) -> LinearMap:
        """The gradient in X, from that in the image."""
        return G

    @property
    def fit(self) -> DataFit:  # type: ignore[override]
        return self.bound.fit

    @property
    def cells(self) -> "tuple[Cells, ...]":  # type: ignore[override]
        return self.bound.cells

    @property
    def measured_shape(self) -> tuple[int, int]:
        return self.bound.measured_shape

    @property
    def smoothness(self) -> float:
        return self.bound.smoothness

    @property
    def scale(self) -> float:
        return self.bound.scale

    @property
    def least(self) -> float | None:
        return self.bound.least

    @property
    def marginals(self) -> tuple[Array, Array] | None:
        return self.bound.marginals

    @property
    def seen(self) -> int | None:
        return self.bound.seen

    def measure(self, x: Factors) -> Measurements:
        return self.bound.measure(self.at(x))

    def value(self, x: Factors) -> float:
        return self.bound.value(self.at(x))

    def evaluate(self, x: Factors, z: Measurements = None) -> Evaluated:
        return self._pulled(self.bound.evaluate(self.at(x), z))

    def gradient(self, x: Factors, z: Measurements = None) -> LinearMap:
        return self.through(self.bound.gradient(self.at(x), z))

    def hessian(self, x: Factors, z: Measurements = None) -> Apply:
        inner = self.bound.hessian(self.at(x), z)
        return lambda d: self.pull(*inner(self.image(d)))

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: TrialPoint | None = None) -> Curve:
        curve = self.bound.curve(self.at(x), self.image(d), z, ahead)
        return WrappedCurve(curve, lambda a, x: self._pulled(curve.to(a, self.at(x))))

    def _pulled(self, at: Evaluated) -> Evaluated:
        return Evaluated(at.f, *self.pull(at.GV, at.GhU), at.z)

    @property
    def data(self) -> DataBound:
        return self if self.bound.data is self.bound else self.with_bound(self.bound.data)

    def expected(self, x: Factors, side: int, alone: bool = True) -> Shared:
        return self.bound.expected(self.at(x), side, alone)

    def exact(self, x: Factors, side: int, rows: tuple[int, int] | None = None) -> Exact | None:
        return self.bound.exact(self.at(x), side, rows)

    @property
    def parameters(self) -> FittedParameters:
        own = self.bound.parameters
        return replace(
            own,
            refit=lambda x, z: own.refit(self.at(x), z),
            replace=lambda values: self.with_bound(own.replace(values)),
        )

    def footprint(self, width: int) -> Footprint:
        return self.bound.footprint(width)

    def check_factors(self, x: Factors) -> None:
        self.bound.check_factors(self.at(x))

    @property
    def fingerprint(self) -> str:
        return self.bound.fingerprint

    def slopes(self, z: Array) -> tuple[float, Array]:
        return self.bound.slopes(z)

    def hessian_z(self, z: Array) -> Callable[[Array], Array]:
        return self.bound.hessian_z(z)

    def adjoint_z(self, slopes: Array) -> LinearMap:
        return self.through(self.bound.adjoint_z(slopes))

    def line(self, z: Array, dz: Array) -> Curve:
        return self.bound.line(z, dz)

    def refitted(self, fit: DataFit) -> DataBound:
        return self.with_bound(self.bound.refitted(fit))

    def recomputed(self) -> DataBound:
        return self.with_bound(self.bound.recomputed())


class Symbolic(WrappedBound):
    """The f of another bound, with z computed again in each pass and freed after it.

    A curve holds its z, z₁ and z₂ as long as it exists, so the peak of memory is that of the other bound.
    """

    def __init__(self, bound: DataBound):
        super().__init__(bound)
        self.explicit = False

    def with_bound(self, bound: Any) -> DataBound:
        found: DataBound = bound.recomputed()
        found.operator = self.operator
        return found

    def measure(self, x: Factors) -> None:
        return None

    def curve(self, x: Factors, d: Factors, z: Measurements = None, ahead: TrialPoint | None = None) -> Curve:
        return WrappedCurve(self.bound.curve(x, d), lambda a, x: self.evaluate(x))

    slopes, hessian_z, adjoint_z, line = Bound.slopes, Bound.hessian_z, Bound.adjoint_z, Bound.line  # which raise

    def recomputed(self) -> DataBound:
        return self


# The default bound of an operator, by `forward` and `adjoint`.

TRUSTED = 0.25, 2.0
"""The range of steps along a curve whose z₁ is a difference of z at two points, in units of their distance.

An error δ of z at the first point is (1 − a)δ after a step a, so it does not grow up to a = 2. After a short step, the
rounding error of a much larger z at the second point would be visible."""


class Measured(DataBound):
    """f(X) = Σᵢ wᵢ ℓ(A(X)ᵢ; yᵢ).

    Parameters
    ----------
    operator : Operator
        The operator A.
    fit : DataFit
        The loss and data, with one y per measurement, in the order of the operator.
    """

    quick = False

    def __init__(self, operator: "Operator", fit: DataFit):
        self.operator, self.fit = operator, fit
        self.shape, self.quadratic, self.like = operator.shape, fit.quadratic, empty_of(fit.y)
        self.dtype = np.result_type(fit.dtype, np.complex64) if operator.complex_matrix else fit.dtype
        if operator.complex_matrix:
            self.check_factors(Free().zero(self.shape, 1, self.dtype, self.like))

    @cached_property
    def smoothness(self) -> float:
        L, weights = self.fit.smooth
        return L * self.operator.norm_squared(weights)

    @cached_property
    def scale(self) -> float:
        curvature, weights = self.fit.typical
        return curvature * self.operator.mean_square(weights)

    @property
    def least(self) -> float | None:
        return self.fit.least

    def measure(self, x: Factors) -> Array:
        return self.operator.forward(x.left, x.right)

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        """(z₁, z₂), the change of z along d."""
        return self.tangent(x, d), self.measure(d)

    def tangent(self, x: Factors, d: Factors) -> Array:
        """z₁."""
        return self.operator.forward(hstack(d.left, x.left), hstack(x.right, d.right))

    def value(self, x: Factors) -> float:
        return self.fit.value(self.measure(x))

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        at = self.measure(x) if z is None else z
        f, slopes = self.fit.evaluate(at)
        return Evaluated(f, *self.adjoint_z(slopes).products(x.left, x.right), z)

    def gradient(self, x: Factors, z: Array | None = None) -> LinearMap:
        return self.adjoint_z(self.slopes(self.measure(x) if z is None else z)[1])

    def hessian(self, x: Factors, z: Array | None = None) -> Apply:
        bend = self.hessian_z(self.measure(x) if z is None else z)
        return lambda d: self.adjoint_z(bend(self.tangent(x, d))).products(x.left, x.right)

    def curve(self, x: Factors, d: Factors, z: Array | None = None, ahead: TrialPoint | None = None) -> Curve:
        z = self.measure(x) if z is None else z
        if ahead is None:
            return MeasuredCurve(self, (z, *self.motion(x, d)))
        a, there = ahead
        z2 = self.measure(d)
        z1 = kernels.get("losses", z, z.shape[0]).chord(z, there, z2, a)
        return MeasuredCurve(self, (z, z1, z2), (TRUSTED[0] * a, TRUSTED[1] * a))

    def check_factors(self, x: Factors) -> None:
        if is_complex(x.left) or is_complex(x.right):
            one = x.columns(slice(1))
            require_field(self.fit, self.operator.forward(one.left, one.right))

    @cached_property
    def fingerprint(self) -> str:
        # Measurements of one fixed matrix stand for the operator.
        rng = np.random.default_rng(0)
        probe = [to_device_of(gaussian(rng, (k, 1), self.dtype), self.like) for k in self.shape]
        seen = digest(self.operator.forward(*probe))
        return f"{type(self.operator).__name__} {self.shape} {seen} {self.fit.fingerprint}"

    def slopes(self, z: Array) -> tuple[float, Array]:
        return self.fit.evaluate(z)

    def hessian_z(self, z: Array) -> Callable[[Array], Array]:
        curvature = self.fit.curvature(z)
        return lambda dz: curvature * dz

    def adjoint_z(self, slopes: Array) -> LinearMap:
        return self.operator.adjoint(slopes)

    def line(self, z: Array, dz: Array) -> Curve:
        return MeasuredCurve(self, (z, dz, dz[:0]))

    def recomputed(self) -> DataBound:
        return Symbolic(self)


class MeasuredCurve(Curve):
    """φ(a) = Σ wᵢ ℓ(zᵢ(a); yᵢ): a trial step costs O(p) for any operator."""

    def __init__(self, bound: Measured, moving: Moving, reach: Reach = ANYWHERE):
        self.bound, self.moving, self.reach = bound, moving, reach

    @property
    def quartic(self) -> Array | None:
        return self.bound.fit.quartic(self.moving)

    def at(self, a: float) -> tuple[float, float, float]:
        return self.bound.fit.along(self.moving, a)

    def to(self, a: float, x: Factors) -> Evaluated:
        f, slopes, z = self.bound.fit.advance(self.moving, a)
        return Evaluated(f, *self.bound.adjoint_z(slopes).products(x.left, x.right), z)


def require_field(fit: DataFit, z: Array) -> None:
    """Raise `InputError` if measurements are complex and a loss needs real ones."""
    for loss in fit.each_loss:
        if is_complex(z) and not loss.targets.complex:
            raise InputError(
                f"{type(loss).__name__} needs real measurements, but here they are complex. Use a loss such as Squared."
            )
