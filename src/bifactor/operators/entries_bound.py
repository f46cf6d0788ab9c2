"""Observed entries bound to data: z is kept, or computed again in each pass."""

from typing import TYPE_CHECKING, Any

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import Array, common_dtype, conj, digest, dtype_of, host, is_complex, on_host, zeros
from bifactor.blocks import Exact
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels import blocks_reference, passes_reference
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.operators.bound import Ahead, Apply, Curve, Evaluated
from bifactor.operators.footprint import Footprint
from bifactor.operators.measured import Measured
from bifactor.operators.symbolic import Symbolic
from bifactor.validation import require_pair, require_rows

if TYPE_CHECKING:
    from bifactor.operators.entries import Entries

Sides = tuple[Array, Array]
"""The factors of the longer and of the shorter side, as the kernels take them."""


class EntriesBound(Measured):
    """f(X) = Σ wₜ ℓ(X[iₜ, jₜ]; yₜ), with f and its gradient in one pass if z is not given, and with quick curves."""

    operator: "Entries"
    quick = True

    def __init__(self, operator: "Entries", fit: DataFit):
        super().__init__(operator, fit)
        self.layout, self.flipped = operator.layout, operator.flipped

    @cached_property
    def marginals(self) -> tuple[Array, Array]:
        curvature, weights = self.fit.typical
        rows, cols = self.operator.sums(weights)
        return curvature * rows, curvature * cols

    @property
    def seen(self) -> int:
        return self.fit.seen

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        return self.operator.motion(x, d)

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        require_pair(x.left, x.right, self.shape)
        compiled = self.fit.compiled(common_dtype(x.left, x.right), x.width) if z is None else None
        if compiled is None:
            return super().evaluate(x, z)
        f, *products = on_host(kernels.compiled("passes").fused, self.layout, *compiled, *self.sides(x.left, x.right))
        return Evaluated(f, *self.sides(*products), None)

    def exact(self, x: Factors, side: int, score: bool = False, rows: tuple[int, int] | None = None) -> Exact:
        require_pair(x.left, x.right, self.shape)
        left, right = host(x.left), host(x.right)
        other, span = (left if side else right), rows or (0, self.shape[side])
        inner = bool(side) != self.flipped
        compiled = self.fit.compiled(x.dtype, x.width**2)
        if compiled is not None:
            sides = self.sides(left, right)
            packed = kernels.compiled("blocks").sums(self.layout, *compiled, *sides, other, inner, score, span)
        else:
            z = self.measure(x)
            q = np.abs(host(self.fit.evaluate(z)[1])) ** 2 if score else host(self.fit.curvature(z))
            packed = blocks_reference.sums(self.layout, q, other, inner, span)
        return Exact(packed, x.width)

    @cached_property
    def fingerprint(self) -> str:
        where = digest(self.layout.outer, self.layout.inner)
        return f"Entries {self.shape} {where} {self.fit.fingerprint}"

    def recomputed(self) -> "SymbolicEntries":
        return SymbolicEntries(self)

    def sides(self, left: Array, right: Array) -> Sides:
        return self.operator.sides(left, right)


class SymbolicEntries(Symbolic):
    """The same f by passes that compute each z when it is needed: no array as long as the data is ever held."""

    bound: EntriesBound

    def value(self, x: Factors) -> float:
        return self.evaluate(x).f

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        f, *products = self.run("fused", ("value", "gradient"), x)
        return Evaluated(f, *self.bound.sides(*products), None)

    def gradient(self, x: Factors, z: Array | None = None) -> LinearMap:
        return Slopes(self, x)

    def hessian(self, x: Factors, z: Array | None = None) -> Apply:
        return lambda d: self.bound.sides(*self.run("bent", ("curvature",), x, d))

    def curve(self, x: Factors, d: Factors, z: Array | None = None, ahead: Ahead | None = None) -> Curve:
        return EntriesCurve(self, x, d)

    def footprint(self, width: int) -> Footprint:
        return self.bound.footprint(width)._replace(z=0)

    def run(self, name: str, parts: tuple[str, ...], *pairs: Factors, a: tuple[float, ...] = ()) -> Any:
        """A pass over the entries, compiled if possible; `parts` are the methods of the loss that it needs."""
        sides = [side for pair in pairs for side in self.bound.sides(pair.left, pair.right)]
        for pair in pairs:  # compiled loops do not check bounds
            require_pair(pair.left, pair.right, self.shape)
        if len({pair.width for pair in pairs}) > 1:
            raise InputError("The factors and the direction have different numbers of columns. Pass equal numbers.")
        return self.over(name, parts, *sides, *a)

    def over(self, name: str, parts: tuple[str, ...], *arguments: Any) -> Any:
        """The pass on arrays that have been checked."""
        factors = [a for a in arguments if not isinstance(a, float)]
        compiled = self.fit.compiled(common_dtype(*factors), max(a.shape[1] for a in factors))
        if compiled is not None:
            settings = compiled if parts else compiled[2:]
            return on_host(getattr(kernels.compiled("passes"), name), self.bound.layout, *settings, *arguments)
        fit = self.fit
        if self.bound.flipped and is_complex(fit.values):
            fit = fit.with_values(conj(fit.values))  # for the transposed X, z is conjugated
        y, w = fit.arrays()
        losses = (getattr(self.fit.loss, part) for part in parts)
        return on_host(getattr(passes_reference, name), self.bound.layout, *losses, y, w, *arguments)


class EntriesCurve(Curve):
    """φ(a) by a pass over the entries for each a."""

    def __init__(self, bound: SymbolicEntries, x: Factors, d: Factors):
        self.bound, self.x, self.d = bound, x, d

    @cached_property
    def quartic(self) -> Array | None:
        return host(self.bound.run("quartic", (), self.x, self.d)) if self.bound.quadratic else None

    def at(self, a: float) -> tuple[float, float, float]:
        return self.bound.run("along", ("value", "gradient", "curvature"), self.x, self.d, a=(a,))

    def to(self, a: float, x: Factors) -> Evaluated:
        return self.bound.evaluate(x)


class Slopes(LinearMap):
    """∇f(X), whose entries are computed in each product."""

    def __init__(self, bound: SymbolicEntries, x: Factors):
        require_pair(x.left, x.right, bound.shape)
        self.bound, self.x = bound, x
        self.shape, self.dtype, self.like = bound.shape, np.result_type(x.dtype, bound.fit.dtype), bound.like

    def matmul(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        return self._products(zeros((self.shape[0], 0), dtype_of(V), V), V)[0]

    def rmatmul(self, U: Array) -> Array:
        require_rows(U, self.shape[0])
        return self._products(U, zeros((self.shape[1], 0), dtype_of(U), U))[1]

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        require_rows(U, self.shape[0])
        require_rows(V, self.shape[1])
        return self._products(U, V)

    def _products(self, U: Array, V: Array) -> tuple[Array, Array]:
        sides = self.bound.bound.sides
        factors = *sides(self.x.left, self.x.right), *sides(U, V)
        return sides(*self.bound.over("slopes", ("gradient",), *factors))
