"""The distribution of the curvature of a function over the rows and columns of X."""

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from bifactor.arrays import HERE, Array, beside, dtype_of
from bifactor.blocks import Shared, filled
from bifactor.kernels.blas import gram


class Shares:
    """Sums of the curvature over each row and over each column, in the library of `like`."""

    def __init__(self, marginals: tuple[Array, Array], like: Array):
        self._last: list[tuple[Callable[[], Any], Array]] = [(_nobody, HERE)] * 2
        self._sums = [beside(sums, like) for sums in marginals]
        self._totals = [float(sums.sum()) for sums in marginals]
        # Rows without curvature count as average rows.
        self._filled = [
            own if np.all(sums > 0) else beside(filled(sums), like)
            for own, sums in zip(self._sums, marginals, strict=True)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_last": [(_nobody, HERE)] * 2}  # weak references cannot be pickled

    def centre(self, factor: Array, side: int) -> Array:
        """The mean of the rows of a factor, weighted by their shares of the curvature."""
        ones = beside(np.ones((factor.shape[0], 1), dtype_of(factor)), factor)
        return beside(gram(ones, factor, self._sums[side])[0] / self._totals[side], factor)

    def blocks(self, other: Array, side: int, alone: bool) -> Shared:
        """For each row its curvature, times the mean of vⱼᴴvⱼ over the observed rows of the `other` factor."""
        mean = self._mean(other, 1 - side)
        if alone:
            return Shared(((self._filled[side], mean),))
        # Next to other functions the mean becomes a sum, as theirs are, so that damping is the same for all.
        return Shared(((self._sums[side] / other.shape[0], other.shape[0] * mean),))

    def _mean(self, factor: Array, side: int) -> Array:
        """The mean of vⱼᴴvⱼ over observations, which may be needed twice in succession."""
        of, known = self._last[side]
        if of() is not factor:
            known = gram(factor, factor, self._sums[side]) / self._totals[side]
            self._last[side] = ref(factor), known
        return known


def _nobody() -> None:
    return None
