"""The base class of operators: linear maps from m×n matrices to measurements, applied to factors only."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from bifactor.arrays import Array, gaussian, norm, product_norm
from bifactor.display.card import card, figures
from bifactor.errors import InputError
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.operators.bound import DataBound, Measured
from bifactor.validation import pluralize


class Operator(ABC):
    """z = A(UVᴴ), a vector of `size` measurements of a matrix of `shape`."""

    shape: tuple[int, int]
    size: int
    complex_matrix: bool | None = None
    """Whether X is complex even if y is real, as for quantum states; None means that X is complex if y is."""

    @abstractmethod
    def forward(self, U: Array, V: Array) -> Array:
        """A(UVᴴ)."""

    @abstractmethod
    def adjoint(self, w: Array) -> LinearMap:
        """A*(w), as a lazy matrix."""

    @abstractmethod
    def norm_squared(self, weights: Array | None = None) -> float:
        """‖W^½ A‖² with W = diag(weights), a NumPy array: the largest curvature of ½ Σ wᵢ zᵢ²."""

    @abstractmethod
    def mean_square(self, weights: Array | None = None) -> float:
        """The typical curvature: E‖W^½ A(X)‖²/‖X‖²_F over X with no preferred direction, usually ‖W^½ A‖²_F/(mn)."""

    def work(self, width: int, dtype: Any) -> int:
        """Bytes of temporary memory in passes over the measurements, for factors of this many columns and this dtype.

        The return values of `forward` and of products with the adjoint do not count. By default, two numbers for each
        measurement and column, or X if that is smaller.
        """
        m, n = self.shape
        return min(m * n, 2 * self.size * width) * np.dtype(dtype).itemsize

    def bind(self, fit: DataFit) -> DataBound:
        """f(X) = Σ wᵢ ℓ(A(X)ᵢ; yᵢ). Override it to return a bound that computes f faster than forward and adjoint do.

        That bound may take the measurements in another order.
        """
        return Measured(self, self.sized(fit))

    def sized(self, fit: DataFit) -> DataFit:
        """Data with one number per measurement; `InputError` if they do not match this operator."""
        if fit.group is None and len(fit.each_loss) > 1:
            raise InputError("There are several losses. Pass group=, or a Stacked with one operator for each loss.")
        return fit.sized(self.size, self.takes)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"{type(self).__name__}({pluralize(self.size, 'measurement')} of {m}×{n})"

    def _repr_html_(self) -> str:
        m, n = self.shape
        shown = [
            (f"{self.size:,}", "measurements"),
            (f"{m:,}×{n:,}", "matrix"),
            (f"{self.size / (m * n):.3g}", "measurements per entry"),
            ("complex" if self.complex_matrix else None, "entries"),
        ]
        return card(repr(self), "", figures(shown))

    @property
    def takes(self) -> str:
        """A clause for messages that says what the operator measures."""
        m, n = self.shape
        return f"{type(self).__name__} takes {pluralize(self.size, 'measurement')} of a {m}×{n} matrix"


def power_norm_squared(operator: Operator, weights: Array | None = None, steps: int = 100, block: int = 64) -> float:
    """‖W^½ A‖² by power iteration on A*WA, for operators without a formula.

    X is processed in blocks of columns, so that nothing larger than an m×block product is formed besides X.
    The result is a lower estimate, typically within a percent.
    """
    m, n = operator.shape
    X = gaussian(np.random.default_rng(0), (m, n), np.complex128 if operator.complex_matrix else np.float64)
    value = 0.0
    for _ in range(steps):
        X = X / norm(X)
        z: Array = np.zeros(operator.size)
        for start in range(0, n, block):
            columns = np.eye(n, min(block, n - start), -start)
            z = z + operator.forward(X[:, start : start + block], columns)
        w = z if weights is None else weights * z
        value = float(np.sum(np.real(np.conj(z) * w)))
        if value == 0.0:
            return 0.0
        G = operator.adjoint(w)
        X = np.hstack([G @ np.eye(n, min(block, n - s), -s) for s in range(0, n, block)])
    return value


def probed_mean_square(operator: Operator, weights: Array | None = None, probes: int = 16) -> float:
    """E‖W^½ A(X)‖²/‖X‖²_F from the measurements of some random X, for operators without a formula."""
    rng = np.random.default_rng(0)
    dtype = np.complex128 if operator.complex_matrix else np.float64
    seen = size = 0.0
    for _ in range(probes):
        U, V = (gaussian(rng, (k, 4), dtype) for k in operator.shape)
        square = np.abs(operator.forward(U, V)) ** 2
        seen += float(np.sum(square if weights is None else weights * square))
        size += product_norm(U, V) ** 2
    return seen / size


def matrix_shape(shape: Any) -> tuple[int, int]:
    """The shape as two positive integers; `InputError` if it is anything else."""
    try:
        m, n = shape
        if m == int(m) and n == int(n) and min(m, n) >= 1:
            return int(m), int(n)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"shape={shape!r} is not the shape of a matrix. Pass two positive integers, (m, n).")
