"""
Many regressions at once
========================

Forty outcomes are predicted from thirty features, with few examples. If the forty vectors of coefficients share a few
directions, the matrix of all coefficients has low rank. `bf.Function` takes any f(X); a ridge on the factors is
equivalent to the nuclear norm, and a certificate bounds the distance from the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
features, outcomes, examples = 30, 40, 60
truth = rng.standard_normal((features, 3)) @ rng.standard_normal((3, outcomes)) / 3
A = rng.standard_normal((examples, features))
Y = A @ truth + 1.5 * rng.standard_normal((examples, outcomes))

f = bf.Function(lambda X: 0.5 * np.sum((A @ X - Y) ** 2), lambda X: A.T @ (A @ X - Y), truth.shape)
bf.testing.check_gradient(f)
ridges = np.geomspace(20, 300, 8)
fits = [
    bf.solve(bf.Objective(f, penalty=bf.penalties.Ridge(rho)), rank=20, rng=0, tol=1e-6)
    for rho in ridges
]
print(fits[4].certificate)

# %%
# Errors of the coefficients, compared with separate regressions.

errors = [np.linalg.norm(fit.matrix() - truth) / np.linalg.norm(truth) for fit in fits]
alone = np.linalg.norm(np.linalg.lstsq(A, Y)[0] - truth) / np.linalg.norm(truth)
ranks = [np.linalg.matrix_rank(fit.matrix(), tol=1e-3) for fit in fits]
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.semilogx(ridges, errors, "o-", label="all together")
ax.axhline(alone, color="C1", label="each for itself")
for rho, error, rank in zip(ridges, errors, ranks, strict=True):
    ax.annotate(
        f"{rank}", (rho, error), xytext=(0, 6), textcoords="offset points", fontsize=8, ha="center"
    )
ax.set(
    xlabel="ridge ρ (numbers: rank found)",
    ylabel="relative error of the coefficients",
    ylim=(0, None),
)
ax.legend()
