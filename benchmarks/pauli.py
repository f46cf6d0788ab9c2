"""8 qubits: a pure state from 2,000 random Pauli strings with 1 % noise, and all 4⁸ strings against one sweep.

The sweep is a Walsh–Hadamard transform of as many complex numbers.
"""

import statistics
from typing import Any

import numpy as np

import bifactor as bf
from benchmarks.measure import side_by_side, summary
from bifactor import kernels
from bifactor.arrays import gaussian

QUBITS, STRINGS = 8, 2000


def fidelity(seed: int) -> float:
    rng = np.random.default_rng(seed)
    psi = gaussian(rng, (2**QUBITS, 1), np.complex128)
    psi /= np.linalg.norm(psi)
    op = bf.operators.Pauli(QUBITS, STRINGS, rng)
    y = op.forward(psi, psi)
    noise = rng.standard_normal(STRINGS)
    y += 0.01 * np.linalg.norm(y) / np.linalg.norm(noise) * noise
    solver = bf.solvers.FGD(bf.steps.Backtracking())
    fit = bf.solve(bf.Problem(bf.losses.Squared(), op, y), 1, solver, bf.inits.Random(), rng)
    return float(np.abs(psi.conj().T @ fit.U).item() ** 2 / np.linalg.norm(fit.U) ** 2)


def run(seeds: int = 5) -> list[dict[str, Any]]:
    found = [fidelity(seed) for seed in range(seeds)]
    rng = np.random.default_rng(0)
    op = bf.operators.Pauli(QUBITS)
    U = gaussian(rng, (2**QUBITS, 1), np.complex128)
    values = gaussian(rng, (4**QUBITS,), np.complex128)
    work = values.copy()

    def reset() -> None:
        work[:] = values

    seconds = side_by_side(
        {"forward": lambda: op.forward(U, U), "sweep": lambda: kernels.transforms().walsh_hadamard(work)}, 51, reset
    )
    ratio = statistics.median(seconds["forward"]) / statistics.median(seconds["sweep"])
    return [
        {
            "fidelity, least of 5": f"{min(found):.4f}",
            "forward of all strings": summary([1e3 * s for s in seconds["forward"]]).replace(" s", " ms"),
            "one sweep": summary([1e3 * s for s in seconds["sweep"]]).replace(" s", " ms"),
            "ratio of medians": f"{ratio:.2f}",
        }
    ]
