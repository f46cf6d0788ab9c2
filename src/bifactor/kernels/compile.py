"""How kernels are compiled."""

from collections.abc import Callable
from typing import Any

from numba import njit

# Sums may be reordered (that is what lets a dot product use SIMD); NaN and inf keep their meaning,
# because the loop detects divergence by them.
FAST = {"reassoc", "contract", "nsz"}


def compiled(function: Callable[..., Any], cache: bool = True) -> Any:
    """Without the GIL, and kept on disk where there is a place for it."""
    try:
        return njit(function, nogil=True, cache=cache, fastmath=FAST)
    except RuntimeError:  # nowhere to keep a cache, as in a read-only container
        return njit(function, nogil=True, fastmath=FAST)
