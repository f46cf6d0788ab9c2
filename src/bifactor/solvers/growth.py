"""Functions of solvers that begin with few columns and add more."""

from dataclasses import dataclass

import numpy as np

from bifactor.arrays import column_norms, columns, dtype_of, epsilon, gaussian, to_device_of
from bifactor.factors import Factors
from bifactor.inits import start_faint
from bifactor.operators.curves import Curve, Measurements
from bifactor.problems.objective import Objective
from bifactor.steps.base import backtrack

TOL, RESTARTS = 0.1, 1
"""Accuracy of new directions, and the largest number of restarts: the iterations that follow correct them."""

SHORTEST = 1e-6
"""The smallest share of the expected length of new columns that is tried."""

FAINTEST = 1e-12
"""The smallest share of that length if f is not quadratic, whose expected curvature may be far from the actual one."""


@dataclass(frozen=True, eq=False)
class Growth:
    """Factors, with their measurements, and columns to add to them."""

    x: Factors
    z: Measurements
    new: Factors

    def joined(self, t: float) -> Factors:
        """The factors with new columns that are t times as long, as a product."""
        return self.x.joined(t**0.5 * self.new)


def growth(problem: Objective, x: Factors, count: int) -> Growth | None:
    """Balanced factors and up to `count` new columns: the leading singular pairs of −∇f(X), of suitable length.

    With a ridge ρ only those with s > ρ are useful: the optimality test of the nuclear norm is that there are none. The
    result is then None.

    Lengths are those that the expected curvature of f suggests. The actual curvature is not used: the leading pairs of
    a sampled residual are concentrated on the samples, so lengths fitted to these are too short (measured: they made
    most runs with few entries fail). The objective may therefore be higher with the new columns than without.
    """
    rng = np.random.default_rng(0)  # the same each time, so that runs are reproducible
    some = x.width > 0
    size = float(np.max(column_norms(x.left) * column_norms(x.right), initial=0.0))
    weights = problem.new_columns
    rho = weights.rho(problem.kind)
    here = x if some else problem.zero()
    z = problem.f.measure(here)
    G = problem.f.gradient(here, z)
    A, s, B = problem.kind.leading(weights.gradient(G), count, rng, TOL, RESTARTS, sign=-1)
    keep = s > max(1e3 * epsilon(x.left) * problem.scale * size, rho)
    if not np.any(keep):
        return None
    A, B = columns(A, keep), columns(B, keep)
    curvatures = problem.f.curvatures(weights.back(problem.kind.pair(A, B)))
    lengths = ((s[keep] - rho) / curvatures).astype(s.dtype)
    new = weights.back(problem.kind.from_triplets(A, lengths, B))
    new = _lowering(problem.f.straight(x if some else None, new, z), new, rho * float(lengths.sum()))
    left, right = (to_device_of(gaussian(rng, (k, 1), dtype_of(A)), A) for k in problem.shape)
    new = start_faint(new, np.zeros(new.width, dtype=bool), G.products(left, right), rng)
    return Growth(x.balanced() if some and problem.invariant else x, z, new)


def _lowering(line: Curve, new: Factors, cost: float) -> Factors:
    """New columns that lower an f that is not quadratic by more than they cost.

    Where z is far out, as where all labels of a row are equal, the expected curvature may vanish, and lengths be huge.
    """
    if line.quartic is not None:
        return new
    first = line.at(0.0)[0]
    t = backtrack(lambda t: t if line.at(t)[0] + t * cost < first else None, 1.0, FAINTEST)
    return (FAINTEST if t is None else t) ** 0.5 * new


def add_columns(problem: Objective, x: Factors, count: int) -> Factors:
    """The factors with up to `count` more columns, halved until they do not raise the objective."""
    found = growth(problem, x, count)
    if found is None:
        return x
    line = problem.f.straight(found.x if x.width else None, found.new, found.z)
    quartic = line.quartic

    def longer(t: float) -> tuple[float, Factors]:
        f = line.at(t)[0] if quartic is None else float(np.polyval(quartic[::-1], t))
        wider = found.joined(t)
        return f + sum(term.value(wider) for term in problem.terms), wider

    first, _ = longer(0.0)

    def lower(t: float) -> Factors | None:
        value, wider = longer(t)
        return wider if value <= first else None

    return backtrack(lower, 1.0, SHORTEST) or x
