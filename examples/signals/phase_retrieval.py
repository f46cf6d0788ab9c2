"""
Phase retrieval: a signal from intensities
==========================================

In X-ray crystallography a detector sees intensities :math:`|⟨a_i, x⟩|^2` and no phases. They are linear in :math:`X =
xx^H`, which is positive semidefinite and of rank one: `RankOne` measures it, and `FGD` finds its factor. The signal
is known up to one global phase.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

length, oversampling = 64, 6
rng = np.random.default_rng(0)
t = np.linspace(0, 1, length)
x = np.exp(-((t - 0.5) ** 2) / 0.05) * np.exp(12j * t**2) + 0.3 * np.sin(20 * t)
a = rng.standard_normal((oversampling * length, length)) + 1j * rng.standard_normal(
    (oversampling * length, length)
)
intensities = np.abs(a.conj() @ x) ** 2

problem = bf.Problem("squared", bf.operators.RankOne(a), intensities, symmetric=True)
result = bf.solve(problem, 1, bf.solvers.FGD(bf.steps.Backtracking()), rng=rng, tol=1e-9)

found = result.U[:, 0]
phase = np.vdot(found, x) / abs(np.vdot(found, x))
error = float(np.linalg.norm(phase * found - x) / np.linalg.norm(x))
print(f"{len(a)} intensities of a signal of length {length}")
print(f"relative error {error:.1e} after {result.n_iter} iterations")
print(result.status)

# %%
# Real and imaginary parts, once the global phase is removed.

fig, axes = plt.subplots(2, 1, figsize=(6, 4), sharex=True, layout="constrained")
for ax, part, name in zip(axes, (np.real, np.imag), ("real part", "imaginary part"), strict=True):
    ax.plot(t, part(x), linewidth=4, alpha=0.3, label="signal")
    ax.plot(t, part(phase * found), linewidth=1, color="black", label="found")
    ax.set_ylabel(name)
axes[0].legend(loc="upper right")
axes[1].set_xlabel("time")
