"""
Word vectors from counts
========================

Words that occur in the same company are alike. The model of GloVe is a weighted squared loss on the logarithms of
counts of pairs of words, with an offset for each word: entries, weights and `offsets=True` are all that it takes. The
text is made by a small grammar.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
animals, foods = ["cat", "dog", "horse", "mouse", "cow"], ["bread", "cheese", "apple", "soup", "rice"]
places, tools = ["kitchen", "garden", "barn", "street", "cellar"], ["knife", "hammer", "saw", "spoon", "rope"]
groups = {"animals": animals, "foods": foods, "places": places, "tools": tools}
verbs = {
    "eats": (animals, foods),
    "sleeps in": (animals, places),
    "is cut with": (foods, tools),
    "lies in": (tools, places),
}
names = sorted({word for group in groups.values() for word in group} | {w for verb in verbs for w in verb.split()})
number = {name: k for k, name in enumerate(names)}

counts = np.zeros((len(names), len(names)))
for verb in rng.choice(list(verbs), 6000):
    first, second = verbs[verb]
    sentence = [rng.choice(first), *verb.split(), rng.choice(second)]
    for k, word in enumerate(sentence):
        for distance, other in enumerate(sentence[k + 1 :], start=1):
            counts[number[word], number[other]] += 1 / distance
counts += counts.T

rows, cols = np.nonzero(counts)
y = np.log(counts[rows, cols])
weights = np.minimum(counts[rows, cols] / 100, 1.0) ** 0.75
entries = bf.operators.Entries(rows, cols, counts.shape)
problem = bf.Problem("squared", entries, y, weights, penalty=bf.penalties.Ridge(0.05), offsets=True)
result = bf.solve(problem, rank=4, rng=0)
vectors = result.U[:, 2:] + result.V[:, 2:]  # the first two columns hold the offsets

# %%
# Two directions of the vectors: words of one kind lie together, although no pair of them was ever counted.

vectors -= vectors.mean(axis=0)
flat = vectors @ np.linalg.svd(vectors, full_matrices=False)[2][:2].T
fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for k, (group, members) in enumerate(groups.items()):
    at = flat[[number[word] for word in members]]
    ax.scatter(*at.T, color=f"C{k}", label=group)
    for word, place in zip(members, at, strict=True):
        ax.annotate(word, place, xytext=(4, 3), textcoords="offset points", fontsize=8)
ax.legend()
ax.set(xticks=[], yticks=[])
