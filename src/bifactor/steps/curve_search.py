"""The best step along the curve of factors."""

from dataclasses import dataclass, replace

import numpy as np

from bifactor.arrays import epsilon
from bifactor.problems.objective import Objective
from bifactor.problems.path import Path
from bifactor.problems.state import Point, Stalled, Value
from bifactor.steps.base import Step, StepSize, reciprocal, shortened
from bifactor.steps.quartic import minimiser

DECREASE = 1e-4
"""Armijo's constant: the fraction of what the slope promises that a step must keep."""

FLAT, ABOUT_FLAT = 0.1, 0.3
"""A trial is good enough where the slope has fallen to this fraction of the first; the latter where trials are dear."""

TRIALS = 30

ABOUT = 0.1
"""How far the usual step may be from the best one, of which it then loses a hundredth of the decrease."""


@dataclass(frozen=True)
class Searched(Value):
    """The step taken, and what the best one usually is: where the next search may look first."""

    eta: float = 1.0
    usual: float = 1.0

    def after(self, eta: float, best: float) -> "Searched":
        """The memory after another step; the usual one follows the best ones at half their pace, unless they jump."""
        usual = (best + self.usual) / 2 if 0.5 * self.usual < best < 2 * self.usual else best
        return Searched(eta, usual)


@dataclass(frozen=True)
class CurveSearch(StepSize[Searched]):
    """η = argmin over a > 0 of F(U + aD, V + aE), with F the very function being minimised.

    Measurements move as z + a·z₁ + a²·z₂, so a trial costs O(p), whatever the operator costs. For the squared loss and
    terms that are polynomials F is a quartic in a, and its best minimum is taken. Otherwise it is a safeguarded Newton
    iteration in a, with F, F′ and F″ from one pass each, and secants where F″ is not known; it accepts no step that
    does not lower F. Needs no L, so it serves every loss. Where rounding hides all decrease the step is `Stalled`.

    An operator without a quick way to z₁ and z₂ pays two forwards for them. There, for the squared loss, the usual step
    is tried first: one forward tells F there, and with F and F′ here about where it is least. Where that is within a
    tenth, the usual step is taken: it keeps 99 % of the decrease, and its measurements are exact.
    """

    lengths = 7.0

    def init(self, problem: Objective, point: Point, L_g: float) -> Searched:
        # Only where the second derivative is unknown does a search begin from a guess.
        guess = reciprocal(max(problem.scale, L_g) * point.x.spectral_norm_squared())
        return Searched(guess, guess)

    def next(self, path: Path, memory: Searched) -> Step:
        if not path.slope < 0:
            return Step(path.point, memory, Stalled(0.0))
        path = replace(path, near=memory.usual)
        usual = _usual(path, memory)
        if usual is not None:
            return usual
        for tried in (path, replace(path, near=None)):
            a = _best(tried, memory.eta)
            shortest, longest = tried.curve.reach
            if a is not None and shortest <= a <= longest:
                new = tried.along(a)
                if new.value < path.point.value:
                    return Step(new, memory.after(a, a))
            if longest == np.inf:
                break
        return _halved(tried, memory, memory.eta if a is None else a)


def _usual(path: Path, memory: Searched) -> Step | None:
    """The step of the usual length, where it is known to be about the best."""
    if not path.problem.f.quadratic or path.others or path.ahead is None or path.longest < path.ahead[0]:
        return None
    a, z = path.ahead
    f, slopes = path.problem.f.slopes(z)
    value, first = f + float(np.polyval(path.polynomial[::-1], a)), path.point.value
    bend = 2 * (value - first - a * path.slope) / (a * a)
    best = -path.slope / bend if bend > 0 else np.inf
    if not (value < first and abs(best - a) <= ABOUT * a):
        return None
    new = path.problem.known(path.factors(a), f, slopes, z)
    return Step(new, memory.after(a, best)) if new.value < first else None


def _best(path: Path, guess: float) -> float | None:
    quartic = None if path.others else path.curve.quartic
    a = minimiser((quartic + path.polynomial).tolist()) if quartic is not None else _newton(path, guess)
    return None if a is None else min(a, path.longest)


def _halved(path: Path, memory: Searched, a: float) -> Step:
    """The first decrease on the way back to 0, for where rounding has spoilt the search."""
    x, bend = path.point.x, _function(path, 0.0)[2] if path.curve.bends else None
    # A guess may be far too long, and with it what it promises.
    best = -path.slope / bend if bend is not None and bend > 0 else np.inf
    # At the edge of a domain the step that is looked for is not one that can be taken.
    promised = -path.slope * min(max(a, memory.eta) if path.longest <= a else a, best)
    shortest = epsilon(x.left) * x.norm() / max(path.d.norm(), 1e-300)

    def attempt(a: float) -> Step | None:
        if not _function(path, a)[0] < path.point.value:
            return None
        new = path.along(a)
        return Step(new, memory.after(a, a)) if new.value < path.point.value else None

    return shortened(attempt, min(a, path.longest), shortest) or Step(
        path.point, memory, Stalled(promised, abs(path.point.value))
    )


def _newton(path: Path, guess: float) -> float | None:
    """A step that lowers F and leaves little of its slope, by Newton's method kept inside a bracket."""
    first, _, bend = _function(path, 0.0) if path.curve.bends else (path.point.value, path.slope, None)
    low, high, behind = 0.0, np.inf, (0.0, path.slope)
    lowest, best, flat = first, None, FLAT if path.curve.bends else ABOUT_FLAT
    a = -path.slope / bend if bend is not None and bend > 0 else guess
    for _ in range(TRIALS):
        value, slope, bend = _function(path, a)
        lowers = bool(np.isfinite(value)) and value <= first + DECREASE * a * path.slope
        if lowers and value < lowest:
            lowest, best = value, a
        if lowers and abs(slope) <= flat * abs(path.slope):
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
    value, slope, bend = path.curve.at(a)
    c = path.polynomial.tolist()  # Python's numbers: NumPy's would change the precision of arrays
    value += c[0] + a * (c[1] + a * (c[2] + a * (c[3] + a * c[4])))
    slope += c[1] + a * (2 * c[2] + a * (3 * c[3] + a * 4 * c[4]))
    for term in path.others:
        h, gradient = term.evaluate(path.factors(a))
        value, slope, bend = value + h, slope + gradient.inner(path.d), None
    return value, slope, None if bend is None else bend + 2 * c[2] + a * (6 * c[3] + a * 12 * c[4])


def _inside(a: float, low: float, high: float) -> float:
    """The proposal where it is well inside the bracket, else the middle; while that is open, up to ten times `low`."""
    if high == np.inf:
        return min(a, 10 * low) if a > 1.01 * low else 4 * low
    margin = 0.05 * (high - low)
    return a if low + margin <= a <= high - margin else (low + high) / 2
