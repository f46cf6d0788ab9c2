"""Small made-up data of every kind, for laws that hold for any data."""

from functools import reduce
from itertools import product
from typing import Any

import numpy as np

SHAPE = 40, 25


def numbers(seed: int, known: float = 0.5) -> np.ndarray:
    """Offsets, rank 2 and noise, around 3."""
    rng, (m, n) = np.random.default_rng(seed), SHAPE
    X = 3 + 0.7 * (rng.standard_normal((m, 1)) + rng.standard_normal(n))
    X = X + rng.standard_normal((m, 2)) @ rng.standard_normal((2, n)) + 0.3 * rng.standard_normal((m, n))
    kept = rng.random((m, n)) < known
    kept[np.arange(m), np.arange(m) % n] = True
    return np.where(kept, X, np.nan)


def grades(seed: int) -> np.ndarray:
    return np.clip(np.round(numbers(seed)), 1, 5)


def labels(seed: int) -> np.ndarray:
    X = numbers(seed)
    return np.where(np.isnan(X), np.nan, (X > 3).astype(float))


def counts(seed: int) -> np.ndarray:
    X = numbers(seed)
    return np.where(np.isnan(X), np.nan, np.random.default_rng(seed).poisson(np.exp(np.nan_to_num(X) / 3)))


def clicks(seed: int) -> np.ndarray:
    """A fifth to a third of the columns in each row, and each column at least once."""
    X, rng = numbers(seed, known=1.0), np.random.default_rng(seed)
    least = [np.quantile(line, share) for line, share in zip(X, rng.uniform(0.67, 0.8, len(X)), strict=True)]
    return np.where((np.array(least)[:, None] <= X) | (X.max(axis=0) == X), 1.0, np.nan)


def many_clicks(seed: int) -> np.ndarray:
    """Those of enough users to choose settings."""
    return np.vstack([clicks(seed + 100 * k) for k in range(5)])


def columns(seed: int) -> np.ndarray:
    """A table of few columns."""
    return numbers(seed, known=0.8)[:, :8]


def picture(seed: int) -> np.ndarray:
    """Smooth shades between 0 and 1 with holes."""
    rng = np.random.default_rng(seed)
    x, y = np.mgrid[0:1:32j, 0:1:24j]
    X = 0.5 + 0.4 * np.sin(3 * x + rng.uniform(0, 6)) * np.cos(4 * y + rng.uniform(0, 6))
    return np.where(rng.random(X.shape) < 0.7, X, np.nan)


def outcomes(seed: int, qubits: int = 3, shots: int = 400) -> tuple[list[str], np.ndarray]:
    """Settings and counts of a random state of rank 2."""
    rng, size = np.random.default_rng(seed), 2**qubits
    U = rng.standard_normal((size, 2)) + 1j * rng.standard_normal((size, 2))
    U /= np.linalg.norm(U)
    turns = {"X": np.array([[1, 1], [1, -1]]) / 2**0.5, "Y": np.array([[1, -1j], [1, 1j]]) / 2**0.5, "Z": np.eye(2)}
    settings = ["".join(setting) for setting in product("XYZ", repeat=qubits)]
    turned = (reduce(np.kron, [turns[pauli] for pauli in setting]) @ U for setting in settings)
    return settings, np.array([rng.multinomial(shots, np.sum(np.abs(V) ** 2, axis=1)) for V in turned])


def states(seed: int) -> dict[str, tuple[Any, Any]]:
    """The same counts, changed."""
    settings, counts = outcomes(seed)
    order = np.random.default_rng(seed).permutation(len(settings))
    halves = np.vstack([counts // 2, counts - counts // 2])
    words = [format(outcome, "03b") for outcome in range(8)]
    told = {
        setting: dict(zip(words, line.tolist(), strict=True)) for setting, line in zip(settings, counts, strict=True)
    }
    return {
        "before": (settings, counts),
        "weights": (settings, 10 * counts),
        "order": ([settings[k] for k in order], counts[order]),
        "mapping": (told, None),
        "in two lines": (settings + settings, halves),
    }
