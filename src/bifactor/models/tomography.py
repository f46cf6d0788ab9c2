"""States fitted to measurements of qubits: the fit, the choice of its rank, and what to say of a bad fit."""

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bifactor.arrays import Array, herm
from bifactor.errors import InputError
from bifactor.models.goodness_of_fit import GoodnessOfFit
from bifactor.models.linear_inversion import NearState
from bifactor.models.measurements import Counts, Measurements
from bifactor.running import files
from bifactor.running.result import Result, Status
from bifactor.running.solve import solve
from bifactor.solvers import Solver

FOLDS = 5
"""Parts of the settings or strings, each held out once, where the rank is left to the data."""

LOOSE = 1e-4
"""Tolerance of fits that are only compared with others."""

CAUSES = "Check that labels and values belong together; errors of readout and drift also do this."


@dataclass(frozen=True)
class Settings:
    """How a state is fitted."""

    solver: Solver
    max_iter: int
    tol: float
    seed: int


@dataclass(frozen=True, eq=False)
class State:
    """A fitted state ρ = UUᴴ of unit trace."""

    factor: Array
    """U: eigenvectors of ρ times the roots of its eigenvalues, descending."""

    result: Result
    """The run, with the factor as it came out of it."""

    @property
    def eigenvalues(self) -> Array:
        return np.linalg.norm(self.factor, axis=0) ** 2

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write rho, factor and eigenvalues to an npz file, whole or not at all."""
        arrays = {"rho": self.factor @ herm(self.factor), "factor": self.factor, "eigenvalues": self.eigenvalues}
        blob = io.BytesIO()
        np.savez(blob, **arrays)  # type: ignore[arg-type]
        files.put(require_npz(path), blob.getvalue())


@dataclass(frozen=True)
class RankChoice:
    """A rank, the log-likelihood of what was held out for each rank that was tried, and whether Ctrl-C ended it."""

    rank: int
    held_out: dict[int, float]
    interrupted: bool = False


def fit_state(data: Measurements, rank: int, how: Settings) -> State:
    """The state of rank ≤ r that explains the data best."""
    rng = np.random.default_rng(how.seed)
    init = NearState(data.inverted())
    result = solve(data.problem(), rank, how.solver, init, rng, max_iter=how.max_iter, tol=how.tol)
    vectors, sizes, _ = np.linalg.svd(result.U, full_matrices=False)
    return State(vectors * (sizes / np.linalg.norm(sizes)), result)


def choose_rank(data: Measurements, how: Settings) -> RankChoice:
    """Of the ranks 1, 2, 4, … the lowest that predicts what was held out of its fit as well as the best of them does.

    A fifth of the settings or strings is held out at a time. "As well" means up to one standard error of the
    difference, setting by setting. No higher ranks are tried once such a rank explains what it was fitted to: of a very
    mixed state, ranks that are too low may predict worse before they predict better. Where there are fewer than ten
    settings or strings it is the full rank.
    """
    full, size = 2**data.n_qubits, len(data.labels)
    if size < 2 * FOLDS:
        return RankChoice(full, {})
    folds = np.array_split(np.random.default_rng(how.seed).permutation(size), FOLDS)
    told: dict[int, Prediction] = {}
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
class Prediction:
    """Log-likelihoods of settings or strings that were held out, and whether fits explained the others."""

    values: Array
    explained: bool


def predict_held_out(data: Measurements, rank: int, folds: Sequence[Array], how: Settings) -> Prediction | None:
    """By fits of one rank, each to all but one of the folds; None after Ctrl-C."""
    values, explained = np.zeros(len(data.labels)), True
    for held in folds:
        rest = data.part(np.setdiff1d(np.arange(values.size), held))
        state = fit_state(rest, rank, how)
        if state.result.status is Status.INTERRUPTED:
            return None
        values[held] = data.part(held).log_likelihoods(state.factor)
        fit = rest.goodness_of_fit(state.factor)
        explained = explained and fit is not None and fit.explained
    return Prediction(values, explained)


def _as_good_as_the_best(told: dict[int, Prediction]) -> int:
    """The lowest rank that predicts and explains as much as the best, up to one standard error of the difference."""
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


def misfit(state: State, data: Measurements, how: Settings, bit_order: str) -> str | None:
    """What to say of a state that does not explain the data; None where it does, or where that is not known."""
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


def _reversed_hint(state: State, fit: GoodnessOfFit, data: Counts, how: Settings, bit_order: str) -> str | None:
    """What to try where the bits of outcomes, reversed, are explained much better."""
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
        f"With the bits of outcomes reversed the log-likelihood per shot is {better:.4f} in place of {plain:.4f}: "
        f"pass bit_order='{name}' (--bit-order {name})."
    )


def require_npz(path: str | os.PathLike[str]) -> Path:
    """The path, or an `InputError` where its name does not end in .npz."""
    path = Path(path)
    if path.suffix != ".npz":
        raise InputError(f"{path} does not end in .npz. Choose such a name: the file holds several arrays.")
    return path
