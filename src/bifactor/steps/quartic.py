"""The minimiser of a quartic on the positive half-line.

It uses plain Python numbers: with `numpy.roots` it took fifteen times as long.
"""

import math
from collections.abc import Iterator, Sequence

ROUNDING = 1e-15
"""The rounding error per unit of the terms: of two equal minima, the nearer one then wins."""

ALIKE = 1e-10
"""The smallest ratio of scaled coefficients at which one unit of length is enough."""

SMALL = 1e-6
"""A leading coefficient this small relative to the largest may spoil a formula; it is also tried without it."""

POLISHED = 6
"""The largest number of Newton steps from each root of a formula; each doubles the digits."""

ZERO = 1e-9
"""The largest derivative at a root, as a share of its terms: a pair of roots may be nearly real."""


def minimiser(c: Sequence[float]) -> float | None:
    """argmin over a > 0 of Σₖ cₖ aᵏ for c₁ < 0; None if it is unbounded below, or rounding leaves no minimum.

    All real roots of the derivative are examined, and the best positive one is taken. The variable is scaled to lengths
    at which two terms of the derivative are equal; each root lies near one of these, so coefficients may span any
    range.
    """
    slope = [k * float(c[k]) for k in range(1, 5)]
    if not (all(map(math.isfinite, slope)) and slope[0] < 0 and any(slope[1:])):
        return None
    best, least = None, 0.0
    for unit in _units(slope):
        scaled = [s * unit**k for k, s in enumerate(slope)]
        top = max(map(abs, scaled))
        if not 0 < top < math.inf:
            continue
        for a in _roots([s / top for s in scaled]):
            rise = _rise(slope, a * unit)
            if rise < least:
                best, least = a * unit, rise
    return best


def _rise(slope: list[float], a: float) -> float:
    """An upper bound of φ(a) − φ(0)."""
    terms = [s * a ** (k + 1) / (k + 1) for k, s in enumerate(slope)] if a < 1e70 else [math.inf]
    return sum(terms) + ROUNDING * sum(map(abs, terms))


def _units(slope: list[float]) -> list[float]:
    logs = {k: math.log(abs(s)) for k, s in enumerate(slope) if s != 0}
    first = _exp(min((logs[0] - logs[k]) / k for k in logs if k))  # where the derivative departs from c₁
    scaled = [abs(s) * first**k for k, s in enumerate(slope) if s != 0] if 0 < first < 1e100 else [0.0, 1.0]
    if min(scaled) >= ALIKE * max(scaled):
        return [first]
    pairs = [(i, j) for i in logs for j in logs if i < j]
    return [unit for i, j in pairs if 0 < (unit := _exp((logs[i] - logs[j]) / (j - i))) < 1e100]


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _roots(slope: list[float]) -> Iterator[float]:
    """Positive real roots of the derivative, whose coefficients are not too far from 1."""
    for degree in (3, 2, 1):
        formula = (_linear, _quadratic, _cubic)[degree - 1]
        for root in formula(slope[: degree + 1]):
            polished = _polished(slope, root)
            if 0 < polished < math.inf and _is_root(slope, polished):
                yield polished
        if abs(slope[degree]) > SMALL:
            break


def _linear(c: list[float]) -> list[float]:
    return [-c[0] / c[1]] if c[1] != 0 else []


def _quadratic(c: list[float]) -> list[float]:
    if c[2] == 0:
        return []
    half = c[1] / 2
    q = -(half + math.copysign(math.sqrt(max(half * half - c[0] * c[2], 0.0)), half))
    return [q / c[2], c[0] / q] if q != 0 else [0.0]


def _cubic(c: list[float]) -> list[float]:
    """Real roots by the formulas of Viète and Cardano; a nearly real pair of complex roots counts as real."""
    if abs(c[3]) < 1e-60:
        return []
    b, first, last = c[2] / (3 * c[3]), c[1] / (3 * c[3]), c[0] / c[3]
    p, q = first - b * b, (b * (2 * b * b - 3 * first) + last) / 2  # t³ + 3pt + 2q = 0 for t = a + b
    square, cube = q * q, p * p * p
    if square + cube <= 1e-9 * (square + abs(cube)) and p < 0:
        angle, size = math.acos(max(-1.0, min(1.0, -q / (-p) ** 1.5))) / 3, 2 * math.sqrt(-p)
        return [size * math.cos(angle + turn) - b for turn in (0.0, 2 * math.pi / 3, -2 * math.pi / 3)]
    u = -math.copysign(math.cbrt(abs(q) + math.sqrt(max(square + cube, 0.0))), q)
    return [u - p / u - b if u != 0 else -b]


def _polished(slope: list[float], a: float) -> float:
    s0, s1, s2, s3 = slope
    for _ in range(POLISHED):
        down = s1 + a * (2 * s2 + a * 3 * s3)
        if down == 0:
            break
        step = (s0 + a * (s1 + a * (s2 + a * s3))) / down
        a -= step
        if not abs(step) > 1e-15 * abs(a):
            break
    return a


def _is_root(slope: list[float], a: float) -> bool:
    terms = [s * a**k for k, s in enumerate(slope)] if a < 1e70 else [math.inf]
    return abs(sum(terms)) <= ZERO * sum(map(abs, terms)) < math.inf
