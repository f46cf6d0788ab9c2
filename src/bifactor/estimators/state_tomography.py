"""Quantum state tomography: a density matrix of low rank from counts or from expectation values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.base import BaseEstimator

from bifactor.arrays import Array, floating, generator, herm, is_complex
from bifactor.errors import InputError
from bifactor.estimators.linear_inversion import (
    TOLERANCE,
    NearState,
    check_counts,
    check_labels,
    eigenvectors,
    linear_inversion,
    pauli_sum,
    state_factor,
    symplectic,
)
from bifactor.linear_map import LinearMap
from bifactor.losses import ExpectedCounts, Squared
from bifactor.operators import Operator, Pauli, RankOne
from bifactor.operators.base import power_norm_squared, probed_mean_square
from bifactor.problems.problem import Problem
from bifactor.running.solve import solve
from bifactor.solvers import PCG, Solver
from bifactor.validation import is_count, require_finite


class StateTomography(BaseEstimator):  # type: ignore[misc]
    """The state ρ = UUᴴ of n qubits, tr ρ = 1, that explains measurements best among those of rank ≤ r.

    `fit_counts` maximises the likelihood Σ y log tr(ρ Π) of the counts; `fit_expectations` minimises
    Σ (tr(ρ P) − v)²/σ² over Pauli strings P. Both descend on the complex factor U, so that ρ is positive by
    construction and nothing but the start costs more than thin products.

    A setting or Pauli string has one letter per qubit. Its first letter belongs to the first Kronecker factor, and to
    the first bit of an outcome; bit 0 is the +1 eigenvector.

    Parameters
    ----------
    n_qubits : int
    rank : int
        r, from 1 (a pure state) to 2ⁿ (any state).
    solver : Solver, optional
        One that can find X = UUᴴ. By default PCG.
    max_iter, tol
        As in `bifactor.solve`.
    rng : Generator, int or None
        For the random part of the start.

    Attributes
    ----------
    factor_ : array, 2ⁿ × r, complex
        U, with ‖U‖_F = 1. Its columns are orthogonal: eigenvectors of ρ times the roots of its eigenvalues, descending.
    result_ : Result
        The run, with the factor as it came out of it.

    References
    ----------
    Z. Hradil, Quantum-state estimation, Phys. Rev. A 55 (1997).
    D. Gross, Y.-K. Liu, S. T. Flammia, S. Becker and J. Eisert, Quantum state tomography via compressed sensing,
    Phys. Rev. Lett. 105 (2010).
    """

    def __init__(
        self,
        n_qubits: int,
        rank: int,
        solver: Solver | None = None,
        max_iter: int = 5000,
        tol: float = 1e-7,
        rng: np.random.Generator | int | None = None,
    ):
        self.n_qubits = n_qubits
        self.rank = rank
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.rng = rng

    def fit_counts(self, settings: Sequence[str], counts: Any) -> "StateTomography":
        """Fit to how often each outcome of each setting was seen.

        Parameters
        ----------
        settings : sequence of str
            Such as "XZY": the Pauli matrix in whose eigenbasis each qubit was measured. Any subset of the 3ⁿ.
        counts : array, n_settings × 2ⁿ, or list of dict
            Outcomes in the order 00…0 to 11…1, or {bit string: count}.
        """
        settings, y = self._counts(settings, counts)
        used = y.sum(axis=1) > 0
        settings, y = [s for s, u in zip(settings, used, strict=True) if u], y[used]
        scale = np.sqrt(np.repeat(y.sum(axis=1), y.shape[1]))
        # With means N_s·tr(ρ Π) the trace comes out as 1 by itself: see ExpectedCounts.
        problem = Problem(ExpectedCounts(), RankOne(scale[:, None] * eigenvectors(settings)), y.ravel(), symmetric=True)
        return self._fit(problem, linear_inversion(settings, y))

    def fit_expectations(self, paulis: Sequence[str], values: Any, errors: Any = None) -> "StateTomography":
        """Fit to estimates of tr(ρ P).

        The unit trace is exact and costs nothing: the run minimises Σ w (tr(XP) − v·tr X)² + κ(tr X − 1)². Along X = tρ
        that is t²A + κ(t − 1)², whose least value κA/(κ + A) grows with A, so for any κ > 0 the direction of the
        minimiser is the ρ of unit trace with the least A = Σ w (tr(ρP) − v)². (A heavy weight on tr X = 1 in the plain
        sum of squares would only be exact in the limit, and slow.)

        Parameters
        ----------
        paulis : sequence of str
            Such as "XIZ". The identity string, whose value is 1, may be left out.
        values : array, one per string
            May lie outside [−1, 1], as corrected or noisy estimates do.
        errors : array, one per string, optional
            Standard errors σ > 0 of the values; by default all alike.
        """
        d = self._dimension()
        labels, v, w = self._expectations(paulis, values, errors)
        operator = Centred(Pauli(self.n_qubits, ["I" * self.n_qubits, *labels]), v)
        y = np.concatenate([[1.0], np.zeros(v.size)])
        # κ = Σw/d puts the trace on a par with the curvature of the rest over low ranks.
        problem = Problem(Squared(), operator, y, np.concatenate([[w.sum() / d], w]), symmetric=True)
        coefficients = np.zeros((d, d))
        coefficients[symplectic(labels)] = v
        coefficients[0, 0] = 1
        return self._fit(problem, pauli_sum(coefficients))

    def density_matrix(self) -> Array:
        """ρ itself, 2ⁿ × 2ⁿ and dense."""
        U = self._fitted()
        return U @ herm(U)

    def purity(self) -> float:
        """tr ρ² = ‖UᴴU‖²_F: 1 for a pure state, 2⁻ⁿ for the maximally mixed one."""
        U = self._fitted()
        return float(np.linalg.norm(herm(U) @ U) ** 2)

    def fidelity(self, state: Any) -> float:
        """(tr √(√ρ σ √ρ))² = ‖UᴴW‖²_* for σ = WWᴴ; for a pure σ = ψψᴴ it is ψᴴρψ.

        Parameters
        ----------
        state : array or StateTomography
            A state vector, a density matrix, or another fitted estimator.
        """
        U = self._fitted()
        W = state._fitted() if isinstance(state, StateTomography) else state_factor(state)
        if W.shape[0] != U.shape[0]:
            raise InputError(f"state has dimension {W.shape[0]}, this one has {U.shape[0]}. Compare like with like.")
        return min(float(np.linalg.norm(herm(U) @ W, "nuc") ** 2), 1.0)

    def probabilities(self, settings: Sequence[str]) -> Array:
        """What each outcome of each setting has, n_settings × 2ⁿ."""
        U = self._fitted()
        settings = check_labels(settings, "settings", "XYZ", self.n_qubits)
        return np.stack([(np.abs(herm(eigenvectors([s]).T) @ U) ** 2).sum(axis=1) for s in settings])

    def log_likelihood(self, settings: Sequence[str], counts: Any) -> float:
        """Σ y log p/Σ y: the mean logarithm, over the shots, of what was the probability of what was seen."""
        p = self.probabilities(settings)
        y = self._counts(settings, counts)[1]
        return float(xlogy(y, p).sum() / y.sum())

    def _fit(self, problem: Problem, estimate: Array) -> "StateTomography":
        solver = PCG() if self.solver is None else self.solver
        rng, init = generator(self.rng), NearState(estimate)
        result = solve(problem, self.rank, solver, init, rng, max_iter=self.max_iter, tol=self.tol)
        vectors, sizes, _ = np.linalg.svd(result.U, full_matrices=False)
        self.result_ = result
        self.factor_ = vectors * (sizes / np.linalg.norm(sizes))
        return self

    def _fitted(self) -> Array:
        if not hasattr(self, "factor_"):
            raise InputError("This StateTomography is not fitted yet. Call fit_counts or fit_expectations first.")
        return self.factor_

    def _dimension(self) -> int:
        if not is_count(self.n_qubits, 1):
            raise InputError(f"n_qubits={self.n_qubits!r} is not an integer ≥ 1.")
        d = 2 ** int(self.n_qubits)
        if not is_count(self.rank, 1) or self.rank > d:
            raise InputError(f"rank={self.rank!r} is not possible for {self.n_qubits} qubits. Choose from 1 to {d}.")
        return d

    def _counts(self, settings: Sequence[str], counts: Any) -> tuple[list[str], Array]:
        self._dimension()
        listed = check_labels(settings, "settings", "XYZ", self.n_qubits)
        return listed, check_counts(counts, listed)

    def _expectations(self, paulis: Sequence[str], values: Any, errors: Any) -> tuple[list[str], Array, Array]:
        """Labels other than the identity, their values, and weights of mean 1."""
        labels = check_labels(paulis, "paulis", "IXYZ", self.n_qubits)
        v, e = floating(values, "values"), np.ones(len(labels)) if errors is None else floating(errors, "errors")
        for numbers, name in ((v, "values"), (e, "errors")):
            if numbers.shape != (len(labels),) or is_complex(numbers):
                raise InputError(f"{name} has shape {numbers.shape}. Pass {len(labels)} real numbers, one per string.")
            require_finite(numbers, name, "Leave out strings that were not measured.")
        if np.any(e <= 0):
            raise InputError(f"errors holds {e.min():g}. Standard errors are > 0; leave out what is not known.")
        trivial = np.array([set(label) == {"I"} for label in labels])
        if np.any(np.abs(v[trivial] - 1) > TOLERANCE):
            raise InputError(f"values has {v[trivial][0]:g} for the identity. That is the trace, 1: leave it out.")
        if trivial.all():
            raise InputError("paulis holds nothing but the identity. Pass strings that say something about the state.")
        w = 1 / e[~trivial].astype(np.float64) ** 2
        return [s for s, t in zip(labels, trivial, strict=True) if not t], v[~trivial].astype(np.float64), w / w.mean()


class Centred(Operator):
    """z₀ = tr X and zᵢ = A(X)ᵢ − vᵢ·tr X, for an operator whose first measurement is the trace.

    On unit traces zᵢ is the residual A(X)ᵢ − vᵢ, and unlike that it is linear in X.
    """

    def __init__(self, base: Operator, values: Array):
        self.base, self.values = base, values
        self.shape, self.size, self.complex_matrix = base.shape, base.size, base.complex_matrix

    def forward(self, U: Array, V: Array) -> Array:
        z = self.base.forward(U, V)
        return np.concatenate([z[:1], z[1:] - self.values.astype(z.real.dtype) * z[0]])

    def adjoint(self, w: Array) -> LinearMap:
        first = w[:1] - self.values.astype(w.real.dtype) @ w[1:]
        return self.base.adjoint(np.concatenate([first, w[1:]]))

    def norm_squared(self, weights: Array | None = None) -> float:
        return power_norm_squared(self, weights)

    def mean_square(self, weights: Array | None = None) -> float:
        return probed_mean_square(self, weights)
