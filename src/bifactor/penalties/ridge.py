"""Squared norms of the factors, optionally weighted, which amount to a nuclear norm of X."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bifactor.arrays import Array, dtype_of, to_device_of
from bifactor.blocks import Shared, fill_zero_weights
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels.blas import ALL, accumulated, inners, rows_of, some_rows
from bifactor.penalties.base import Penalty, Weights
from bifactor.validation import positive, require_weights, weight_vector


@dataclass(frozen=True, eq=False)
class Ridge(Penalty):
    """h(U, V) = (ρ_U/2) Σᵢₖ aᵢcₖ|uᵢₖ|² + (ρ_V/2) Σⱼₖ bⱼcₖ|vⱼₖ|²; without weights (ρ_U/2)‖U‖²_F + (ρ_V/2)‖V‖²_F.

    Over all factorisations of one X the least h is √(ρ_U ρ_V)·‖X‖_* (Srebro, Rennie and Jaakkola, 2005), or that of
    diag(a)^½ X diag(b)^½ with weights of rows and columns. So with enough columns this is nuclear-norm regularisation,
    f(X) + ρ‖X‖_*, and `Result.certificate` says whether the answer is a global minimiser of that convex problem. If
    the weights of components differ, it is not a norm. Those of fixed columns may differ: offsets can have a ridge of
    their own.

    Parameters
    ----------
    rho : number, or one number per side (ρ_U, ρ_V)
        The strength, in the units of f. For ρ ≥ ‖∇f(0)‖₂, X is 0.
    rows, cols : arrays, optional
        Weights a ≥ 0, one for each row of X, and b ≥ 0, one for each column. With the numbers of observations as
        weights, for instance, the penalty is a sum over observations.
    components : sequence of numbers, optional
        Weights c ≥ 0, one for each column of the factors, including fixed columns and their partners. Any further
        columns have the last weight.

    References
    ----------
    N. Srebro, J. Rennie and T. Jaakkola, Maximum-margin matrix factorization, NIPS 2004.
    """

    rho: float | tuple[float, float]
    rows: Array | None = None
    cols: Array | None = None
    components: Sequence[float] | Array | None = None

    def __post_init__(self) -> None:
        advice = "Leave the penalty out for no ridge."
        if isinstance(self.rho, (tuple, list, np.ndarray)) and np.ndim(self.rho) > 0:
            if len(self.rho) != 2:
                raise InputError(f"rho={self.rho!r} is neither one number nor two. Pass rho or (rho_U, rho_V).")
            object.__setattr__(self, "rho", tuple(positive(r, "rho", advice) for r in self.rho))
        else:
            object.__setattr__(self, "rho", positive(self.rho, "rho", advice))
        for name in ("rows", "cols", "components"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, weight_vector(getattr(self, name), name))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ridge):
            return NotImplemented
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("rows", "cols", "components"))
        return self.rho == other.rho and all(np.array_equal(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash(self.rho)

    @property
    def sides(self) -> tuple[float, float]:
        """(ρ_U, ρ_V)."""
        return self.rho if isinstance(self.rho, tuple) else (self.rho, self.rho)

    def behind(self, fixed: int) -> "Ridge":
        if self.components is None or fixed == 0:
            return self
        return replace(self, components=self.components[min(fixed, len(self.components) - 1) :])

    @property
    def nuclear(self) -> Weights | None:
        even = self.components is None or np.all(self.components == self.components[0])
        return self.new_columns if even else None

    @property
    def new_columns(self) -> Weights:
        last = 1.0 if self.components is None else float(self.components[-1])
        rows, cols = (1.0 if weights is None else weights for weights in (self.rows, self.cols))
        return Weights(last * self.sides[0] * rows, last * self.sides[1] * cols)

    def check(self, shape: tuple[int, int]) -> None:
        for name, size in zip(("rows", "cols"), shape, strict=True):
            require_weights(getattr(self, name), name, size, shape, "Ridge")

    def value(self, x: Factors) -> float:
        return self._products((x, x))[0] / 2

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        return self.value(x), self.hessian(x, x)

    def added(self, x: Factors, gradient: Factors) -> tuple[float, Factors]:
        if len(x.arrays) == 1:  # both sides are one array
            return super().added(x, gradient)
        sides = zip((0, 1), (x.left, x.right), (gradient.left, gradient.right), strict=True)
        left, right = (accumulated(g, partial(self._times, side, F)) for side, F, g in sides)
        return self.value(x), x.gradient(left, right)

    def hessian(self, x: Factors, d: Factors) -> Factors:
        return x.gradient(self._times(0, d.left), self._times(1, d.right))

    def polynomial(self, x: Factors, d: Factors) -> Array:
        own, cross, last = self._products((x, x), (x, d), (d, d))
        return np.array([own / 2, cross, last / 2, 0.0, 0.0])

    def blocks(self, x: Factors, side: int) -> Shared:
        weights = (self.rows, self.cols)[side]
        rho = self.sides[side] * (1.0 if weights is None else to_device_of(weights, x.left))
        if self.components is None:
            return Shared(ridge=rho)
        if weights is not None:
            rho = self.sides[side] * to_device_of(fill_zero_weights(weights), x.left)
        return Shared(((rho, np.diag(self._components(x.width)).astype(x.dtype)),))

    def _products(self, *pairs: tuple[Factors, Factors]) -> list[float]:
        """ρ_U Σᵢₖ aᵢcₖuᵢₖu′ᵢₖ + ρ_V Σⱼₖ bⱼcₖvⱼₖv′ⱼₖ for each pair, in one round for each side."""
        sides = [(x.left, d.left) for x, d in pairs], [(x.right, d.right) for x, d in pairs]
        if self.rows is None and self.cols is None and self.components is None:
            left, right = self.sides
            found = inners(*sides[0], *sides[1])
            return [left * u + right * v for u, v in zip(found[: len(pairs)], found[len(pairs) :], strict=True)]
        totals = [0.0] * len(pairs)
        for side, some in enumerate(sides):
            for rows in some_rows(some[0][0]):
                found = inners(*((rows_of(F, rows), self._times(side, D, rows)) for F, D in some))
                totals = [total + one for total, one in zip(totals, found, strict=True)]
        return totals

    def _times(self, side: int, F: Array, rows: slice = ALL) -> Array:
        """ρ·diag(a)·F·diag(c), of some rows."""
        real, weights = np.finfo(dtype_of(F)).dtype, (self.rows, self.cols)[side]
        found = self.sides[side] * rows_of(F, rows)
        if weights is not None:
            found = to_device_of(weights[rows].astype(real)[:, None], F) * found
        return found if self.components is None else found * to_device_of(self._components(F.shape[1]).astype(real), F)

    def _components(self, width: int) -> Array:
        """c for this many columns."""
        assert self.components is not None
        c = np.asarray(self.components)
        return np.concatenate([c[:width], np.full(max(width - c.size, 0), c[-1])])
