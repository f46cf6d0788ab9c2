"""The compiled forms of `elementary`: no branches, no calls, one series for each precision.

eˣ = 2ⁿ·eʳ with n the integer nearest to x/log 2, so |r| ≤ ½ log 2, by the series of eʳ. Adding `MAGIC` rounds x/log 2
and leaves n in the last bits of the sum, which shifted to the place of the exponent give 2ⁿ. log(1 + x) = 2 artanh(s)
with s = x/(2 + x) ≤ ⅓, by polynomials in s² that were fitted at Chebyshev points. Errors are a few units in the last
place.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from bifactor.kernels import elementary

# Reassociation would remove the rounding by MAGIC and the correction of rounding errors.
EXACT = {"fastmath": {"contract"}, "forceinline": True}

F = np.float32
LOG2_E = 1.4426950408889634
HIGH64, LOW64 = 6.93145751953125e-1, 1.42860682030941723212e-6
HIGH32, LOW32 = F(0.693359375), F(-2.12194440e-4)
"""log 2 in two parts; the first has few digits."""
MAGIC64, MAGIC32 = 6755399441055744.0, F(12582912.0)


def _bits(source: Any, target: Any, cell: Any) -> Any:
    @intrinsic
    def reinterpreted(typing_context, x):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.bitcast(arguments[0], cell)

        return target(source), generate

    return reinterpreted


_as_int32, _as_float32 = (
    _bits(types.float32, types.int32, ir.IntType(32)),
    _bits(types.int32, types.float32, ir.FloatType()),
)
_as_int64, _as_float64 = (
    _bits(types.float64, types.int64, ir.IntType(64)),
    _bits(types.int64, types.float64, ir.DoubleType()),
)


@overload(elementary.exp, jit_options=EXACT)
def _exp(x):  # type: ignore[no-untyped-def]
    return _exp32 if x == types.float32 else _exp64


def _exp32(x):  # type: ignore[no-untyped-def]
    near = min(max(x, F(-87.0)), F(88.0))
    place = near * F(LOG2_E) + MAGIC32
    n = place - MAGIC32
    r = (near - n * HIGH32) - n * LOW32
    p = F(1 / 720) + r * F(1 / 5040)
    p = F(1 / 24) + r * (F(1 / 120) + r * p)
    p = F(1.0) + r * (F(1.0) + r * (F(0.5) + r * (F(1 / 6) + r * p)))
    power = _as_float32((_as_int32(place) + np.int32(127)) << np.int32(23))
    return p * power if x == x else x  # NaN stays


def _exp64(x):  # type: ignore[no-untyped-def]
    near = min(max(x, -708.0), 709.0)
    place = near * LOG2_E + MAGIC64
    n = place - MAGIC64
    r = (near - n * HIGH64) - n * LOW64
    p = 1 / 479001600 + r * (1 / 6227020800)
    p = 1 / 362880 + r * (1 / 3628800 + r * (1 / 39916800 + r * p))
    p = 1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * p))
    p = 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * p)))))
    power = _as_float64((_as_int64(place) + np.int64(1023)) << np.int64(52))
    return p * power if x == x else x


@overload(elementary.log1p, jit_options=EXACT)
def _log1p(x):  # type: ignore[no-untyped-def]
    return _log32 if x == types.float32 else _log64


def _log32(x):  # type: ignore[no-untyped-def]
    s = x / (F(2.0) + x)
    q = s * s
    p = F(0.20012426861728033) + q * (F(0.13980709417449527) + q * F(0.14087328631481713))
    return F(2.0) * s * (F(1.0) + q * (F(0.33333157967540755) + q * p))


def _log64(x):  # type: ignore[no-untyped-def]
    s = x / (2.0 + x)
    q = s * s
    p = 0.062269100259349 + q * (0.03374469231055897 + q * 0.10046492984946408)
    p = 0.09090806061013204 + q * (0.07694777512604312 + q * (0.06629625074211962 + q * p))
    p = 0.2000000000033801 + q * (0.14285714245885556 + q * (0.11111113749000993 + q * p))
    return 2.0 * s * (1.0 + q * (0.3333333333333173 + q * p))


@overload(elementary.like)
def _like(x, number):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x, number: F(number)
    return lambda x, number: np.float64(number)
