"""Pauli expectations of a quantum state of n qubits."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from bifactor import kernels
from bifactor.arrays import Array, generator
from bifactor.errors import InputError
from bifactor.kernels.threading import thread_count
from bifactor.linear_map import LinearMap
from bifactor.losses import DataFit
from bifactor.losses.data_fit import host_only
from bifactor.operators.base import Operator
from bifactor.operators.bound import DataBound
from bifactor.validation import is_count, require_measurements, require_rows

LETTERS = "IXZY"
"""Letter k has x = k & 1 and z = k >> 1."""


class Pauli(Operator):
    """A(X)ᵢ = c·Re tr(Pᵢ X) for Pauli strings Pᵢ = σ ⊗ … ⊗ σ, σ ∈ {I, X, Y, Z}, and complex X of size d = 2ⁿ.

    No d×d matrix is formed: strings with the same bit flips share one fast Walsh–Hadamard transform. The strings are
    orthogonal, so ‖A‖² = d unless one is repeated.

    Parameters
    ----------
    n_qubits : int
        The number of qubits n.
    strings : list of labels such as "XIZY", int or None
        The strings (the first letter is the first Kronecker factor), the number of strings to draw at random without
        replacement, or None for all 4ⁿ.
    rng : Generator, int or None
        The source of randomness for the strings.
    normalize : bool
        Whether to take c = √(d/p), so that E‖A(X)‖² = ‖X‖² over Hermitian X; otherwise c = 1.
    """

    complex_matrix = True

    def __init__(
        self,
        n_qubits: int,
        strings: Sequence[str] | int | None = None,
        rng: np.random.Generator | int | None = None,
        normalize: bool = False,
    ):
        if not is_count(n_qubits, 1) or n_qubits > 30:
            raise InputError(f"n_qubits={n_qubits!r} is not possible. Choose an integer from 1 to 30.")
        self.n_qubits = int(n_qubits)
        d = 1 << self.n_qubits
        self.shape = (d, d)
        self.x, self.z = _masks(self.n_qubits, strings, rng)
        self.size = int(self.x.size)
        self.scale = (d / self.size) ** 0.5 if normalize else 1.0
        self._order = np.lexsort((self.z, self.x))
        self._masks, first = np.unique(self.x[self._order], return_index=True)
        self._groups = (self._masks, np.append(first, self.size), self.z[self._order])

    @property
    def labels(self) -> list[str]:
        """The strings, in the order of the measurements."""
        bits = range(self.n_qubits - 1, -1, -1)
        codes = [(self.x >> b & 1) + 2 * (self.z >> b & 1) for b in bits]
        return ["".join(LETTERS[k] for k in string) for string in np.transpose(codes)]

    def forward(self, U: Array, V: Array) -> Array:
        require_rows(U, self.shape[0])
        require_rows(V, self.shape[1])
        measured = _kernel(self._groups, U).expectations(*self._groups, U, V)
        z = np.empty_like(measured)
        z[self._order] = measured * measured.dtype.type(self.scale)
        return z

    def adjoint(self, w: Array) -> LinearMap:
        require_measurements(w, self.size)
        return Combination(self.shape, self._groups, np.real(w)[self._order] * w.real.dtype.type(self.scale))

    def work(self, width: int, dtype: Any) -> int:
        # Real measurements, in two orders; a sum for each thread.
        return (self.size + (thread_count() + 1) * self.shape[0] * width) * np.dtype(dtype).itemsize

    def bind(self, fit: DataFit) -> DataBound:
        host_only(fit.y, type(self).__name__)
        return super().bind(fit)

    def norm_squared(self, weights: Array | None = None) -> float:
        _, string = np.unique(self.x * self.shape[0] + self.z, return_inverse=True)
        return self.scale**2 * self.shape[0] * float(np.bincount(string, weights).max())

    def mean_square(self, weights: Array | None = None) -> float:
        total = self.size if weights is None else float(np.sum(weights, dtype=np.float64))
        # The real part contains half of ‖X‖² of a complex X; all of it if X is Hermitian.
        return self.scale**2 * total / (2 * self.shape[0])


class Combination(LinearMap):
    """Σ wᵢ Pᵢ, which is Hermitian."""

    def __init__(self, shape: tuple[int, int], groups: tuple[Array, Array, Array], w: Array):
        self.shape, self.groups, self.w = shape, groups, w
        self.dtype: Any = np.result_type(w.dtype, np.complex64)

    def matmul(self, V: Array) -> Array:
        require_rows(V, self.shape[1])
        return _kernel(self.groups, V).combine(*self.groups, self.w, V)

    def rmatmul(self, U: Array) -> Array:
        return self.matmul(U)

    def products(self, U: Array, V: Array) -> tuple[Array, Array]:
        GV = self.matmul(V)
        return GV, GV if U is V else self.matmul(U)


def _kernel(groups: tuple[Array, Array, Array], U: Array) -> ModuleType:
    # The reference takes as long for a mask as compiled loops for hundreds of numbers.
    return kernels.get("transforms", U, groups[0].size * max(U.shape[0], 256), U.shape[1])


def _masks(n: int, strings: Sequence[str] | int | None, rng: Any) -> tuple[Array, Array]:
    """The bits x and z of each string, the first letter in the highest bit."""
    total = 4**n
    if strings is None or isinstance(strings, (int, np.integer)):
        count = total if strings is None else strings
        if not is_count(count, 1) or count > total:
            raise InputError(f"strings={strings!r} is not possible with {n} qubits. Choose 1 to {total}.")
        chosen = np.arange(total) if count == total else _distinct(generator(rng), total, int(count))
        return chosen >> n, chosen & ((1 << n) - 1)
    labels = list(strings)
    for label in labels:
        if not isinstance(label, str) or len(label) != n or set(label) - set(LETTERS):
            raise InputError(f"{label!r} is not a Pauli string on {n} qubits. Use {n} of the letters I, X, Y and Z.")
    if not labels:
        raise InputError("Pauli got no strings. Pass at least one.")
    codes = np.array([[LETTERS.index(letter) for letter in label] for label in labels])
    place = 1 << np.arange(n - 1, -1, -1)
    return (codes & 1) @ place, (codes >> 1) @ place


def _distinct(rng: np.random.Generator, total: int, count: int) -> Array:
    """A random subset, without listing a large set."""
    if total <= 1 << 20:
        return np.sort(rng.choice(total, count, replace=False))
    chosen = np.empty(0, dtype=np.int64)
    while chosen.size < count:
        chosen = np.unique(np.append(chosen, rng.integers(total, size=2 * count)))
    return np.sort(rng.permutation(chosen)[:count])
