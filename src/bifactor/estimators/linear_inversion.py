"""Local Pauli measurements of n qubits, and the state that linear inversion makes of their counts.

Conventions, here and in `state_tomography`: a setting such as "XZY" has one letter per qubit, the first letter belongs
to the first Kronecker factor and to the first bit of an outcome, and bit 0 is the +1 eigenvector.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from bifactor.arrays import Array, floating, gaussian, herm, is_complex
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Init
from bifactor.problems.objective import Objective
from bifactor.validation import require_finite

# Rows are ⟨+1| and ⟨−1| of each Pauli matrix.
EIGENVECTORS = {
    "X": np.array([[1, 1], [1, -1]]) / np.sqrt(2),
    "Y": np.array([[1, -1j], [1, 1j]]) / np.sqrt(2),
    "Z": np.eye(2),
}
TOLERANCE = 1e-6
"""How exactly a state handed in must be normalised, Hermitian and positive."""

JITTER = 0.1
"""Size of the random part of the start: it leaves saddle points, and no outcome impossible."""

X_PART, Z_PART = str.maketrans("IXYZ", "0110"), str.maketrans("IXYZ", "0011")


def linear_inversion(settings: Sequence[str], counts: Any) -> Array:
    """ρ = 2⁻ⁿ Σ_P ⟨P⟩ P, with each ⟨P⟩ averaged, shot by shot, over the settings that measure P.

    The least-squares solution for the observed frequencies, Hermitian and of unit trace, but in general with negative
    eigenvalues: `nearest_state` makes it a state. A P that no setting measures counts as 0, which is the solution of
    least norm. It separates like this because the characters (−1)^{m·o} of the outcomes are orthogonal.

    Parameters
    ----------
    settings : sequence of str
        Such as "XZY"; any subset of the 3ⁿ, in any order.
    counts : array, n_settings × 2ⁿ, or list of dict
        Per setting, how often each outcome came, in the order 00…0 to 11…1, or {bit string: count}.

    Returns
    -------
    array, 2ⁿ × 2ⁿ, complex
    """
    settings = check_labels(settings, "settings", "XYZ")
    y = check_counts(counts, settings)
    x, z = symplectic(settings)
    d = y.shape[1]
    masks = np.arange(d)  # which letters of a setting make the Pauli; the others become I
    where = (masks & x[:, None], masks & z[:, None])
    total, shots = np.zeros((d, d)), np.zeros((d, d))
    np.add.at(total, where, y @ hadamard(d))
    np.add.at(shots, where, np.broadcast_to(y.sum(axis=1, keepdims=True), y.shape))
    return pauli_sum(total / np.maximum(shots, 1))


def nearest_state(rho: Array) -> Array:
    """argmin ‖σ − ρ‖_F over σ ⪰ 0 with tr σ = 1: the eigenvalues are shifted alike and cut off at 0.

    References
    ----------
    J. A. Smolin, J. M. Gambetta and G. Smith, Efficient method for computing the maximum-likelihood quantum state from
    measurements with additive Gaussian noise, Phys. Rev. Lett. 108 (2012).
    """
    rho = floating(rho, "rho")
    if rho.ndim != 2 or rho.shape[0] != rho.shape[1] or rho.size == 0:
        raise InputError(f"rho has shape {rho.shape}. A density matrix is square.")
    require_finite(rho, "rho", "Check the counts it was made from.")
    values, vectors = np.linalg.eigh((rho + herm(rho)) / 2)
    descending = values[::-1]
    shifts = (1 - np.cumsum(descending)) / np.arange(1, values.size + 1)
    shift = shifts[np.flatnonzero(descending + shifts > 0)[-1]]
    return (vectors * np.maximum(values + shift, 0)) @ herm(vectors)


@dataclass(frozen=True, eq=False)
class NearState(Init):
    """U₀ = the r leading eigenvectors of the valid state nearest to a given matrix, and a little noise; ‖U₀‖_F = 1."""

    matrix: Array

    def __call__(self, problem: Objective, rank: int, rng: np.random.Generator) -> Factors:
        U = state_factor(nearest_state(self.matrix))[:, -rank:]
        noise = gaussian(rng, U.shape, U.dtype)
        U = U / np.linalg.norm(U) + (JITTER / np.linalg.norm(noise)) * noise
        U = U / np.linalg.norm(U)
        return problem.kind.pair(U, U)


def state_factor(state: Any) -> Array:
    """W with WWᴴ = the state, its columns ascending in size."""
    W = floating(state, "state")
    require_finite(W, "state", "Pass a vector or a density matrix.")
    if W.ndim == 1 and W.size:
        values, vectors = np.array([np.linalg.norm(W) ** 2]), W[:, None] / np.linalg.norm(W)
    elif W.ndim == 2 and W.shape[0] == W.shape[1] and np.allclose(W, herm(W), atol=TOLERANCE):
        values, vectors = np.linalg.eigh(W)
    else:
        raise InputError(f"state has shape {W.shape} and is no state. Pass a vector or a Hermitian matrix.")
    if values[0] < -TOLERANCE or abs(values.sum() - 1) > TOLERANCE:
        raise InputError(f"state has trace {values.sum():g} and least eigenvalue {values[0]:g}. Normalise it first.")
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
    """The 2ⁿ vectors of each setting as rows, outcome by outcome: (n_settings·2ⁿ) × 2ⁿ."""
    blocks = []
    for setting in settings:
        rows = np.ones((1, 1))
        for letter in setting:
            rows = np.kron(rows, EIGENVECTORS[letter])
        blocks.append(rows.conj())
    return np.concatenate(blocks).astype(np.complex128)


def check_labels(labels: Sequence[str], what: str, letters: str, n_qubits: int | None = None) -> list[str]:
    """The labels as a list, all of one length and of the given letters, or an `InputError`."""
    if isinstance(labels, str):
        raise InputError(f"{what} is the string {labels!r}. Pass a list of strings, such as [{labels!r}].")
    listed = [str(label) for label in labels]
    if not listed:
        raise InputError(f"{what} is empty. Pass at least one label.")
    n = n_qubits or len(listed[0])
    for label in listed:
        if len(label) != n or not n or set(label) - set(letters):
            raise InputError(f"{what} holds {label!r}. Each must have {n} letters, one per qubit, out of {letters}.")
    return listed


def check_counts(counts: Any, settings: Sequence[str]) -> Array:
    """Counts as a float64 array, n_settings × 2ⁿ, or an `InputError`."""
    n = len(settings[0])
    if isinstance(counts, Sequence) and counts and all(isinstance(row, Mapping) for row in counts):
        counts = _from_dicts(counts, n)
    y = floating(counts, "counts")
    if y.shape != (len(settings), 2**n):
        raise InputError(
            f"counts has shape {y.shape}. For {len(settings)} settings of {n} qubits pass {(len(settings), 2**n)}: "
            "one row per setting, one column per outcome from 00…0 to 11…1."
        )
    require_finite(y, "counts", "Leave out settings that were not measured.")
    if is_complex(y) or np.any(y < 0):
        raise InputError("counts holds a negative or complex number. Pass how often each outcome was seen.")
    if not np.any(y > 0):
        raise InputError("counts are all zero. At least one shot is needed.")
    return y.astype(np.float64)


def _from_dicts(rows: Sequence[Mapping[str, float]], n: int) -> Array:
    y = np.zeros((len(rows), 2**n))
    for total, row in zip(y, rows, strict=True):
        for outcome, count in row.items():
            if len(outcome) != n or set(outcome) - {"0", "1"}:
                raise InputError(f"counts holds the outcome {outcome!r}. Each must have {n} bits, one per qubit.")
            total[int(outcome, 2)] += count
    return y
