"""
How many entries are enough?
============================

A matrix of rank r has r(m + n − r) degrees of freedom. This example hides more and more entries of random matrices of
rank 4 and counts how often they are recovered. With fewer entries than degrees of freedom that is impossible; with at
least twice as many, `bf.solve` always succeeds.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

m, n, rank = 100, 80, 4
freedom = rank * (m + n - rank)
oversampling = np.array([0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5])


def error(ratio, seed):
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    rows, cols = np.divmod(rng.choice(m * n, int(ratio * freedom), replace=False), n)
    problem = bf.Problem("squared", bf.operators.Entries(rows, cols, (m, n)), (U @ V.T)[rows, cols])
    result = bf.solve(problem, rank, rng=0, max_iter=300)
    return bf.metrics.relative_error(result.U, result.V, U, V)


errors = np.array([[error(ratio, seed) for seed in range(6)] for ratio in oversampling])
recovered = np.mean(errors < 1e-4, axis=1)
for ratio, share in zip(oversampling, recovered, strict=True):
    print(f"{ratio:.1f} entries per degree of freedom: {share:.0%} recovered")

# %%
# The change is sharp: a phase transition.

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(oversampling, recovered, "o-")
ax.axvline(1.0, color="grey", linestyle="--")
ax.set(
    xlabel="entries per degree of freedom", ylabel="share of matrices recovered", ylim=(-0.05, 1.05)
)
