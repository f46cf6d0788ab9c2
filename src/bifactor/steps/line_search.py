"""Step rules that search: backtracking, and the search along the curve of factors."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bifactor.arrays import epsilon
from bifactor.errors import InputError
from bifactor.factors import inners
from bifactor.problems.curve import FactorCurve
from bifactor.problems.objective import Objective
from bifactor.problems.state import Point, Stalled, Value
from bifactor.steps.base import Step, StepSize, backtrack, reciprocal
from bifactor.steps.quartic import minimiser
from bifactor.validation import settle_positive


@dataclass(frozen=True)
class Tried(Value, key="backtracking"):
    """The step that the last search accepted; before the first search, a guess."""

    eta: float
    guessed: bool = False


@dataclass(frozen=True)
class Backtracking(StepSize[Tried]):
    """Armijo's rule: halve η until F(W + ηD) ≤ F(W) − c·η·|⟨∇F, D⟩|, where F is the function being minimised.

    It needs no L, so it works for every loss. Each search starts slightly above the step that the last one accepted.
    The first starts at 1/(scale·‖[U₀; V₀]‖₂²) and, because that may be far off, also increases it by factors of four
    for as long as the objective decreases. If rounding hides any decrease, the step is `Stalled`.

    Parameters
    ----------
    decrease : float in (0, 1)
        The constant c. For a quadratic, the default of a half requires η to be at most the inverse of its curvature.
    shrink, grow : float
        The factor of a rejected step, and the factor of an accepted one before the next search.
    """

    decrease: float = 0.5
    shrink: float = 0.5
    grow: float = 1.1

    def __post_init__(self) -> None:
        for name in ("decrease", "shrink", "grow"):
            settle_positive(self, name, "Choose 0 < decrease < 1, 0 < shrink < 1 and grow ≥ 1.")
        if not (self.decrease < 1 and self.shrink < 1 and self.grow >= 1):
            raise InputError(f"{self} is not possible. Choose 0 < decrease < 1, 0 < shrink < 1 and grow ≥ 1.")

    def init(self, problem: Objective, point: Point, L_g: float) -> Tried:
        return Tried(reciprocal(max(problem.scale, L_g) * point.x.spectral_norm_squared()), guessed=True)

    def next(self, path: FactorCurve, memory: Tried) -> Step:
        x, d, eps = path.point.x, path.d, epsilon(path.point.x.left)
        slope, size, length = inners((path.point.gradient, d), (x, x), (d, d))
        eta = self.grow * memory.eta
        if memory.guessed:
            # If the decrease of a guess is lost in rounding, begin with a visible one, unless that is far off.
            visible = 1e4 * eps * abs(path.point.value) / max(-slope, 1e-300)
            eta = visible if eta < visible < 1e6 * eta else eta
        eta = min(eta, path.longest)
        attempt = partial(self._attempt, path, slope)
        taken = backtrack(attempt, eta, eps * (size / max(length, 1e-300)) ** 0.5, self.shrink)
        if taken is None:
            return Step(path.point, memory, Stalled(-memory.eta * slope, abs(path.point.value)))
        while memory.guessed:
            further = attempt(4 * taken.memory.eta) if 4 * taken.memory.eta <= path.longest else None
            if further is None or not further.point.value < taken.point.value:
                break
            taken = further
        return taken

    def _attempt(self, path: FactorCurve, slope: float, eta: float) -> Step | None:
        """The step, if it lowers F by enough."""
        trial, first = path.to(eta), path.point.value
        enough = trial.value < first and trial.value <= first + self.decrease * eta * slope
        return Step(trial, Tried(eta)) if enough else None


# Step sizes by a search along the curve of factors.

DECREASE = 1e-4
"""Armijo's constant: the fraction of the decrease predicted by the slope that a step must achieve."""

FLAT, ABOUT_FLAT = 0.1, 0.3
"""The fraction of the first slope at which a trial is accepted; the latter if trials are expensive."""

TRIALS = 30

ABOUT = 0.1
"""The relative distance of the usual step to the best one up to which it is taken; it loses 1 % of the decrease."""


@dataclass(frozen=True)
class Searched(Value, key="curve_search"):
    """The last step, and the usual best step, which the next search may try first."""

    eta: float = 1.0
    usual: float = 1.0

    def after(self, eta: float, best: float) -> "Searched":
        """The memory after another step; the usual step moves halfway to the best one, unless that jumps."""
        usual = (best + self.usual) / 2 if 0.5 * self.usual < best < 2 * self.usual else best
        return Searched(eta, usual)


