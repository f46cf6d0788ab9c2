"""Tall arrays whose rows are held in parts, somewhere else: on the workers of a cluster.

`Rows` is one more array library: it has the functions of the array standard that factors need, and no others. What
comes out small is NumPy's. The parts are cut where blocks of observations are; an array that is as long as all blocks
together is spread over them, and any other one stays NumPy's.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

Handle = Any
"""What stands for a part: only its placement looks inside."""


class Each(tuple[Any, ...]):
    """An operand that differs from part to part, one small value for each."""


class Placement(ABC):
    """Where the parts are, and how functions of them are computed there. It is the `device` of the arrays."""

    cuts: tuple[int, ...]
    """The first row of each part, and the end."""

    @property
    def rows(self) -> int:
        return self.cuts[-1]

    @abstractmethod
    def apply(self, function: Callable[..., Any], operands: Sequence[Any]) -> list[Handle]:
        """The function of each part; operands are `Rows`, `Each`, or values that all parts share."""

    @abstractmethod
    def collect(self, handles: Sequence[Handle]) -> list[Any]:
        """The values of parts, here and in their order."""

    @abstractmethod
    def spread(self, parts: Sequence[np.ndarray]) -> list[Handle]:
        """Arrays that are here, taken there."""

    def __str__(self) -> str:
        return "parts elsewhere"


@dataclass(frozen=True, eq=False)
class Rows:
    """An array of as many rows as a placement has."""

    handles: tuple[Handle, ...]
    device: Placement
    meta: np.ndarray
    """An array without rows that is alike otherwise."""

    __array_ufunc__ = None  # NumPy leaves operators to this class

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return NAMESPACE

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.device.rows if self.handles else 0, *self.meta.shape[1:])

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

    def __getitem__(self, chosen: Any) -> "Rows":
        first = chosen[0] if isinstance(chosen, tuple) else chosen
        if first == slice(0) and isinstance(first, slice):
            return Rows((), self.device, self.meta)
        if not isinstance(chosen, tuple) or first != slice(None):
            raise TypeError("Rows are held in parts elsewhere. Gather them with host first.")
        return mapped(operator.getitem, self, chosen)

    def __matmul__(self, other: np.ndarray) -> "Rows":
        return mapped(np.matmul, self, other)

    def __neg__(self) -> "Rows":
        return mapped(operator.neg, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if not self.handles:
            return self.meta
        whole = np.concatenate(self.device.collect(self.handles))
        return whole if dtype is None else whole.astype(dtype)

    def total(self, function: Callable[..., Any], *others: Any) -> Any:
        """The sum over all parts of a small function of each, in their order."""
        values = self.device.collect(self.device.apply(function, (self, *others)))
        return sum(values[1:], values[0])


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    def forth(self: Rows, other: Any) -> Rows:
        return mapped(function, self, other)

    def back(self: Rows, other: Any) -> Rows:
        return mapped(function, other, self)

    return forth, back


for _name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "gt", "ge", "lt", "le", "ne"):
    _forth, _back = _binary(getattr(operator, f"__{_name}__"))
    setattr(Rows, f"__{_name}__", _forth)
    setattr(Rows, f"__r{_name}__", _back)


class Transposed:
    """Aᵀ, for products with another tall array."""

    def __init__(self, rows: Rows):
        self.rows = rows

    def __matmul__(self, other: Rows) -> np.ndarray:
        found: np.ndarray = self.rows.total(_transposed_product, other)
        return found


def mapped(function: Callable[..., Any], *operands: Any) -> Rows:
    """The function of each part, as an array of the same placement."""
    device = next(a.device for a in operands if isinstance(a, Rows))
    operands = tuple(_placed(a, device) for a in operands)
    meta = function(*(a.meta if isinstance(a, Rows) else a[0] if isinstance(a, Each) else a for a in operands))
    return Rows(tuple(device.apply(function, operands)), device, meta)


def spread(array: Any, device: Placement) -> Any:
    """In parts, where it is as long as these together; else as it is."""
    if isinstance(array, Rows) or np.ndim(array) == 0 or len(array) != device.rows:
        return array
    array = np.asarray(array)
    parts = [array[a:b] for a, b in zip(device.cuts[:-1], device.cuts[1:], strict=True)]
    return Rows(tuple(device.spread(parts)), device, array[:0])


def _placed(operand: Any, device: Placement) -> Any:
    return operand if isinstance(operand, Each) else spread(operand, device)


# What runs where a part is.


def _transposed_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.T @ b


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.vdot(_wide(a), _wide(b)).real)


def _squares(a: np.ndarray) -> np.ndarray:
    wide = _wide(a)
    found: np.ndarray = np.sum((wide * wide.conj()).real, axis=0)
    return found


def _sum(a: np.ndarray, dtype: Any) -> Any:
    return np.sum(a, dtype=dtype)


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.result_type(a.dtype, np.float64), copy=False)


def _joined(*arrays: np.ndarray) -> np.ndarray:
    return np.concatenate(arrays, axis=1)


def _taken(a: np.ndarray, index: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(a[:, index])


def _cast(a: np.ndarray, dtype: Any) -> np.ndarray:
    return a.astype(dtype, copy=False)


def _row_norms(a: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a, axis=1, keepdims=True)


def _top(a: np.ndarray) -> Any:
    return a.max(initial=-np.inf)


def _times_q(a: np.ndarray, piece: np.ndarray) -> np.ndarray:
    return np.linalg.qr(a)[0] @ piece


def _r(a: np.ndarray) -> Any:
    return np.linalg.qr(a, mode="r")


def dot(a: Rows, b: Rows) -> float:
    """Re⟨a, b⟩, in double precision."""
    return float(a.total(_dot, b))


def triangular(a: Rows) -> Any:
    """R of the QR factorisation: that of the R of all parts, one below the other."""
    return _r(_stacked(a)[0])


def _stacked(a: Rows) -> tuple[np.ndarray, list[int]]:
    parts = a.device.collect(a.device.apply(_r, (a,)))
    return np.concatenate(parts), [len(part) for part in parts]


# The functions of the array standard.


def _orthonormal(a: Rows, mode: str = "reduced") -> tuple[Rows, np.ndarray]:
    below, lengths = _stacked(a)
    Q, R = np.linalg.qr(below)
    pieces = Each(np.split(Q, np.cumsum(lengths)[:-1]))
    found = Rows(tuple(a.device.apply(_times_q, (a, pieces))), a.device, a.meta)
    return found, R


def _vector_norm(a: Rows, axis: int | None = None, keepdims: bool = False) -> Any:
    if axis == 1:
        return mapped(_row_norms, a)
    squares = a.total(_squares)
    return np.sqrt(squares if axis == 0 else np.sum(squares))


def _asarray(array: Any, dtype: Any = None, device: Placement | None = None, copy: bool | None = None) -> Any:
    if isinstance(array, Rows):  # parts are never written to
        return array if dtype is None else mapped(_cast, array, np.dtype(dtype))
    assert device is not None
    return spread(np.asarray(array, dtype), device)


def _new_zeros(shape: tuple[int, ...], dtype: Any = None, device: Placement | None = None) -> Any:
    assert device is not None
    if shape[0] != device.rows:
        return np.zeros(shape, dtype)
    lengths = Each(b - a for a, b in zip(device.cuts[:-1], device.cuts[1:], strict=True))
    handles = device.apply(_zero_part, (lengths, shape[1:], np.dtype(dtype)))
    return Rows(tuple(handles), device, np.zeros((0, *shape[1:]), dtype))


def _zero_part(length: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.zeros((length, *shape), dtype)


def _isdtype(dtype: Any, kind: str) -> bool:
    return np.isdtype(dtype, kind)


class _Namespace(SimpleNamespace):
    """Hashable, as modules are: array-api-compat 1.11 collects namespaces in a set."""

    __hash__ = object.__hash__  # type: ignore[assignment]


NAMESPACE = _Namespace(
    __name__="bifactor.rows",
    asarray=_asarray,
    zeros=_new_zeros,
    astype=lambda a, dtype, copy=True: mapped(_cast, a, np.dtype(dtype)),
    concat=lambda arrays, axis=0: mapped(_joined, *arrays),
    take=lambda a, index, axis: mapped(_taken, a, index),
    conj=lambda a: mapped(np.conj, a),
    real=lambda a: mapped(np.real, a),
    sum=lambda a, dtype=None: a.total(_sum, dtype),
    max=lambda a: max(a.device.collect(a.device.apply(_top, (a,)))),
    any=lambda a: any(a.device.collect(a.device.apply(np.any, (a,)))),
    where=lambda chosen, a, b: mapped(np.where, chosen, a, b),
    isdtype=_isdtype,
    linalg=SimpleNamespace(vector_norm=_vector_norm, qr=_orthonormal),
    float32=np.float32,
    float64=np.float64,
    complex64=np.complex64,
    complex128=np.complex128,
)
