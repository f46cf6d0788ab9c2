"""Quantum state tomography from counts to a file of the state, with its goodness of fit and fidelity."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bifactor.applications.base import Pathlike
from bifactor.applications.watch import SILENT, Watch
from bifactor.arrays import Array
from bifactor.data.counts import read_counts
from bifactor.errors import InputError
from bifactor.models.tomography.fit import require_npz
from bifactor.models.tomography.goodness_of_fit import MisfitWarning
from bifactor.models.tomography.states import target_state
from bifactor.running.files import require_free
from bifactor.running.search import Search
from bifactor.validation import whole

if TYPE_CHECKING:
    from bifactor.estimators.state_tomography import StateTomography


@dataclass(frozen=True, eq=False)
class EstimatedState:
    """A quantum state that was found from counts.

    Attributes
    ----------
    fit : StateTomography
        The fitted estimator: `density_matrix`, `fidelity`, `probabilities` and others.
    card : dict
        Rank, purity, eigenvalues, goodness of fit, fidelity with the target, the run, and notes.
    """

    fit: "StateTomography"
    card: dict[str, Any]

    @property
    def density_matrix(self) -> Array:
        """ρ, 2ⁿ × 2ⁿ."""
        return self.fit.density_matrix()

    @property
    def scores(self) -> dict[str, float | None]:
        """The log-likelihood per shot, and the fidelity with the target if there is one."""
        return {name: self.card[name] for name in ("log_likelihood", "fidelity")}

    @property
    def notes(self) -> list[str]:
        """What a user should know about the fit."""
        found: list[str] = self.card["notes"]
        return found

    def save(self, path: Pathlike, *, force: bool = False) -> None:
        """Write `rho`, `factor` and `eigenvalues` to a new npz file."""
        require_free(require_npz(path), force)
        self.fit.save(Path(path))


def tomography(
    counts: Any,
    *,
    n_qubits: int | None = None,
    rank: int | Literal["auto"] = "auto",
    bit_order: Literal["same", "reversed"] = "same",
    target: Any = None,
    random_state: int = 0,
    output: Pathlike | None = None,
    force: bool = False,
    watch: Watch = SILENT,
) -> EstimatedState:
    """Find the state that makes counts most likely, as `bifactor tomography` does.

    Parameters
    ----------
    counts : path, mapping, or (settings, counts)
        A csv or json file, or counts as for `StateTomography.fit_counts`.
    n_qubits, rank, bit_order, random_state
        As for `StateTomography`.
    target : array, {"ghz", "w", "singlet"} or path, optional
        A state to compare with.
    output : path, optional
        npz file to write, as by `EstimatedState.save` with `force`.
    watch : Watch
        What follows the work.

    Returns
    -------
    EstimatedState
    """
    from bifactor.estimators.state_tomography import StateTomography  # which imports scikit-learn

    if output is not None:
        require_free(require_npz(output), force)
    settings, table = _open_counts(counts, n_qubits)
    state = target_state(target, len(settings[0])) if isinstance(target, (str, os.PathLike)) else target
    model = StateTomography(n_qubits, rank, bit_order=bit_order, random_state=random_state)
    before = "choosing the rank" if rank == "auto" else "fitting"
    with warnings.catch_warnings(record=True) as caught, watch.fitting("fitting", before):
        warnings.simplefilter("always")
        model.fit_counts(settings, table)
    # The card says how the run and the choice of the rank ended.
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, MisfitWarning)]
    shots = table.sum() if isinstance(table, np.ndarray) else sum(sum(one.values()) for one in table)
    card = {"qubits": model.n_qubits_, "settings": len(settings), "shots": whole(shots), **_card(model)}
    card["log_likelihood"] = model.log_likelihood(settings, table)
    card |= {"notes": notes, "fidelity": None if state is None else model.fidelity(state)}
    card["output"] = None if output is None else str(output)
    found = EstimatedState(model, card)
    if output is not None:
        found.save(output, force=force)
    return found


def _open_counts(counts: Any, n_qubits: int | None) -> tuple[list[str], Any]:
    """Settings, and the counts of their outcomes."""
    if isinstance(counts, (str, os.PathLike)):
        return read_counts(Path(counts), n_qubits)
    if isinstance(counts, Mapping) and counts:
        return list(counts), list(counts.values())
    if isinstance(counts, tuple) and len(counts) == 2 and len(counts[0]):
        return list(counts[0]), counts[1]
    raise InputError("counts is neither a file, a mapping nor (settings, counts). Pass one of them, with a setting.")


def _card(model: "StateTomography") -> dict[str, Any]:
    status, search = model.result_.status, model.rank_search_
    return {
        "bit_order": model.bit_order,
        "rank": model.rank_,
        "held_out": {} if search is None else _held_out(search),
        "choice_interrupted": search is not None and search.interrupted,
        "purity": model.purity(),
        "eigenvalues": model.eigenvalues_.tolist(),
        "log_likelihood": None,
        "goodness_of_fit": dict(vars(model.goodness_of_fit_)),
        "status": status.name,
        "sentence": str(status),
        "converged": status.converged,
        "iterations": model.n_iter_,
    }


def _held_out(search: Search) -> dict[str, float | None]:
    """The held-out log-likelihood of each rank; None if it is infinite."""
    return {str(one["rank"]): one["score"] if np.isfinite(one["score"]) else None for one in search.lines()}
