"""Sub-sampled noiselets, the measurements of the paper's main experiment."""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.operators.hadamard import WalshHadamard


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
