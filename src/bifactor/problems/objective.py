"""F(U, V) = f(UVᴴ) + terms, the function that a solver minimises, and the problem of a loss, an operator and data."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from bifactor._compat import cached_property
from bifactor.arrays import Array, is_foreign, to_numpy
from bifactor.blocks import Shared
from bifactor.display.card import card, figures
from bifactor.errors import InputError
from bifactor.factors import Factors, Kind, kind_of
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit, Loss
from bifactor.operators import Bound, DataBound, Operator
from bifactor.operators.all_cells import AllCells
from bifactor.operators.compose import add_cells
from bifactor.operators.curves import Evaluated
from bifactor.penalties import Penalty, Term, Weights
from bifactor.problems.state import Point
from bifactor.validation import pluralize, require_instance

if TYPE_CHECKING:
    from bifactor.running.memory import Memory
    from bifactor.solvers.base import Solver


def objective_card(objective: "Objective") -> str:
    """The sizes of f, the factors and the penalties."""
    shown = [(_size(objective), "matrix"), (type(objective.f).__name__, "f"), *_factors(objective)]
    return card(type(objective).__name__, "F(U, V) = f(UVᴴ) + penalties", figures(shown))


def problem_card(problem: "Problem") -> str:
    """The same, and the loss, the operator and the data."""
    y = to_numpy(problem.y)
    m, n = problem.operator.shape
    low, high = (f"{end:.4g}" for end in (np.min(np.real(y)), np.max(np.real(y))))
    shown = [
        (_size(problem), "matrix"),
        (f"{y.shape[0]:,}", "measurements"),
        (f"{y.shape[0] / (m * n):.3g}", "measurements per entry"),
        (type(problem.operator).__name__, "operator"),
        (problem.loss, "loss"),
        (f"{low} to {high}", "y, real part" if np.iscomplexobj(y) else "y"),
        ("yes" if problem.weights is not None else None, "weights"),
        *((cells.given, "added to the loss") for cells in problem.f.cells),
        *_factors(problem),
    ]
    return card("Problem", "Σ wᵢ ℓ(zᵢ; yᵢ) with z = A(X), plus penalties", figures(shown))


def _size(objective: "Objective") -> str:
    m, n = objective.shape
    return f"{m:,}×{n:,}"


def _short(penalty: Any) -> str:
    """A penalty without the settings that are None."""
    if not is_dataclass(penalty):
        return repr(penalty)
    values = {part.name: getattr(penalty, part.name) for part in fields(penalty)}
    told = ", ".join(f"{name}={'…' if np.ndim(v) else repr(v)}" for name, v in values.items() if v is not None)
    return f"{type(penalty).__name__}({told})"


def _factors(objective: "Objective") -> list[tuple[object, object]]:
    like = objective.f.like
    library = f", {type(like).__module__.split('.')[0]}" if is_foreign(like) else ""
    return [
        (objective.kind.describe(), "factors"),
        *((_short(penalty), "penalty") for penalty in objective.penalties),
        (f"{objective.dtype}{library}", "precision"),
    ]


NOTHING = Shared()

CACHED = {"curvature_of_kind"}
"""Cached properties that depend on f and the kind."""


class Objective:
    """A function f of X over factors of one kind, and optionally a penalty on the factors.

    `Problem` makes one from a loss, an operator and data. Two objectives over the same factors can be added, for
    several data sets with their own losses. A `Bound`, such as a function of your own, and `all_cells` can be added to
    an objective, too.

    Parameters
    ----------
    f : Bound
        The function f, e.g. `Function(value, gradient, shape)`.
    penalty : Penalty or sequence of them, optional
        A term on the factors that is added to f, e.g. `penalties.Ridge(rho)`.
    offsets, symmetric, fixed
        The kind of factors to find; see `Problem`.
    """

    def __init__(
        self,
        f: Bound,
        penalty: Penalty | Sequence[Penalty] | None = None,
        offsets: bool = False,
        *,
        symmetric: bool = False,
        fixed: tuple[Array | None, Array | None] | None = None,
    ):
        require_instance(f, Bound, "f")
        self.f, self.shape, self.dtype = f, f.shape, f.dtype
        self.penalties = _penalties(penalty, f.shape)
        self.kind = kind_of(self.shape, self.dtype, symmetric, offsets, fixed, f.measured_shape)
        self.added: tuple[Term, ...] = ()
        """Terms that a solver adds to F."""

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms besides f: the penalties, and those of a solver."""
        return (*self.penalties, *self.added)

    @property
    def least_rank(self) -> int:
        """0 if there are fixed columns, such as offsets, which can be fitted alone; otherwise 1."""
        return 0 if self.kind.fixed_columns else 1

    @property
    def invariant(self) -> bool:
        """Whether F depends on X alone, so that factors may be balanced."""
        return all(term.invariant for term in self.terms)

    @property
    def nuclear(self) -> Weights | None:
        """The weighted nuclear norm that the penalties amount to, without fixed columns; None if there is none."""
        known = [penalty.behind(self.kind.fixed_columns).nuclear for penalty in self.penalties]
        weights = [one for one in known if one is not None]
        total = sum(weights[1:], weights[0]).of(self.kind) if weights else Weights()
        return None if len(weights) < len(known) or (known and not total.positive) else total

    @property
    def new_columns(self) -> Weights:
        """The weights of the penalties for columns that are added to the factors, as far as they are known."""
        known = [penalty.new_columns for penalty in self.penalties]
        weights = [one for one in known if one is not None]
        total = sum(weights[1:], weights[0]).of(self.kind) if weights else Weights()
        return total if total.positive else Weights(*total.sides)

    @property
    def scale(self) -> float:
        """The typical curvature of f."""
        return self.f.scale

    @property
    def smoothness(self) -> float:
        """L, a Lipschitz constant of ∇f. Raises `SmoothnessError` if there is none."""
        return self.f.smoothness

    @property
    def least(self) -> float | None:
        """A lower bound of f, if one is known."""
        return self.f.least

    def oversampling(self, rank: int) -> float | None:
        """Measurements per degree of freedom of a matrix of this rank, if each is of one entry of X; otherwise None.

        Such measurements can miss parts of X even if there are enough of them in theory: these problems need care.
        """
        return None if self.f.seen is None else self.f.seen / self.kind.unknowns(self.shape, rank)

    @property
    def fingerprint(self) -> str:
        """Identifies this f across processes; a checkpoint is resumed only on the f it was made for."""
        return self.f.fingerprint

    def at(self, x: Factors) -> Point:
        """The point at x, by one pass over the measurements, which are not kept."""
        return self.point(x, self.f.evaluate(x))

    def evaluate_keeping_z(self, x: Factors) -> Point:
        """The point at x, with its measurements if f has explicit ones."""
        return self.point(x, self.f.evaluate(x, self.f.measure(x)))

    def known(self, x: Factors, f: float, slopes: Array, z: Array) -> Point:
        """The point at x, for known f, slopes and z."""
        return self.point(x, Evaluated(f, *self.f.adjoint_z(slopes).products(x.left, x.right), z))

    def seen(self, point: Point) -> Point:
        """A point of F plus terms of a solver, as a point of F alone, without a pass over the measurements."""
        return Point(point.x, point.f, point.z, *point.original, point.original)

    def converted(self, point: Point, source: "Objective") -> Point:
        """A point of another objective with the same f, as one of this, without a pass over the measurements."""
        value, gradient = point.f, source.slope(point)
        for penalty in self.penalties:
            h, more = penalty.evaluate(point.x)
            value, gradient = value + h, gradient + more
        return Point(point.x, point.f, point.z, value, gradient, (value, gradient))

    def slope(self, point: Point) -> Factors:
        """∇f in the factors at a point of this objective: the products (∇f V, ∇fᴴ U), in the space of x."""
        own = (penalty.evaluate(point.x)[1] for penalty in self.penalties)
        return reduce(Factors.__sub__, own, point.original[1])

    def point(self, x: Factors, at: Evaluated) -> Point:
        """The point at x, for known f and gradient."""
        value, gradient = at.f, x.gradient(at.GV, at.GhU)
        for penalty in self.penalties:
            h, gradient = penalty.added(x, gradient)
            value += h
        original = value, gradient
        for term in self.added:
            h, more = term.evaluate(x)
            value, gradient = value + h, gradient + more
        return Point(x, at.f, at.z, value, gradient, original)

    def objective(self, x: Factors) -> float:
        """The value of F at x."""
        return self.f.value(x) + sum(term.value(x) for term in self.terms)

    def blocks_of_terms(self, x: Factors, side: int) -> Shared:
        """The curvature that the terms add to each row of U (side 0) or V (side 1)."""
        return sum((term.blocks(x, side) for term in self.terms), NOTHING)

    def curvature_of_terms(self, x: Factors) -> float:
        """A bound on the curvature that the terms add."""
        return max(self.blocks_of_terms(x, side).largest for side in (0, 1))

    def projected(self, x: Factors) -> Factors:
        """x moved into the domains of all terms; x itself if it is inside."""
        for term in self.terms:
            x = term.project(x)
        return x

    def zero(self, width: int = 1) -> Factors:
        """X = 0."""
        return self.kind.zero(self.shape, width, self.dtype, self.f.like)

    def gradient_at_zero(self) -> LinearMap:
        """∇f(0), from which starts are computed."""
        return self.f.gradient(self.zero())

    @cached_property
    def curvature_of_kind(self) -> float:
        """The typical curvature of f over the X that the factors can form; articles assume that it is 1."""
        probe = self.kind.random(np.random.default_rng(0), self.shape, 2, self.dtype, self.f.like)
        return self.kind.curvature(self.scale, self.f.gradient, probe)

    def memory(self, rank: int, solver: "Solver | None" = None) -> "Memory":
        """The memory that `solve(problem, rank, solver)` takes, estimated without a pass over the data.

        `print(problem.memory(10))` says "1.9 GB: 1.2 GB for the data, 0.7 GB for the run".

        Parameters
        ----------
        rank : int
            The rank. If the data are to choose it, pass the largest one that you expect.
        solver : Solver, optional
            By default that of `solve`. The start is the default of the solver.

        Returns
        -------
        Memory
            `data`, the bytes of the arrays that the problem already holds, and `run`, the peak bytes of a run beyond
            them. This is an estimate: measured peaks were between 0.6 and 1.25 times as large.
        """
        # This is in a higher layer, so it is imported only when it is needed.
        home = import_module("bifactor.running.memory")
        found: Memory = home.solve_memory(self, rank, solver)
        return found

    def penalized(self, penalty: Penalty | Sequence[Penalty] | None) -> Self:
        """The same f with other penalties; nothing large is copied."""
        return self._with(penalties=_penalties(penalty, self.shape))

    def with_fixed(self, L: Array | None, R: Array | None) -> Self:
        """The same f over factors with these fixed columns instead."""
        return self._with(kind=kind_of(self.shape, self.dtype, False, False, (L, R), self.f.measured_shape))

    def with_f(self, f: Bound) -> Self:
        """The same with another f over the same matrices."""
        return self._with(f=f)

    def with_fitted(self, fitted: tuple[float, ...]) -> Self:
        """The same with other parameters of the losses, those of `f.parameters`."""
        return self._with(f=self.f.parameters.replace(fitted))

    def plus(self, term: Term) -> Self:
        """The same F plus one more term of a solver."""
        return self._with(added=(*self.added, term))

    @overload
    def __add__(self, other: AllCells) -> Self: ...

    @overload
    def __add__(self, other: "Objective | Bound") -> "Objective": ...

    def __add__(self, other: "Objective | Bound | AllCells") -> "Objective":
        """F + G over the same factors."""
        if isinstance(other, AllCells):
            return self._with(f=add_cells(self.f, other))
        if isinstance(other, Bound):
            other = Objective._of(other, self.kind)
        if not isinstance(other, Objective):
            return NotImplemented
        if not self.kind.same(other.kind):
            raise InputError(
                f"One objective is over {self.kind.describe()}, the other over {other.kind.describe()}. "
                "Add objectives over the same factors."
            )
        return Objective._of(self.f + other.f, self.kind, (*self.penalties, *other.penalties))

    def __radd__(self, other: "Bound | AllCells") -> "Objective":
        return self + other

    @staticmethod
    def _of(f: Bound, kind: Kind, penalty: Sequence[Penalty] = ()) -> "Objective":
        objective = Objective(f, penalty)
        objective.kind = kind
        return objective

    def __repr__(self) -> str:
        m, n = self.shape
        return f"{type(self).__name__}({type(self.f).__name__} of {m}×{n}, {self.kind.describe()}, {self.penalties})"

    def _repr_html_(self) -> str:
        return objective_card(self)

    def _with(self, **changed: Any) -> Self:
        other = object.__new__(type(self))
        stale = CACHED if {"f", "kind"} & set(changed) else set()
        kept = {name: value for name, value in self.__dict__.items() if name not in stale}
        other.__dict__.update(kept, **changed)
        return other


