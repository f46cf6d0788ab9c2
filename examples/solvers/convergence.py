"""
Six solvers on one problem
==========================

Completion of an ill-conditioned matrix: the largest singular value is 30 times the smallest. Plain gradient descent on
the factors is slow; `PCG` divides each row by its curvature, and is hardly affected.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
m, n, rank = 400, 300, 5
U, V = (
    np.linalg.qr(rng.standard_normal((k, rank)))[0] * np.geomspace(30, 1, rank) ** 0.5
    for k in (m, n)
)
U, V = 10 * U, 10 * V
rows, cols = np.nonzero(rng.random((m, n)) < 0.2)
problem = bf.Problem("squared", bf.operators.Entries(rows, cols, (m, n)), (U @ V.T)[rows, cols])

solvers = {
    "PCG": bf.solvers.PCG(),
    "Newton": bf.solvers.Newton(),
    "AltMin": bf.solvers.AltMin(),
    "ScaledGD": bf.solvers.ScaledGD(),
    "BFGD, backtracking": bf.solvers.BFGD(bf.steps.Backtracking()),
    "BFGD, the paper's step": bf.solvers.BFGD(),
}
curves = {}
for name, solver in solvers.items():
    curve = curves[name] = []

    def watch(k, state, curve=curve):
        curve.append(bf.metrics.relative_error(state.U, state.V, U, V))

    result = bf.solve(
        problem, rank, solver, bf.inits.Spectral(), rng=0, max_iter=400, tol=1e-12, callback=watch
    )
    seconds = result.history.seconds[-1]
    print(f"{name}: error {curve[-1]:.1e} after {result.n_iter} iterations, {seconds:.2f} s")

# %%
# All from the same spectral start.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, curve in curves.items():
    ax.loglog(range(1, len(curve) + 1), curve, label=name)
ax.set(xlabel="iteration", ylabel="relative error of X")
ax.grid(alpha=0.3)
ax.legend()