@dataclass(frozen=True)
class CurveSearch(StepSize[Searched]):
    """η = argmin over a > 0 of F(U + aD, V + aE), where F is the function being minimised.

    Measurements move as z + a·z₁ + a²·z₂, so a trial costs O(p) for any operator. For the squared loss and polynomial
    terms F is a quartic in a, and its best minimum is taken. Otherwise a safeguarded Newton iteration in a is used,
    with F, F′ and F″ from one pass each, and secants if F″ is not known; it only accepts steps that lower F. It needs
    no L, so it works for every loss. If rounding hides any decrease, the step is `Stalled`.

    For an operator without quick curves, z₁ and z₂ cost two forwards. For these and the squared loss, the usual step is
    tried first: one forward gives F there, and with F and F′ at the start an estimate of the best step. If the usual
    step is within a tenth of it, it is taken: it keeps 99 % of the decrease, and its measurements are exact.
    """

    lengths = 7.0

    def init(self, problem: Objective, point: Point, L_g: float) -> Searched:
        # A search begins from a guess only if the second derivative is unknown.
        guess = reciprocal(max(problem.scale, L_g) * point.x.spectral_norm_squared())
        return Searched(guess, guess)

    def next(self, path: FactorCurve, memory: Searched) -> Step:
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


def _usual(path: FactorCurve, memory: Searched) -> Step | None:
    """The step of the usual length, if it is known to be about the best."""
    bound = path.problem.f
    if not (bound.quadratic and bound.explicit) or path.others or path.ahead is None or path.longest < path.ahead[0]:
        return None
    a, z = path.ahead
    f, slopes = bound.slopes(z)
    value, first = f + float(np.polyval(path.polynomial[::-1], a)), path.point.value
    bend = 2 * (value - first - a * path.slope) / (a * a)
    best = -path.slope / bend if bend > 0 else np.inf
    if not (value < first and abs(best - a) <= ABOUT * a):
        return None
    new = path.problem.known(path.factors(a), f, slopes, z)
    return Step(new, memory.after(a, best)) if new.value < first else None


def _best(path: FactorCurve, guess: float) -> float | None:
    quartic = path.curve.quartic  # first: a pass over blocks also brings what the terms need
    a = _newton(path, guess) if quartic is None or path.others else minimiser((quartic + path.polynomial).tolist())
    return None if a is None else min(a, path.longest)


def _halved(path: FactorCurve, memory: Searched, a: float) -> Step:
    """The first step towards 0 that decreases F, if rounding has spoilt the search."""
    x, bend = path.point.x, _function(path, 0.0)[2] if path.curve.bends else None
    # A guess, and with it the predicted decrease, may be far too large.
    best = -path.slope / bend if bend is not None and bend > 0 else np.inf
    # At the boundary of a domain the best step cannot be taken.
    promised = -path.slope * min(max(a, memory.eta) if path.longest <= a else a, best)
    shortest = epsilon(x.left) * x.norm() / max(path.d.norm(), 1e-300)

    def attempt(a: float) -> Step | None:
        if not _function(path, a)[0] < path.point.value:
            return None
        new = path.along(a)
        return Step(new, memory.after(a, a)) if new.value < path.point.value else None

    return backtrack(attempt, min(a, path.longest), shortest) or Step(
        path.point, memory, Stalled(promised, abs(path.point.value))
    )


def _newton(path: FactorCurve, guess: float) -> float | None:
    """A step that lowers F and reduces its slope, by Newton's method within a bracket."""
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
            bend = (slope - behind[1]) / (a - behind[0])  # of the secant
        behind = a, slope
        a = _inside(a - slope / bend if bend is not None and bend > 0 else np.nan, low, high)
    return best


def _function(path: FactorCurve, a: float) -> tuple[float, float, float | None]:
    """F, F′ and, if it is known, F″ at a."""
    value, slope, bend = path.curve.at(a)
    c = path.polynomial.tolist()  # Python numbers: NumPy scalars would change the precision of arrays
    value += c[0] + a * (c[1] + a * (c[2] + a * (c[3] + a * c[4])))
    slope += c[1] + a * (2 * c[2] + a * (3 * c[3] + a * 4 * c[4]))
    for term in path.others:
        h, gradient = term.evaluate(path.factors(a))
        value, slope, bend = value + h, slope + gradient.inner(path.d), None
    return value, slope, None if bend is None else bend + 2 * c[2] + a * (6 * c[3] + a * 12 * c[4])


def _inside(a: float, low: float, high: float) -> float:
    """The proposal if it is well inside the bracket, otherwise the middle; without `high`, at most ten times `low`."""
    if high == np.inf:
        return min(a, 10 * low) if a > 1.01 * low else 4 * low
    margin = 0.05 * (high - low)
    return a if low + margin <= a <= high - margin else (low + high) / 2
