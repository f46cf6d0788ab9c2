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
def _slopes(pointwise: Callable[..., Any]) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def slopes_pass(first, last, kept, factor, y, weights, parameter, v, slope):  # type: ignore[no-untyped-def]
        value = 0.0 * stamp
        for t in range(first, last):
            f, d = pointwise(factor[t] * v[kept[t]], y[t], parameter)
            if weights.size:
                f *= weights[t]
                d *= weights[t]
            value += f
            slope[t] = d
        return value

    return compiled(slopes_pass, cache=own(pointwise))


def sampled_slopes(
    pointwise: Callable[..., Any],
    parameter: float,
    kept: Array,
    factor: Array,
    y: Array,
    weights: Array,
    v: Array,
    slope: Array,
) -> float:
    """Σ w·ℓ(z; y) with z = factor·v[kept]; `slope` receives w·ℓ′. Fast where `kept` ascends."""
    settings = (kept, factor, y, weights, v.dtype.type(parameter), v, slope)
    return float(sum(run(_slopes(pointwise), [(*cut, *settings) for cut in shares(kept.size)])))
