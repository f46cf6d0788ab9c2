"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.5)
problem = bf.Problem(
    "squared", bf.operators.Entries(rows, cols, truth.shape), truth[rows, cols]
)

# --- PCG ---
result = bf.solve(problem, 2, bf.solvers.PCG(), rng=0)

# --- Newton ---
result = bf.solve(problem, 2, bf.solvers.Newton(), rng=0)
print(result.n_iter)  # few, each of them dear

# --- ScaledGD ---
result = bf.solve(problem, 2, bf.solvers.ScaledGD(), rng=0)

# --- RankContinuation ---
result = bf.solve(problem, 2, bf.solvers.RankContinuation(bf.solvers.PCG()), rng=0)

# --- RidgeHomotopy ---
result = bf.solve(
    problem.penalized(bf.penalties.Ridge(0.1)), 2, bf.solvers.RidgeHomotopy(), rng=0
)

# --- Race ---
result = bf.solve(problem, 2, bf.solvers.Race(), rng=0)

# --- Refitted ---
robust = bf.Problem(
    bf.losses.Huber(0.01), problem.operator, problem.y + 0.1 * rng.standard_normal(rows.size)
)
result = bf.solve(robust, 2, bf.solvers.Refitted(), rng=0)
print(result.problem.loss.delta)  # fitted to the residuals

# --- Variational ---
result = bf.solve(problem, 5, bf.solvers.Variational(), rng=0)
low, high = result.posterior.interval([0, 1], [2, 3])

# --- NuclearNorm ---
result = bf.solve(
    problem.penalized(bf.penalties.Ridge(1.0)), 20, bf.solvers.NuclearNorm(), rng=0
)
print(result.certificate.optimal(1e-4))  # True

# --- SPG ---
result = bf.solve(
    problem, 10, bf.solvers.SPG(radius=0.9 * np.linalg.norm(truth, "nuc")), rng=0
)

# --- SparseApproxSDP ---
solver = bf.solvers.SparseApproxSDP(radius=np.linalg.norm(truth, "nuc"))
result = bf.solve(problem, 20, solver, rng=0, max_iter=20)

# --- BFGD ---
# the paper's, with its printed step
result = bf.solve(problem, 2, bf.solvers.BFGD(), rng=0, max_iter=100)
result = bf.solve(problem, 2, bf.solvers.BFGD(bf.steps.Backtracking()), rng=0)

# --- FGD ---
gram = truth @ truth.T
semidefinite = bf.Problem("squared", bf.operators.Full(gram.shape), gram, symmetric=True)
result = bf.solve(semidefinite, 2, bf.solvers.FGD(bf.steps.Backtracking()), rng=0)

# --- AltMin ---
result = bf.solve(problem, 2, bf.solvers.AltMin(), rng=0)

# --- SVP ---
result = bf.solve(problem, 2, bf.solvers.SVP(normalized=True), rng=0)

# --- SoftImpute ---
result = bf.solve(
    problem.penalized(bf.penalties.Ridge(1.0)), 10, bf.solvers.SoftImpute(), rng=0
)

# --- ProcrustesFlow ---
result = bf.solve(problem, 2, bf.solvers.ProcrustesFlow(), rng=0, max_iter=100)

# --- GuaranteedMC ---
result = bf.solve(problem, 2, bf.solvers.GuaranteedMC(), rng=0)

# --- MiFGD ---
gram = truth @ truth.T
semidefinite = bf.Problem("squared", bf.operators.Full(gram.shape), gram, symmetric=True)
result = bf.solve(semidefinite, 2, bf.solvers.MiFGD(), rng=0)

# --- Solver ---
# True; `Add a solver` shows one of your own
print(isinstance(bf.solvers.PCG(), bf.solvers.Solver))
bf.testing.check_solver(bf.solvers.PCG(), problem, rank=2)
