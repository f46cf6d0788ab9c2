"""Routines for the leading singular triplets of a dense matrix, their time beside that of two products."""

import statistics
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import svd
from scipy.sparse.linalg import svds
from sklearn.utils.extmath import randomized_svd

from bifactor.arrays import Array
from bifactor.linear_map import Dense
from bifactor.svd import truncated_svd
from bifactor_reproduce.harness.experiment import Finished, Outcome

ARPACK, PROPACK, LOBPCG = "ARPACK", "PROPACK", "LOBPCG"
RANDOMIZED, OWN, WHOLE = "randomized", "bifactor's block Krylov", "LAPACK, all triplets"

SMALL = 40
"""The size of the matrix on which a routine is run first, so that what is done only once is not timed."""


@dataclass(frozen=True)
class SvdCell:
    """One routine on one m×m matrix with independent N(0, 1) entries."""

    m: int
    r: int
    routine: str
    seed: int
    tol: float
    max_iter: int
    lanczos_vectors: int
    power_passes: int
    repeats: int


class Triplets(NamedTuple):
    """X ≈ A diag(s) Bᵀ, the largest first."""

    A: Array
    s: Array
    B: Array


Routine = Callable[[Array, int, SvdCell, np.random.Generator], Triplets]


def _scipy(X: Array, r: int, solver: str, rng: np.random.Generator, **options: Any) -> Triplets:
    A, s, Bt = svds(X, r, solver=solver, rng=rng, **options)
    return Triplets(A[:, ::-1], s[::-1], Bt[::-1].T)


def _arpack(X: Array, r: int, cell: SvdCell, rng: np.random.Generator) -> Triplets:
    return _scipy(X, r, "arpack", rng)


def _propack(X: Array, r: int, cell: SvdCell, rng: np.random.Generator) -> Triplets:
    return _scipy(X, r, "propack", rng, maxiter=min(len(X), cell.lanczos_vectors))


def _lobpcg(X: Array, r: int, cell: SvdCell, rng: np.random.Generator) -> Triplets:
    # SciPy squares this, and takes it as a bound on residuals with XᵀX, whose norm is about 4m here.
    return _scipy(X, r, "lobpcg", rng, maxiter=cell.max_iter, tol=(cell.tol * 4 * len(X)) ** 0.5)


def _randomized(X: Array, r: int, cell: SvdCell, rng: np.random.Generator) -> Triplets:
    A, s, Bt = randomized_svd(X, r, n_iter=cell.power_passes, random_state=int(rng.integers(2**31)))
    return Triplets(A, s, Bt.T)


def _block_krylov(X: Array, r: int, cell: SvdCell, rng: np.random.Generator) -> Triplets:
    return Triplets(*truncated_svd(Dense(X), r, rng, cell.tol, cell.max_iter))


def _lapack(X: Array, r: int, cell: SvdCell, rng: np.random.Generator) -> Triplets:
    A, s, Bt = svd(X, full_matrices=False)
    return Triplets(A[:, :r], s[:r], Bt[:r].T)


TRUNCATED: dict[str, Routine] = {
    ARPACK: _arpack,
    PROPACK: _propack,
    LOBPCG: _lobpcg,
    RANDOMIZED: _randomized,
    OWN: _block_krylov,
}
ROUTINES: dict[str, Routine] = {**TRUNCATED, WHOLE: _lapack}


