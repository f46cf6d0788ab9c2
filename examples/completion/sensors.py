"""
Sensors with gaps, and a custom penalty
=======================================

Thirty sensors are read every ten minutes, and most readings are lost. Neighbouring times are similar, which a ridge
does not use. A penalty on the differences of neighbouring rows of U takes twenty lines, and works with every solver.
"""

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np

import bifactor as bf
from bifactor.extend import Shared


@dataclass(frozen=True, eq=False)
class Smooth(bf.penalties.Penalty):
    """h(U, V) = (ρ/2) Σₜ ‖uₜ₊₁ − uₜ‖²."""

    rho: float

    def evaluate(self, x):
        return self.rho / 2 * float(np.sum(np.diff(x.left, axis=0) ** 2)), self.hessian(x, x)

    def hessian(self, x, d):
        steps = self.rho * np.diff(d.left, axis=0, prepend=d.left[:1], append=d.left[-1:])
        return x.gradient(-np.diff(steps, axis=0), np.zeros_like(d.right))

    def polynomial(self, x, d):
        a, b = np.diff(x.left, axis=0), np.diff(d.left, axis=0)
        return self.rho * np.array([np.sum(a * a) / 2, np.sum(a * b), np.sum(b * b) / 2, 0.0, 0.0])

    def blocks(self, x, side):
        return Shared() if side else Shared(ridge=np.full(len(x.left), 2 * self.rho))


bf.testing.check_penalty(Smooth(0.5), shape=(9, 6))

# %%
# One reading in ten is known, with noise.

rng = np.random.default_rng(0)
t = np.linspace(0, 3, 432)
waves = np.column_stack([np.sin(2 * np.pi * t), np.cos(2 * np.pi * t), t, np.sin(5 * t)])
truth = waves @ rng.standard_normal((4, 30))
seen = np.where(
    rng.random(truth.shape) < 0.1, truth + 0.4 * rng.standard_normal(truth.shape), np.nan
)
operator, y = bf.operators.Entries.from_dense(seen)

found = {}
for name, penalty in {
    "ridge": bf.penalties.Ridge(1.0),
    "ridge, and smooth in time": (bf.penalties.Ridge(0.2), Smooth(100.0)),
}.items():
    found[name] = bf.solve(
        bf.Problem("squared", operator, y, penalty=penalty), rank=4, rng=0
    ).matrix()
    print(f"{name}: error {np.linalg.norm(found[name] - truth) / np.linalg.norm(truth):.3f}")

# %%
# One of the sensors.

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.plot(t, truth[:, 7], color="black", linewidth=2, label="truth")
for name, X in found.items():
    ax.plot(t, X[:, 7], linewidth=1, label=name)
ax.plot(t, seen[:, 7], "k.", label="readings")
ax.set(xlabel="days", ylabel="sensor 7")
ax.legend()
