"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf
from bifactor import plots

rng = np.random.default_rng(0)
truth = rng.standard_normal((60, 2)) @ rng.standard_normal((2, 40))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.5)
problem = bf.Problem(
    "squared", bf.operators.Entries(rows, cols, truth.shape), truth[rows, cols]
)
result = bf.solve(problem, rank="auto", rng=0)

# --- ConvergenceDisplay ---
plots.ConvergenceDisplay.from_result(result)

# --- SpectrumDisplay ---
plots.SpectrumDisplay.from_result(result)

# --- SearchDisplay ---
plots.SearchDisplay.from_result(result)

# --- ObservedPredictedDisplay ---
model = bf.MatrixCompletion(n_components=2, random_state=0).fit((rows, cols, problem.y))
plots.ObservedPredictedDisplay.from_estimator(model)

# --- ScreeDisplay ---
model = bf.LogisticPCA(2, ridge=1.0, random_state=0).fit((truth > 0).astype(float))
plots.ScreeDisplay.from_estimator(model)

# --- ImageDisplay ---
plots.ImageDisplay.from_result(result, truth=truth)
