"""Reading of choices: clicks, plays and purchases with one line for each."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from bifactor.tables import Observations, read


def lines_of(
    source: Any, row: Any, col: Any, value: Any, weight: Any, hints: tuple[str, ...] | None = None, **how: Any
) -> Observations:
    """Choices, with counts if there is a column of them; `how` is as for `tables.read`."""
    if value is None and weight is None:
        data = read(source, row=row, col=col, wide=False, values=False, hints=hints, **how)
        return replace(data, values=np.ones(data.rows.size))
    if value is not None:
        return read(source, row=row, col=col, value=value, weight=weight, wide=False, **how)
    data = read(source, row=row, col=col, value=weight, wide=False, **how)
    origin = None if data.origin is None else replace(data.origin, header=data.origin.header[:2])
    return replace(data, values=np.ones_like(data.values), weights=data.values, origin=origin).known().weighed()


def later_lines(source: Any, hints: tuple[str, ...], weight: Any = None, **how: Any) -> Observations:
    """More choices, in the same columns as those of a fit; counts are read if the fit had them."""
    if weight is not None:
        named = {name: how.pop(name, None) for name in ("row", "col", "value")}
        return lines_of(source, **named, weight=weight, hints=hints, **how)
    data = read(source, wide=False, values=None, hints=hints, **how)
    return data if data.values.size else replace(data, values=np.ones(data.rows.size))


def matrix_of(data: Observations) -> sparse.csr_array:
    """Matrix of the weights of choices."""
    return sparse.csr_array((data.weights, (data.rows, data.cols)), shape=data.shape)
