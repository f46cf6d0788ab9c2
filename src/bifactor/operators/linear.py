"""Any linear map that acts on vec(X): an array, a sparse matrix, a LinearOperator."""

from typing import Any

import numpy as np
from scipy import sparse

from bifactor.arrays import (
    Array,
    conj,
    floating,
    gaussian,
    herm,
    inner,
    is_complex,
    namespace,
    on_host,
    row_squares,
    to_numpy,
)
from bifactor.arrays.sparse import require_sound
from bifactor.errors import InputError
from bifactor.linear_map import Dense, LinearMap
from bifactor.operators.base import Operator, matrix_shape, power_norm_squared, probed_mean_square
from bifactor.validation import require_finite

EXACT = 256
"""The number of entries of X up to which every column of B is used; above, random probes are accurate enough."""


MISMATCH = 1e-5
"""The allowed difference of ⟨Bx, Bx⟩ and ⟨x, BᴴBx⟩ relative to the first: above the rounding of single precision."""


class Linear(Operator):
    """A(X) = B vec(X), vec row by row: vec(X)[i·n + j] = X[i, j]. ‖A‖² = ‖B‖², by power iteration.

    X is formed. A real B measures the real and imaginary parts of a complex X one after the other.
    Results have the precision of the factors, independently of that of B. A complex B makes X complex.

    Parameters
    ----------
    operator : array, SciPy sparse matrix, LinearOperator, or any object with `shape`, `matvec` and `rmatvec`
        The matrix B, with m·n columns. pylops operators are such objects. `rmatvec(w)` is Bᴴw.
    shape : (m, n)
        The shape of X.
    """

    def __init__(self, operator: Any, shape: tuple[int, int]):
        self.shape = matrix_shape(shape)
        self._action = _action(operator)
        rows, columns = self._action.shape
        m, n = self.shape
        if columns != m * n:
            raise InputError(
                f"operator has {columns} columns, but a {m}×{n} matrix has {m * n} entries. "
                "Pass an operator that acts on vec(X), or another shape."
            )
        self.size = int(rows)
        self._is_complex = _has_complex_dtype(self._action, self.size, columns)
        self.complex_matrix = self._is_complex or None

    def forward(self, U: Array, V: Array) -> Array:
        return on_host(self._apply, self._action.matvec, namespace(U).reshape(U @ herm(V), (-1,)))

    def adjoint(self, w: Array) -> LinearMap:
        return Dense(namespace(w).reshape(on_host(self._apply, self._action.rmatvec, w), self.shape))

    def norm_squared(self, weights: Array | None = None) -> float:
        # X is formed in any case, so one block is used.
        return power_norm_squared(self, weights, block=self.shape[1])

    def mean_square(self, weights: Array | None = None) -> float:
        w, N = 1.0 if weights is None else weights, self.shape[0] * self.shape[1]
        if isinstance(self._action, _Matrix):
            return float(np.sum(w * self._action.row_squares())) / N
        if N > EXACT:
            return probed_mean_square(self, weights)
        columns = (self._apply(self._action.matvec, e) for e in np.eye(N))
        return float(sum(np.sum(w * np.abs(column) ** 2) for column in columns)) / N

    def work(self, width: int, dtype: Any) -> int:
        item = np.dtype(dtype).itemsize
        wide = np.result_type(dtype, getattr(self._action, "dtype", None) or np.float64).itemsize
        return self.shape[0] * self.shape[1] * (item + wide)

    def _apply(self, action: Any, x: Array) -> Array:
        if is_complex(x) and not self._is_complex:
            # Code for real numbers may drop an imaginary part, and a real matrix would be copied to a complex one.
            z = _vector(action(x.real)) + 1j * _vector(action(x.imag))
        else:
            z = _vector(action(x))
        return z.astype(np.result_type(x.dtype, np.complex64) if is_complex(z) else x.real.dtype, copy=False)


class _Matrix:
    """A dense or sparse matrix as a linear operator; its adjoint needs no copy of it."""

    def __init__(self, matrix: Array):
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def matvec(self, x: Array) -> Array:
        return self.matrix @ x

    def rmatvec(self, w: Array) -> Array:
        return conj(self.matrix.T @ conj(w))

    def row_squares(self) -> Array:
        if sparse.issparse(self.matrix):
            matrix: Any = self.matrix
            squares = np.abs(matrix.data) ** 2
            places = matrix.indices, matrix.indptr  # shared; arithmetic on the matrix would copy them
            return sparse.csr_array((squares, *places), shape=self.shape) @ np.ones(self.shape[1], squares.dtype)
        return row_squares(self.matrix)


def _action(operator: Any) -> Any:
    """An object with shape, matvec and rmatvec."""
    if callable(getattr(operator, "matvec", None)):
        if not callable(getattr(operator, "rmatvec", None)) or len(getattr(operator, "shape", ())) != 2:
            raise InputError(
                f"{type(operator).__name__} has matvec but not both rmatvec and a shape of two numbers. "
                "Add the missing attributes."
            )
        return operator
    if sparse.issparse(operator) and operator.ndim == 2:
        require_sound(operator, "operator")
        matrix = sparse.csr_array(operator)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the arrays belong to the caller
            matrix.sum_duplicates()
        values = matrix.data = floating(matrix.data, "operator")
    else:
        values = matrix = to_numpy(floating(operator.toarray() if sparse.issparse(operator) else operator, "operator"))
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError(f"operator has shape {matrix.shape}. Pass a matrix with one row per measurement.")
    require_finite(values, "operator", "Check how it was computed.")
    return _Matrix(matrix)


def _has_complex_dtype(action: Any, rows: int, columns: int) -> bool:
    """Whether B is complex. An operator of the user is tried once in each direction, to find a wrong adjoint."""
    dtype = getattr(action, "dtype", None)
    if isinstance(action, _Matrix):
        return np.dtype(dtype).kind == "c"
    kind = np.float64 if dtype is None else np.result_type(dtype, np.float32)
    x = gaussian(np.random.default_rng(0), (columns,), kind)
    try:
        z = _vector(action.matvec(x))
        back = _vector(action.rmatvec(z if z.size == rows else np.zeros(rows, kind)))
    except NotImplementedError:
        raise InputError(f"{type(action).__name__} has no adjoint. Implement its rmatvec.") from None
    if z.size != rows or back.size != columns:
        raise InputError(
            f"matvec and rmatvec return {z.size} and {back.size} numbers, but operator has shape {(rows, columns)}. "
            "Correct its shape or its methods."
        )
    _check_adjoint(inner(z, z), inner(x, back))
    return is_complex(z) if dtype is None else np.dtype(kind).kind == "c"


def _check_adjoint(there: float, back: float) -> None:
    """⟨Bx, Bx⟩ = ⟨x, BᴴBx⟩."""
    if not (np.isfinite(there) and np.isfinite(back)):
        raise InputError("A product with the operator is not finite. Check its matvec and rmatvec.")
    if abs(there - back) > MISMATCH * abs(there):
        raise InputError(
            f"rmatvec is not the adjoint of matvec: ⟨Bx, Bx⟩ is {there:.6g}, but ⟨x, BᴴBx⟩ is {back:.6g}. "
            "Correct it and run bifactor.testing.check_operator."
        )


def _vector(values: Any) -> Array:
    return floating(values, "a product with the operator").reshape(-1)
