"""
Quantum state tomography from a fifth of the settings
=====================================================

Four qubits have 81 Pauli settings. A state of low rank is found from 16 of them: by maximum likelihood, with a test
of whether it explains the counts.
"""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
qubits, shots = 4, 500
ghz = np.zeros(2**qubits)
ghz[[0, -1]] = 2**-0.5
rho = 0.97 * np.outer(ghz, ghz) + 0.03 * np.eye(2**qubits) / 2**qubits  # with white noise

basis = {
    "X": np.array([[1, 1], [1, -1]]) / 2**0.5,
    "Y": np.array([[1, -1j], [1, 1j]]) / 2**0.5,
    "Z": np.eye(2),
}
settings = ["".join(s) for s in product("XYZ", repeat=qubits)]
chosen = [
    "XXXX",
    "ZZZZ",
    *rng.choice([s for s in settings if s not in ("XXXX", "ZZZZ")], 14, replace=False),
]
counts = []
for setting in chosen:
    turn = np.eye(1)
    for letter in setting:
        turn = np.kron(turn, basis[letter])
    p = np.real(np.diag(turn @ rho @ turn.conj().T)).clip(0)
    counts.append(rng.multinomial(shots, p / p.sum()))

state = bf.StateTomography(rank=2, random_state=0).fit_counts(chosen, np.array(counts))
print(f"fidelity with the GHZ state: {state.fidelity('ghz'):.3f}, purity {state.purity():.3f}")
print(state.goodness_of_fit_)

# %%
# The density matrix: two populations and the coherence between them.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for ax, (name, matrix) in zip(
    axes, {"true state": rho, "found": state.density_matrix()}.items(), strict=True
):
    shown = ax.imshow(np.real(matrix), cmap="coolwarm", vmin=-0.5, vmax=0.5)
    ax.set(
        title=name,
        xticks=[0, 15],
        yticks=[0, 15],
        xticklabels=["0000", "1111"],
        yticklabels=["0000", "1111"],
    )
fig.colorbar(shown, ax=axes, shrink=0.8)
