"""Sub-sampled Fourier measurements."""

from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array
from bifactor.operators.subsampled import Subsampled


class Fourier(Subsampled):
    """A(X) = c·(F v)[sample] with F the unitary discrete Fourier transform of any length, and v a scrambled vec(X).

    For real X (the default) the spectrum is conjugate symmetric; F then keeps each number once, as the real orthonormal
    rows [F₀, √2 Re F₁, √2 Im F₁, √2 Re F₂, …]. For the other parameters, see `Subsampled`.

    Parameters
    ----------
    complex : bool
        Whether to take the complex transform of complex X.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        size: int | Array,
        rng: np.random.Generator | int | None = None,
        *,
        complex: bool = False,
        permute: bool = True,
        signs: bool = False,
        normalize: bool = False,
    ):
        self.complex_matrix = complex or None
        super().__init__(shape, size, rng, permute=permute, signs=signs, normalize=normalize)

    def _relabel(self, order: Array | None, sample: Array) -> tuple[Array | None, Array | None, Array, Any]:
        return order, None, sample, 1.0

    def work(self, width: int, dtype: Any) -> int:
        more = 1 if self.complex_matrix else 3  # used by SciPy, or a spectrum that is packed and unpacked
        return super().work(width, dtype) + more * self.length * np.dtype(dtype).itemsize

    def transform(self, v: Array) -> Array:
        if self.complex_matrix:
            return scipy.fft.fft(v, norm="ortho", overwrite_x=True)
        if np.iscomplexobj(v):
            return self.transform(v.real) + 1j * self.transform(v.imag)
        spectrum = scipy.fft.rfft(v, norm="ortho")
        packed = np.sqrt(v.dtype.type(2)) * spectrum.view(v.dtype)
        packed[0] = packed[1] = spectrum[0].real  # the imaginary part of F₀ is 0 and is not stored
        if self.length % 2 == 0:
            packed[-2] = spectrum[-1].real
        return packed[1 : 1 + self.length]

    def inverse(self, v: Array) -> Array:
        if self.complex_matrix:
            return scipy.fft.ifft(v, norm="ortho", overwrite_x=True)
        if np.iscomplexobj(v):
            return self.inverse(v.real) + 1j * self.inverse(v.imag)
        packed = np.zeros(2 * (self.length // 2 + 1), dtype=v.dtype)
        packed[1 : 1 + self.length] = v / np.sqrt(v.dtype.type(2))
        packed[0], packed[1] = v[0], 0
        if self.length % 2 == 0:
            packed[-2] = v[-1]
        spectrum = packed.view(np.result_type(v.dtype, np.complex64))
        return scipy.fft.irfft(spectrum, self.length, norm="ortho")
