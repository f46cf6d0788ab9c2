"""States fitted to measurements of qubits: the fit, the choice of its rank, and the warning about a bad fit."""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bifactor.arrays import Array, herm
from bifactor.errors import InputError
from bifactor.models.tomography.goodness_of_fit import GoodnessOfFit
from bifactor.models.tomography.measurements import Counts, Measurements, NearState
from bifactor.running import files
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import Solver

ORDERS = ("same", "reversed")
"""Which letter of a setting the first bit of an outcome belongs to: the first, or the last."""

FOLDS = 5
"""Number of parts of the settings or strings, each held out once, when the rank is chosen from the data."""

LOOSE = 1e-4
"""Tolerance of fits that are only compared with others."""

CAUSES = "Check that labels and values belong together; readout errors and drift are other possible causes."


@dataclass(frozen=True)
class TomographySettings:
    """Settings of the fit of a state."""

    solver: Solver
    max_iter: int
    tol: float
    seed: int


@dataclass(frozen=True, eq=False)
class FittedState:
    """A fitted state ρ = UUᴴ of unit trace."""

    factor: Array
    """U: eigenvectors of ρ times the roots of its eigenvalues, descending."""

    result: Result
    """The run, with the factor as computed by the solver."""

    @property
    def eigenvalues(self) -> Array:
        return np.linalg.norm(self.factor, axis=0) ** 2

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write rho, factor and eigenvalues to an npz file, atomically."""
        arrays = {"rho": self.factor @ herm(self.factor), "factor": self.factor, "eigenvalues": self.eigenvalues}
        blob = io.BytesIO()
        np.savez(blob, **arrays)  # type: ignore[arg-type]
        files.write_atomically(require_npz(path), blob.getvalue())


@dataclass(frozen=True)
class RankChoice:
    """A rank, the held-out log-likelihood of each rank tried, and whether Ctrl-C interrupted the choice."""

    rank: int
    held_out: dict[int, float]
    interrupted: bool = False


def fit_state(data: Measurements, rank: int, how: TomographySettings) -> FittedState:
    """The state of rank ≤ r that best explains the data."""
    rng = np.random.default_rng(how.seed)
    init = NearState(data.inverted())
    result = solve(data.problem(), rank, how.solver, init, rng, max_iter=how.max_iter, tol=how.tol)
    vectors, sizes, _ = np.linalg.svd(result.U, full_matrices=False)
    return FittedState(vectors * (sizes / np.linalg.norm(sizes)), result)


def choose_rank(data: Measurements, how: TomographySettings) -> RankChoice:
    """The lowest of the ranks 1, 2, 4, … that predicts held-out data as well as the best of them.

    A fifth of the settings or strings is held out at a time. "As well" means up to one standard error of the
    difference, setting by setting. No higher ranks are tried once such a rank explains its training data: for a very
    mixed state, predictions may get worse with the rank before they get better. With fewer than ten settings or
    strings, it is the full rank.
    """
    full, size = 2**data.n_qubits, len(data.labels)
    if size < 2 * FOLDS:
        return RankChoice(full, {})
    folds = np.array_split(np.random.default_rng(how.seed).permutation(size), FOLDS)
    told: dict[int, HeldOutLikelihood] = {}
    best, interrupted = full, False
    for rank in (2**k for k in range(data.n_qubits + 1)):
        found = predict_held_out(data, rank, folds, replace(how, tol=max(how.tol, LOOSE)))
        interrupted = found is None
        if found is None:
            break
        told[rank] = found
        best = _as_good_as_the_best(told)
        if best < rank and told[best].explained:
            break
    held_out = {rank: float(one.values.sum() / data.total) for rank, one in told.items()}
    return RankChoice(best, held_out, interrupted)


@dataclass(frozen=True, eq=False)
class HeldOutLikelihood:
    """Log-likelihoods of held-out settings or strings, and whether fits explained the others."""

    values: Array
    explained: bool


def predict_held_out(
    data: Measurements, rank: int, folds: Sequence[Array], how: TomographySettings
) -> HeldOutLikelihood | None:
    """Likelihoods under fits of one rank, each to all but one of the folds; None after Ctrl-C."""
    values, explained = np.zeros(len(data.labels)), True
    for held in folds:
        rest = data.part(np.setdiff1d(np.arange(values.size), held))
        state = fit_state(rest, rank, how)
        if state.result.status is Status.INTERRUPTED:
            return None
        values[held] = data.part(held).log_likelihoods(state.factor)
        fit = rest.goodness_of_fit(state.factor)
        explained = explained and fit is not None and fit.explained
    return HeldOutLikelihood(values, explained)


def _as_good_as_the_best(told: dict[int, HeldOutLikelihood]) -> int:
    """The lowest rank that predicts and explains as well as the best, up to one standard error of the difference."""
    best = max(told, key=lambda rank: told[rank].values.sum())
    for rank, one in told.items():
        if rank == best:
            break
        less = told[best].values - one.values
        if (
            np.all(np.isfinite(less))
            and less.sum() <= np.std(less, ddof=1) * np.sqrt(less.size)
            and (one.explained or not told[best].explained)
        ):
            return rank
    return best


def misfit_warning(state: FittedState, data: Measurements, how: TomographySettings, bit_order: str) -> str | None:
    """Warning about a state that does not explain the data; None if it does, or if this is unknown."""
    fit = data.goodness_of_fit(state.factor)
    if fit is None or fit.explained:
        return None
    rank, n = state.factor.shape[1], data.n_qubits
    what = "counts" if isinstance(data, Counts) else "expectation values"
    kind = f"a state of rank {rank}" if rank < 2**n else f"any state of {n} qubit{'s' if n > 1 else ''}"
    fact = f"The {what} are not explained by {kind}: {fit}."
    hint = _reversed_hint(state, fit, data, how, bit_order) if isinstance(data, Counts) else None
    first = "Try a higher rank. " if rank < 2**n else ""
    return f"{fact} {hint or first + CAUSES}"


def _reversed_hint(
    state: FittedState, fit: GoodnessOfFit, data: Counts, how: TomographySettings, bit_order: str
) -> str | None:
    """Advice if outcomes with reversed bits are explained much better."""
    if data.n_qubits == 1 or state.result.status is Status.INTERRUPTED:
        return None
    turned = data.reversed()
    other = fit_state(turned, state.factor.shape[1], replace(how, tol=max(how.tol, LOOSE)))
    better, plain = turned.log_likelihood(other.factor), data.log_likelihood(state.factor)
    found = turned.goodness_of_fit(other.factor)
    if better <= plain or found.chi2 - found.dof > (fit.chi2 - fit.dof) / 2:
        return None
    name = "same" if bit_order == "reversed" else "reversed"
    return (
        f"With the bits of outcomes reversed, the log-likelihood per shot is {better:.4f} instead of {plain:.4f}: "
        f"pass bit_order='{name}' (--bit-order {name})."
    )


def require_npz(path: str | os.PathLike[str]) -> Path:
    """The path; raises `InputError` unless its name ends in .npz."""
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError(f"{path} does not end in .npz. Choose such a name: the file contains several arrays.")
    return path
