"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np
import pandas as pd

import bifactor as bf

rng = np.random.default_rng(0)
user, item = np.nonzero(rng.random((40, 30)) < 0.5)
taste = 3 + rng.standard_normal((40, 1)) * rng.standard_normal(30)
ratings = pd.DataFrame({"user": user, "item": item, "rating": taste[user, item]})
completed = bf.completion.complete(ratings, n_components=1, ridge=1.0, holdout=0.1)

# --- complete ---
completed = bf.completion.complete(
    ratings, n_components=1, ridge=1.0, holdout=0.1, output="fit"
)
print(completed.scores["held out"]["rmse"], completed.scores["baseline"]["rmse"])

# --- evaluate ---
print(bf.completion.evaluate(completed, ratings).scores["explained"])

# --- predict ---
pairs = pd.DataFrame({"user": [0, 1], "item": [2, 3]})
print(bf.completion.predict(completed, pairs).values)

# --- CompletedMatrix ---
print(isinstance(completed, bf.completion.CompletedMatrix), completed.notes)
completed.save("again")

# --- FitEvaluation ---
found = bf.completion.evaluate(completed, ratings)
print(isinstance(found, bf.completion.FitEvaluation), found.scores["rmse"])

# --- Predictions ---
found = bf.completion.predict(completed, pairs)
print(isinstance(found, bf.completion.Predictions), pd.DataFrame(found.frame()))
