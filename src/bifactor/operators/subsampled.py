"""The base class of sub-sampled unitary transforms: scrambling, sampling, and reused memory."""

import threading
from abc import abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from bifactor import kernels
from bifactor._compat import cached_property
from bifactor.arrays import HOST_ARRAY, Array, generator, herm, match_precision, widest
from bifactor.errors import InputError
from bifactor.factors import Factors
from bifactor.kernels import blas
from bifactor.linear_map import Dense, LinearMap
from bifactor.losses import DataFit
from bifactor.losses.data_fit import host_only
from bifactor.operators.base import Operator, matrix_shape
from bifactor.operators.bound import DataBound, Measured
from bifactor.operators.curves import Evaluated
from bifactor.validation import is_count, require_measurements, require_rows


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.spaces: WeakKeyDictionary[object, OperatorWorkspace] = WeakKeyDictionary()


class OperatorWorkspace:
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


def workspace(operator: object) -> OperatorWorkspace:
    """The workspace of an operator in this thread; it is freed with the operator."""
    return _PER_THREAD.spaces.setdefault(operator, OperatorWorkspace())


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


class Subsampled(Operator):
    """A(X) = c·(T v)[sample], with v = vec(X) permuted and with signs, T unitary of length N = mn, c = 1 or √(N/p).

    The rows are orthonormal, so ‖A‖² = 1 and E‖A(X)‖² = (p/N)‖X‖². `normalize=True` takes c = √(N/p), so that
    E‖A(X)‖² = ‖X‖² and ‖A‖² = N/p: then L is N/p over all matrices, but about 1 over those of low rank.

    Parameters
    ----------
    shape : (m, n)
        The shape of X.
    size : int or array of distinct integers
        The number of the N coefficients to keep, drawn without replacement; or their indices.
    rng : Generator, int or None
        The source of randomness for permutation, signs and sample.
    permute, signs : bool
        Whether to permute vec(X) at random and to flip signs at random. Without either, smooth or structured X may
        stay coherent with T.
    normalize : bool
        Whether to take c = √(N/p).
    """

    table = np.array([1.0, 1.0, -1.0, -1.0])
    """The four factors by which entries of v may be multiplied; those two places apart differ in sign."""

    def __init__(
        self,
        shape: tuple[int, int],
        size: int | Array,
        rng: np.random.Generator | int | None = None,
        *,
        permute: bool = True,
        signs: bool = False,
        normalize: bool = False,
    ):
        self.shape = matrix_shape(shape)
        self.length = self.shape[0] * self.shape[1]
        self._check_length()
        source = generator(rng)
        index = np.int32 if self.length <= np.iinfo(np.int32).max else np.int64
        order = source.permutation(self.length).astype(index) if permute else None
        flips = source.random(self.length) < 0.5 if signs else None
        self.sample = _sample(size, self.length, source)
        self.size = int(self.sample.size)
        self.scale = (self.length / self.size) ** 0.5 if normalize else 1.0
        # v[k] is the entry order[k] of vec(X); the labels and phases of T are set by _relabel.
        self._back, code, self.kept, phase = self._relabel(order, self.sample)
        self.kept = self.kept.astype(index)
        self.output = np.full(self.size, self.scale) * phase
        self.by_position = np.argsort(self.kept)
        if flips is not None:
            code = np.where(flips, 2, 0).astype(np.uint8) if code is None else code ^ (2 * flips).astype(np.uint8)
        self._code_back = code
        self._to, self._code_to = self._back, code
        if self._back is not None:
            self._to = np.empty_like(self._back)
            self._to[self._back] = np.arange(self.length, dtype=self._back.dtype)
            self._code_to = None if code is None else code[self._to]

    @abstractmethod
    def transform(self, v: Array) -> Array:
        """T v up to the factor in `_relabel`; may overwrite v."""

    @property
    def kernel(self) -> ModuleType:
        return kernels.get("transforms", HOST_ARRAY, self.length)

    @abstractmethod
    def inverse(self, v: Array) -> Array:
        """Tᴴ v, up to the same factor; may overwrite v."""

    def _check_length(self) -> None:
        """Raise `InputError` if T does not exist for this length."""

    @abstractmethod
    def _relabel(self, order: Array | None, sample: Array) -> tuple[Array | None, Array | None, Array, Any]:
        """(order, code, positions, factor) for a T that is computed with other labels, or up to phases and scale."""

    def forward(self, U: Array, V: Array) -> Array:
        v = self.coefficients(U, V)
        return self.kernel.take(v, self.kept, match_precision(self.output, v.dtype))

    def adjoint(self, w: Array) -> LinearMap:
        require_measurements(w, self.size)
        dtype = np.result_type(w, match_precision(self.table, w.dtype))

        def form(matrix: Array) -> None:
            v = workspace(self).array("vector", (self.length,), dtype)
            self.kernel.spread(w, self.kept, match_precision(self.output, dtype), v)
            self.return_to(self.inverse(v), matrix)

        return Formed(self, dtype, form)

    def work(self, width: int, dtype: Any) -> int:
        item = np.dtype(dtype).itemsize
        # A matrix and a vector that are reused; data, places, factors and slopes in the order of coefficients.
        return 2 * self.length * item + self.size * (2 * item + self.kept.itemsize + self.output.itemsize)

    def bind(self, fit: DataFit) -> DataBound:
        host_only(fit.y, type(self).__name__)
        return SubsampledBound(self, self.sized(fit))

    def coefficients(self, U: Array, V: Array) -> Array:
        """All coefficients T v."""
        require_rows(U, self.shape[0])
        require_rows(V, self.shape[1])
        space = workspace(self)
        X = blas.matmul(U, herm(V), space.array("matrix", self.shape, np.result_type(U, V)))
        table = match_precision(self.table, X.dtype)
        v = space.array("vector", (self.length,), np.result_type(X, table))
        self.kernel.place(X.reshape(-1), self._to, self._code_to, table, v)
        return self.transform(v)

    def return_to(self, v: Array, matrix: Array) -> None:
        """Move the entries of v back to their places in X."""
        table = match_precision(self.table.conj(), v.dtype)
        self.kernel.place(v, self._back, self._code_back, table, matrix.reshape(-1))

    def norm_squared(self, weights: Array | None = None) -> float:
        return self.scale**2 * (1.0 if weights is None else float(np.max(weights)))

    def mean_square(self, weights: Array | None = None) -> float:
        total = self.size if weights is None else float(np.sum(weights, dtype=np.float64))
        return self.scale**2 * total / self.length


