"""
Ratings with calibrated error bars
==================================

`MatrixCompletion` finds a posterior of the factors: each prediction has a standard deviation, and nothing is tuned.
New ratings show whether the error bars are right: 90 % of them should lie in 90 % intervals.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
shape = (300, 120)
truth = 3 + rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1]))
activity = rng.beta(0.6, 2.0, shape[0])  # some people rate a lot, others hardly anything
i, j = np.nonzero(rng.random(shape) < activity[:, None])
stars = truth[i, j] + 0.7 * rng.standard_normal(i.size)
test = rng.random(i.size) < 0.2

model = bf.MatrixCompletion(n_components="auto", random_state=0)
model.fit((i[~test], j[~test], stars[~test]))
print(f"rank {model.n_components_}, noise {model.noise_:.2f}")

# %%
# Left: the coverage of intervals for every level. Right: users with many ratings have smaller error bars.

levels = np.linspace(0.1, 0.98, 12)
held = []
for level in levels:
    low, high = model.predict_interval(i[test], j[test], level=level)
    held.append(np.mean((stars[test] >= low) & (stars[test] <= high)))
_, std = model.predict(i[test], j[test], return_std=True)
count = np.bincount(i[~test], minlength=shape[0])[i[test]]

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].plot(levels, held, "o-")
axes[0].axline((0, 0), slope=1, color="black", linewidth=0.8)
axes[0].set(xlabel="level of the intervals", ylabel="share that they hold")
axes[1].plot(count, std, ".", markersize=3, alpha=0.5)
axes[1].axhline(0.7, color="black", linewidth=0.8, label="noise alone")
axes[1].set(
    xlabel="ratings by the same person",
    ylabel="standard deviation of a prediction",
    xscale="symlog",
)
axes[1].legend()
