"""Proof of optimality, or how far from it."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import inner
from bifactor.factors import Factors
from bifactor.metrics import nuclear_norm
from bifactor.objective import Objective
from bifactor.penalties.nuclear import nuclear_weight

TOL, RESTARTS = 1e-8, 200
"""Accuracy of ‖∇f(X)‖₂ relative to itself, and the work it may cost."""


@dataclass(frozen=True)
class Certificate:
    """What can be said about an answer X = UVᴴ without knowing another.

    With a ridge of nuclear weight ρ, X is a global minimiser of the convex problem f(X) + ρ‖X‖_* if and only if the
    gradient in both factors vanishes, the factors are balanced and ‖∇f(X)‖₂ ≤ ρ. Without a ridge, ρ is 0 and the
    statement is that ∇f(X) = 0: X minimises f over all matrices.

    Attributes
    ----------
    gradient_norm : float
        Of the function minimised, over both factors; and `relative_gradient`, beside what its parts amount to.
    dual_norm : float
        ‖∇f(X)‖₂; for X = UUᴴ the largest eigenvalue of −∇f(X).
    rho : float
        √(ρ_U ρ_V), or 0; for X = UUᴴ the mean of the two.
    gap : float or None
        f(X) + ρ‖X‖_* is at most this much above the least value over all matrices of any rank. By convexity that is
        ⟨∇f(X), X⟩ + ρ‖X‖_* + (‖∇f(X)‖₂ − ρ)₊‖X*‖_*, with ‖X*‖_* ≤ (f(X) + ρ‖X‖_* − inf f)/ρ. None where there is no
        ridge, or inf f is not known, or columns are fixed.
    """

    gradient_norm: float
    relative_gradient: float
    dual_norm: float
    rho: float
    gap: float | None
    level: float = 0.0
    """Without a ridge, what ∇f(X) is compared with: the typical curvature times ‖X‖_F."""

    def optimal(self, tol: float = 1e-6) -> bool:
        """Whether X is a global minimiser, up to a relative `tol` in the norms."""
        return self.relative_gradient <= tol and self.dual_norm <= self.rho + tol * max(self.rho, self.level)


def certify(problem: Objective, x: Factors) -> Certificate:
    """The certificate of an answer, at the cost of an accurate ‖∇f(X)‖₂."""
    point, kind = problem.at(x), problem.kind
    G = problem.gradient(x.left, x.right)
    dual = max(float(kind.leading(G, 1, np.random.default_rng(0), TOL, RESTARTS, sign=-1)[1][0]), 0.0)
    gradient = point.gradient.norm()
    parts = point.slope.norm() + dual * x.norm()
    rho = nuclear_weight(problem.penalty, kind)
    gap = None
    if rho > 0 and problem.least is not None and not kind.fixed_columns:
        nuclear = rho * nuclear_norm(x.left, x.right)
        bound = point.f + nuclear - problem.least
        gap = max(inner(x.left, point.slope.left) + nuclear, 0.0) + max(dual / rho - 1, 0.0) * bound
    level = 0.0 if rho > 0 else problem.scale * x.product_norm()
    parts += level * x.norm()
    return Certificate(gradient, gradient / max(parts, 1e-300), dual, rho, gap, level)
