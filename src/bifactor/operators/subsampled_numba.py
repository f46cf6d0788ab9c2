"""A loss and its slopes at some coefficients of a transform, in one pass on all cores.

There is no reference: without this kernel the operator composes it from coefficients, losses and slopes.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.compile import compiled, loop_arguments, own, version
from bifactor.kernels.losses_numba import BLOCK, run_shared
from bifactor.kernels.losses_reference import LossFunctions


@cache
def _slopes(pointwise: Callable[..., Any]) -> Any:
    stamp = version(pointwise) if own(pointwise) else 0

    def slopes_pass(kept, factor, y, weights, slope, parameter, v):  # type: ignore[no-untyped-def]
        total, values = 0.0 * stamp, np.empty(BLOCK)
        for start in range(0, kept.size, BLOCK):
            block = slice(start, start + BLOCK)
            places, factors, ys, ws, ds = kept[block], factor[block], y[block], weights[block], slope[block]
            for t in range(places.size):
                f, d, _ = pointwise(factors[t] * v[places[t]], ys[t], parameter)
                if ws.size:
                    f *= ws[t]
                    d *= ws[t]
                values[t] = f
                ds[t] = d
            for t in range(places.size):
                total += values[t]
        return total

    return compiled(slopes_pass, cache=own(pointwise))


def sampled_slopes(
    loss: LossFunctions,
    kept: Array,
    factor: Array,
    y: Array,
    weights: Array,
    v: Array,
    slope: Array,
) -> float:
    """Σ w·ℓ(z; y) with z = factor·v[kept]; w·ℓ′ is written to `slope`. It is fast if `kept` is ascending."""
    pointwise, parameter, y, weights = loop_arguments(loss, y, weights, v.dtype)
    return float(sum(run_shared(_slopes(pointwise), (kept, factor, y, weights, slope), parameter, v)))
