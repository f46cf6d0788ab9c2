"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.5)
entries = bf.operators.Entries(rows, cols, truth.shape)

# --- Ridge ---
ridge = bf.penalties.Ridge(0.5)
result = bf.solve(
    bf.Problem("squared", entries, truth[rows, cols], penalty=ridge), rank=10, rng=0
)
print(result.certificate.optimal(1e-4))  # True: the best matrix of any rank under f + 0.5‖X‖_*
by_frequency = bf.penalties.Ridge(
    0.01, rows=np.bincount(rows, minlength=30), cols=np.bincount(cols, minlength=20)
)

# --- Weights ---
weights = bf.penalties.Ridge(0.5, rows=np.arange(1, 31)).nuclear
print(isinstance(weights, bf.penalties.Weights), weights.sides)  # True (7.75, 0.5)

# --- Penalty ---
# True; `Add a penalty` shows one of your own
isinstance(bf.penalties.Ridge(0.5), bf.penalties.Penalty)
bf.testing.check_penalty(bf.penalties.Ridge(0.5), shape=(6, 5))

# --- Term ---
problem = bf.Problem("squared", entries, truth[rows, cols], penalty=bf.penalties.Ridge(0.5))
print(all(isinstance(term, bf.penalties.Term) for term in problem.terms))  # True
