"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 20))
problem = bf.Problem("squared", bf.operators.Full(truth.shape), truth)

# --- CurveSearch ---
# the best step, exactly
result = bf.solve(problem, 2, bf.solvers.ScaledGD(bf.steps.CurveSearch()), rng=0)

# --- Backtracking ---
result = bf.solve(problem, 2, bf.solvers.BFGD(bf.steps.Backtracking()), rng=0)

# --- Constant ---
result = bf.solve(problem, 2, bf.solvers.BFGD(bf.steps.Constant(1e-3)), rng=0)

# --- StronglyConvex ---
result = bf.solve(problem, 2, bf.solvers.BFGD(bf.steps.StronglyConvex(every_step=True)), rng=0)

# --- Smooth ---
result = bf.solve(
    problem, 2, bf.solvers.BFGD(bf.steps.Smooth(), balance=None), rng=0, max_iter=100
)

# --- Semidefinite ---
gram = truth @ truth.T
semidefinite = bf.Problem("squared", bf.operators.Full(gram.shape), gram, symmetric=True)
result = bf.solve(
    semidefinite, 2, bf.solvers.FGD(bf.steps.Semidefinite()), rng=0, max_iter=100
)

# --- StepSize ---
print(isinstance(bf.steps.Backtracking(), bf.steps.StepSize))  # True
