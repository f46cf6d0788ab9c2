"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
U, V = rng.standard_normal((30, 2)), rng.standard_normal((20, 2))
problem = bf.Problem("squared", bf.operators.Full((30, 20)), U @ V.T)

# --- Spectral ---
result = bf.solve(problem, 2, init=bf.inits.Spectral(), rng=0)

# --- Random ---
runs = [bf.solve(problem, 2, init=bf.inits.Random(norm=10.0), rng=seed) for seed in range(3)]
best = min(runs, key=lambda run: run.objective)

# --- Given ---
result = bf.solve(problem, 2, init=bf.inits.Given(U + 0.1, V), rng=0)

# --- Zero ---
result = bf.solve(
    problem.penalized(bf.penalties.Ridge(1.0)),
    5,
    bf.solvers.NuclearNorm(),
    bf.inits.Zero(),
    rng=0,
)

# --- Init ---
print(isinstance(bf.inits.Spectral(), bf.inits.Init))  # True
start = bf.inits.Spectral()(problem, 2, np.random.default_rng(0))
