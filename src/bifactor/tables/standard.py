"""The zero and the unit of features, so that those in which users measure do not matter."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.validation import counted


@dataclass(frozen=True, eq=False)
class Standard:
    """A zero and a unit for each feature; f becomes (f − zero)/unit.

    If more than half of the lines have the same value, that is the zero, and the unit is the root mean square distance
    of the other values from it: flags and categories stay 0 and 1, and sparse features stay sparse. Otherwise these are
    the mean and the standard deviation.
    """

    zero: Array
    unit: Array

    @classmethod
    def of(cls, features: sparse.csr_array) -> "Standard":
        """The standard of features with one line for each row."""
        lines, columns = features.shape[0], sparse.csc_array(features, dtype=np.float64)
        starts, counts = columns.indptr[:-1], np.diff(columns.indptr)
        zero, unit, known = np.zeros(counts.size), np.ones(counts.size), counts > 0
        if known.any():
            unit[known] = _sizes(columns.data, starts[known], counts[known])
        for k in np.flatnonzero(2 * counts >= lines):  # in others, most values are 0
            values = columns.data[starts[k] : starts[k] + counts[k]]
            zero[k], unit[k] = zero_and_unit(np.concatenate([values, np.zeros(lines - values.size)]))
        return cls(zero, unit)

    def apply(self, features: sparse.csr_array, what: str) -> sparse.csr_array:
        """The features, called `what`, in these units and counted from these zeros."""
        if features.shape[1] != self.zero.size:
            found = f"{what} has {counted(features.shape[1], 'column')}, but the fit had {self.zero.size}"
            raise InputError(f"{found}. Pass the same columns.")
        moved, found = np.flatnonzero(self.zero), sparse.csr_array(features, dtype=np.float64)
        if moved.size:
            places = np.tile(moved, found.shape[0]), np.arange(0, moved.size * found.shape[0] + 1, moved.size)
            found = found - sparse.csr_array((np.tile(self.zero[moved], found.shape[0]), *places), shape=found.shape)
        found = sparse.csr_array(found, copy=True)
        found.data /= self.unit[found.indices]
        found.eliminate_zeros()
        return found


def zero_and_unit(values: Array) -> tuple[float, float]:
    """The zero and the unit of a feature with these values."""
    if values.size == 0:
        return 0.0, 1.0
    distinct, counts = np.unique(values, return_counts=True)
    most = int(np.argmax(counts))
    if 2 * counts[most] > values.size:
        zero = float(distinct[most])
        rest = values[values != zero] - zero
        return zero, float(_sizes(rest, np.array([0]), np.array([rest.size]))[0]) if rest.size else 1.0
    largest = float(np.max(np.abs(distinct)))
    zero = largest * float(np.mean(values / largest))
    return zero, float(_sizes(values - zero, np.array([0]), np.array([values.size]))[0])


def _sizes(values: Array, starts: Array, counts: Array) -> Array:
    """The root mean square of each run of values, of which some are not 0, without overflow."""
    largest = np.maximum.reduceat(np.abs(values), starts)
    return largest * np.sqrt(np.add.reduceat((values / np.repeat(largest, counts)) ** 2, starts) / counts)
