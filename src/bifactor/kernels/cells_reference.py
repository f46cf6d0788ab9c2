"""A loss and its derivatives at all cells of some rows, in NumPy: the definition of the compiled kernel.

Z holds z at the rows of a sheet from `first` on, and a loss is given by its array methods, ℓ, ℓ′ and ℓ″.
"""

import numpy as np

from bifactor.arrays import Array
from bifactor.kernels.losses_reference import Part
from bifactor.kernels.sheet import Sheet


def derivatives(value: Part, gradient: Part, curvature: Part, sheet: Sheet, first: int, Z: Array, C: Array) -> Array:
    """Σ w·ℓ(z; y) of each row; w·ℓ′(z; y) is written to Z, and w·ℓ″(z; y) to C, unless it has no rows."""
    y, w = sheet.part(first, first + len(Z)).dense()
    if len(C):
        C[:] = w * curvature(Z, y)
    totals: Array = (w * value(Z, y)).sum(axis=1, dtype=np.float64)
    Z[:] = w * gradient(Z, y)
    return totals
