"""Each loss at one measurement: `(z, y, parameter) -> (ℓ, ℓ′, ℓ″)`, for use inside compiled loops.

Losses refer to these functions, so they are plain Python here; `compile` registers them with numba.

The array versions in `bifactor.losses` are the reference; a test compares every pair. Only `math` may be used here,
and every branch must stay finite at |z| = 10⁴. Numbers that a loop does not use cost nothing.
Exponentials are those of `elementary`, without branches and in the precision of z, so that a loop over them uses SIMD.
"""

import math
from collections.abc import Callable
from typing import Any

from bifactor.kernels.elementary import exp, like, log1p

MILLS_FROM = -8.0
MILLS_TERMS = 60
"""Below MILLS_FROM the continued fraction reaches double precision with this many terms."""


def squared(z, y, parameter):  # type: ignore[no-untyped-def]
    d = z - y
    return 0.5 * d * d, d, 1.0


def huber(z, y, delta):  # type: ignore[no-untyped-def]
    d = z - y
    if abs(d) <= delta:
        return 0.5 * d * d, d, 1.0
    return delta * (abs(d) - 0.5 * delta), math.copysign(delta, d), 0.0


def logistic(z, y, parameter):  # type: ignore[no-untyped-def]
    one, t = like(z, 1.0), -y * z
    e = exp(-abs(t))
    p = one / (one + e)
    return max(t, like(z, 0.0)) + log1p(e), -y * p * (one if t >= 0 else e), e * p * p


def probit(z, y, sigma):  # type: ignore[no-untyped-def]
    u = y * z / sigma
    if u < MILLS_FROM:
        # Φ(u) = φ(u)/h with the hazard h = x + 1/(x + 2/(x + …)), a continued fraction. Without its first step it
        # is 1/(h + u), a sum that would cancel.
        x = -u
        inner = x
        for k in range(MILLS_TERMS, 1, -1):
            inner = x + k / inner
        hazard = x + 1.0 / inner
        value = 0.5 * u * u + 0.9189385332046727 + math.log(hazard)
        return value, -y * hazard / sigma, hazard / sigma / inner / sigma
    if u > 0.0:
        tail = 0.5 * math.erfc(u * 0.7071067811865476)
        hazard = 0.3989422804014327 * math.exp(-0.5 * u * u) / (1.0 - tail)
        return -math.log1p(-tail), -y * hazard / sigma, hazard / sigma * (hazard + u) / sigma
    cdf = 0.5 * math.erfc(-u * 0.7071067811865476)
    hazard = 0.3989422804014327 * math.exp(-0.5 * u * u) / cdf
    return -math.log(cdf), -y * hazard / sigma, hazard / sigma * (hazard + u) / sigma


def poisson(z, y, cap):  # type: ignore[no-untyped-def]
    near, one, half = min(z, like(z, cap)), like(z, 1.0), like(z, 0.5)
    e, t = exp(near), z - near
    return e * (one + t * (one + half * t)) - y * z, e * (one + t) - y, e


def negative_binomial(z, y, log_theta):  # type: ignore[no-untyped-def]
    one, t = like(z, 1.0), z - like(z, log_theta)
    e, total = exp(-abs(t)), y + exp(like(z, log_theta))  # not `math.log` of θ, which would be a call for every z
    p = one / (one + e)
    value = total * (max(t, like(z, 0.0)) + log1p(e)) - y * z
    return value, total * p * (one if t >= 0 else e) - y, total * e * p * p


def expected_counts(z, y, floor):  # type: ignore[no-untyped-def]
    near = max(z, floor)
    t = (z - near) / near
    below = min(z, 0.0)
    value = z - y * (math.log(near) + t * (1.0 - 0.5 * t)) + 0.5 * below * below / floor
    bend = y / near / near
    if z < 0.0:
        bend += 1.0 / floor
    return value, 1.0 - y * (1.0 - t) / near + below / floor, bend


def ordinal(z, y, numbers):  # type: ignore[no-untyped-def]
    """`numbers` are the number of levels, the cuts between them, thresholds with −∞ and ∞, and constants of levels."""
    count, k = int(numbers[0]), 0
    for j in range(1, count):
        k += y > numbers[j]
    below, above = numbers[count + k] - z, z - numbers[count + k + 1]
    one, zero = like(z, 1.0), like(z, 0.0)
    e, f = exp(-abs(below)), exp(-abs(above))
    p, q = one / (one + e), one / (one + f)
    value = max(below, zero) + log1p(e) + max(above, zero) + log1p(f) + numbers[2 * count + 1 + k]
    slope = q * (one if above >= 0 else f) - p * (one if below >= 0 else e)
    return value, slope, e * p * p + f * q * q


def shifted_squared(z, y, numbers):  # type: ignore[no-untyped-def]
    return squared(z + numbers[0], y, numbers[1])


def shifted_huber(z, y, numbers):  # type: ignore[no-untyped-def]
    return huber(z + numbers[0], y, numbers[1])


def shifted_logistic(z, y, numbers):  # type: ignore[no-untyped-def]
    return logistic(z + numbers[0], y, numbers[1])


def shifted_probit(z, y, numbers):  # type: ignore[no-untyped-def]
    return probit(z + numbers[0], y, numbers[1])


def shifted_poisson(z, y, numbers):  # type: ignore[no-untyped-def]
    return poisson(z + numbers[0], y, numbers[1])


def shifted_negative_binomial(z, y, numbers):  # type: ignore[no-untyped-def]
    return negative_binomial(z + numbers[0], y, numbers[1])


def shifted_expected_counts(z, y, numbers):  # type: ignore[no-untyped-def]
    return expected_counts(z + numbers[0], y, numbers[1])


def shifted_ordinal(z, y, numbers):  # type: ignore[no-untyped-def]
    return ordinal(z + numbers[0], y, numbers[1:])


# Functions of a module, not closures over a loss, which numba cannot cache on disk under a stable name.
SHIFTED: dict[Callable[..., Any], Callable[..., Any]] = {
    squared: shifted_squared,
    huber: shifted_huber,
    logistic: shifted_logistic,
    probit: shifted_probit,
    poisson: shifted_poisson,
    expected_counts: shifted_expected_counts,
    negative_binomial: shifted_negative_binomial,
    ordinal: shifted_ordinal,
}
"""Each loss at z + shift; `numbers` are the shift and the parameters of the loss."""


CODES: dict[Callable[..., Any] | None, int] = {
    squared: 0,
    huber: 1,
    logistic: 2,
    probit: 3,
    poisson: 4,
    expected_counts: 5,
    negative_binomial: 6,
    ordinal: 7,
}
"""The losses that `grouped` supports."""


def grouped(z, observation, table):  # type: ignore[no-untyped-def]
    """The loss of the group of an observation; rows of the table are code, shift and parameters."""
    g, y = observation.group, observation.y
    code, at, parameter = table[g, 0], z + table[g, 1], table[g, 2]
    if code == 0:
        return squared(at, y, parameter)
    if code == 1:
        return huber(at, y, parameter)
    if code == 2:
        return logistic(at, y, parameter)
    if code == 3:
        return probit(at, y, parameter)
    if code == 4:
        return poisson(at, y, parameter)
    if code == 5:
        return expected_counts(at, y, parameter)
    if code == 6:
        return negative_binomial(at, y, parameter)
    return ordinal(at, y, table[g, 2:])
