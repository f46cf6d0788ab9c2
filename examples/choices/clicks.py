"""
Recommendations from clicks
===========================

Only positives are known: who has chosen what. `Recommender` counts all other cells as weak negatives, without forming
them, and ranks the items that a user has not chosen. Here it is judged on held-out choices, beside a list of the most
popular items.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import bifactor as bf

rng = np.random.default_rng(0)
users, items, tastes = 600, 200, 6
likes = rng.dirichlet(np.full(tastes, 0.3), users) @ rng.dirichlet(np.full(items, 0.1), tastes)
popular = rng.lognormal(0, 0.7, items)
rate = likes * popular
clicks = rng.random((users, items)) < 1 - np.exp(-25 * rate / rate.sum(axis=1, keepdims=True))
split = bf.ranking.by_entry(sparse.csr_array(clicks, dtype=float), shares=(8, 2), seed=0)

model = bf.Recommender(n_components=16, unobserved=0.2, ridge=0.02, random_state=0).fit(split.train)
found = bf.ranking.evaluate(model, split, n=10)


class Popular:
    """The same list for all users, without the items that each has chosen."""

    def recommend(self, rows, n):
        known = split.train.toarray()[rows] > 0
        scores = np.where(known, -1.0, split.train.sum(axis=0))
        best = np.argsort(-scores, axis=1)[:, :n]
        return best, np.take_along_axis(scores, best, axis=1)


baseline = bf.ranking.evaluate(Popular(), split, n=10)
print(found)

# %%
# Means over users, with 95 % bootstrap intervals.

names = ["ndcg@10", "recall@10", "hit_rate@10"]
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for k, (label, each) in enumerate({"popularity": baseline, "Recommender": found}.items()):
    means = np.array([each[name] for name in names])
    low, high = np.array([each.interval(name) for name in names]).T
    ax.bar(
        np.arange(3) + 0.38 * k,
        means,
        0.36,
        yerr=[means - low, high - means],
        capsize=3,
        label=label,
    )
ax.set(xticks=np.arange(3) + 0.19, xticklabels=names)
ax.legend()
