"""8 qubits: a pure state from 2,000 random Pauli strings with 1 % noise, and all 4⁸ strings against one sweep.

The sweep is a Walsh–Hadamard transform of as many complex numbers.
"""

import numpy as np

import bifactor as bf
from benchmarks.harness.measure import in_turns
from benchmarks.harness.rows import Row, row
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


def sweeps() -> list[Row]:
    rng = np.random.default_rng(0)
    op = bf.operators.Pauli(QUBITS)
    U = gaussian(rng, (2**QUBITS, 1), np.complex128)
    values = gaussian(rng, (4**QUBITS,), np.complex128)
    work = values.copy()

    def reset() -> None:
        work[:] = values

    candidates = {
        "one sweep": lambda: kernels.get("transforms", work, work.size).walsh_hadamard(work),
        "forward of all strings": lambda: op.forward(U, U),
    }
    return in_turns("one call", f"{QUBITS} qubits, all strings", candidates, 51, reset=reset)


def run(seeds: int = 5) -> list[Row]:
    data = f"{QUBITS} qubits, {STRINGS:,} Pauli strings, 1 % noise, r = 1"
    fits = [row("least squares", data, "FGD, backtracking", draw=k, fidelity=fidelity(k)) for k in range(seeds)]
    return [*fits, *sweeps()]
