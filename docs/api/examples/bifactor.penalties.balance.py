"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((12, 2)) @ rng.standard_normal((2, 9))
problem = bf.Problem("squared", bf.operators.Full(truth.shape), truth)

# --- Frobenius ---
solver = bf.solvers.BFGD(balance=bf.penalties.balance.Frobenius())
result = bf.solve(problem, 2, solver, rng=0)
print(np.linalg.norm(result.U.T @ result.U - result.V.T @ result.V))  # next to 0

# --- Elementwise ---
cosh = bf.penalties.balance.Elementwise(
    lambda x: 0.5 * x**2 + np.logaddexp(x, -x), lambda x: x + np.tanh(x), mu=1.0, L=2.0
)
result = bf.solve(problem, 2, bf.solvers.BFGD(balance=cosh), rng=0)

# --- Balance ---
g = bf.penalties.balance.Frobenius(weight=2.0)
# True 2.0 2.0
print(isinstance(g, bf.penalties.balance.Balance), g.convexity(1.0), g.smoothness(1.0))
