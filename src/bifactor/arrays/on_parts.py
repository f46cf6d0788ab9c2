"""The functions that run where a part of a tall array is stored: plain functions of NumPy arrays."""

from typing import Any

import numpy as np


def transposed_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.T @ b


def dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.vdot(_wide(a), _wide(b)).real)


def squares(a: np.ndarray) -> np.ndarray:
    wide = _wide(a)
    found: np.ndarray = np.sum((wide * wide.conj()).real, axis=0)
    return found


def sum_of(a: np.ndarray, dtype: Any) -> Any:
    return np.sum(a, dtype=dtype)


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.result_type(a.dtype, np.float64), copy=False)


def joined(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, axis=1)


def taken(a: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a[:, index])


def cast(a: np.ndarray, dtype: Any) -> np.ndarray:
    return a.astype(dtype, copy=False)


def row_norms(a: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a, axis=1, keepdims=True)


def top(a: np.ndarray) -> Any:
    return a.max(initial=-np.inf)


def times_q(a: np.ndarray, piece: np.ndarray) -> np.ndarray:
    return np.linalg.qr(a)[0] @ piece


def triangle(a: np.ndarray) -> Any:
    return np.linalg.qr(a, mode="r")


def zero_part(length: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.zeros((length, *shape), dtype)
