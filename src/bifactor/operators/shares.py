"""The distribution of the curvature of a function over the rows and columns of X."""

import numpy as np

from bifactor.arrays import Array, beside, cast, dtype_of, is_numpy
from bifactor.blocks import Shared, filled
from bifactor.kernels.blas import gram
from bifactor.kernels.memory import empty


class Shares:
    """Sums of the curvature over each row and over each column, in the library of `like`."""

    def __init__(self, marginals: tuple[Array, Array], like: Array):
        self._sums = [beside(sums, like) for sums in marginals]
        self._filled = [beside(filled(sums), like) for sums in marginals]  # rows without any count as average
        self._shares = [beside(sums[:, None] / sums.sum(), like) for sums in marginals]

    def weighted(self, factor: Array, side: int) -> Array:
        """The rows of a factor, each times its share of the curvature."""
        share = cast(self._shares[side], np.finfo(dtype_of(factor)).dtype)
        if is_numpy(factor):
            return np.multiply(share, factor, out=empty(factor.shape, factor.dtype))
        return share * factor

    def blocks(self, other: Array, side: int, alone: bool) -> Shared:
        """For each row its curvature, times the mean of vⱼᴴvⱼ over the observed rows of the `other` factor."""
        mean = gram(other, self.weighted(other, 1 - side))
        if alone:
            return Shared(((self._filled[side], mean),))
        # Next to other functions the mean becomes a sum, as theirs are, so that damping is the same for all.
        return Shared(((self._sums[side] / other.shape[0], other.shape[0] * mean),))
