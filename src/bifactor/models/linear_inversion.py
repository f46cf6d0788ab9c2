"""Local Pauli measurements of n qubits, and linear inversion of their counts.

Conventions: a setting such as "XZY" has one letter per qubit, the first letter belongs to the first Kronecker factor
and to the first bit of an outcome, and bit 0 is the +1 eigenvector.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from bifactor.arrays import Array, floating, gaussian, herm
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Init
from bifactor.problems.objective import Objective
from bifactor.tables.counts import counts_of
from bifactor.validation import require_finite

# Rows are ⟨+1| and ⟨−1| of each Pauli matrix.
EIGENVECTORS = {
    "X": np.array([[1, 1], [1, -1]]) / np.sqrt(2),
    "Y": np.array([[1, -1j], [1, 1j]]) / np.sqrt(2),
    "Z": np.eye(2),
}
TOLERANCE = 1e-6
"""Tolerance for a given state to be normalised, Hermitian and positive."""

JITTER = 0.1
"""Size of the random part of the start, which avoids saddle points and makes all outcomes possible."""

X_PART, Z_PART = str.maketrans("IXYZ", "0110"), str.maketrans("IXYZ", "0011")


def linear_inversion(settings: Any, counts: Any = None) -> Array:
    """ρ = 2⁻ⁿ Σ_P ⟨P⟩ P, with each ⟨P⟩ averaged, shot by shot, over the settings that measure P.

    This is the least-squares solution for the observed frequencies, Hermitian and of unit trace, but in general with
    negative eigenvalues: `nearest_state` makes it a state. A P that no setting measures counts as 0, which gives the
    solution of least norm. The sum separates because the characters (−1)^{m·o} of the outcomes are orthogonal.

    Parameters
    ----------
    settings, counts
        As in `StateTomography.fit_counts`; the first bit of an outcome belongs to the first letter of a setting.

    Returns
    -------
    array, 2ⁿ × 2ⁿ, complex
    """
    labels, y = counts_of(settings, counts)
    x, z = symplectic(labels)
    d = y.shape[1]
    masks = np.arange(d)  # which letters of a setting make the Pauli; the others become I
    where = (masks & x[:, None], masks & z[:, None])
    total, shots = np.zeros((d, d)), np.zeros((d, d))
    np.add.at(total, where, y @ hadamard(d))
    np.add.at(shots, where, np.broadcast_to(y.sum(axis=1, keepdims=True), y.shape))
    return pauli_sum(np.divide(total, shots, out=np.zeros_like(total), where=shots > 0))


def nearest_state(rho: Array) -> Array:
    """argmin ‖σ − ρ‖_F over σ ⪰ 0 with tr σ = 1: all eigenvalues are shifted equally and cut off at 0.

    References
    ----------
    J. A. Smolin, J. M. Gambetta and G. Smith, Efficient method for computing the maximum-likelihood quantum state from
    measurements with additive Gaussian noise, Phys. Rev. Lett. 108 (2012).
    """
    rho = floating(rho, "rho")
    if rho.ndim != 2 or rho.shape[0] != rho.shape[1] or rho.size == 0:
        raise InputError(f"rho has shape {rho.shape}. Pass a square matrix.")
    require_finite(rho, "rho", "Check the counts it was made from.")
    values, vectors = np.linalg.eigh((rho + herm(rho)) / 2)
    descending = values[::-1]
    shifts = (1 - np.cumsum(descending)) / np.arange(1, values.size + 1)
    shift = shifts[np.flatnonzero(descending + shifts > 0)[-1]]
    return (vectors * np.maximum(values + shift, 0)) @ herm(vectors)


@dataclass(frozen=True, eq=False)
class NearState(Init):
    """U₀ = the r leading eigenvectors of the state nearest to a given matrix, plus a little noise; ‖U₀‖_F = 1."""

    matrix: Array

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        U = state_factor(nearest_state(self.matrix))[:, -rank:]
        noise = gaussian(rng, U.shape, U.dtype)
        U = U / np.linalg.norm(U) + (JITTER / np.linalg.norm(noise)) * noise
        U = U / np.linalg.norm(U)
        return problem.kind.pair(U, U)


def state_factor(state: Any) -> Array:
    """W with WWᴴ = the state, with columns of ascending length."""
    W = floating(state, "state")
    require_finite(W, "state", "Pass a vector or a density matrix.")
    if W.ndim == 1 and W.size:
        values, vectors = np.array([np.linalg.norm(W) ** 2]), W[:, None] / np.linalg.norm(W)
    elif W.ndim == 2 and W.shape[0] == W.shape[1] and np.allclose(W, herm(W), atol=TOLERANCE):
        values, vectors = np.linalg.eigh(W)
    else:
        raise InputError(f"state, of shape {W.shape}, is not a state. Pass a vector or a Hermitian matrix.")
    if values[0] < -TOLERANCE or abs(values.sum() - 1) > TOLERANCE:
        raise InputError(f"state has trace {values.sum():g} and smallest eigenvalue {values[0]:g}. Normalise it first.")
    return vectors * np.sqrt(np.maximum(values, 0)).astype(values.dtype)


def pauli_sum(coefficients: Array) -> Array:
    """2⁻ⁿ Σ c[x, z] P(x, z), where P(x, z) has i^{|x∧z|} (−1)^{z·j} at row j⊕x and column j."""
    d = coefficients.shape[0]
    bits = np.arange(d)
    phases = np.array([1, 1j, -1, -1j])[np.bitwise_count(bits[:, None] & bits) % 4]
    rho = np.zeros((d, d), dtype=np.complex128)
    rho[bits ^ bits[:, None], bits] = (coefficients * phases) @ hadamard(d) / d
    return rho


def symplectic(labels: Sequence[str]) -> tuple[Array, Array]:
    """Labels as pairs of bit masks (x, z): X = (1, 0), Y = (1, 1), Z = (0, 1), the first letter the highest bit."""
    x, z = (np.array([int(label.translate(part), 2) for label in labels]) for part in (X_PART, Z_PART))
    return x, z


def eigenvectors(settings: Sequence[str]) -> Array:
    """The 2ⁿ eigenvectors of each setting as rows, outcome by outcome: (n_settings·2ⁿ) × 2ⁿ."""
    blocks = []
    for setting in settings:
        rows = np.ones((1, 1))
        for letter in setting:
            rows = np.kron(rows, EIGENVECTORS[letter])
        blocks.append(rows.conj())
    return np.concatenate(blocks).astype(np.complex128)


def outcome_probabilities(U: Array, settings: Sequence[str]) -> Array:
    """tr(UUᴴ Π) of each outcome of each setting, n_settings × 2ⁿ."""
    return np.stack([(np.abs(eigenvectors([setting]).conj() @ U) ** 2).sum(axis=1) for setting in settings])
