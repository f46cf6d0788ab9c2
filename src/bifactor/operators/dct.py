"""Sub-sampled cosine measurements."""

from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.operators.subsampled import Subsampled


class DCT(Subsampled):
    """A(X) = c·(T v)[sample] with T the orthonormal DCT-II of any length, and v a scrambled vec(X).

    For the parameters, see `Subsampled`.
    """

    def _relabel(self, order: Array | None, sample: Array) -> tuple[Array | None, Array | None, Array, Any]:
        return order, None, sample, 1.0

    def work(self, width: int, dtype: Any) -> int:
        return super().work(width, dtype) + self.length * np.dtype(dtype).itemsize  # used by SciPy

    def transform(self, v: Array) -> Array:
        return scipy.fft.dct(v, norm="ortho", overwrite_x=True)

    def inverse(self, v: Array) -> Array:
        return scipy.fft.idct(v, norm="ortho", overwrite_x=True)
