"""How the curvature of a function is shared out among the rows and columns of X."""

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from bifactor.arrays import HERE, Array, beside, cast, dtype_of, is_numpy
from bifactor.blocks import Shared, filled
from bifactor.kernels.blas import gram
from bifactor.kernels.memory import empty


class Shares:
    """Sums of curvature over each row and over each column; in the library of `like`."""

    def __init__(self, marginals: tuple[Array, Array], like: Array):
        self._last: list[tuple[Callable[[], Any], Array]] = [(lambda: None, HERE)] * 2
        self._filled = [beside(filled(sums), like) for sums in marginals]  # a row of none counts as the mean one
        self._means = [beside(sums / len(other), like) for sums, other in zip(marginals, marginals[::-1], strict=True)]
        self._shares = [beside(sums[:, None] / sums.sum(), like) for sums in marginals]

    def weighted(self, factor: Array, side: int) -> Array:
        """The rows of a factor, each times its share in the curvature."""
        share = cast(self._shares[side], np.finfo(dtype_of(factor)).dtype)
        if is_numpy(factor):
            return np.multiply(share, factor, out=empty(factor.shape, factor.dtype))
        return share * factor

    def blocks(self, other: Array, side: int, alone: bool) -> Shared:
        """Of each row the curvature there, times the mean of vⱼᴴvⱼ over what is observed of the `other` factor."""
        mean = self._mean(other, 1 - side)
        if alone:
            return Shared(((self._filled[side], mean),))
        # Beside others the mean is made a sum, as theirs are, so that damping is the same for all.
        return Shared(((self._means[side], other.shape[0] * mean),))

    def _mean(self, factor: Array, side: int) -> Array:
        """Σⱼ shareⱼ·vⱼᴴvⱼ, which may be asked for twice in a row."""
        of, known = self._last[side]
        if of() is not factor:
            known = gram(factor, self.weighted(factor, side))
            self._last[side] = ref(factor), known
        return known
