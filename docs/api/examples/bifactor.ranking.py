"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np
from scipy import sparse

import bifactor as bf

rng = np.random.default_rng(0)
clicks = sparse.csr_array(rng.random((40, 30)) < 0.3, dtype=float)
split = bf.ranking.by_entry(clicks, seed=0)
recommended = np.array([[3, 1, 2], [0, 5, 4]])  # for two users, best first
held_out = sparse.csr_array(([1.0, 1.0, 1.0], ([0, 0, 1], [1, 7, 0])), shape=(2, 30))

# --- evaluate ---
model = bf.Recommender(n_components=4, unobserved=0.2, ridge=0.01, random_state=0).fit(
    split.train
)
print(bf.ranking.evaluate(model, split, n=10))

# --- judge ---
found = bf.ranking.judge(recommended, held_out, n=3)
print(found["ndcg@3"])

# --- Evaluation ---
found = bf.ranking.judge(recommended, held_out, n=3)
print(isinstance(found, bf.ranking.Evaluation), found["recall@3"])

# --- Difference ---
first, second = (
    bf.ranking.judge(lists, held_out, n=3) for lists in (recommended, recommended[:, ::-1])
)
difference = first.difference(second, "ndcg@3")
print(
    isinstance(difference, bf.ranking.Difference),
    difference.mean,
    difference.low,
    difference.high,
)

# --- interval ---
low, high = bf.ranking.interval(bf.ranking.ndcg(recommended, held_out, k=3))


# --- Recommends ---
class Popular:
    """What most have chosen, beside what the user has."""

    def __init__(self, clicks):
        self.known, self.counts = clicks.toarray() > 0, clicks.sum(axis=0)

    def recommend(self, rows, n):
        scores = np.where(self.known[rows], -1.0, self.counts)
        items = np.argsort(-scores, axis=1)[:, :n]
        return items, np.take_along_axis(scores, items, axis=1)


model: bf.ranking.Recommends = Popular(split.train)
print(bf.ranking.evaluate(model, split, n=5)["ndcg@5"])

# --- by_entry ---
# train : validation : test, of each user
split = bf.ranking.by_entry(clicks, shares=(8, 1, 1), seed=0)

# --- by_user ---
# users who are not in the fit
split = bf.ranking.by_user(clicks, users=(0.1, 0.1), known=0.8, seed=0)

# --- by_time ---
times = rng.permutation(clicks.nnz)  # one for each click
split = bf.ranking.by_time(clicks, times)

# --- Split ---
print(isinstance(split, bf.ranking.Split), split.train.shape, split.test.nnz)

# --- ndcg ---
bf.ranking.ndcg(recommended, held_out, k=3)

# --- recall ---
bf.ranking.recall(recommended, held_out, k=3)  # 0.5, 1.0

# --- precision ---
bf.ranking.precision(recommended, held_out, k=3)  # 1/3, 1/3

# --- hit_rate ---
bf.ranking.hit_rate(recommended, held_out, k=3)  # 1, 1

# --- reciprocal_rank ---
bf.ranking.reciprocal_rank(recommended, held_out, k=3)  # 1/2, 1

# --- average_precision ---
bf.ranking.average_precision(recommended, held_out, k=3)

# --- coverage ---
bf.ranking.coverage(recommended, items=30, k=3)  # 6 of 30

# --- popularity_share ---
bf.ranking.popularity_share(recommended, clicks, k=3)
