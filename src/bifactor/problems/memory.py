"""The memory that a run on a problem needs, estimated from sizes alone.

The numbers were found by counting arrays and checked against the peaks of runs; see docs/performance.md.
"""

from collections.abc import Iterable

import numpy as np

from bifactor.arrays.linalg import VALUES_PER_COPY
from bifactor.kernels.memory import REUSED_BYTES
from bifactor.problems.objective import Objective
from bifactor.svd import search_columns


def pair_memory(problem: Objective, rank: int) -> int:
    """Bytes of a pair of factors, fixed columns included."""
    return sum(_sides(problem, rank))


def run_memory(problem: Objective, rank: int, pairs: float, lengths: float) -> int:
    """Bytes of a run that holds this many pairs of factors and this many vectors of measurements at a time.

    The last evaluation of f counts: if a loss is not compiled, it takes two more vectors of measurements.
    """
    seen, sides = problem.f.footprint(rank + problem.kind.fixed_columns), _sides(problem, rank)
    # Inner products are taken in double precision, of some rows of one side at a time.
    single = np.finfo(problem.dtype).dtype.itemsize < 8
    doubled = 2 * min(2 * max(sides), 8 * VALUES_PER_COPY) if single else 0
    return round(pairs * sum(sides) + lengths * seen.z + seen.work + doubled)


def search_memory(problem: Objective, count: int, sketch: bool = False) -> int:
    """Bytes of a search for this many leading singular pairs of a gradient, or of a sketch, including the gradient."""
    short, long = sorted(problem.shape)
    block, on_short, on_long = search_columns(short, count, sketch)
    seen = problem.f.footprint(block)
    return (on_short * short + on_long * long) * _item(problem) + 3 * seen.z + seen.work


def stages_memory(problem: Objective, ranks: Iterable[int], pairs: float = 3.5) -> int:
    """Bytes of memory for reuse that runs at these ranks leave behind, each this many pairs of factors.

    See `kernels.memory`. Runs at another rank cannot reuse it, and it is not freed.
    """
    sides = (side for rank in ranks for side in _sides(problem, rank))
    return round(pairs * sum(side for side in sides if side >= REUSED_BYTES))


def _sides(problem: Objective, rank: int) -> list[int]:
    """Bytes of each factor; of one if X = UUᴴ."""
    width = rank + problem.kind.fixed_columns
    none = problem.kind.pair(*(np.empty((rows, 0)) for rows in problem.shape))
    return [int(side.shape[0]) * width * _item(problem) for side in none.arrays]


def _item(problem: Objective) -> int:
    return int(np.dtype(problem.dtype).itemsize)
