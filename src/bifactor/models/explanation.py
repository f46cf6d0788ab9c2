"""Why a column is recommended: what each column that a row has chosen adds to the score.

The factors of a row are u = M⁻¹ Σₖ wₖvₖ over the columns k that it has chosen, with M = Σₖ wₖvₖvₖᵀ + w₀VᵀV + ρI. So the
score of column j is a sum over them, of wₖ·vⱼᵀM⁻¹vₖ (Hu, Koren and Volinsky 2008, section 5). Features of the row add
what is left to its score.
"""

from typing import Any

import numpy as np

from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.models.fit import Fit
from bifactor.tables import Observations
from bifactor.validation import is_count


def contributions(fit: Fit, data: Observations, row: Any, col: Any, n: int) -> tuple[Array, Array]:
    """The n columns that carry the score of `col` for a row, most first, and what each adds."""
    model = fit.model
    assert model.clicks is not None
    assert model.ridge is not None
    if not is_count(n, 1):
        raise InputError(f"n={n!r} is not an integer ≥ 1. Ask for at least one column.")
    if np.ndim(row) or np.ndim(col):
        raise InputError("One recommendation is explained at a time. Pass one row and one column.")
    (i,), (j,) = fit.places(row, "row"), fit.places(col, "column")
    if i < 0 or j < 0:
        raise InputError(f"There was no {'row' if i < 0 else 'column'} named {(row if i < 0 else col)!r} in the fit.")
    here = data.rows == i
    chosen, weight = data.cols[here], model.clicks.unobserved
    sure = np.ones(chosen.size) if data.weights is None else data.weights[here]
    V, part = model.V.astype(np.float64), model.clicks.part(1)
    others = V if part is None else part[:, None] * V
    ridge = model.ridge * (sure.sum() + weight * len(V))
    M = weight * (V.T @ others) + (V[chosen].T * sure) @ V[chosen] + ridge * np.eye(V.shape[1])
    added = sure * (V[chosen] @ np.linalg.solve(M, V[j]))
    order = np.argsort(-added, kind="stable")[: int(n)]
    return fit.cols[chosen[order]], added[order]
