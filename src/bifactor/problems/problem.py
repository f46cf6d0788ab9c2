"""f(UVᴴ) from a loss, an operator and data, validated once, at the door."""

from collections.abc import Sequence
from typing import Self

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.losses import DataFit, Loss
from bifactor.operators import DataBound, Operator
from bifactor.penalties import Penalty
from bifactor.problems.objective import Objective
from bifactor.problems.shown import problem_card
from bifactor.words import counted


class Problem(Objective):
    """f(X) = Σᵢ wᵢ ℓ(zᵢ; yᵢ) with z = A(X), and perhaps a penalty on the factors.

    Parameters
    ----------
    loss : Loss, {"squared", "huber", "logistic", "probit", "poisson", "negative_binomial"}, or sequence of them
        What yᵢ means, e.g. `losses.Huber(0.5)`; a name stands for the loss with its defaults. Several losses go with
        `group`, or with one part each of `Stacked`.
    operator : Operator
        How X is measured, e.g. `operators.Entries(rows, cols, shape)`.
    y : array of length operator.size
        The measurements; for an operator that observes every entry, also the m×n matrix itself.
        Its array library, device and precision (single or double) are those of the computation and of the result. X is
        complex where y or the operator says so.
    weights : number or array of length operator.size, optional
        wᵢ ≥ 0. A number scales f: 1/ρ normalises a completion problem with a fraction ρ of entries observed.
    penalty : Penalty or sequence of them, optional
        Added to f by every solver, e.g. `penalties.Ridge(rho)`.
    offsets : bool
        Fit an offset for every row and column, X = b1ᵀ + 1cᵀ + a matrix of the rank asked for. The factors then have
        two columns more, in front: U = [1, b, …], V = [c, 1, …]. A penalty counts them in.
    symmetric : bool
        Look for a positive semidefinite X = UUᴴ.
    fixed : (L, R), optional
        Columns that are known, m×k and n×l, either of them None for none: X = LCᴴ + BRᴴ + a matrix of the rank asked
        for, with U = [L, B, …] and V = [C, R, …]. L can hold covariates of the rows, R those of the columns. Offsets
        are a column of ones in front of each.
    group : integer array of length operator.size, optional
        Which of several losses each measurement has, counted from 0.

    Attributes
    ----------
    f : DataBound
        The loss of the measurements as a function of X.
    loss, operator, y, weights, group
        What was given, in the order of measurements that is fastest: they belong together, whatever order you used.
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
        """The same measurements with other weights, given in the order of `y` here; 0 leaves one out."""
        return self._with(f=self.f.refitted(self.f.fit.reweighted(weights)))

    def __repr__(self) -> str:
        m, n = self.shape
        size = counted(self.y.shape[0], "measurement")
        beside = "".join(f" + {part.given!r}" for part in self.f.cells)
        return f"Problem({self.loss!r}, {size} by {type(self.operator).__name__} of {m}×{n}){beside}"

    def _repr_html_(self) -> str:
        return problem_card(self)
