"""All entries observed."""

from dataclasses import dataclass

from bifactor.arrays import Array, herm, namespace
from bifactor.kernels import blas
from bifactor.linear_map import Dense, LinearMap
from bifactor.losses import DataFit
from bifactor.operators.base import Operator, matrix_shape
from bifactor.operators.bound import DataBound
from bifactor.validation import require_rows


@dataclass(frozen=True)
class Full(Operator):
    """A(X) = vec(X), row by row. ‖A‖² = 1, or the largest weight.

    y may be given as the m×n matrix itself. X is formed, because the residual is as large as the data.
    """

    shape: tuple[int, int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", matrix_shape(self.shape))

    @property
    def size(self) -> int:  # type: ignore[override]
        return self.shape[0] * self.shape[1]

    def forward(self, U: Array, V: Array) -> Array:
        require_rows(U, self.shape[0])
        require_rows(V, self.shape[1])
        return namespace(U, V).reshape(blas.matmul(U, herm(V)), (-1,))

    def adjoint(self, w: Array) -> LinearMap:
        return Dense(namespace(w).reshape(w, self.shape))

    def norm_squared(self, weights: Array | None = None) -> float:
        return 1.0 if weights is None else float(namespace(weights).max(weights))

    def mean_square(self, weights: Array | None = None) -> float:
        return 1.0 if weights is None else float(namespace(weights).mean(weights))

    def bind(self, fit: DataFit) -> DataBound:
        return super().bind(fit.flat(self.shape))
