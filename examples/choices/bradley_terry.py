"""
Ranking players by the Bradley–Terry model
==========================================

Twelve players have played some games. `Comparisons` with the logistic loss is the Bradley–Terry model: the log odds of
a win are the difference of two strengths. A bootstrap over games gives error bars.
"""

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
players = np.array(
    ["Ada", "Bo", "Cem", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lev"]
)
strength = np.linspace(1.5, -1.5, 12)
one, other = rng.integers(12, size=(2, 500))
one, other = one[one != other], other[one != other]
wins = rng.random(one.size) < 1 / (1 + np.exp(strength[other] - strength[one]))
winner, loser = np.where(wins, one, other), np.where(wins, other, one)


def rank(games):
    """Strengths of mean 0. X has one row, the vector of strengths; a small ridge keeps all of them finite."""
    rows = np.zeros(len(games), int)
    operator = bf.operators.Comparisons(rows, winner[games], loser[games], shape=(1, 12))
    problem = bf.Problem("logistic", operator, np.ones(len(games)), penalty=bf.penalties.Ridge(0.1))
    found = bf.solve(problem, rank=1, rng=0).matrix()[0]
    return found - found.mean()


found = rank(np.arange(winner.size))
draws = np.array([rank(rng.integers(winner.size, size=winner.size)) for _ in range(200)])
low, high = np.quantile(draws, [0.05, 0.95], axis=0)

# %%
# Strengths with 90 % intervals; the crosses are the true ones.

order = np.argsort(found)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.errorbar(
    found[order],
    range(12),
    xerr=[(found - low)[order].clip(0), (high - found)[order].clip(0)],
    fmt="o",
    capsize=3,
)
ax.plot(strength[order], range(12), "kx")
ax.set(yticks=range(12), yticklabels=players[order], xlabel="strength (log odds)")
ax.grid(axis="x", alpha=0.3)
