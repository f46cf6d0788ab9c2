"""
Multiple imputation for a regression
====================================

A regression on a table whose holes were filled once treats predictions as data, and its standard errors are too small.
Several draws from the posterior, combined by Rubin's rules, account for the uncertainty.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
rows, predictors = 400, 6
latent = rng.standard_normal((rows, 2)) @ rng.standard_normal((2, predictors))
X = latent + 0.6 * rng.standard_normal((rows, predictors))
slopes = np.array([1.0, -0.5, 0.0, 0.8, 0.0, 0.3])
table = np.column_stack([X, X @ slopes + rng.standard_normal(rows)])
holes = rng.random(table.shape) < 0.3
holes[:, -1] = False
seen = np.where(holes, np.nan, table)


def regression(full):
    """Slopes and their squared standard errors."""
    A, y = np.column_stack([np.ones(rows), full[:, :-1]]), full[:, -1]
    beta = np.linalg.lstsq(A, y)[0]
    noise = np.sum((y - A @ beta) ** 2) / (rows - A.shape[1])
    return beta[1:], noise * np.diag(np.linalg.inv(A.T @ A))[1:]


model = bf.TableImputer(random_state=0).fit(seen)
draws = [regression(np.asarray(draw)) for draw in model.sample(seen, 20, random_state=0)]
means, within = (np.mean(part, axis=0) for part in zip(*draws, strict=True))
between = np.var([beta for beta, _ in draws], axis=0, ddof=1)
total = np.sqrt(within + (1 + 1 / 20) * between)  # Rubin's rules

# %%
# Slopes with 95 % intervals.

once, variance = regression(np.asarray(model.transform(seen)))
whole, exact = regression(table)
fig, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ways = {
    "no holes": (whole, np.sqrt(exact)),
    "filled once": (once, np.sqrt(variance)),
    "20 draws": (means, total),
}
for k, (name, (beta, error)) in enumerate(ways.items()):
    ax.errorbar(
        np.arange(predictors) + 0.18 * (k - 1), beta, 1.96 * error, fmt="o", capsize=3, label=name
    )
ax.plot(range(predictors), slopes, "k_", markersize=22, label="truth")
ax.set(xlabel="predictor", ylabel="slope")
ax.legend()
