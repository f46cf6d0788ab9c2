"""Measurements of qubits: how a state is fitted to them, and how well it explains them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import hadamard
from scipy.special import xlogy

from bifactor.arrays import Array, floating, gaussian, herm, is_complex
from bifactor.data.counts import bit_reversal, check_labels, counts_of
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.inits import Init
from bifactor.linear_map import LinearMap
from bifactor.losses import ExpectedCounts, Squared
from bifactor.models.tomography.goodness_of_fit import GoodnessOfFit, goodness_of_fit, n_parameters, pearson
from bifactor.operators import Operator, Pauli, RankOne
from bifactor.operators.base import power_norm_squared, probed_mean_square
from bifactor.problems.objective import Objective, Problem
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


@dataclass(frozen=True, eq=False)
class Measurements(ABC):
    """Labels, such as settings or Pauli strings, and their measurements."""

    labels: list[str]

    @property
    def n_qubits(self) -> int:
        return len(self.labels[0])

    def log_likelihood(self, U: Array) -> float:
        """Log-likelihood of UUᴴ per shot or value, up to a constant."""
        return float(self.log_likelihoods(U).sum() / self.total)

    def part(self, index: Array) -> Self:
        """Measurements of some of the labels."""
        return replace(self, labels=[self.labels[k] for k in index], **self._arrays(index))

    @property
    @abstractmethod
    def total(self) -> float:
        """Number of shots or values."""

    @abstractmethod
    def problem(self) -> Problem:
        """Problem whose solution UUᴴ, scaled to unit trace, is the state that best explains the measurements."""

    @abstractmethod
    def inverted(self) -> Array:
        """A Hermitian matrix near that state, for the start."""

    @abstractmethod
    def log_likelihoods(self, U: Array) -> Array:
        """Log-likelihoods of UUᴴ for each label, up to a constant."""

    @abstractmethod
    def goodness_of_fit(self, U: Array) -> GoodnessOfFit | None:
        """Goodness of fit of UUᴴ; None if errors are unknown."""

    @abstractmethod
    def _arrays(self, index: Array) -> dict[str, Any]: ...


@dataclass(frozen=True, eq=False)
class Counts(Measurements):
    """Counts of the outcomes of each setting, n_settings × 2ⁿ; the first bit belongs to the first letter."""

    table: Array

    @classmethod
    def of(cls, settings: Any, counts: Any, n_qubits: int | None, reverse: bool) -> "Counts":
        """Counts from user input, without settings that have no shots; `reverse` for outcomes with reversed bits."""
        labels, table = counts_of(settings, counts, n_qubits)
        shown = np.flatnonzero(table.sum(axis=1) > 0)
        found = cls(labels, table).part(shown)
        return found.reversed() if reverse else found

    def reversed(self) -> "Counts":
        """The same with the bits of every outcome in the opposite order."""
        return replace(self, table=self.table[:, bit_reversal(self.n_qubits)])

    @property
    def total(self) -> float:
        return float(self.table.sum())

    def problem(self) -> Problem:
        shots = self.table.sum(axis=1)
        scale = np.sqrt(np.repeat(shots, self.table.shape[1]))
        # With means N_s·tr(ρ Π) the optimal trace is 1: see ExpectedCounts.
        operator = RankOne(scale[:, None] * eigenvectors(self.labels))
        return Problem(ExpectedCounts(), operator, self.table.ravel(), symmetric=True)

    def inverted(self) -> Array:
        return linear_inversion(self.labels, self.table)

    def log_likelihoods(self, U: Array) -> Array:
        """Σ y log p over the outcomes."""
        return xlogy(self.table, outcome_probabilities(U, self.labels)).sum(axis=1)

    def goodness_of_fit(self, U: Array) -> GoodnessOfFit:
        expected = self.table.sum(axis=1, keepdims=True) * outcome_probabilities(U, self.labels)
        chi2, free, variance = pearson(self.table, expected)
        return goodness_of_fit(chi2, free, n_parameters(U), variance)

    def _arrays(self, index: Array) -> dict[str, Any]:
        return {"table": self.table[index]}


@dataclass(frozen=True, eq=False)
class Expectations(Measurements):
    """Estimates of tr(ρP) for Pauli strings P other than the identity, and their standard errors if known.

    The unit trace is exact and costs nothing: the problem is Σ w (tr(XP) − v·tr X)² + κ(tr X − 1)². Along X = tρ that
    is t²A + κ(t − 1)², whose least value κA/(κ + A) grows with A, so for any κ > 0 the direction of the minimiser is
    the ρ of unit trace with the least A = Σ w (tr(ρP) − v)². (A heavy weight on tr X = 1 in the plain sum of squares
    would only be exact in the limit, and slow.)
    """

    values: Array
    errors: Array | None

    @classmethod
    def of(cls, paulis: Any, values: Any, errors: Any, n_qubits: int | None) -> "Expectations":
        """Estimates from user input, without identities."""
        labels = check_labels(paulis, "paulis", "IXYZ", n_qubits)
        v = _real(values, "values", len(labels))
        e = None if errors is None else _real(errors, "errors", len(labels))
        if e is not None and np.any(e <= 0):
            raise InputError(f"errors contains {e.min():g}. Pass standard errors > 0, or leave out errors.")
        trivial = np.array([set(label) == {"I"} for label in labels])
        if np.any(np.abs(v[trivial] - 1) > TOLERANCE):
            raise InputError(f"values has {v[trivial][0]:g} for the identity instead of the trace 1. Leave it out.")
        if trivial.all():
            raise InputError("paulis contains only the identity, whose value is always 1. Pass other strings.")
        return cls(labels, v, e).part(np.flatnonzero(~trivial))

    @property
    def total(self) -> float:
        return float(self.values.size)

    def problem(self) -> Problem:
        n, d = self.n_qubits, 2**self.n_qubits
        w = np.ones(self.values.size) if self.errors is None else 1 / self.errors**2
        w = w / w.mean()
        operator = Centred(Pauli(n, ["I" * n, *self.labels]), self.values)
        y = np.concatenate([[1.0], np.zeros(self.values.size)])
        # κ = Σw/d makes the curvature of the trace comparable to that of the rest at low rank.
        return Problem(Squared(), operator, y, np.concatenate([[w.sum() / d], w]), symmetric=True)

    def inverted(self) -> Array:
        d = 2**self.n_qubits
        coefficients = np.zeros((d, d))
        coefficients[symplectic(self.labels)] = self.values
        coefficients[0, 0] = 1
        return pauli_sum(coefficients)

    def log_likelihoods(self, U: Array) -> Array:
        """−½ (tr(ρP) − v)²/σ², with σ = 1 if it is unknown."""
        away = Pauli(self.n_qubits, self.labels).forward(U, U) - self.values
        return -0.5 * (away if self.errors is None else away / self.errors) ** 2

    def goodness_of_fit(self, U: Array) -> GoodnessOfFit | None:
        if self.errors is None:
            return None
        size = self.values.size
        return goodness_of_fit(-2 * self.log_likelihoods(U).sum(), size, n_parameters(U), 2.0 * size)

    def _arrays(self, index: Array) -> dict[str, Any]:
        return {"values": self.values[index], "errors": None if self.errors is None else self.errors[index]}


def _real(numbers: Any, name: str, size: int) -> Array:
    found = floating(numbers, name)
    if found.shape != (size,) or is_complex(found):
        raise InputError(f"{name} has shape {found.shape}. Pass {size} real numbers, one per string.")
    require_finite(found, name, "Leave out strings that were not measured.")
    return found.astype(np.float64)


class Centred(Operator):
    """z₀ = tr X and zᵢ = A(X)ᵢ − vᵢ·tr X, for an operator whose first measurement is the trace.

    For unit trace zᵢ is the residual A(X)ᵢ − vᵢ and, unlike the latter, is linear in X.
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
