"""
Principal components of counts
==============================

Counts of genes in cells: each cell has its own depth, most counts are 0 or 1, and there are three kinds of cells.
`PoissonPCA` models the logarithms of the rates, so that depth does not appear as a component, as it does in the
principal components of logarithms.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA

import bifactor as bf

rng = np.random.default_rng(0)
cells, genes = 400, 300
kind = rng.integers(3, size=cells)
rates = np.exp(0.8 * rng.standard_normal((3, genes)))[kind] * rng.gamma(1.0, 1.0, genes)
depth = rng.lognormal(0, 1.0, cells)
counts = rng.poisson(0.4 * depth[:, None] * rates)
print(f"{np.mean(counts == 0):.0%} of the counts are 0")

scores = bf.PoissonPCA(2, exposure="total", ridge=1.0, random_state=0).fit_transform(counts)
plain = PCA(2).fit_transform(np.log1p(counts))

# %%
# Colours are the three kinds; the size of a point is the depth of its cell.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for ax, (name, T) in zip(
    axes, {"PCA of log(1 + count)": plain, "PoissonPCA": scores}.items(), strict=True
):
    ax.scatter(*T.T, c=kind, s=6 * np.sqrt(depth / depth.mean()) + 2, cmap="viridis", alpha=0.7)
    ax.set(title=name, xlabel="first component", ylabel="second component")
