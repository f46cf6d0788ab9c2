"""Real counts of 3 ions and 4-qubit singlets: held-out likelihood against linear inversion, five folds over settings.

The rank is chosen on the training settings alone, by holding out a fifth of them; then the state is fitted to all
training settings and the log-likelihood per shot of the held-out ones is compared with that of linear inversion
projected to a valid state. The data are read from BIFACTOR_DATA, or from shared/data beside the repository.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import xlogy

import bifactor as bf
from benchmarks.data import DATA
from bifactor.estimators import linear_inversion, nearest_state
from bifactor.estimators.linear_inversion import eigenvectors

Counts = tuple[list[str], np.ndarray]


def fit(n_qubits: int, rank: int, counts: Counts) -> bf.StateTomography:
    return bf.StateTomography(n_qubits, rank, tol=1e-6, max_iter=500, rng=0).fit_counts(*counts)


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


def summary(name: str, runs: list[np.ndarray]) -> dict[str, Any]:
    mean = np.mean([run.mean(axis=0) for run in runs], axis=0)
    won = sum(int(run[:, 0].mean() >= run[:, 1].mean()) for run in runs)
    return {
        "data": name,
        "log-likelihood per shot": f"{mean[0]:.4f}",
        "linear inversion": f"{mean[1]:.4f}",
        "runs won": f"{won} of {len(runs)}",
        "folds won": f"{sum(int((r[:, 0] >= r[:, 1]).sum()) for r in runs)} of {5 * len(runs)}",
        "median rank": f"{np.median(np.concatenate([r[:, 2] for r in runs])):g}",
        "fidelity": "no target" if np.isnan(mean[3]) else f"{mean[3]:.3f} / {mean[4]:.3f}",
        "purity": f"{mean[5]:.3f} / {mean[6]:.3f}",
    }


def run(every: int = 6) -> list[dict[str, Any]]:
    """`every` thins out the 48 singlet runs; 1 takes them all, in a quarter of an hour on one core."""
    if not DATA.is_dir():
        return [{"data": f"not there: point BIFACTOR_DATA to the folder of measured data (looked in {DATA.name})"}]
    ions = np.load(DATA / "quantum-ions-3q" / "ions-3q.npz")
    singlet = np.load(DATA / "quantum-ibm-4q-singlet" / "ibm-4q-singlet.npz")
    table = []
    for key in ("count_a", "count_b"):
        sets = [(list(map(str, ions["setting"])), counts.astype(float)) for counts in ions[key]]
        runs = [np.array(list(folds(3, range(1, 9), counts, None, seed))) for seed, counts in enumerate(sets)]
        table.append(summary(f"ions {key}", runs))
    settings, target = list(map(str, singlet["setting"])), singlet["target_state"]
    runs = [
        np.array(list(folds(4, (1, 2, 4, 8, 12, 16), (settings, singlet["count"][k].astype(float)), target, k)))
        for k in range(0, len(singlet["count"]), every)
    ]
    table.append(summary(f"singlet, every {every}. run" if every > 1 else "singlet", runs))
    return table
