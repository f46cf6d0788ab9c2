"""Measurements by random matrices, which are stored or drawn again in each pass."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy

from bifactor.arrays import Array, copied, generator, herm, is_complex, namespace, on_host
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels import blas
from bifactor.linear_map import Dense, LinearMap
from bifactor.losses import DataFit
from bifactor.operators.base import Operator, matrix_shape
from bifactor.operators.bound import DataBound, Measured
from bifactor.validation import is_count, require_measurements

EXACT = 512
"""The number of entries of X up to which A*A is small enough for a dense eigenvalue routine."""


class Gaussian(Operator):
    """A(X)ᵢ = Σ Aᵢ ∘ X with independent entries of Aᵢ from N(0, 1/size), so E‖A(X)‖² = ‖X‖². ‖A‖² ≈ (1 + √(mn/size))².

    The Aᵢ take 8·size·m·n bytes. With `block` they are not stored but drawn again in every pass, which takes about
    ten times as long and 16·block·m·n bytes. Each Aᵢ has its own random stream, so the operator does not depend on
    `block`.

    Parameters
    ----------
    shape : (m, n)
        The shape of X.
    size : int
        The number of measurements p.
    rng : Generator, int or None
        The source of randomness; a seed makes the operator reproducible.
    block : int, optional
        The number of Aᵢ in memory at a time. None stores them all.

    References
    ----------
    Recht, Fazel, Parrilo, "Guaranteed minimum-rank solutions of linear matrix equations via nuclear norm
    minimization", SIAM Review 52(3), 2010. Streams: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        size: int,
        rng: np.random.Generator | int | None = None,
        block: int | None = None,
    ):
        self.shape = matrix_shape(shape)
        if not is_count(size, 1):
            raise InputError(f"size={size!r} is not a number of measurements. Pass an integer ≥ 1.")
        if block is not None and not is_count(block, 1):
            raise InputError(f"block={block!r} is not a number of rows. Pass an integer ≥ 1, or None to store all.")
        self.size = int(size)
        self.block = None if block is None else int(block)
        self._key = generator(rng).integers(2**64, size=2, dtype=np.uint64)
        self._held = self._rows(0, self.size) if block is None else None

    def forward(self, U: Array, V: Array) -> Array:
        return self.measure(namespace(U).reshape(blas.matmul(U, herm(V)), (-1, 1)))[:, 0]

    def adjoint(self, w: Array) -> LinearMap:
        require_measurements(w, self.size)
        return Dense(on_host(self._transposed, w))

    def _transposed(self, w: Array) -> Array:
        total = np.zeros(1)
        for part, rows in self._blocks():
            total = total + _times(rows.T, w[part, None])
        return total.astype(w.dtype, copy=False).reshape(self.shape)

    def work(self, width: int, dtype: Any) -> int:
        item, wide = (np.dtype(kind).itemsize for kind in (dtype, np.result_type(dtype, np.float64)))
        each = 4 * item + (3 * wide if wide > item else 0) + 16 * (self.block or 0)
        return self.shape[0] * self.shape[1] * each

    def bind(self, fit: DataFit) -> DataBound:
        return GaussianBound(self, self.sized(fit))

    def norm_squared(self, weights: Array | None = None) -> float:
        N = self.shape[0] * self.shape[1]
        w = np.ones(self.size) if weights is None else weights

        def gram(x: Array) -> Array:
            x = x.reshape(N, -1)
            parts = [blas.matmul(rows.T, w[part, None] * blas.matmul(rows, x)) for part, rows in self._blocks()]
            return sum(parts[1:], parts[0])

        if N <= EXACT:
            return float(np.linalg.eigvalsh(gram(np.eye(N)))[-1])
        # The largest eigenvalues are clustered; Lanczos then needs a tenth of the passes of power iteration.
        start = np.random.default_rng(0).standard_normal(N)
        A = scipy.sparse.linalg.LinearOperator((N, N), matvec=gram, dtype=np.float64)
        return float(scipy.sparse.linalg.eigsh(A, k=1, tol=1e-3, v0=start, return_eigenvectors=False)[0])

    def mean_square(self, weights: Array | None = None) -> float:
        squares = np.concatenate([np.einsum("ij,ij->i", rows, rows) for _, rows in self._blocks()])
        return float(np.sum(squares if weights is None else weights * squares)) / (self.shape[0] * self.shape[1])

    def measure(self, X: Array) -> Array:
        """A applied to every column of X."""
        return on_host(self._measured, X)

    def _measured(self, X: Array) -> Array:
        return np.concatenate([_times(rows, X) for _, rows in self._blocks()]).astype(X.dtype, copy=False)

    def _blocks(self) -> Iterator[tuple[slice, Array]]:
        """The Aᵢ as rows, some at a time, with their positions."""
        if self._held is not None:
            yield slice(None), self._held
            return
        step = self.block or self.size
        for start in range(0, self.size, step):
            part = slice(start, min(start + step, self.size))
            yield part, self._rows(part.start, part.stop)

    def _rows(self, start: int, stop: int) -> Array:
        rows = np.empty((stop - start, self.shape[0] * self.shape[1]))
        for row, i in zip(rows, range(start, stop), strict=True):
            # i is the highest word of the counter: a stream overlaps the next one only after 2¹⁹² draws.
            stream = np.random.Philox(key=self._key, counter=[0, 0, 0, i])
            np.random.Generator(stream).standard_normal(out=row)
        rows /= np.sqrt(self.size)
        return rows


class GaussianBound(Measured):
    """A curve costs one pass over the Aᵢ: almost all the time is spent reading or drawing them."""

    quick = True
    operator: Gaussian

    def motion(self, x: Factors, d: Factors) -> tuple[Array, Array]:
        X1 = blas.matmul(d.left, herm(x.right)) + blas.matmul(x.left, herm(d.right))
        X2 = blas.matmul(d.left, herm(d.right))
        xp = namespace(X1)
        z = self.operator.measure(xp.reshape(xp.stack([X1, X2], axis=-1), (-1, 2)))
        return copied(z[:, 0]), copied(z[:, 1])


def _times(rows: Array, X: Array) -> Array:
    """rows @ X in double precision. Only the smaller X is ever converted: a complex X is passed as two real columns."""
    if not is_complex(X):
        return blas.matmul(rows, X.astype(np.float64, copy=False))
    return blas.matmul(rows, np.ascontiguousarray(X, dtype=np.complex128).view(np.float64)).view(np.complex128)
