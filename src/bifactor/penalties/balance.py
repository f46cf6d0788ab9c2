"""The balance term λ·g(UᴴU − VᴴV), which keeps the two factors equally large.

Convention: the term is λ·g, and its gradient is the true gradient,

    ∇_U = U D,   ∇_V = −V D,   with  D = 2λ ∇g(UᴴU − VᴴV)  (r×r, Hermitian).

Relation to the forms in the literature:

- The analysis of BFGD drops the factor 2 of the chain rule and takes λ = 1/2, so it moves by G V + ½ U ∇g: gradient
  descent on f + ¼ g. Hence **λ = 1/4 is the default, with g, μ_g and L_g exactly as in the paper**; the theorems
  hold for that value and not for an arbitrary λ.
- The paper's toy example, g = ¼‖·‖²_F, is `Frobenius(weight=1/2)` with λ = 1/4: the term is (1/16)‖UᴴU − VᴴV‖²_F,
  which is also the regulariser of Procrustes Flow (Tu et al., 2016).
- Algorithm 1 prints a minus sign before λ∇g. That increases the imbalance and diverges; the sign here is +.
- `Frobenius(weight)` with λ = 1/4 minimises f + (kb/4)‖UᴴU − VᴴV‖²_F with kb = weight/2, and D = kb (UᴴU − VᴴV).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, herm, inner, is_complex, namespace
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels.blas import matmul
from bifactor.penalties.base import Term
from bifactor.validation import settle_positive

__all__ = ["Balance", "Elementwise", "Frobenius"]


class Balance(ABC):
    """g on Hermitian r×r matrices: convex, least at 0, with a Hermitian gradient."""

    @abstractmethod
    def convexity(self, scale: float) -> float:
        """μ_g. `scale` is the curvature of f, for a g that depends on it."""

    @abstractmethod
    def smoothness(self, scale: float) -> float:
        """L_g."""

    @abstractmethod
    def value(self, delta: Array, scale: float) -> float:
        """g(Δ)."""

    @abstractmethod
    def gradient(self, delta: Array, scale: float) -> Array:
        """∇g(Δ)."""

    @abstractmethod
    def curve(self, delta: Array, first: Array, second: Array, scale: float) -> Array | None:
        """Five numbers c with g(Δ + aΔ₁ + a²Δ₂) = Σₖ cₖ aᵏ; None if g is not a polynomial."""


@dataclass(frozen=True)
class BalanceTerm(Term):
    """λ·g(UᴴU − VᴴV) as a function of the factors, for an f of this scale.

    Columns that are fixed on one side cannot be balanced: they and their partners are left out, so that the minimum
    of the term, 0, is attained at some factors of every X.
    """

    balance: Balance
    lam: float
    scale: float

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        UU, VV = x.grams()
        imbalance = _free(x, UU - VV)
        D = 2 * self.lam * self.balance.gradient(imbalance, self.scale)  # r×r
        return self.lam * self.balance.value(imbalance, self.scale), x.gradient(matmul(x.left, D), -matmul(x.right, D))

    def polynomial(self, x: Factors, d: Factors) -> Array | None:
        (UU, VV), (UD, VE), (DD, EE) = x.grams(), x.grams(d), d.grams()
        first = _free(x, UD + herm(UD) - VE - herm(VE))
        c = self.balance.curve(_free(x, UU - VV), first, _free(x, DD - EE), self.scale)
        return None if c is None else self.lam * c


def _free(x: Factors, imbalance: Array) -> Array:
    """The imbalance between free columns; 0 elsewhere."""
    fixed = x.kind.fixed_columns
    if not fixed:
        return imbalance
    free = np.zeros_like(imbalance)
    free[fixed:, fixed:] = imbalance[fixed:, fixed:]
    return free


@dataclass(frozen=True)
class Frobenius(Balance):
    """g(Δ) = (weight/2)‖Δ‖²_F, so μ_g = L_g = weight.

    Without a weight it takes the typical curvature of f, which makes the iteration independent of the scale of f, never
    exceeds L in the step size, and keeps this term from dominating the curvature.
    """

    weight: float | None = None

    def __post_init__(self) -> None:
        settle_positive(self, "weight", "Use balance=None for no balance term.", optional=True)

    def convexity(self, scale: float) -> float:
        return scale if self.weight is None else self.weight

    def smoothness(self, scale: float) -> float:
        return self.convexity(scale)

    def value(self, delta: Array, scale: float) -> float:
        xp = namespace(delta)
        return 0.5 * self.convexity(scale) * float(xp.sum(xp.abs(delta) ** 2))

    def gradient(self, delta: Array, scale: float) -> Array:
        return self.convexity(scale) * delta

    def curve(self, delta: Array, first: Array, second: Array, scale: float) -> Array:
        c2 = inner(first, first) + 2 * inner(delta, second)
        c = [inner(delta, delta), 2 * inner(delta, first), c2, 2 * inner(first, second), inner(second, second)]
        return 0.5 * self.convexity(scale) * np.array(c)


@dataclass(frozen=True)
class Elementwise(Balance):
    """g(Δ) = Σᵢⱼ g(Δᵢⱼ) for any smooth, strongly convex scalar g with its minimum at 0.

    Parameters
    ----------
    function, derivative : callables
        The functions g and g′, applied elementwise to arrays. For complex factors g must be even and is applied to
        |Δᵢⱼ|.
    mu, L : float
        Bounds of g″, with 0 < mu ≤ g″ ≤ L.
    """

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    mu: float
    L: float

    def __post_init__(self) -> None:
        for name in ("mu", "L"):
            settle_positive(self, name, "Pass bounds of g″, 0 < mu ≤ g″ ≤ L.")
        if self.mu > self.L:
            raise InputError(f"mu={self.mu!r} is above L={self.L!r}. Pass bounds of g″ with mu ≤ L.")
        if abs(float(self.derivative(np.zeros(1))[0])) > 1e-12:
            raise InputError("derivative(0) is not 0. Pass a balance function with its minimum at 0.")

    def convexity(self, scale: float) -> float:
        return self.mu

    def smoothness(self, scale: float) -> float:
        return self.L

    def value(self, delta: Array, scale: float) -> float:
        xp = namespace(delta)
        return float(xp.sum(self.function(xp.abs(delta) if is_complex(delta) else delta)))

    def gradient(self, delta: Array, scale: float) -> Array:
        if not is_complex(delta):
            return self.derivative(delta)
        xp = namespace(delta)
        size = xp.abs(delta)
        return self.derivative(size) * delta / xp.where(size > 0, size, 1.0)

    def curve(self, delta: Array, first: Array, second: Array, scale: float) -> None:
        return None
