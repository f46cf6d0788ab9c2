"""
Outliers: squared errors and the Huber loss
===========================================

One entry in ten has a large error. Squared errors follow such entries; the Huber loss counts them linearly, so their
influence is bounded. `Refitted` estimates its parameter δ from the residuals during the fit.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 120))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.4)
y = truth[rows, cols] + 0.1 * rng.standard_normal(rows.size)
wrong = rng.random(rows.size) < 0.1
y[wrong] += rng.choice([-15.0, 15.0], wrong.sum())

entries = bf.operators.Entries(rows, cols, truth.shape)
squared = bf.solve(bf.Problem("squared", entries, y), rank=3, rng=0)
robust = bf.solve(bf.Problem(bf.losses.Huber(0.05), entries, y), 3, bf.solvers.Refitted(), rng=0)
print(f"Huber's δ: {robust.problem.loss.delta:.3f}")

# %%
# Predictions of unknown entries.

hidden = np.ones(truth.shape, bool)
hidden[rows, cols] = False
fig, axes = plt.subplots(1, 2, figsize=(8, 4), sharex=True, sharey=True, layout="constrained")
for ax, result, name in zip(
    axes, (squared, robust), ("squared errors", "Huber's loss"), strict=True
):
    found = result.matrix()[hidden]
    rmse = np.sqrt(np.mean((found - truth[hidden]) ** 2))
    ax.plot(truth[hidden][::5], found[::5], ".", markersize=2, alpha=0.5)
    ax.axline((0, 0), slope=1, color="black", linewidth=0.8)
    ax.set(title=f"{name}: RMSE {rmse:.2f}", xlabel="truth", xlim=(-8, 8), ylim=(-8, 8))
axes[0].set_ylabel("prediction")
