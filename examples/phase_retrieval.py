"""Recover a complex signal from intensities |⟨aᵢ, x⟩|² alone, as in X-ray crystallography.

The intensities are linear in X = xxᴴ, which is positive semidefinite and of rank one: RankOne measures it, FGD finds
its factor. The signal is known up to one global phase.
"""

import numpy as np

import bifactor as bf


def main(length: int = 64, oversampling: int = 6, seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(length) + 1j * rng.standard_normal(length)
    a = rng.standard_normal((oversampling * length, length)) + 1j * rng.standard_normal((oversampling * length, length))
    intensities = np.abs(a.conj() @ x) ** 2

    problem = bf.Problem(bf.losses.Squared(), bf.operators.RankOne(a), intensities, symmetric=True)
    result = bf.solve(problem, 1, bf.solvers.FGD(bf.steps.Backtracking()), rng=rng, tol=1e-9)

    found = result.U[:, 0]
    phase = np.vdot(found, x) / abs(np.vdot(found, x))
    error = float(np.linalg.norm(phase * found - x) / np.linalg.norm(x))
    print(
        f"{len(a)} intensities of a signal of length {length}: relative error {error:.1e}, {result.n_iter} iterations"
    )
    print(result.status)
    return error


if __name__ == "__main__":
    main()
