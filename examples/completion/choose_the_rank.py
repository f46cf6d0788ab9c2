"""
The rank by held-out entries
============================

With `rank="auto"` a tenth of the measurements is held out, the rank grows as long as their prediction improves, and
the smallest rank within one standard error of the best is used.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf
from bifactor.plots import SearchDisplay, SpectrumDisplay

rng = np.random.default_rng(1)
truth = rng.standard_normal((200, 6)) * np.geomspace(3, 0.5, 6) @ rng.standard_normal((6, 150))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.3)
y = truth[rows, cols] + rng.standard_normal(rows.size)

problem = bf.Problem("squared", bf.operators.Entries(rows, cols, truth.shape), y)
result = bf.solve(problem, rank="auto", rng=0)
print(f"rank {result.rank}")

# %%
# The held-out loss over ranks, and the singular values of the result.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
SearchDisplay.from_result(result, ax=axes[0])
SpectrumDisplay.from_result(result, ax=axes[1])
