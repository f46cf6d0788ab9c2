"""Sub-sampled unitary transforms: cosine, Fourier, Walsh–Hadamard and noiselets."""

from typing import Any

import numpy as np
import scipy

from bifactor import kernels
from bifactor.arrays import Array
from bifactor.errors import InputError
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


# Sub-sampled Fourier measurements.


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


# Sub-sampled Walsh–Hadamard measurements.


class WalshHadamard(Subsampled):
    """Transforms that are computed by a Walsh–Hadamard transform, which is its own inverse up to the factor N."""

    def _check_length(self) -> None:
        if self.length & (self.length - 1):
            raise InputError(
                f"{type(self).__name__} needs mn to be a power of two, but {self.shape[0]}·{self.shape[1]} = "
                f"{self.length} is not. Use DCT or Fourier for other shapes."
            )

    def transform(self, v: Array) -> Array:
        return kernels.get("transforms", v, v.size).walsh_hadamard(v)

    def inverse(self, v: Array) -> Array:
        return kernels.get("transforms", v, v.size).walsh_hadamard(v)


class Hadamard(WalshHadamard):
    """A(X) = c·(H v)[sample] with H[j, k] = N^{−½}(−1)^{popcount(j & k)} and v a scrambled vec(X).

    mn must be a power of two. For the parameters, see `Subsampled`.
    """

    def _relabel(self, order: Array | None, sample: Array) -> tuple[Array | None, Array | None, Array, Any]:
        return order, None, sample, self.length**-0.5


# Sub-sampled noiselets, the measurements of the paper's main experiment.


class Noiselet(WalshHadamard):
    """A(X) = c·(R v)[sample] with R the real "dragon" noiselets, or Coifman's complex ones, and v a scrambled vec(X).

    All entries of the N×N matrix have modulus N^{−½}. Real (Romberg): v goes through log₂N passes of sums and
    differences of entries whose labels differ in their leading bits; R is symmetric and its own inverse.
    Complex (Coifman): C = B ⊗ … ⊗ B with B = ½[[1−i, 1+i], [1+i, 1−i]], symmetric and unitary, C² the reversal.

    Both are computed as Walsh–Hadamard transforms H with other labels and phases, without an extra pass over memory:
    with g(j) = j ⊕ 2j (mod N) and c(k) = popcount(k),

        R[j, k] = ε(g(j)) H[g(j), g(k)] ε(g(k)),   ε(k) = (−1)^{⌊c(k)/2⌋},
        C[j, k] = e^{−iπ log₂N/4} i^{c(j) − c(k)} H[N−1−j, k],

    because [[1, i], [i, 1]] = D J H₂ D⁻¹ for D = diag(1, i), J the exchange, and HZ = JH for Z = diag(1, −1).

    mn must be a power of two. Complex noiselets measure complex X. For the other parameters, see `Subsampled`.

    Parameters
    ----------
    complex : bool
        Whether to use Coifman's complex noiselets instead of the real ones.

    References
    ----------
    R. Coifman, F. Geshwind and Y. Meyer, Noiselets, Appl. Comput. Harmon. Anal. 10 (2001).
    A. Waters, A. Sankaranarayanan and R. Baraniuk, SpaRCS, NIPS 2011.
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
        if complex:
            self.complex_matrix = True
            self.table = np.array([1, -1j, -1, 1j])  # i^{−c}
        super().__init__(shape, size, rng, permute=permute, signs=signs, normalize=normalize)

    def _relabel(self, order: Array | None, sample: Array) -> tuple[Array | None, Array, Array, Any]:
        labels = np.arange(self.length)
        code = (np.bitwise_count(labels) & 3).astype(np.uint8)
        if self.complex_matrix:
            turn = self.length**-0.5 * np.exp(-0.25j * np.pi * (self.length.bit_length() - 1))
            return order, code, self.length - 1 - sample, turn * 1j ** (np.bitwise_count(sample) % 4)
        gray = (labels ^ (labels << 1)) & (self.length - 1)
        back = np.empty(self.length, dtype=np.int32 if order is None else order.dtype)
        back[gray] = labels if order is None else order
        kept = gray[sample]
        return back, code, kept, self.length**-0.5 * self.table[code[kept]]
