"""
Factor analysis of a table with holes
=====================================

The table has a few factors, separate noise for each column, and a quarter of its cells missing. The evidence determines
the number of factors, and the known cells the covariance of all columns.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
loadings = np.zeros((12, 3))
for k in range(3):
    loadings[4 * k : 4 * k + 4, k] = rng.uniform(0.7, 1.3, 4)
loadings[:, 0] += 0.4
noise = rng.uniform(0.4, 1.0, 12)
table = rng.standard_normal((600, 3)) @ loadings.T + noise * rng.standard_normal((600, 12))
table[rng.random(table.shape) < 0.25] = np.nan

model = bf.FactorAnalysis().fit(table)
print(f"{model.n_components_} factors")
print("noise variances, true and found:")
print(np.round(noise**2, 2), np.round(model.noise_variance_, 2), sep="\n")

# %%
# The true and the estimated covariance of the columns.

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
truth = loadings @ loadings.T + np.diag(noise**2)
for ax, (name, C) in zip(
    axes, {"true covariance": truth, "found": model.get_covariance()}.items(), strict=True
):
    shown = ax.imshow(C, vmin=0, vmax=truth.max(), cmap="viridis")
    ax.set(title=name, xticks=[], yticks=[])
fig.colorbar(shown, ax=axes, shrink=0.8)
