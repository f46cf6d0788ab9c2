"""
A certificate of global optimality
==================================

With a ridge, the problem in the factors is equivalent to a convex one: f(X) + ρ‖X‖_* over matrices of any rank. Its
optimality conditions can be checked at any factors, so a non-convex run can end with a proof. Here the rank grows until
the proof succeeds.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((120, 4)) @ rng.standard_normal((4, 90))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.4)
y = truth[rows, cols] + rng.standard_normal(rows.size)
entries = bf.operators.Entries(rows, cols, truth.shape)
problem = bf.Problem("squared", entries, y, penalty=bf.penalties.Ridge(14.0))

ranks = range(1, 11)
results = [bf.solve(problem, rank, rng=0) for rank in ranks]
for rank, result in zip(ranks, results, strict=True):
    best = result.certificate.optimal(1e-4)
    print(f"rank {rank}: {'proved optimal' if best else 'not the best of any rank'}")

# %%
# The objective, and an upper bound of its distance to the minimum: the gap of the certificate.

objective = np.array([result.objective for result in results])
gap = np.array([result.certificate.gap for result in results])
fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].plot(ranks, objective, "o-")
axes[0].set(xlabel="rank", ylabel="objective")
axes[1].semilogy(ranks, np.maximum(gap / objective, 1e-9), "o-")
axes[1].set(xlabel="rank", ylabel="gap / objective")
for ax in axes:
    ax.grid(alpha=0.3)
