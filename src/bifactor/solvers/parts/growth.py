"""Functions of solvers that begin with few columns and add more."""

from functools import partial

import numpy as np

from bifactor.arrays import Array, beside, column_norms, columns, dtype_of, epsilon, gaussian, host
from bifactor.factors import Factors, Free
from bifactor.inits.spectral import start_faint
from bifactor.operators.bound import Bound, Curve
from bifactor.problems.objective import Objective
from bifactor.steps.base import shortened

TOL, RESTARTS = 0.1, 1
"""Accuracy of new directions, and the largest number of restarts: the iterations that follow correct them."""


OVERSHOT = 0.2
"""If the best length of new columns is below this share of their length, they are shortened to it.

For directions concentrated on rows with few entries, as with a ridge by frequency, it was 0.001 to 0.06, and the
objective rose a hundredfold. With one weight for all rows, columns keep their length: with few entries the best share
was 0.04 to 0.9, the objective rose up to eightfold, and the solution was found; with shortened columns, some of
these runs ended in other minima.
"""


def grown(problem: Objective, x: Factors, count: int) -> Factors:
    """Balanced factors with up to `count` more columns: the leading singular pairs of −∇f(X), of suitable length.

    With a ridge ρ only those with s > ρ are useful: the optimality test of the nuclear norm is that there are none.
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
        return x
    A, B = columns(A, keep), columns(B, keep)
    unit = weights.back(Free().pair(A, B))
    lengths = ((s[keep] - rho) / expected_curvatures(problem, unit.left, unit.right)).astype(s.dtype)
    new = weights.back(problem.kind.from_triplets(A, lengths, B))
    new = _descending(problem.f.straight(here, new, z), new, rho * float(lengths.sum()), weights.even)
    if some and problem.invariant:
        x = x.balanced()
    left, right = (beside(gaussian(rng, (k, 1), dtype_of(A)), A) for k in problem.shape)
    new = start_faint(new, np.zeros(new.width, dtype=bool), G.products(left, right), rng)
    return x.joined(new) if some else problem.kind.start(new.left, new.right)


def expected_curvatures(problem: Objective, A: Array, B: Array) -> Array:
    """The expected curvature of f along each aᵢbᵢᴴ.

    The actual curvature is not used: the leading pairs of a sampled residual are concentrated on the samples, so a
    length fitted to these is too short (measured: it made most runs with few entries fail).
    """
    each = [_of_pattern(problem, f, A, B) for f in problem.f.patterns]
    return sum(each[1:], each[0])


def _of_pattern(problem: Objective, f: Bound, A: Array, B: Array) -> Array:
    if f.marginals is None:
        return f.scale * column_norms(A) ** 2 * column_norms(B) ** 2
    rows, cols = problem.kind.marginals(*f.marginals)
    return (rows @ np.abs(host(A)) ** 2) * (cols @ np.abs(host(B)) ** 2) / rows.sum()


def _descending(line: Curve, new: Factors, cost: float, even: bool) -> Factors:
    """New columns that lower f by more than they cost: its curvature may be far from the expected one.

    If f is quadratic, the iterations that follow correct this, unless rows have weights and columns are too long.
    """
    if line.quartic is not None:
        if even:
            return new
        _, slope, curvature, *_ = line.quartic
        best = -(slope + cost) / (2 * curvature) if curvature > 0 else 1.0
        return new if best >= OVERSHOT else max(best, 1e-12) ** 0.5 * new
    t = shortened(partial(_lowers, line, line.at(0.0)[0], cost), 1.0, 1e-12)
    return (1e-12 if t is None else t) ** 0.5 * new


def _lowers(line: Curve, first: float, cost: float, t: float) -> float | None:
    return t if line.at(t)[0] + t * cost < first else None
