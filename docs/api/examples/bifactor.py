"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.5)
entries = bf.operators.Entries(rows, cols, truth.shape)

# --- Problem ---
problem = bf.Problem(
    "squared", entries, truth[rows, cols], penalty=bf.penalties.Ridge(0.1), offsets=True
)
print(problem)
print(problem.memory(rank=2), "bytes for a run of rank 2")

# --- Objective ---
f = bf.Function(lambda X: 0.5 * np.sum((X - truth) ** 2), lambda X: X - truth, truth.shape)
objective = bf.Objective(f, penalty=bf.penalties.Ridge(0.1))
result = bf.solve(objective, rank=2, rng=0)

# --- Function ---
f = bf.Function(
    lambda X: np.sum(np.cosh(X - truth) - 1), lambda X: np.sinh(X - truth), truth.shape
)
bf.testing.check_gradient(f)
result = bf.solve(f, rank=2, rng=0)

# --- all_cells ---
clicks = bf.Problem("squared", entries, np.ones(rows.size), penalty=bf.penalties.Ridge(1.0))
# cells without a click pull towards 0, a fifth as hard
result = bf.solve(clicks + bf.all_cells(0.2), rank=2, rng=0)

# --- solve ---
problem = bf.Problem("squared", entries, truth[rows, cols])
result = bf.solve(problem, rank=2, rng=0)
print(result.status)
print(bf.solve(problem, rank="auto", rng=0).rank)  # 2

# --- Result ---
result = bf.solve(bf.Problem("squared", entries, truth[rows, cols]), rank=2, rng=0)
assert isinstance(result, bf.Result)
print(result.U.shape, result.V.shape, result.n_iter, result.objective)
result.predict([0, 1], [2, 3])  # single entries
result.save("fit.safetensors")
again = bf.Result.load("fit.safetensors")

# --- Search ---
problem = bf.Problem("squared", entries, truth[rows, cols])
search = bf.solve(problem, rank="auto", rng=0).rank_search
print(search)  # the held-out loss of each rank
assert isinstance(search, bf.Search)
assert search.chosen["rank"] in search["rank"]

# --- History ---
history = bf.solve(bf.Problem("squared", entries, truth[rows, cols]), rank=2, rng=0).history
assert isinstance(history, bf.History)
print(history.objective[-1], history.gradient_norm[-1], history.seconds[-1])

# --- Status ---
result = bf.solve(bf.Problem("squared", entries, truth[rows, cols]), rank=2, rng=0, max_iter=1)
print(result.status is bf.Status.MAX_ITER)  # True
print(result.status)  # a sentence that says what to try

# --- threads ---
with bf.threads(1):
    result = bf.solve(bf.Problem("squared", entries, truth[rows, cols]), rank=2, rng=0)

# --- load ---
bf.MatrixCompletion(n_components=2, random_state=0).fit((rows, cols, truth[rows, cols])).save(
    "fit", force=True
)
fit = bf.load("fit")
fit.predict([0, 1], [2, 3])

# --- MatrixCompletion ---
table = np.where(rng.random(truth.shape) < 0.5, truth, np.nan)
model = bf.MatrixCompletion(n_components="auto", random_state=0).fit(table)
value, std = model.predict([0, 1], [2, 3], return_std=True)
columns, scores = model.recommend([0, 1], n=3)

# --- OneBitCompletion ---
labels = np.where(truth > 0, 1.0, -1.0)
labels[rng.random(truth.shape) < 0.5] = np.nan
model = bf.OneBitCompletion(n_components=2, random_state=0).fit(labels)
model.predict_proba([0, 1], [2, 3])  # of both classes

# --- ImageCompletion ---
picture = np.add.outer(np.sin(np.arange(40) / 4), np.cos(np.arange(40) / 5))
known = rng.random(picture.shape) < 0.5
full = bf.ImageCompletion().fit_transform(picture, known)

# --- TableImputer ---
import pandas as pd  # noqa: E402

frame = pd.DataFrame({"a": truth[:, 0], "b": truth[:, 1], "large": truth[:, 0] > 0})
frame = frame.mask(rng.random(frame.shape) < 0.1)
full = bf.TableImputer(random_state=0).fit_transform(frame)

# --- FactorAnalysis ---
table = np.where(rng.random(truth.shape) < 0.8, truth, np.nan) + 0.5 * rng.standard_normal(
    truth.shape
)
model = bf.FactorAnalysis().fit(table)
scores = model.transform(table)
print(model.n_components_, model.get_covariance().shape)

# --- LogisticPCA ---
scores = bf.LogisticPCA(2, ridge=1.0, random_state=0).fit_transform((truth > 0).astype(float))

# --- PoissonPCA ---
counts = rng.poisson(np.exp(truth / 2))
scores = bf.PoissonPCA(2, ridge=1.0, random_state=0).fit_transform(counts)

# --- Recommender ---
from scipy import sparse  # noqa: E402

clicks = sparse.csr_array((truth > 1) & (rng.random(truth.shape) < 0.7), dtype=float)
model = bf.Recommender(n_components=4, unobserved=0.2, ridge=0.01, random_state=0).fit(clicks)
items, scores = model.recommend([0, 1], n=5)
similar, cosines = model.similar_items([3], n=5)

# --- StateTomography ---
counts = {
    "XX": {"00": 480, "11": 520},
    "YY": {"01": 495, "10": 505},
    "ZZ": {"00": 510, "11": 490},
}
state = bf.StateTomography(rank=1, random_state=0).fit_counts(counts)
print(state.fidelity("ghz"))
