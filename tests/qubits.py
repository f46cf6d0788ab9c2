"""States of a few qubits, what measurements show of them, and an independent way to the most likely one."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from bifactor.arrays import gaussian
from bifactor.models.tomography.measurements import eigenvectors

MATRICES = {
    "I": np.eye(2),
    "X": np.array([[0, 1], [1, 0]]),
    "Y": np.array([[0, -1j], [1j, 0]]),
    "Z": np.diag([1, -1]),
}
BELL = np.array([1, 0, 0, 1]) / np.sqrt(2)


def measured(*parts: str) -> Path:
    """A file of measured data: under BIFACTOR_DATA, or in shared/data beside the repository."""
    above = Path(__file__).resolve().parents[2:4]
    beside = next((p / "shared" / "data" for p in above if (p / "shared" / "data").is_dir()), above[0] / "shared/data")
    path = Path(os.environ.get("BIFACTOR_DATA", beside)).joinpath(*parts)
    if not path.is_file():
        pytest.skip(f"{path} does not exist: point BIFACTOR_DATA to the folder of measured data")
    return path


def labels(n, letters="XYZ"):
    return ["".join(letter) for letter in product(letters, repeat=n)]


def matrix(label):
    out = np.eye(1)
    for letter in label:
        out = np.kron(out, MATRICES[letter])
    return out


def drawn_state(n, rank, seed=0):
    U = gaussian(np.random.default_rng(seed), (2**n, rank), np.complex128)
    U = U / np.linalg.norm(U)
    return U @ U.conj().T


def probabilities(rho, settings):
    a = eigenvectors(settings)
    p = ((a.conj() @ rho) * a).sum(axis=1).real
    return p.reshape(len(settings), -1)


def sample(rho, settings, shots, seed=0):
    rng = np.random.default_rng(seed)
    return np.array([rng.multinomial(shots, p / p.sum()) for p in probabilities(rho, settings).clip(0)])


def fixed_point(settings, counts, iterations=1000):
    """Hradil's RρR, which knows neither factors nor gradients."""
    a = eigenvectors(settings)
    d = a.shape[1]
    rho = np.eye(d) / d
    for _ in range(iterations):
        ratio = counts.ravel() / counts.sum() / probabilities(rho, settings).ravel()
        R = (a.T * ratio) @ a.conj()
        rho = R @ rho @ R
        rho = rho / np.trace(rho).real
    return rho


def per_shot(rho, settings, counts):
    return float((counts * np.log(probabilities(rho, settings))).sum() / counts.sum())


def bit_strings(n):
    return ["".join(bits) for bits in product("01", repeat=n)]
