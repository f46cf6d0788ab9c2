"""Proof of optimality, or how far from it."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import Array, inner, pair_norm, product_norm
from bifactor.metrics import nuclear_norm
from bifactor.objective import Objective
from bifactor.path import state_at
from bifactor.penalties.nuclear import nuclear_weight
from bifactor.svd import leading

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
        ridge, or inf f is not known, or there are offsets.
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


def certify(problem: Objective, U: Array, V: Array, psd: bool) -> Certificate:
    """The certificate of an answer, at the cost of an accurate ‖∇f(X)‖₂."""
    state = state_at(problem, U, V, psd=psd)
    G = problem.gradient(U, V)
    rng = np.random.default_rng(0)
    dual = max(float(leading(G, 1, rng, TOL, RESTARTS, psd, sign=-1)[1][0]), 0.0)
    f, GV, GhU = problem.value_and_products(U, V)
    gradient = pair_norm(state.dU, state.dV)
    parts = pair_norm(GV, GhU) + dual * pair_norm(U, V)
    rho = nuclear_weight(problem.penalty, psd)
    gap = None
    if rho > 0 and problem.least is not None and not problem.offsets:
        nuclear = rho * nuclear_norm(U, V)
        bound = f + nuclear - problem.least
        gap = max(inner(U, GV) + nuclear, 0.0) + max(dual / rho - 1, 0.0) * bound
    level = 0.0 if rho > 0 else problem.scale * product_norm(U, V)
    parts += level * pair_norm(U, V)
    return Certificate(gradient, gradient / max(parts, 1e-300), dual, rho, gap, level)
