"""
Positions from some of the distances
====================================

Only the distances of sensors to a few neighbours are known. A squared distance is linear in the Gram matrix X = UUᵀ of
the positions: x_ii + x_jj − 2·x_ij. So a map is a positive semidefinite matrix of rank 2.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import bifactor as bf

rng = np.random.default_rng(0)
n = 80
angle = np.linspace(0, 4 * np.pi, n)
places = np.column_stack(
    [angle * np.cos(angle), angle * np.sin(angle)]
) / 4 + 0.1 * rng.standard_normal((n, 2))
places -= places.mean(axis=0)

i, j = np.triu_indices(n, 1)
known = rng.random(i.size) < 0.2
i, j = i[known], j[known]
squared = np.sum((places[i] - places[j]) ** 2, axis=1) * (1 + 0.01 * rng.standard_normal(i.size))

# %%
# One sparse row for each distance, and one that puts the centre at 0.

k = np.arange(i.size)
rows = np.concatenate([k, k, k, k])
columns = np.concatenate([i * n + i, j * n + j, i * n + j, j * n + i])
values = np.repeat([1.0, 1.0, -1.0, -1.0], i.size)
distances = sparse.csr_array((values, (rows, columns)), shape=(i.size, n * n))
centre = sparse.csr_array(np.full((1, n * n), 1 / n))
operator = bf.operators.Linear(sparse.vstack([distances, centre], format="csr"), shape=(n, n))
problem = bf.Problem("squared", operator, np.append(squared, 0.0), symmetric=True)
result = bf.solve(problem, rank=2, rng=0)
print(result.status)

# %%
# A map is determined up to rotation and reflection, which a Procrustes alignment removes.

left, _, right = np.linalg.svd(result.U.T @ places)
found = result.U @ (left @ right)
error = np.mean(np.linalg.norm(found - places, axis=1))
print(f"mean error {error:.3f}, {i.size} of {n * (n - 1) // 2} distances")

fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
ax.plot(*np.stack([places[i], places[j]]).transpose(2, 0, 1), color="C0", linewidth=0.3, alpha=0.25)
ax.plot(*places.T, "o", markerfacecolor="none", color="black", label="true places")
ax.plot(*found.T, "x", color="C1", label="found")
ax.set_aspect("equal")
ax.legend()
