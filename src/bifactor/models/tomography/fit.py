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
from bifactor.running.search import Search, Trials, require_complete
from bifactor.running.solve import solve
from bifactor.solvers import Solver

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


def fit_state(data: Measurements, rank: int, how: TomographySettings) -> FittedState:
    """The state of rank ≤ r that best explains the data."""
    rng = np.random.default_rng(how.seed)
    init = NearState(data.inverted())
    result = solve(data.problem(), rank, how.solver, init, rng, max_iter=how.max_iter, tol=how.tol)
    vectors, sizes, _ = np.linalg.svd(result.U, full_matrices=False)
    return FittedState(vectors * (sizes / np.linalg.norm(sizes)), result)


def search_rank(data: Measurements, how: TomographySettings) -> Search | None:
    """The lowest of the ranks 1, 2, 4, … that predicts held-out data as well as the best of them.

    A fifth of the settings or strings is held out at a time. "As well" means up to one standard error of the
    difference, setting by setting. No higher ranks are tried once such a rank explains its training data: for a very
    mixed state, predictions may get worse with the rank before they get better. With fewer than ten settings or
    strings, there is no search.
    """
    size = len(data.labels)
    if size < 2 * FOLDS:
        return None
    folds = np.array_split(np.random.default_rng(how.seed).permutation(size), FOLDS)
    trials, loose = Trials[Prediction](), replace(how, tol=max(how.tol, LOOSE))
    with trials:
        for k in range(data.n_qubits + 1):
            trials.tried.append(predict_held_out(data, 2**k, folds, loose))
            index = _as_good_as_the_best(trials.tried)
            if index < k and trials.tried[index].explained:
                break
    values = [one.values for one in trials.tried]
    sums = np.array([each.sum() for each in values])
    best = values[int(np.argmax(sums))]
    with np.errstate(invalid="ignore"):  # infinite ones have no difference
        errors = np.array([_standard_error(best - each) for each in values]) / data.total
    ranks = {"rank": 2 ** np.arange(len(values))}
    index, over = _as_good_as_the_best(trials.tried), trials.interrupted
    return Search("rank", ranks, sums / data.total, index, errors, over, "held-out log-likelihood")


@dataclass(frozen=True, eq=False)
class Prediction:
    """Log-likelihoods of held-out settings or strings, and whether fits explained the others."""

    values: Array
    explained: bool


def predict_held_out(data: Measurements, rank: int, folds: Sequence[Array], how: TomographySettings) -> Prediction:
    """Predictions by fits of one rank, each to all but one of the folds."""
    values, explained = np.zeros(len(data.labels)), True
    for held in folds:
        rest = data.part(np.setdiff1d(np.arange(values.size), held))
        state = fit_state(rest, rank, how)
        require_complete(state.result)
        values[held] = data.part(held).log_likelihoods(state.factor)
        fit = rest.goodness_of_fit(state.factor)
        explained = explained and fit is not None and fit.explained
    return Prediction(values, explained)


def _as_good_as_the_best(tried: Sequence[Prediction]) -> int:
    """The first that predicts and explains as well as the best, up to one standard error of the difference."""
    best = int(np.argmax([one.values.sum() for one in tried]))
    for k, one in enumerate(tried[:best]):
        less = tried[best].values - one.values
        if (
            np.all(np.isfinite(less))
            and less.sum() <= _standard_error(less)
            and (one.explained or not tried[best].explained)
        ):
            return k
    return best


def _standard_error(differences: Array) -> float:
    """The standard error of their sum."""
    return float(np.std(differences, ddof=1) * np.sqrt(differences.size))


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
