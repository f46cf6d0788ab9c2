"""Memory that an operator reuses, one set per thread."""

import threading
from collections.abc import Callable
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from bifactor.arrays import Array
from bifactor.linear_map import Dense, LinearMap


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.spaces: WeakKeyDictionary[object, Workspace] = WeakKeyDictionary()


class Workspace:
    """Named arrays, and the lazy matrix whose entries the array "matrix" currently holds."""

    def __init__(self) -> None:
        self.arrays: dict[str, Array] = {}
        self.owner: ReferenceType[object] | None = None  # weak: the owner refers to the operator

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array with undefined content; requesting "matrix" takes it from its owner."""
        if name == "matrix":
            self.owner = None
        held = self.arrays.get(name)
        if held is None or held.shape != shape or held.dtype != dtype:
            held = self.arrays[name] = np.empty(shape, dtype=dtype)
        return held


_PER_THREAD = _PerThread()


def workspace(operator: object) -> Workspace:
    """The workspace of an operator in this thread; it is freed with the operator."""
    return _PER_THREAD.spaces.setdefault(operator, Workspace())


class Formed(LinearMap):
    """A matrix that is formed when it is needed, in memory that the next one reuses."""

    def __init__(self, operator: Any, dtype: Any, form: Callable[[Array], None]):
        self.operator, self.form = operator, form
        self.shape = operator.shape
        self.dtype = np.dtype(dtype)

    def matmul(self, V: Array) -> Array:
        return self._dense().matmul(V)

    def rmatmul(self, U: Array) -> Array:
        return self._dense().rmatmul(U)

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        return self._dense().products(U, V)

    def _dense(self) -> Dense:
        space = workspace(self.operator)
        if space.owner is None or space.owner() is not self:
            self.form(space.array("matrix", self.shape, self.dtype))
            space.owner = ref(self)
        return Dense(space.arrays["matrix"])
