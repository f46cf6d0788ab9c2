"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np
import pandas as pd

import bifactor as bf

rng = np.random.default_rng(0)
user, item = np.nonzero(rng.random((40, 30)) < 0.5)
clicks = pd.DataFrame({"user": user, "item": item})
completed = bf.recommender.complete(clicks, n_components=4, unobserved=0.2, ridge=0.05)
later = pd.DataFrame({"user": np.arange(40), "item": np.arange(40) % 30})

# --- complete ---
completed = bf.recommender.complete(
    clicks, n_components=4, unobserved=0.2, ridge=0.05, output="fit"
)
print(completed.scores["held out"]["metrics"]["ndcg@10"])

# --- evaluate ---
print(bf.recommender.evaluate(completed, later, n=5).scores["gain"])

# --- recommend ---
for one in bf.recommender.recommend(completed, [0, 1], n=3, explain=True):
    print(one.row, [(line.column, line.why) for line in one.lines])

# --- RecommendationLists ---
lists = bf.recommender.recommend(completed, n=3)
print(isinstance(lists, bf.recommender.RecommendationLists), len(list(lists)))
