"""A loss and its slope at many measurements, in one pass on all cores."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, own, version
from bifactor.kernels.pool import run, shares


@cache
def _evaluate(pointwise: Callable[..., Any]) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def loss_pass(first, last, z, y, weights, parameter, slope):  # type: ignore[no-untyped-def]
        value = 0.0 * stamp
        for t in range(first, last):
            v, d = pointwise(z[t], y[t], parameter)
            if weights.size:
                v *= weights[t]
                d *= weights[t]
            value += v
            slope[t] = d
        return value

    # See `entries_numba._fused`.
    return compiled(loss_pass, cache=own(pointwise))


def evaluate(
    pointwise: Callable[..., Any], parameter: float, z: Array, y: Array, weights: Array
) -> tuple[float, Array]:
    """Σ w·ℓ(z; y) and w·ℓ′(z; y)."""
    z = np.ascontiguousarray(z)
    slope = np.empty_like(z)
    settings = (z, y, weights, z.dtype.type(parameter), slope)
    return float(sum(run(_evaluate(pointwise), [(*cut, *settings) for cut in shares(z.size)]))), slope


@cache
def _replace(pointwise: Callable[..., Any]) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def replace_pass(first, last, start, stop, kept, factor, y, weights, parameter, v):  # type: ignore[no-untyped-def]
        value = 0.0 * stamp
        position = start
        for t in range(first, last):
            k = kept[t]
            for gap in range(position, k):
                v[gap] = 0
            position = k + 1
            f, d = pointwise(factor[t] * v[k], y[t], parameter)
            if weights.size:
                f *= weights[t]
                d *= weights[t]
            value += f
            v[k] = factor[t] * d
        for gap in range(position, stop):
            v[gap] = 0
        return value

    return compiled(replace_pass, cache=own(pointwise))


def replace_by_slopes(
    pointwise: Callable[..., Any], parameter: float, kept: Array, factor: Array, y: Array, weights: Array, v: Array
) -> float:
    """Σ w·ℓ(z; y) with z = factor·v[kept], `kept` ascending; v becomes factor·w·ℓ′ there and 0 elsewhere.

    One walk through v for what are otherwise four: take the measurements, evaluate, clear, and put the slopes back.
    """
    settings = (kept, factor, y, weights, v.dtype.type(parameter), v)
    cuts = shares(v.size)
    calls = [(*np.searchsorted(kept, cut), *cut, *settings) for cut in cuts]
    return float(sum(run(_replace(pointwise), calls)))
