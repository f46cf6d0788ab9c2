"""Quantum state tomography: a low-rank density matrix from counts or expectation values."""

import os
import warnings
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from bifactor.arrays import Array, herm
from bifactor.data.counts import bit_reversal, check_labels
from bifactor.errors import InputError
from bifactor.estimators.base import CardMixin, state_card
from bifactor.kernels.blas import matmul
from bifactor.models.completion.fitting import seed_of
from bifactor.models.tomography.fit import (
    FittedState,
    TomographySettings,
    fit_state,
    misfit_warning,
    search_rank,
)
from bifactor.models.tomography.goodness_of_fit import MisfitWarning
from bifactor.models.tomography.measurements import (
    Counts,
    Expectations,
    Measurements,
    outcome_probabilities,
    state_factor,
)
from bifactor.models.tomography.states import target_state
from bifactor.solvers import PCG, Solver
from bifactor.validation import is_at_least_zero, is_count, pluralize

ORDERS = ("same", "reversed")


class StateTomography(CardMixin, BaseEstimator):  # type: ignore[misc]
    """Finds the state ρ = UUᴴ of n qubits, tr ρ = 1, that best explains measurements among those of rank ≤ r.

    `fit_counts` maximises the likelihood Σ y log tr(ρ Π) of the counts; `fit_expectations` minimises
    Σ (tr(ρ P) − v)²/σ² over Pauli strings P. Both optimise the complex factor U, so that ρ is positive by
    construction and only the start costs more than thin products.

    A setting or Pauli string has one letter per qubit, and its first letter belongs to the first Kronecker factor of ρ.
    Bit 0 of an outcome is the +1 eigenvector.

    Parameters
    ----------
    n_qubits : int, optional
        Number of qubits; by default the length of the labels.
    rank : int or "auto"
        r, from 1 (a pure state) to 2ⁿ (any state). "auto" tries 1, 2, 4, … and takes the lowest rank that predicts
        held-out settings, or strings, as well as the best rank does, up to one standard error. If there are fewer than
        ten of them, it takes the full rank.
    solver : Solver, optional
        A solver that supports X = UUᴴ. By default PCG.
    max_iter, tol
        As in `bifactor.solve`.
    bit_order : {"same", "reversed"}
        Which letter of a setting the first bit of an outcome belongs to: the first ("same") or the last ("reversed").
        For the setting "XZ" and the outcome "01", "same" means that the qubit measured in X gave +1 and the one
        measured in Z gave −1; "reversed" means that X gave −1 and Z gave +1. This applies to bit strings, numbers and
        the columns of arrays alike.

        Qiskit writes qubit 0 last, in bit strings and in Pauli labels. Labels and counts from Qiskit agree, so they
        need "same", and ρ is the density matrix of Qiskit. "reversed" is needed only if settings are written with
        qubit 0 first and bit strings with qubit 0 last, or the other way round.
    random_state : int, RandomState, Generator or None
        Seed of the random part of the start, and of the held-out data.

    Attributes
    ----------
    n_qubits_, rank_ : int
        n and r.
    rank_search_ : Search or None
        Held-out log-likelihood per shot for each rank that "auto" tried. (For expectation values, minus half the mean
        of (tr(ρ P) − v)²/σ².) None if the rank was given, or if there are fewer than ten settings or strings.
    factor_ : array, 2ⁿ × r, complex
        U, with ‖U‖_F = 1. Its columns are orthogonal: eigenvectors of ρ times the roots of its eigenvalues, descending.
    eigenvalues_ : array of length r
        Eigenvalues of ρ, descending.
    goodness_of_fit_ : GoodnessOfFit or None
        `chi2`, `dof`, `p_value` and `explained`; None for expectation values without errors. If the state does not
        explain the data, there is a `MisfitWarning`, which also says whether reversed bits would explain counts better.
    result_ : Result
        The run, with the factor as computed by the solver.
    n_iter_ : int
        Number of iterations.

    References
    ----------
    Z. Hradil, Quantum-state estimation, Phys. Rev. A 55 (1997).
    D. Gross, Y.-K. Liu, S. T. Flammia, S. Becker and J. Eisert, Quantum state tomography via compressed sensing,
    Phys. Rev. Lett. 105 (2010).
    """

    def __init__(
        self,
        n_qubits: int | None = None,
        rank: int | Literal["auto"] = "auto",
        solver: Solver | None = None,
        max_iter: int = 5000,
        tol: float = 1e-7,
        bit_order: Literal["same", "reversed"] = "same",
        random_state: Any = None,
    ):
        self.n_qubits = n_qubits
        self.rank = rank
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.bit_order = bit_order
        self.random_state = random_state

    def _card(self) -> str:
        return state_card(self) if hasattr(self, "result_") else ""

    def fit_counts(self, settings: Any, counts: Any = None) -> "StateTomography":
        """Fit to counts of the outcomes of settings.

        Parameters
        ----------
        settings : sequence of str, or mapping
            Labels such as "XZY": the Pauli matrix in whose eigenbasis each qubit was measured. Any subset of the 3ⁿ
            settings. A mapping has counts as values, such as {"XX": {"00": 512, "01": 9, "11": 479}, …}.
        counts : array, n_settings × 2ⁿ, or list of dict
            The columns of an array are the outcomes 00…0 to 11…1. A dict has outcomes as keys: bit strings, with or
            without spaces between registers ("01 10"), hexadecimal numbers ("0x3") or integers, as Qiskit writes them.
        """
        return self._fit(self._counts(settings, counts, self.n_qubits))

    def fit_expectations(self, paulis: Any, values: Any, errors: Any = None) -> "StateTomography":
        """Fit to estimates of tr(ρ P).

        Parameters
        ----------
        paulis : sequence of str
            Labels such as "XIZ". The identity string, whose value is 1, may be left out.
        values : array, one per string
            Estimates, which may lie outside [−1, 1] after corrections or with noise.
        errors : array, one per string, optional
            Standard errors σ > 0 of the values, assumed independent; by default equal and unknown.
        """
        self._check()
        return self._fit(Expectations.of(paulis, values, errors, self.n_qubits))

    def density_matrix(self) -> Array:
        """ρ as a dense 2ⁿ × 2ⁿ array."""
        U = self._require_fitted()
        return matmul(U, herm(U))

    def purity(self) -> float:
        """tr ρ² = ‖UᴴU‖²_F: 1 for a pure state, 2⁻ⁿ for the maximally mixed one."""
        U = self._require_fitted()
        return float(np.linalg.norm(herm(U) @ U) ** 2)

    def fidelity(self, state: Any) -> float:
        """(tr √(√ρ σ √ρ))² = ‖UᴴW‖²_* for σ = WWᴴ; for a pure σ = ψψᴴ it is ψᴴρψ.

        Parameters
        ----------
        state : array, StateTomography, {"ghz", "w", "singlet"} or path
            A state vector, a density matrix, another fitted estimator, a name, or an npy or npz file.
        """
        U = self._require_fitted()
        if isinstance(state, (str, os.PathLike)):
            state = target_state(state, self.n_qubits_)
        W = state._require_fitted() if isinstance(state, StateTomography) else state_factor(state)
        if W.shape[0] != U.shape[0]:
            raise InputError(f"state has dimension {W.shape[0]}, but the fit has {U.shape[0]}. Pass one of equal size.")
        return min(float(np.linalg.norm(herm(U) @ W, "nuc") ** 2), 1.0)

    def probabilities(self, settings: Any) -> Array:
        """Probabilities of all outcomes of settings, n_settings × 2ⁿ, with columns in the bit order of the counts."""
        U = self._require_fitted()
        p = outcome_probabilities(U, check_labels(settings, "settings", "XYZ", self.n_qubits_))
        return p[:, bit_reversal(self.n_qubits_)] if self.bit_order == "reversed" else p

    def log_likelihood(self, settings: Any, counts: Any = None) -> float:
        """Σ y log p/Σ y: the mean over shots of the log probability of the observed outcome."""
        U = self._require_fitted()
        return self._counts(settings, counts, self.n_qubits_).log_likelihood(U)

    def save(self, path: str | Path) -> None:
        """Write `rho`, `factor` and `eigenvalues` to an npz file, as `bifactor tomography -o` does."""
        FittedState(self._require_fitted(), self.result_).save(path)

    def _fit(self, data: Measurements) -> "StateTomography":
        n, d = data.n_qubits, 2**data.n_qubits
        if self.rank != "auto" and self.rank > d:
            raise InputError(
                f"rank={self.rank!r} is not possible for {pluralize(n, 'qubit')}. Choose from 1 to {d}, or 'auto'."
            )
        solver = PCG() if self.solver is None else self.solver
        how = TomographySettings(solver, self.max_iter, self.tol, seed_of(self.random_state))
        search = search_rank(data, how) if self.rank == "auto" else None
        rank = d if self.rank == "auto" else int(self.rank)
        rank = rank if search is None else search.chosen["rank"]
        state = fit_state(data, rank, how)
        self.n_qubits_, self.rank_, self.rank_search_ = n, rank, search
        self.factor_, self.eigenvalues_, self.result_ = state.factor, state.eigenvalues, state.result
        self.n_iter_ = state.result.n_iter
        self.goodness_of_fit_ = data.goodness_of_fit(state.factor)
        if search is not None and search.interrupted:
            said = f"The choice of the rank was interrupted at {self.rank_}."
            warnings.warn(said, ConvergenceWarning, stacklevel=3)
        if not state.result.status.converged:
            warnings.warn(f"The fit has {state.result.status}.", ConvergenceWarning, stacklevel=3)
        found = misfit_warning(state, data, how, self.bit_order)
        if found is not None:
            warnings.warn(found, MisfitWarning, stacklevel=3)
        return self

    def _counts(self, settings: Any, counts: Any, n_qubits: int | None) -> Counts:
        self._check()
        return Counts.of(settings, counts, n_qubits, self.bit_order == "reversed")

    def _check(self) -> None:
        if self.n_qubits is not None and not is_count(self.n_qubits, 1):
            raise InputError(f"n_qubits={self.n_qubits!r} is not an integer ≥ 1. Leave it out to count the letters.")
        if self.rank != "auto" and not is_count(self.rank, 1):
            raise InputError(f"rank={self.rank!r} is not an integer ≥ 1. Pass such an integer, or 'auto'.")
        if not is_at_least_zero(self.tol):
            raise InputError(f"tol={self.tol!r} is not a number ≥ 0. Use 0 to turn the test off.")
        if self.bit_order not in ORDERS:
            raise InputError(f"bit_order={self.bit_order!r} is unknown. Pass one of {', '.join(ORDERS)}.")

    def _require_fitted(self) -> Array:
        if not hasattr(self, "factor_"):
            raise InputError("This StateTomography is not fitted yet. Call fit_counts or fit_expectations first.")
        return self.factor_
