"""The best step along the curve of factors."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import epsilon
from bifactor.objective import Objective
from bifactor.path import Path
from bifactor.state import Point, Stalled
from bifactor.steps.base import Length, Step, StepSize, reciprocal, shortened
from bifactor.steps.quartic import minimiser

DECREASE = 1e-4
"""Armijo's constant: the fraction of what the slope promises that a step must keep."""

FLAT = 0.1
"""A trial is good enough where the slope has fallen to this fraction of the first."""

TRIALS = 30


@dataclass(frozen=True)
class CurveSearch(StepSize[Length]):
    """η = argmin over a > 0 of F(U + aD, V + aE), with F the very function being minimised.

    Measurements move as z + a·z₁ + a²·z₂, so a trial costs O(p), whatever the operator costs. For the squared loss F is
    a quartic in a, and its best minimum is taken. For other losses it is a safeguarded Newton iteration in a,
    with F, F′ and F″ from one pass each; it accepts no step that does not lower F. Needs no L, so it serves every loss.
    Where rounding hides all decrease the step is `Stalled`.
    """

    polynomial = True

    def init(self, problem: Objective, point: Point, L_g: float) -> Length:
        # Only where the second derivative is unknown does a search begin from a guess.
        return Length(reciprocal(max(problem.scale, L_g) * point.x.spectral_norm_squared()))

    def next(self, path: Path, memory: Length) -> Step:
        if not path.slope < 0:
            return Step(path.point, memory, Stalled(0.0))
        for tried in (path, replace(path, exact=True)):
            a = _best(tried, memory.eta)
            if a is not None and a <= tried.line.reach:
                new = tried.along(a)
                if new.value < path.point.value:
                    return Step(new, Length(a))
            if tried.line.reach == np.inf:
                break
        return _halved(tried, memory, memory.eta if a is None else a)


def _best(path: Path, guess: float) -> float | None:
    quartic = path.line.quartic
    return minimiser((quartic + path.polynomial).tolist()) if quartic is not None else _newton(path, guess)


def _halved(path: Path, memory: Length, a: float) -> Step:
    """The first decrease on the way back to 0, for where rounding has spoilt the search."""
    x, promised = path.point.x, -a * path.slope
    shortest = epsilon(x.left) * x.norm() / max(path.d.norm(), 1e-300)

    def attempt(a: float) -> Step | None:
        if not _function(path, a)[0] < path.point.value:
            return None
        new = path.along(a)
        return Step(new, Length(a)) if new.value < path.point.value else None

    return shortened(attempt, a, shortest) or Step(path.point, memory, Stalled(promised))


def _newton(path: Path, guess: float) -> float | None:
    """A step that lowers F and leaves little of its slope, by Newton's method kept inside a bracket."""
    first, _, bend = _function(path, 0.0)
    low, high, behind = 0.0, np.inf, (0.0, path.slope)
    lowest, best = first, None
    a = -path.slope / bend if bend is not None and bend > 0 else guess
    for _ in range(TRIALS):
        value, slope, bend = _function(path, a)
        lowers = bool(np.isfinite(value)) and value <= first + DECREASE * a * path.slope
        if lowers and value < lowest:
            lowest, best = value, a
        if lowers and abs(slope) <= FLAT * abs(path.slope):
            break
        low, high = (a, high) if lowers and slope < 0 else (low, a)
        if high - low <= 1e-3 * low:
            break
        if bend is None and a != behind[0]:
            bend = (slope - behind[1]) / (a - behind[0])  # the secant's
        behind = a, slope
        a = _inside(a - slope / bend if bend is not None and bend > 0 else np.nan, low, high)
    return best


def _function(path: Path, a: float) -> tuple[float, float, float | None]:
    """F, F′ and, where it is known, F″ at a."""
    value, slope, bend = path.line.at(a)
    c = path.polynomial.tolist()  # Python's numbers: NumPy's would change the precision of arrays
    value += c[0] + a * (c[1] + a * (c[2] + a * (c[3] + a * c[4])))
    slope += c[1] + a * (2 * c[2] + a * (3 * c[3] + a * 4 * c[4]))
    return value, slope, None if bend is None else bend + 2 * c[2] + a * (6 * c[3] + a * 12 * c[4])


def _inside(a: float, low: float, high: float) -> float:
    """The proposal where it is well inside the bracket, else the middle; while that is open, up to ten times `low`."""
    if high == np.inf:
        return min(a, 10 * low) if a > 1.01 * low else 4 * low
    margin = 0.05 * (high - low)
    return a if low + margin <= a <= high - margin else (low + high) / 2
