"""
Labels: a matrix from its signs
===============================

Votes are yes or no. Here only one in five of the signs of a noisy matrix is known. `OneBitCompletion` finds the
probabilities of all others, and chooses its ridge by the data.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
scores = np.sort(rng.standard_normal(150)), np.sort(rng.standard_normal(100))
truth = 3 * np.multiply.outer(*scores) + 0.7 * scores[1]
votes = np.where(rng.random(truth.shape) < 1 / (1 + np.exp(-truth)), 1.0, -1.0)
seen = np.where(rng.random(truth.shape) < 0.2, votes, np.nan)

model = bf.OneBitCompletion(n_components=2, random_state=0).fit(seen)
i, j = np.indices(truth.shape).reshape(2, -1)
probability = model.predict_proba(i, j)[:, 1].reshape(truth.shape)
hidden = np.isnan(seen)
print(f"right: {np.mean((probability > 0.5) == (votes > 0), where=hidden):.1%} of the hidden votes")
print(f"right if the truth were known: {np.mean((truth > 0) == (votes > 0), where=hidden):.1%}")

# %%
# From one vote in five to the probability of each.

fig, axes = plt.subplots(1, 3, figsize=(9, 4.2), layout="constrained")
pictures = {
    "votes that are known": seen,
    "probability found": probability,
    "true one": 1 / (1 + np.exp(-truth)),
}
for ax, (name, picture) in zip(axes, pictures.items(), strict=True):
    low = -1 if name.startswith("votes") else 0
    ax.imshow(picture, cmap="coolwarm", vmin=low, vmax=1, aspect="auto", interpolation="nearest")
    ax.set(title=name, xticks=[], yticks=[])