def run_cell(cell: SvdCell) -> Outcome:
    """Seconds of two products and of the routine, its singular values, its residual, and what it complained of.

    The products are timed along with each routine, so that their ratio is of the same process at the same time.
    """
    draw, start = np.random.default_rng(cell.seed).spawn(2)
    X, thin = draw.standard_normal((cell.m, cell.m)), draw.standard_normal((cell.m, cell.r))
    outcome: Outcome = {
        "products_seconds": _products(X, thin, cell.repeats),
        "seconds": None,
        "values": None,
        "residual": None,
    }
    routine = ROUTINES[cell.routine]
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        with suppress(Exception):
            routine(X[:SMALL, :SMALL], 1, cell, np.random.default_rng(0))
        complaints.clear()
        try:
            since = time.process_time()
            found = routine(X, cell.r, cell, start)
            seconds = time.process_time() - since
        except Exception as error:  # whatever it is, it is what the routine has to say of this matrix
            return {**outcome, "said": f"failed: {_first_line(error)}"}
    if not all(np.all(np.isfinite(part)) for part in found):
        return {**outcome, "said": "failed: its numbers are not finite"}
    said = f"warned: {_first_line(complaints[0].message)}" if complaints else ""
    values = [float(value) for value in found.s]
    return {**outcome, "seconds": seconds, "values": values, "residual": _residual(X, found), "said": said}


def _products(X: Array, thin: Array, repeats: int) -> float:
    """The median time of X V and Xᵀ U, which is what a step on the factors takes."""
    took = []
    for _ in range(repeats + 1):
        since = time.process_time()
        _ = X @ thin
        _ = X.T @ thin
        took.append(time.process_time() - since)
    return statistics.median(took[1:])


def _residual(X: Array, found: Triplets) -> float:
    """The largest of all ‖X bⱼ − sⱼ aⱼ‖ and ‖Xᵀ aⱼ − sⱼ bⱼ‖, over s₁."""
    A, s, B = found
    off = max(np.linalg.norm(X @ B - A * s, axis=0).max(), np.linalg.norm(X.T @ A - B * s, axis=0).max())
    return float(off / s[0])


def _first_line(said: object) -> str:
    lines = str(said).strip().splitlines()
    return lines[0].strip() if lines else type(said).__name__


class Key(NamedTuple):
    m: int
    r: int
    routine: str


@dataclass(frozen=True)
class Summary:
    """All seeds: times are medians, errors and residuals the worst; None where no seed gave one."""

    seconds: float | None
    ratio: float | None
    """Of the routine's time to that of the two products."""
    error: float | None
    """‖ŝ − s‖/‖s‖ with the s of ARPACK; for ARPACK itself with that of LAPACK."""
    residual: float | None
    said: str


Summaries = Mapping[Key, Summary]


def summaries(finished: Sequence[Finished[SvdCell]]) -> dict[Key, Summary]:
    """By matrix size, rank and routine."""
    values = {(Key(c.m, c.r, c.routine), c.seed): outcome["values"] for c, outcome in finished}
    groups: dict[Key, list[Finished[SvdCell]]] = defaultdict(list)
    for done in finished:
        groups[Key(done.cell.m, done.cell.r, done.cell.routine)].append(done)
    found = {}
    for key, group in groups.items():
        ended = [done for done in group if done.outcome["seconds"] is not None]
        against = key._replace(routine=WHOLE if key.routine == ARPACK else ARPACK)
        errors = [_error(done.outcome["values"], values.get((against, done.cell.seed))) for done in ended]
        found[key] = Summary(
            _median(done.outcome["seconds"] for done in ended),
            _median(done.outcome["seconds"] / done.outcome["products_seconds"] for done in ended),
            max((error for error in errors if error is not None), default=None),
            max((done.outcome["residual"] for done in ended), default=None),
            next((done.outcome["said"] for done in group if done.outcome["said"]), ""),
        )
    return found


def product_seconds(finished: Sequence[Finished[SvdCell]]) -> dict[tuple[int, int], float]:
    """Of the two products, by matrix size and rank: the median over all cells that timed them."""
    took: dict[tuple[int, int], list[float]] = defaultdict(list)
    for cell, outcome in finished:
        took[cell.m, cell.r].append(outcome["products_seconds"])
    return {shape: statistics.median(times) for shape, times in sorted(took.items())}


def _error(values: Sequence[float], reference: Sequence[float] | None) -> float | None:
    if reference is None:
        return None
    return float(np.linalg.norm(np.subtract(values, reference)) / np.linalg.norm(reference))


def _median(numbers: Iterable[float]) -> float | None:
    known = list(numbers)
    return statistics.median(known) if known else None
