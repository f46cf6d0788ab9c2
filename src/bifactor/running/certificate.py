"""A proof of optimality, or a bound on the distance from it."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import inner
from bifactor.factors import Factors
from bifactor.metrics import nuclear_norm
from bifactor.problems.objective import Objective

TOL, RESTARTS = 1e-8, 200
"""The relative accuracy of ‖∇f(X)‖₂, and the largest number of restarts."""


@dataclass(frozen=True)
class Certificate:
    """What is known about the optimality of an answer X = UVᴴ.

    With a ridge of nuclear weight ρ, X is a global minimiser of the convex problem f(X) + ρ‖X‖_* if and only if the
    gradient in both factors vanishes, the factors are balanced and ‖∇f(X)‖₂ ≤ ρ. Without a ridge, ρ is 0 and the
    statement is that ∇f(X) = 0: X minimises f over all matrices. With weights of rows and columns, let a and b be these
    divided by their means, which multiply ρ_U and ρ_V. The norm is then that of A^½ X B^½, A = diag(a) and B = diag(b),
    and A^{-½}∇f(X)B^{-½} replaces ∇f(X).

    If the penalty does not amount to a nuclear norm, `dual_norm`, `rho` and `gap` are None: it is then known only
    whether X is a stationary point.

    Attributes
    ----------
    gradient_norm : float
        The gradient norm of the objective, over both factors. `relative_gradient` is its ratio to the size of its
        parts.
    dual_norm : float or None
        ‖∇f(X)‖₂; for X = UUᴴ the largest eigenvalue of −∇f(X).
    rho : float or None
        √(ρ_U ρ_V), or 0 without a ridge; for X = UUᴴ the mean of the two.
    gap : float or None
        f(X) + ρ‖X‖_* is at most this much above the least value over all matrices of any rank. By convexity that is
        ⟨∇f(X), X⟩ + ρ‖X‖_* + (‖∇f(X)‖₂ − ρ)₊‖X*‖_*, with ‖X*‖_* ≤ (f(X) + ρ‖X‖_* − inf f)/ρ. None if there is no
        ridge, inf f is not known, or columns are fixed.
    """

    gradient_norm: float
    relative_gradient: float
    dual_norm: float | None
    rho: float | None
    gap: float | None
    level: float = 0.0
    """Without a ridge, the size that ∇f(X) is compared with: the typical curvature times ‖X‖_F."""

    def stationary(self, tol: float = 1e-6) -> bool:
        """Whether the gradient in the factors vanishes, up to a relative `tol`."""
        return self.relative_gradient <= tol

    def optimal(self, tol: float = 1e-6) -> bool:
        """Whether X is known to be a global minimiser, up to a relative `tol` in the norms."""
        if self.dual_norm is None or self.rho is None:
            return False
        return self.stationary(tol) and self.dual_norm <= self.rho + tol * max(self.rho, self.level)

    def __str__(self) -> str:
        gradient = f"relative gradient {self.relative_gradient:.2g}"
        if self.dual_norm is None or self.rho is None:
            return f"{gradient}; the penalty is not a nuclear norm, so nothing is known about other matrices"
        bound = "" if self.gap is None else f"; at most {self.gap:.3g} above the least value"
        return f"{gradient}; ‖∇f(X)‖₂ = {self.dual_norm:.6g} against ρ = {self.rho:.6g}{bound}"


def certify(problem: Objective, x: Factors) -> Certificate:
    """The certificate of an answer, at the cost of an accurate ‖∇f(X)‖₂."""
    point, kind, weights = problem.at(x), problem.kind, problem.nuclear
    gradient, slope = point.gradient.norm(), problem.slope(point)
    if weights is None:
        parts = slope.norm() + (point.gradient - slope).norm()
        return Certificate(gradient, gradient / max(parts, 1e-300), None, None, None)
    G = weights.gradient(problem.f.gradient(x))
    try:
        dual = max(float(kind.leading(G, 1, np.random.default_rng(0), TOL, RESTARTS, sign=-1)[1][0]), 0.0)
    except np.linalg.LinAlgError:  # if a run has diverged, squares of the gradient may overflow
        dual = np.inf
    rho, lifted = weights.rho(kind), weights.lifted(x)
    gap = None
    if rho > 0 and problem.least is not None and not kind.fixed_columns:
        nuclear = rho * nuclear_norm(lifted.left, lifted.right)
        bound = point.f + nuclear - problem.least
        gap = max(inner(x.left, slope.left) + nuclear, 0.0) + max(dual / rho - 1, 0.0) * bound
    level = 0.0 if rho > 0 else problem.scale * x.product_norm()
    parts = slope.norm() + (dual + level) * x.norm()
    relative = gradient / max(parts, 1e-300) if np.isfinite(parts) else 1.0
    return Certificate(gradient, relative, dual, rho, gap, level)
