"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
U, V = rng.standard_normal((16, 2)), rng.standard_normal((8, 2))
X = U @ V.T
rows, cols = np.nonzero(rng.random(X.shape) < 0.6)

# --- Entries ---
A = bf.operators.Entries(rows, cols, shape=(16, 8))
assert np.allclose(A.forward(U, V), X[A.rows, A.cols])
A, y = bf.operators.Entries.from_dense(np.where(X > 0, X, np.nan))  # NaN is unknown

# --- Full ---
A = bf.operators.Full((16, 8))
assert np.allclose(A.forward(U, V), X.ravel())

# --- Comparisons ---
A = bf.operators.Comparisons(rows=[0, 0, 3], left=[1, 2, 5], right=[4, 7, 0], shape=(16, 8))
A.forward(U, V)  # X[0, 1] − X[0, 4], …

# --- FullTable ---
counts = rng.poisson(np.exp(X / 3))
f = bf.operators.FullTable("poisson", counts)
result = bf.solve(bf.Objective(f, penalty=bf.penalties.Ridge(1.0)), rank=2, rng=0)

# --- Partitioned ---
# on disk, in blocks
store = bf.data.partition((rows, cols, X[rows, cols]), "blocks", force=True)
f = bf.operators.Partitioned("squared", store)
result = bf.solve(bf.Objective(f, bf.penalties.Ridge(0.1)), rank=2, rng=0)

# --- Noiselet ---
A = bf.operators.Noiselet((16, 8), size=90, rng=0)
y = A.forward(U, V)
result = bf.solve(bf.Problem("squared", A, y), rank=2, rng=0)

# --- Hadamard ---
A = bf.operators.Hadamard((16, 8), size=90, rng=0)
A.forward(U, V)

# --- DCT ---
A = bf.operators.DCT((16, 8), size=90, rng=0)
A.forward(U, V)

# --- Fourier ---
A = bf.operators.Fourier((16, 8), size=90, rng=0)
A.forward(U, V)

# --- Gaussian ---
A = bf.operators.Gaussian((16, 8), size=90, rng=0)
A.forward(U, V)

# --- RankOne ---
a = rng.standard_normal((40, 16)) + 1j * rng.standard_normal((40, 16))
intensities = bf.operators.RankOne(a).forward(U[:, :1] + 0j, U[:, :1] + 0j)  # |⟨aᵢ, u⟩|²

# --- Pauli ---
A = bf.operators.Pauli(2, ["XX", "YY", "ZZ"])
plus = np.array([[1], [0], [0], [1]]) / np.sqrt(2)
A.forward(plus + 0j, plus + 0j)  # 1, −1, 1: a Bell state

# --- Linear ---
B = rng.standard_normal((90, 16 * 8))  # or any operator of SciPy or pylops
A = bf.operators.Linear(B, shape=(16, 8))
assert np.allclose(A.forward(U, V), B @ X.ravel())

# --- Scaled ---
A = bf.operators.Scaled(bf.operators.Full((16, 8)), 0.5)
assert np.allclose(A.forward(U, V), 0.5 * X.ravel())

# --- Stacked ---
entries = bf.operators.Entries(rows, cols, (16, 8))
A = bf.operators.Stacked(entries, bf.operators.Noiselet((16, 8), size=30, rng=0))
print(A.size == entries.size + 30)  # True

# --- Recomputed ---
A = bf.operators.Recomputed(bf.operators.Entries(rows, cols, (16, 8)))
# measurements are not stored
result = bf.solve(bf.Problem("squared", A, X[rows, cols]), rank=2, rng=0)

# --- Featured ---
ages = rng.standard_normal((16, 1))
A = bf.operators.Featured(bf.operators.Entries(rows, cols, (16, 8)), left=ages)
result = bf.solve(
    bf.Problem("squared", A, X[rows, cols], penalty=bf.penalties.Ridge(0.1)), rank=2, rng=0
)
left, right = A.effective(result.U, result.V)

# --- pattern ---
F = bf.operators.pattern(rows, cols, (16, 8))  # of SVD++
A = bf.operators.Featured(bf.operators.Entries(rows, cols, (16, 8)), left=F)

# --- Operator ---
# True; `Add an operator` shows one of your own
isinstance(bf.operators.Full((16, 8)), bf.operators.Operator)
bf.testing.check_operator(bf.operators.Full((16, 8)))

# --- Subsampled ---
# True: a scrambled, sub-sampled unitary transform
issubclass(bf.operators.DCT, bf.operators.Subsampled)

# --- Bound ---
f = bf.Problem("squared", bf.operators.Full((16, 8)), X).f
isinstance(f, bf.operators.Bound)  # True: what `solve` minimises

# --- DataBound ---
A = bf.operators.Full((16, 8))
f = A.bind(bf.losses.DataFit(bf.losses.Squared(), X.ravel()))
isinstance(f, bf.operators.DataBound)  # True

# --- Curve ---
problem = bf.Problem("squared", bf.operators.Full((16, 8)), X)
point = problem.at(problem.kind.pair(U + 0.1, V))
curve = problem.f.curve(point.x, -point.gradient, point.z)
print(isinstance(curve, bf.operators.Curve))  # True
value, slope, curvature = curve.at(0.01)

# --- Evaluated ---
problem = bf.Problem("squared", bf.operators.Full((16, 8)), X)
at = problem.f.evaluate(problem.kind.pair(U, V))
# True 0.0 (16, 2) (8, 2)
print(isinstance(at, bf.operators.Evaluated), at.f, at.GV.shape, at.GhU.shape)
