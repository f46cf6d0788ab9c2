"""Sub-sampled Walsh–Hadamard measurements."""

from typing import Any

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.operators.subsampled import Subsampled


class WalshHadamard(Subsampled):
    """Transforms that are computed by a Walsh–Hadamard transform, which is its own inverse up to the factor N."""

    def _check_length(self) -> None:
        if self.length & (self.length - 1):
            raise InputError(
                f"{type(self).__name__} needs mn to be a power of two, but {self.shape[0]}·{self.shape[1]} = "
                f"{self.length} is not. Use DCT or Fourier for other shapes."
            )

    def transform(self, v: Array) -> Array:
        return kernels.find("transforms", v.dtype, v.size).walsh_hadamard(v)

    def inverse(self, v: Array) -> Array:
        return kernels.find("transforms", v.dtype, v.size).walsh_hadamard(v)


class Hadamard(WalshHadamard):
    """A(X) = c·(H v)[sample] with H[j, k] = N^{−½}(−1)^{popcount(j & k)} and v a scrambled vec(X).

    mn must be a power of two. For the parameters, see `Subsampled`.
    """

    def _relabel(self, order: Array | None, sample: Array) -> tuple[Array | None, Array | None, Array, Any]:
        return order, None, sample, self.length**-0.5
