"""Tall arrays whose rows are held in parts on other machines, the workers of a cluster.

`RowArray` is another array library: it has the functions of the array standard that factors need, and no others. Small
results are NumPy arrays. The parts are divided like the blocks of observations; an array that is as long as all blocks
together is distributed over them, and any other one stays a NumPy array.

Functions whose results are tall are recorded, see `deferred`. They run when a sum or a pass needs them.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from types import SimpleNamespace
from typing import Any

import numpy as np

from bifactor.arrays.backends import DistributedArray
from bifactor.executors.deferred import (
    Deferred,
    DeferredPlan,
    DeferredSum,
    Handle,
    PerPart,
    ReductionBatch,
    ResultGroup,
    sum_parts,
)

# The functions that run where a part of a tall array is stored: plain functions of NumPy arrays.


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


def join_columns(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, axis=1)


def take_columns(a: np.ndarray, index: np.ndarray) -> np.ndarray:
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


class RowPlacement(ABC):
    """Where the parts are, and how functions of them are computed there. It is the `device` of the arrays."""

    cuts: tuple[int, ...]
    """The first row of each part, and the end."""

    def __init__(self, cuts: tuple[int, ...]):
        self.cuts = cuts

    @property
    def rows(self) -> int:
        return self.cuts[-1]

    @abstractmethod
    def run(self, plan: DeferredPlan) -> list[tuple[Any, ...]]:
        """Run the plan's program on each part, settle what it keeps, and return what it is asked for."""

    @abstractmethod
    def spread(self, parts: Sequence[np.ndarray]) -> list[Handle]:
        """Send arrays of this machine to where the parts are; each handle stands for a tuple of one."""

    def __str__(self) -> str:
        return "parts elsewhere"


class RowArray(DistributedArray):
    """An array with the rows of a placement, or without rows if `noted` is None."""

    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __init__(self, noted: Deferred | None, device: RowPlacement, meta: np.ndarray):
        self.noted, self.device = noted, device
        self.meta = meta
        """An array without rows that is otherwise alike."""
        self.known: dict[Any, tuple[Any, Any]] = {}
        """Sums with other arrays, while these exist."""
        if noted is not None:
            noted.held_by(self)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return NAMESPACE

    @property
    def shape(self) -> tuple[int, ...]:
        return (0 if self.noted is None else self.device.rows, *self.meta.shape[1:])

    @property
    def ndim(self) -> int:
        return self.meta.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.meta.dtype

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def T(self) -> "Transposed":
        return Transposed(self)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, chosen: Any) -> "RowArray":
        first = chosen[0] if isinstance(chosen, tuple) else chosen
        if first == slice(0) and isinstance(first, slice):
            return RowArray(None, self.device, self.meta)
        if not isinstance(chosen, tuple) or first != slice(None):
            raise TypeError("Rows are held on other machines. Gather them with host first.")
        return map_parts(operator.getitem, self, chosen)

    def __matmul__(self, other: np.ndarray) -> "RowArray":
        return map_parts(np.matmul, self, other)

    def __neg__(self) -> "RowArray":
        return map_parts(operator.neg, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.noted is None:
            return self.meta
        whole = np.concatenate(_values_by_part(self.device, self.noted))
        return whole if dtype is None else whole.astype(dtype)

    def by_part(self, function: Callable[..., Any], *others: Any) -> list[Any]:
        """The small result of a function for each part."""
        return _values_by_part(self.device, _noted(function, _placed((self, *others), self.device)))

    def total(self, function: Callable[..., Any], *others: Any) -> Any:
        """The sum of a small function of each part, in their order; kept if the others are `RowArray`, too."""
        if not all(isinstance(a, RowArray) for a in others):
            return sum_parts(self.by_part(function, *others))
        asked = DeferredSum(function, self, *others)
        _compute_sums(asked)
        return asked.value

    def inner(self, other: "RowArray") -> float:
        return float(self.total(dot, other))

    def triangular(self) -> np.ndarray:
        """R of the QR factorisation: that of the R of all parts, stacked."""
        found: np.ndarray = triangle(_stacked(self)[0])
        return found

    def mean(self) -> float:
        return float(self.total(np.sum)) / len(self)

    def largest(self) -> float:
        return float(max(self.by_part(top)))

    @staticmethod
    def compute_products(
        inners: Sequence[tuple["RowArray", "RowArray"]], grams: Sequence[tuple["RowArray", "RowArray"]]
    ) -> None:
        dots = [DeferredSum(dot, *pair) for pair in inners]
        _compute_sums(*dots, *(DeferredSum(transposed_product, *pair) for pair in grams))


def _compute_sums(*sums: DeferredSum) -> None:
    """Compute the sums that are not known, with one question for each placement."""
    for device in dict.fromkeys(one.arrays[0].device for one in sums):
        question = ReductionBatch([], (one for one in sums if one.arrays[0].device is device))
        if question.sums:
            question.set_results(device.run(question.plan))


def inner_products(arrays: Sequence[Any]) -> list[DeferredSum]:
    """Re⟨a, b⟩ for all pairs of those arrays that are in parts and have one shape."""
    far = [a for a in arrays if isinstance(a, RowArray)]
    pairs = combinations_with_replacement(far, 2)
    return [DeferredSum(dot, a, b) for a, b in pairs if a.shape == b.shape]


def _values_by_part(device: RowPlacement, asked: Deferred) -> list[Any]:
    return [part[0] for part in device.run(DeferredPlan([asked]))]


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    def forth(self: RowArray, other: Any) -> RowArray:
        return map_parts(function, self, other)

    def back(self: RowArray, other: Any) -> RowArray:
        return map_parts(function, other, self)

    return forth, back


for _name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "gt", "ge", "lt", "le", "ne"):
    _forth, _back = _binary(getattr(operator, f"__{_name}__"))
    setattr(RowArray, f"__{_name}__", _forth)
    setattr(RowArray, f"__r{_name}__", _back)


