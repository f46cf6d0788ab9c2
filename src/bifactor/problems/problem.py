"""f(UVᴴ) from a loss, an operator and data, which are validated once."""

from collections.abc import Sequence
from typing import Self

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.losses import DataFit, Loss
from bifactor.operators import DataBound, Operator
from bifactor.penalties import Penalty
from bifactor.problems.objective import Objective
from bifactor.problems.shown import problem_card
from bifactor.validation import counted


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
        return self.f.fit.loss

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
        size = counted(self.y.shape[0], "measurement")
        beside = "".join(f" + {part.given!r}" for part in self.f.cells)
        return f"Problem({self.loss!r}, {size} by {type(self.operator).__name__} of {m}×{n}){beside}"

    def _repr_html_(self) -> str:
        return problem_card(self)
