"""Each loss at one measurement: `(z, y, parameter) -> (value, derivative)`, for use inside compiled loops.

The array versions in `bifactor.losses` are the reference; a test compares every pair. Here only `math`
may be used, and every branch must stay finite at |z| = 10⁴.
"""

import math

from numba.extending import register_jitable

MILLS_FROM = -8.0
MILLS_TERMS = 60
"""Below MILLS_FROM the continued fraction reaches double precision with this many terms."""


@register_jitable
def squared(z, y, parameter):  # type: ignore[no-untyped-def]
    d = z - y
    return 0.5 * d * d, d


@register_jitable
def huber(z, y, delta):  # type: ignore[no-untyped-def]
    d = z - y
    if abs(d) <= delta:
        return 0.5 * d * d, d
    return delta * (abs(d) - 0.5 * delta), math.copysign(delta, d)


@register_jitable
def logistic(z, y, parameter):  # type: ignore[no-untyped-def]
    t = -y * z
    e = math.exp(-abs(t))
    slope = 1.0 / (1.0 + e) if t >= 0.0 else e / (1.0 + e)
    return max(t, 0.0) + math.log1p(e), -y * slope


@register_jitable
def probit(z, y, sigma):  # type: ignore[no-untyped-def]
    u = y * z / sigma
    if u < MILLS_FROM:
        # Φ(u) = φ(u)·R(−u), R the Mills ratio, by its continued fraction x + 1/(x + 2/(x + …)).
        x = -u
        fraction = x
        for k in range(MILLS_TERMS, 0, -1):
            fraction = x + k / fraction
        return 0.5 * u * u + 0.9189385332046727 + math.log(fraction), -y * fraction / sigma
    if u > 0.0:
        tail = 0.5 * math.erfc(u * 0.7071067811865476)
        hazard = 0.3989422804014327 * math.exp(-0.5 * u * u) / (1.0 - tail)
        return -math.log1p(-tail), -y * hazard / sigma
    cdf = 0.5 * math.erfc(-u * 0.7071067811865476)
    return -math.log(cdf), -y * 0.3989422804014327 * math.exp(-0.5 * u * u) / (cdf * sigma)


@register_jitable
def poisson(z, y, cap):  # type: ignore[no-untyped-def]
    if z <= cap:
        e = math.exp(z)
        return e - y * z, e - y
    e, t = math.exp(cap), z - cap
    return e * (1.0 + t + 0.5 * t * t) - y * z, e * (1.0 + t) - y


@register_jitable
def expected_counts(z, y, floor):  # type: ignore[no-untyped-def]
    near = max(z, floor)
    t = (z - near) / near
    below = min(z, 0.0)
    value = z - y * (math.log(near) + t * (1.0 - 0.5 * t)) + 0.5 * below * below / floor
    return value, 1.0 - y * (1.0 - t) / near + below / floor
