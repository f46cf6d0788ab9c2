"""The nuclear norm in disguise."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, inner
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.penalties.base import Penalty
from bifactor.validation import positive


@dataclass(frozen=True)
class Ridge(Penalty):
    """h(U, V) = (ρ_U/2)‖U‖²_F + (ρ_V/2)‖V‖²_F.

    Over all factorisations of one X the least h is √(ρ_U ρ_V)·‖X‖_* (Srebro, Rennie and Jaakkola, 2005). So with enough
    columns this is nuclear-norm regularisation, f(X) + ρ‖X‖_*, and `Result.certificate` tells whether the answer is a
    global minimiser of that convex problem.

    Parameters
    ----------
    rho : number, or one number per side (ρ_U, ρ_V)
        In the units of f: ρ = ‖∇f(0)‖₂ is where X becomes 0.

    References
    ----------
    N. Srebro, J. Rennie and T. Jaakkola, Maximum-margin matrix factorization, NIPS 2004.
    """

    rho: float | tuple[float, float]

    def __post_init__(self) -> None:
        advice = "Leave the penalty out for none."
        if isinstance(self.rho, (tuple, list, np.ndarray)) and np.ndim(self.rho) > 0:
            if len(self.rho) != 2:
                raise InputError(f"rho={self.rho!r} is not one number, or one per side. Pass rho or (rho_U, rho_V).")
            object.__setattr__(self, "rho", tuple(positive(r, "rho", advice) for r in self.rho))
        else:
            object.__setattr__(self, "rho", positive(self.rho, "rho", advice))

    @property
    def sides(self) -> tuple[float, float]:
        """(ρ_U, ρ_V)."""
        return self.rho if isinstance(self.rho, tuple) else (self.rho, self.rho)

    @property
    def nuclear(self) -> float:
        """The weight of ‖X‖_* that h stands for, √(ρ_U ρ_V)."""
        left, right = self.sides
        return (left * right) ** 0.5

    @property
    def curvature(self) -> tuple[float, float]:
        return self.sides

    def evaluate(self, x: Factors) -> tuple[float, Factors]:
        return self._product(x, x) / 2, self.hessian(x, x)

    def hessian(self, x: Factors, d: Factors) -> Factors:
        left, right = self.sides
        return x.gradient(left * d.left, right * d.right)

    def polynomial(self, x: Factors, d: Factors) -> Array:
        return np.array([self._product(x, x) / 2, self._product(x, d), self._product(d, d) / 2, 0.0, 0.0])

    def _product(self, x: Factors, d: Factors) -> float:
        left, right = self.sides
        return left * inner(x.left, d.left) + right * inner(x.right, d.right)