class Transposed:
    """Aᵀ, for products with another tall array."""

    def __init__(self, rows: RowArray):
        self.rows = rows

    def __matmul__(self, other: RowArray) -> np.ndarray:
        found: np.ndarray = self.rows.total(transposed_product, other)
        return found


def map_parts(function: Callable[..., Any], *operands: Any) -> RowArray:
    """The function of each part, as an array of the same placement."""
    device = next(a.device for a in operands if isinstance(a, RowArray))
    placed = _placed(operands, device)
    meta = function(*(a.meta if isinstance(a, RowArray) else a[0] if isinstance(a, PerPart) else a for a in placed))
    return RowArray(_noted(function, placed), device, meta)


def spread(array: Any, device: RowPlacement) -> Any:
    """The array in parts if it is as long as these together; otherwise unchanged."""
    if isinstance(array, RowArray) or np.ndim(array) == 0 or len(array) != device.rows:
        return array
    array = np.asarray(array)
    parts = [array[a:b] for a, b in zip(device.cuts[:-1], device.cuts[1:], strict=True)]
    return RowArray(Deferred.made(ResultGroup(tuple(device.spread(parts)), 1), 0), device, array[:0])


def _placed(operands: Sequence[Any], device: RowPlacement) -> list[Any]:
    return [a if isinstance(a, PerPart) else spread(a, device) for a in operands]


def _noted(function: Callable[..., Any], placed: Sequence[Any]) -> Deferred:
    """The function, to run later; small arrays are copied, since they may have changed by then."""
    copied = (np.array(a) if isinstance(a, np.ndarray) else a for a in placed)
    return Deferred(function, tuple(a.noted if isinstance(a, RowArray) else a for a in copied))


def _stacked(a: RowArray) -> tuple[np.ndarray, list[int]]:
    parts = a.by_part(triangle)
    return np.concatenate(parts), [len(part) for part in parts]


# The functions of the array standard.


def _orthonormal(a: RowArray, mode: str = "reduced") -> tuple[RowArray, np.ndarray]:
    below, lengths = _stacked(a)
    Q, R = np.linalg.qr(below)
    pieces = PerPart(np.split(Q, np.cumsum(lengths)[:-1]))
    return RowArray(_noted(times_q, (a, pieces)), a.device, a.meta), R


def _vector_norm(a: RowArray, axis: int | None = None, keepdims: bool = False) -> Any:
    if axis == 1:
        return map_parts(row_norms, a)
    sums = a.total(squares)
    return np.sqrt(sums if axis == 0 else np.sum(sums))


def _asarray(array: Any, dtype: Any = None, device: RowPlacement | None = None, copy: bool | None = None) -> Any:
    if isinstance(array, RowArray):  # parts are never written to
        return array if dtype is None else map_parts(cast, array, np.dtype(dtype))
    assert device is not None
    return spread(np.asarray(array, dtype), device)


def _new_zeros(shape: tuple[int, ...], dtype: Any = None, device: RowPlacement | None = None) -> Any:
    assert device is not None
    if shape[0] != device.rows:
        return np.zeros(shape, dtype)
    lengths = PerPart(b - a for a, b in zip(device.cuts[:-1], device.cuts[1:], strict=True))
    noted = Deferred(zero_part, (lengths, shape[1:], np.dtype(dtype)))
    return RowArray(noted, device, np.zeros((0, *shape[1:]), dtype))


def _isdtype(dtype: Any, kind: str) -> bool:
    return np.isdtype(dtype, kind)


class _Namespace(SimpleNamespace):
    """Hashable, as modules are: array-api-compat 1.11 collects namespaces in a set."""

    __hash__ = object.__hash__  # type: ignore[assignment]


NAMESPACE = _Namespace(
    __name__="bifactor.rows",
    asarray=_asarray,
    zeros=_new_zeros,
    astype=lambda a, dtype, copy=True: map_parts(cast, a, np.dtype(dtype)),
    concat=lambda arrays, axis=0: map_parts(join_columns, *arrays),
    take=lambda a, index, axis: map_parts(take_columns, a, index),
    conj=lambda a: map_parts(np.conj, a),
    real=lambda a: map_parts(np.real, a),
    sum=lambda a, dtype=None: a.total(sum_of, dtype),
    max=lambda a: a.largest(),
    any=lambda a: any(a.by_part(np.any)),
    where=lambda chosen, a, b: map_parts(np.where, chosen, a, b),
    isdtype=_isdtype,
    linalg=SimpleNamespace(vector_norm=_vector_norm, qr=_orthonormal),
    float32=np.float32,
    float64=np.float64,
    complex64=np.complex64,
    complex128=np.complex128,
)
