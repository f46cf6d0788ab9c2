"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

# --- check_loss ---
bf.testing.check_loss(bf.losses.Huber(0.5), y=[-2.0, 0.0, 3.0])

# --- check_operator ---
bf.testing.check_operator(bf.operators.Hadamard((8, 4), size=20, rng=0))

# --- check_penalty ---
bf.testing.check_penalty(bf.penalties.Ridge(0.5), shape=(6, 5))

# --- check_gradient ---
f = bf.Function(lambda X: np.sum(np.cosh(X) - 1), np.sinh, shape=(6, 5))
bf.testing.check_gradient(f)

# --- check_solver ---
target = np.outer(np.arange(1.0, 9), np.arange(1.0, 7))
problem = bf.Problem("squared", bf.operators.Full(target.shape), target)
bf.testing.check_solver(bf.solvers.PCG(), problem, rank=1)

# --- check_executor ---
rows, cols = np.nonzero(target > 3)
store = bf.data.partition((rows, cols, target[rows, cols]), "blocks", force=True)
bf.testing.check_executor(bf.executors.Streamed(memory="1MB"), store)

# --- check_invariance ---
rng = np.random.default_rng(0)
table = (
    rng.standard_normal((30, 1)) * rng.standard_normal(20) + rng.standard_normal((30, 20)) / 5
)
table[rng.random(table.shape) < 0.4] = np.nan
model = bf.MatrixCompletion(n_components=1, ridge=1.0, tol=1e-9)
bf.testing.check_invariance(model, table, "shift", by=100.0)
bf.testing.check_invariance(model, table, "order")
# a ridge has the unit of the weights
bf.testing.check_invariance(model, table, "weights", by=10.0, settings={"ridge": 10.0})

# --- check_dataset ---
rows, cols = np.nonzero(rng.random((30, 20)) < 0.4)
data = bf.data.Observations(rows, cols, rng.standard_normal(rows.size), (30, 20))
bf.testing.check_dataset(data)