def _penalties(penalty: Penalty | Sequence[Penalty] | None, shape: tuple[int, int]) -> tuple[Penalty, ...]:
    given = () if penalty is None else tuple(penalty) if isinstance(penalty, (tuple, list)) else (penalty,)
    for one in given:
        require_instance(one, Penalty, "penalty")
        one.check(shape)
    return given


# f(UVᴴ) from a loss, an operator and data, which are validated once.


class Problem(Objective):
    """f(X) = Σᵢ wᵢ ℓ(zᵢ; yᵢ) with z = A(X), and optionally a penalty on the factors.

    Parameters
    ----------
    loss : Loss, str, or sequence of them
        The loss ℓ, e.g. `losses.Huber(0.5)`. The names "squared", "huber", "logistic", "probit", "poisson",
        "negative_binomial" and "ordinal" stand for losses with their defaults. Several losses are assigned by `group`,
        or one to each part of a `Stacked`.
    operator : Operator
        The operator A, which measures X, e.g. `operators.Entries(rows, cols, shape)`.
    y : array of length operator.size
        The measurements; for an operator that observes every entry, also the m×n matrix itself.
        Their array library, device and precision (single or double) are those of the computation and of the result. X
        is complex if y or the operator is.
    weights : number or array of length operator.size, optional
        The weights wᵢ ≥ 0. A number scales f: 1/ρ normalises a completion problem with a fraction ρ of entries
        observed.
    penalty : Penalty or sequence of them, optional
        A term on the factors that is added to f, e.g. `penalties.Ridge(rho)`.
    offsets : bool
        Whether to fit an offset for every row and column, X = b1ᵀ + 1cᵀ + a matrix of the given rank. The factors then
        have two more columns, which come first: U = [1, b, …], V = [c, 1, …]. A penalty includes them.
    symmetric : bool
        Whether to find a positive semidefinite X = UUᴴ.
    fixed : (L, R), optional
        Known columns of the factors, m×k and n×l, or None: X = LCᴴ + BRᴴ + a matrix of the given rank, with
        U = [L, B, …] and V = [C, R, …]. L can hold covariates of the rows, R those of the columns. Offsets are a column
        of ones before each.
    group : integer array of length operator.size, optional
        The number of the loss of each measurement, counted from 0.

    Attributes
    ----------
    f : DataBound
        The loss of the measurements as a function of X.
    loss, operator, y, weights, group
        The arguments, in the fastest order of measurements, which may differ from the order that was passed.
    """

    f: DataBound

    def __init__(
        self,
        loss: Loss | str | Sequence[Loss | str],
        operator: Operator,
        y: Array,
        weights: Array | float | None = None,
        penalty: Penalty | Sequence[Penalty] | None = None,
        offsets: bool = False,
        *,
        symmetric: bool = False,
        fixed: tuple[Array | None, Array | None] | None = None,
        group: Array | None = None,
    ):
        if not isinstance(operator, Operator):
            raise InputError(f"operator is {operator!r}, not an Operator. See bifactor.operators.")
        f = operator.bind(DataFit.of(loss, y, weights, group))
        super().__init__(f, penalty, offsets, symmetric=symmetric, fixed=fixed)

    @property
    def loss(self) -> Loss:
        return self.f.loss

    @property
    def operator(self) -> Operator:
        return self.f.operator

    @property
    def y(self) -> Array:
        return self.f.fit.values

    @property
    def group(self) -> Array | None:
        return self.f.fit.group

    @property
    def weights(self) -> Array | None:
        return self.f.fit.weights

    def reweighted(self, weights: Array) -> Self:
        """The same measurements with other weights, in the order of the attribute `y`; 0 leaves one out."""
        return self._with(f=self.f.refitted(self.f.fit.reweighted(weights)))

    def __repr__(self) -> str:
        m, n = self.shape
        size = pluralize(self.y.shape[0], "measurement")
        beside = "".join(f" + {part.given!r}" for part in self.f.cells)
        return f"Problem({self.loss!r}, {size} by {type(self.operator).__name__} of {m}×{n}){beside}"

    def _repr_html_(self) -> str:
        return problem_card(self)


def objective_of(f: Bound, penalty: Penalty | Sequence[Penalty] | None = None, offsets: bool = False) -> Objective:
    """The objective of a bound: a `Problem` if that is an operator bound to data."""
    if not isinstance(f, DataBound):
        return Objective(f, penalty, offsets)
    problem = Problem.__new__(Problem)
    Objective.__init__(problem, f, penalty, offsets)
    return problem
