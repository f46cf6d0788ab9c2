"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
U, V = rng.standard_normal((30, 2)), rng.standard_normal((20, 2))
R = np.array([[2.0, 1.0], [0.0, 0.5]])
other = U @ R, V @ np.linalg.inv(R).T  # the same matrix

# --- relative_error ---
print(bf.metrics.relative_error(*other, U, V))  # rounding

# --- distance ---
# rounding: the same up to a rotation
print(bf.metrics.distance(*bf.metrics.balanced(*other), U, V))

# --- difference_norm ---
print(bf.metrics.difference_norm(U, V, U, 0 * V) == np.linalg.norm(U @ V.T))

# --- product_norm ---
# True, without forming UVᵀ
print(np.isclose(bf.metrics.product_norm(U, V), np.linalg.norm(U @ V.T)))

# --- nuclear_norm ---
print(np.isclose(bf.metrics.nuclear_norm(U, V), np.linalg.norm(U @ V.T, "nuc")))  # True

# --- balanced ---
left, right = bf.metrics.balanced(*other)
print(np.allclose(left.T @ left, right.T @ right))  # True