class SubsampledBound(Measured):
    """f and its gradient in one pass, in the memory of the operator, if the measurements are real."""

    operator: Subsampled

    def evaluate(self, x: Factors, z: Array | None = None) -> Evaluated:
        like, A = widest(x.left, x.right), self.operator
        size = 0 if z is not None or np.iscomplexobj(A.table) else self.fit.loop_size
        kernel = kernels.get("operators.subsampled", like, size)
        if kernel is None:
            return super().evaluate(x, z)
        dtype, fit = like.dtype, self._by_position
        v, space = A.coefficients(x.left, x.right), workspace(A)
        factor = match_precision(self._factor, dtype)
        slope, matrix = space.array("slope", (A.size,), dtype), space.array("matrix", A.shape, dtype)
        f = kernel.sampled_slopes(fit.loss, self._kept, factor, *fit.arrays(), v, slope)
        A.return_to(A.inverse(A.kernel.spread(slope, self._kept, factor, v)), matrix)
        return Evaluated(f, *Dense(matrix).products(x.left, x.right), None)

    @cached_property
    def _by_position(self) -> DataFit:
        """The data in the order of the coefficients, in which they are read and written faster."""
        return self.fit.take(self.operator.by_position)

    @cached_property
    def _kept(self) -> Array:
        return self.operator.kept[self.operator.by_position]

    @cached_property
    def _factor(self) -> Array:
        return self.operator.output[self.operator.by_position]


def _sample(size: int | Array, length: int, rng: np.random.Generator) -> Array:
    if np.ndim(size) == 0:
        if not is_count(size, 1) or size > length:
            raise InputError(f"size={size!r} is not possible with {length} coefficients. Choose 1 to {length}.")
        # Sorted, so that memory is read and written in order.
        return np.sort(rng.choice(length, int(size), replace=False))
    sample = np.asarray(size)
    if sample.ndim != 1 or sample.dtype.kind not in "iu" or sample.size == 0:
        raise InputError(f"size is {sample.dtype} of shape {sample.shape}. Pass an integer, or a vector of indices.")
    if sample.min() < 0 or sample.max() >= length or np.unique(sample).size != sample.size:
        raise InputError(f"size has repeated indices, or indices outside 0 to {length - 1}. Check size and shape.")
    return sample.astype(np.int64)
