"""Real counts of 3 ions and 4-qubit singlets: held-out likelihood against linear inversion, five folds over settings.

The rank is chosen on the training settings alone, by holding out a fifth of them; then the state is fitted to all
training settings and the log-likelihood per shot of the held-out ones is compared with that of linear inversion
projected to a valid state. A row is the mean of the five folds of one run.
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

import bifactor as bf
from benchmarks.harness.data import arrays
from benchmarks.harness.rows import Row, or_skipped, row
from bifactor.estimators import linear_inversion, nearest_state
from bifactor.models.tomography.measurements import eigenvectors

Counts = tuple[list[str], np.ndarray]


def fit(n_qubits: int, rank: int, counts: Counts) -> bf.StateTomography:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ranks that are too low, and runs that are cut short, are to be compared
        return bf.StateTomography(n_qubits, rank, tol=1e-6, max_iter=500, random_state=0).fit_counts(*counts)


def part(counts: Counts, index: np.ndarray) -> Counts:
    return [counts[0][i] for i in index], counts[1][index]


def likelihood(rho: np.ndarray, counts: Counts) -> float:
    vectors = eigenvectors(counts[0])
    p = np.maximum(np.einsum("ij,jk,ik->i", vectors.conj(), rho, vectors).real, 0)
    return float(xlogy(counts[1].ravel(), p).sum() / counts[1].sum())


def chosen_rank(n_qubits: int, ranks: Sequence[int], counts: Counts, rng: np.random.Generator) -> int:
    held, kept = np.split(rng.permutation(len(counts[0])), [len(counts[0]) // 5])
    scores = [fit(n_qubits, r, part(counts, kept)).log_likelihood(*part(counts, held)) for r in ranks]
    return ranks[int(np.argmax(scores))]


def folds(n_qubits: int, ranks: Sequence[int], counts: Counts, target: Any, seed: int) -> Iterator[list[float]]:
    rng = np.random.default_rng(seed)
    everything = rng.permutation(len(counts[0]))
    for held in np.array_split(everything, 5):
        train, test = part(counts, np.setdiff1d(everything, held)), part(counts, held)
        rank = chosen_rank(n_qubits, ranks, train, rng)
        state, baseline = fit(n_qubits, rank, train), nearest_state(linear_inversion(*train))
        fidelity = (np.nan, np.nan)
        if target is not None:
            fidelity = (state.fidelity(target), float(np.real(target.conj() @ baseline @ target)))
        purity = (state.purity(), float(np.linalg.norm(baseline) ** 2))
        yield [state.log_likelihood(*test), likelihood(baseline, test), rank, *fidelity, *purity]


def rows(data: str, draw: int, found: np.ndarray) -> Iterator[Row]:
    """The rows of one run: ours, and linear inversion."""
    ours, theirs, rank, *_ = found.T
    mean = [None if np.isnan(value) else float(value) for value in found.mean(axis=0)]
    nouns = {"objective": "− log-likelihood of counts", "data": data, "draw": draw}
    for k, solver in enumerate(("linear inversion", "StateTomography")):
        own = 1 - k
        numbers = {"log_likelihood": mean[own], "fidelity": mean[3 + own], "purity": mean[5 + own]}
        won = {
            "won": bool(mean[0] >= mean[1]),
            "folds_won": int((ours >= theirs).sum()),
            "rank": float(np.median(rank)),
        }
        yield row(**nouns, solver=solver, **numbers, **(won if k else {}))


def ions(key: str) -> Iterator[Row]:
    stored = arrays("quantum-ions-3q", "ions-3q")
    settings = list(map(str, stored["setting"]))
    for k, counts in enumerate(stored[key]):
        found = np.array(list(folds(3, range(1, 9), (settings, counts.astype(float)), None, k)))
        yield from rows(f"3 ions, {key}", k, found)


def singlets(every: int) -> Iterator[Row]:
    stored = arrays("quantum-ibm-4q-singlet", "ibm-4q-singlet")
    settings, target = list(map(str, stored["setting"])), stored["target_state"]
    for k in range(0, len(stored["count"]), every):
        counts = settings, stored["count"][k].astype(float)
        found = np.array(list(folds(4, (1, 2, 4, 8, 12, 16), counts, target, k)))
        yield from rows("4-qubit singlet" + (f", one run in {every}" if every > 1 else ""), k, found)


def run(every: int = 6) -> Iterator[Row]:
    """`every` thins out the 48 singlet runs; 1 takes them all, in a quarter of an hour on one core."""
    for key in ("count_a", "count_b"):
        yield from or_skipped(lambda key=key: ions(key))
    yield from or_skipped(lambda: singlets(every))
