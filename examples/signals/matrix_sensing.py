"""
Recover a matrix from mixtures of its entries
=============================================

Each measurement mixes all entries of X: permuted, sub-sampled noiselets, as in the paper's main experiment. There are
far fewer measurements than entries, but more than a matrix of this rank has degrees of freedom. So X is recovered
exactly, from a random start.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

m, n, rank, oversampling = 128, 128, 6, 5
rng = np.random.default_rng(0)
U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))

operator = bf.operators.Noiselet((m, n), size=oversampling * max(m, n) * rank, rng=rng)
y = operator.forward(U, V)
problem = bf.Problem("squared", operator, y)

# %%
# The default solver needs a few dozen iterations. A callback records the distance to the truth.

errors = []
result = bf.solve(
    problem,
    rank,
    init=bf.inits.Random(norm=np.linalg.norm(y)),
    rng=rng,
    callback=lambda k, state: errors.append(bf.metrics.relative_error(state.U, state.V, U, V)),
)
error = bf.metrics.relative_error(result.U, result.V, U, V)
print(f"{operator.size} measurements of {m * n} entries")
print(f"relative error {error:.1e} after {result.n_iter} iterations")
print(result.status)

# %%
# The error decreases by a constant factor in each iteration, down to rounding.

fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.semilogy(range(1, len(errors) + 1), errors, "o-", markersize=3)
ax.set(xlabel="iteration", ylabel="relative error of X")
ax.grid(alpha=0.3)
